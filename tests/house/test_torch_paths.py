"""Every name is importable where PyTorch has it: programs change `torch` in their import lines."""

import importlib
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import minitorch as mt

# What comes after `import torch` in public programs, by module.
LINES = """
torch.amp: GradScaler autocast custom_bwd custom_fwd
torch.autograd: Function Variable backward grad gradcheck gradgradcheck
torch.autograd: enable_grad inference_mode no_grad set_grad_enabled
torch.autograd.function: Function FunctionCtx once_differentiable
torch.autograd.functional: hessian hvp jacobian jvp vhp vjp
torch.autograd.graph: Node disable_saved_tensors_hooks register_multi_grad_hook save_on_cpu
torch.autograd.graph: increment_version saved_tensors_hooks
torch.autograd.profiler: profile record_function
torch.backends: cuda cudnn mkl mkldnn mps
torch.compiler: disable is_compiling
torch.cuda: Event Stream current_device current_stream device_count empty_cache is_available
torch.cuda: get_device_capability get_device_name get_device_properties is_bf16_supported
torch.cuda: manual_seed manual_seed_all max_memory_allocated max_memory_reserved
torch.cuda: memory_allocated memory_reserved memory_summary reset_peak_memory_stats set_device
torch.cuda: get_rng_state set_rng_state stream synchronize default_stream mem_get_info seed
torch.cuda.amp: GradScaler autocast custom_bwd custom_fwd
torch.distributed: all_gather all_gather_object all_reduce barrier broadcast
torch.distributed: broadcast_object_list destroy_process_group get_backend get_rank
torch.distributed: get_world_size init_process_group is_available is_initialized new_group
torch.func: functional_call grad grad_and_value hessian jacfwd jacrev jvp linearize
torch.func: stack_module_state vjp vmap
torch.hub: download_url_to_file get_dir load load_state_dict_from_url set_dir
torch.jit: Final annotate export ignore is_scripting is_tracing script trace unused
torch.nn: DataParallel Module Parameter functional init parallel utils
torch.nn.modules: Linear Module
torch.nn.modules.module: Module register_module_forward_hook
torch.nn.parallel: DataParallel DistributedDataParallel
torch.nn.parameter: Parameter
torch.nn.utils: clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm
torch.nn.utils: fuse_conv_bn_eval parameters_to_vector remove_spectral_norm remove_weight_norm
torch.nn.utils: parametrizations parametrize prune rnn skip_init spectral_norm stateless
torch.nn.utils: vector_to_parameters weight_norm
torch.nn.utils.parametrizations: spectral_norm weight_norm
torch.nn.utils.parametrize: ParametrizationList cached is_parametrized register_parametrization
torch.nn.utils.parametrize: remove_parametrizations type_before_parametrizations
torch.nn.utils.prune: BasePruningMethod CustomFromMask L1Unstructured PruningContainer
torch.nn.utils.prune: custom_from_mask global_unstructured identity is_pruned l1_unstructured
torch.nn.utils.prune: ln_structured random_structured random_unstructured remove
torch.nn.utils.stateless: functional_call
torch.onnx: export is_in_onnx_export
torch.profiler: ProfilerActivity profile record_function schedule tensorboard_trace_handler
torch.serialization: add_safe_globals safe_globals
torch.types: Device Number
torch.utils: checkpoint data
torch.utils.checkpoint: checkpoint checkpoint_sequential detach_variable
torch.utils.data: DataLoader Dataset
torch.utils.model_zoo: load_url
torch.utils.tensorboard: SummaryWriter
torch: Tensor autocast compile is_autocast_enabled nn optim set_float32_matmul_precision
torch: get_float32_matmul_precision use_deterministic_algorithms vmap
torch: are_deterministic_algorithms_enabled
"""
PAIRS = [
    (module, name)
    for module, _, names in (line.partition(": ") for line in LINES.split("\n") if line)
    for name in names.split()
]
MODULES = sorted({module for module, _ in PAIRS})


def imported(path: str, name: str) -> Any:
    """What `from path import name` gives."""
    module = importlib.import_module(path)
    if not hasattr(module, name):
        return importlib.import_module(f"{path}.{name}")
    return getattr(module, name)


@pytest.mark.parametrize(("module", "name"), PAIRS)
def test_from_import(module: str, name: str) -> None:
    if name == "SummaryWriter":
        pytest.importorskip("tensorboardX")
    assert imported(module.replace("torch", "minitorch", 1), name) is not None


@pytest.mark.parametrize("module", MODULES)
def test_the_path_as_attributes(module: str) -> None:
    found: Any = mt
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    assert found is importlib.import_module(module.replace("torch", "minitorch", 1))


def test_torch_has_these_lines() -> None:
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, name in PAIRS:
            if name != "SummaryWriter":  # there it needs the tensorboard package
                imported(module, name)


def test_nothing_of_it_loads_with_minitorch() -> None:
    code = "import minitorch, minitorch.trainer, sys; print(*sys.modules, sep='\\n')"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    late = "func pytree settings jit compiler distributed hub onnx profiler types version backends"
    assert not {f"minitorch.{name}" for name in late.split()} & loaded
    assert not {"minitorch.nn.utils.prune", "minitorch.autograd.functional"} & loaded


class TestWhatTheyDo:
    def test_switches(self) -> None:
        assert mt.backends.cudnn.benchmark is False
        mt.backends.cudnn.benchmark = True
        assert mt.backends.cudnn.benchmark is True
        mt.backends.cudnn.benchmark = False
        mt.backends.cuda.matmul.allow_tf32 = True
        mt.backends.cuda.matmul.allow_tf32 = False
        libraries = ("mps", "mkl", "mkldnn", "cudnn")
        assert not any(getattr(mt.backends, n).is_available() for n in libraries)
        assert not mt.backends.mps.is_built()
        assert not mt.backends.cuda.is_built()
        assert mt.backends.cudnn.version() is None
        assert mt.backends.cpu.get_cpu_capability() == "DEFAULT"
        mt.use_deterministic_algorithms(True, warn_only=True)
        assert mt.are_deterministic_algorithms_enabled()
        assert mt.is_deterministic_algorithms_warn_only_enabled()
        mt.use_deterministic_algorithms(False)
        assert not mt.are_deterministic_algorithms_enabled()
        mt.set_float32_matmul_precision("high")
        assert mt.get_float32_matmul_precision() == "high"
        mt.set_float32_matmul_precision("highest")
        with pytest.raises(ValueError, match="must be one of"):
            mt.set_float32_matmul_precision("low")

    def test_script_leaves_the_function(self) -> None:
        def f(x: Any) -> Any:
            return x

        with pytest.warns(UserWarning, match=r"jit\.script"):
            assert mt.jit.script(f) is f

    def test_annotations_of_scripts(self) -> None:
        def f(x: Any) -> Any:
            return x

        jit = mt.jit
        assert jit.ignore(f) is jit.unused(f) is jit.export(f) is f
        assert jit.ignore(drop=True)(f) is f
        assert jit.annotate(int, 3) == 3
        assert not any([jit.is_scripting(), jit.is_tracing(), mt.compiler.is_compiling()])

    def test_data_parallel(self) -> None:
        net = mt.nn.DataParallel(mt.nn.Linear(2, 1), device_ids=[0])
        x = mt.ones(3, 2)
        assert net(x).tolist() == net.module(x).tolist()
        assert set(net.state_dict()) == {"module.weight", "module.bias"}

    def test_profiler_labels(self) -> None:
        with mt.profiler.record_function("forward"):
            pass

        @mt.autograd.profiler.record_function("step")
        def step() -> int:
            return 1

        assert step() == 1

    def test_hub_folder(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TORCH_HOME", "somewhere")
        assert mt.hub.get_dir().endswith("hub")
        monkeypatch.setattr(mt.hub, "_chosen", None)
        mt.hub.set_dir("weights")
        assert mt.hub.get_dir() == "weights"

    def test_serialization(self) -> None:
        mt.serialization.add_safe_globals([dict])
        with mt.serialization.safe_globals([dict]):
            assert mt.serialization.get_safe_globals() == []

    def test_version(self) -> None:
        assert mt.version.__version__ == mt.__version__
        assert mt.version.cuda is None

    def test_summary_writer(self, tmp_path: Any) -> None:
        pytest.importorskip("tensorboardX")
        from minitorch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(tmp_path)) as writer:
            writer.add_scalar("loss", mt.tensor(1.5, requires_grad=True) * 2, 1)
            writer.add_histogram("weights", mt.rand(10), 1)
            writer.add_scalars("several", {"a": mt.tensor(1.0)}, 1)
        assert list(tmp_path.glob("events.out.tfevents*"))
        with pytest.raises(AttributeError, match="has no attribute 'nope'"):
            _ = mt.utils.tensorboard.nope


REFUSED: dict[str, Any] = {
    "jit.trace: there is no TorchScript": lambda: mt.jit.trace(None, None),
    "jit.save": lambda: mt.jit.save(None, "x"),
    "jit.load": lambda: mt.jit.load("x"),
    "hub.load: no code from elsewhere": lambda: mt.hub.load("a", "b"),
    "onnx.export: there is no export": lambda: mt.onnx.export(None),
    "distributed.new_group": lambda: mt.distributed.new_group([0]),
    "DistributedDataParallel": lambda: mt.nn.parallel.DistributedDataParallel(mt.nn.ReLU()),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_missing_says_so(text: str) -> None:
    with pytest.raises(NotImplementedError, match=text):
        REFUSED[text]()


class TestCudaWithoutGpu:
    def test_nothing_is_in_use(self) -> None:
        cuda = mt.cuda
        assert not any([cuda.is_available(), cuda.is_initialized(), cuda.is_bf16_supported()])
        cuda.empty_cache()
        cuda.reset_peak_memory_stats()
        cuda.ipc_collect()
        counts = cuda.memory_allocated(), cuda.max_memory_allocated(), cuda.max_memory_reserved()
        assert counts == (0, 0, 0)
        assert "0.0 MiB" in cuda.memory_summary()
        assert cuda.get_rng_state_all() == []
        with cuda.stream(None), cuda.device(None):
            pass

    @pytest.mark.parametrize(
        "call",
        [
            lambda: mt.cuda.set_device(0),
            lambda: mt.cuda.get_device_name(0),
            lambda: mt.cuda.get_device_capability(),
            lambda: mt.cuda.mem_get_info(),
            lambda: mt.cuda.Stream(),
            lambda: mt.cuda.Event(),
            lambda: mt.cuda.current_stream(),
        ],
    )
    def test_the_rest_says_that_there_is_none(self, call: Any) -> None:
        with pytest.raises(mt.DeviceError, match="'cuda' needs CuPy"):
            call()

    def test_seeds(self) -> None:
        mt.cuda.manual_seed_all(5)
        assert mt.cuda.initial_seed() == mt.initial_seed() == 5
        state = mt.cuda.get_rng_state()
        first = mt.rand(3).tolist()
        mt.cuda.set_rng_state(state)
        assert mt.rand(3).tolist() == first
        mt.cuda.set_rng_state_all([state])
        assert mt.rand(3).tolist() == first
        mt.cuda.seed_all()
        assert mt.initial_seed() != 5

    def test_old_mixed_precision(self) -> None:
        x = mt.rand(2, 2)
        with mt.cuda.amp.autocast():
            assert mt.is_autocast_enabled()
            assert (x @ x).dtype == mt.float32
        w = mt.nn.Parameter(mt.ones(1))
        optimizer, scaler = mt.optim.SGD([w], lr=1.0), mt.cuda.amp.GradScaler(init_scale=8.0)
        scaler.scale((w * 2).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert w.item() == -1.0


@pytest.mark.parametrize("place", ["amp", "cuda.amp"])
def test_custom_forward_and_backward_under_autocast(place: str) -> None:
    seen: list[Any] = []
    amp = mt.amp if place == "amp" else mt.cuda.amp
    options = {"device_type": "cpu"} if place == "amp" else {}

    def function(**cast: Any) -> Any:
        class Product(mt.autograd.Function):
            @staticmethod
            @amp.custom_fwd(**options, **cast)
            def forward(ctx: Any, x: Any, scale: Any) -> Any:
                seen.append((x.dtype, mt.is_autocast_enabled("cpu")))
                ctx.save_for_backward(x)
                return x @ x

            @staticmethod
            @amp.custom_bwd(**options)
            def backward(ctx: Any, g: Any) -> Any:
                seen.append(mt.is_autocast_enabled("cpu"))
                (x,) = ctx.saved_tensors
                return (g.float() @ x.float().T) * 2, None

        return Product.apply

    x = mt.rand(2, 2, requires_grad=True)
    on_cpu = place == "amp"
    with mt.autocast("cpu", mt.bfloat16):
        y = function()(x, 1)
        z = function(cast_inputs=mt.float32)(x.to(mt.bfloat16), 1)
    assert y.dtype == mt.bfloat16
    assert z.dtype == (mt.float32 if on_cpu else mt.bfloat16)
    (y.float().sum() + z.float().sum()).backward()
    assert x.grad is not None
    assert np.isfinite(x.grad.numpy()).all()
    assert seen[:2] == [
        (mt.float32, True),
        (mt.float32 if on_cpu else mt.bfloat16, not on_cpu),
    ]
    assert sorted(seen[2:]) == [False, on_cpu]
