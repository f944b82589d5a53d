"""Modules move as a whole, keep their objects and ties, and load states from any device."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn


class _Net(nn.Module):
    """A parameter, buffers of two kinds, a tie, and layers in plain containers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(4, 4), nn.ReLU()]
        self.heads = {"a": nn.Linear(4, 2)}
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(mt.ones(4))
        self.tied = self.layers[0].weight
        self.offset = mt.zeros(4)
        self.count = mt.tensor(3)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.heads["a"](self.norm(x) * self.scale + self.offset)


X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def _tensors(module: nn.Module) -> list[mt.Tensor]:
    return [*module.parameters(), *module.buffers()]


@pytest.mark.parametrize(
    "move",
    [lambda m: m.to("cuda"), lambda m: m.cuda(), lambda m: m.to(mt.ones(1, device="cuda:0"))],
    ids=["to", "cuda", "to a tensor"],
)
def test_everything_moves(move: Callable[[nn.Module], nn.Module], pretend_gpu: ModuleType) -> None:
    net = _Net()
    assert move(net) is net
    assert {str(t.device) for t in _tensors(net)} == {"cuda:0"}
    assert str(net.offset.device) == str(net.count.device) == "cuda:0"
    assert net.count.dtype is mt.int64


@pytest.mark.usefixtures("pretend_gpu")
def test_parameters_stay_the_same_objects_and_ties_hold() -> None:
    net = _Net()
    before = {name: id(p) for name, p in net.named_parameters()}
    net.cuda()
    assert {name: id(p) for name, p in net.named_parameters()} == before
    assert net.tied is net.layers[0].weight
    assert all(p.is_leaf and p.requires_grad for p in net.parameters())


def test_each_tensor_moves_once(pretend_gpu: ModuleType) -> None:
    net = _Net()
    with pretend_gpu.counters.watch() as seen:
        net.cuda()
    numbers = [t for t in _tensors(net) if t.ndim == 0]
    assert seen.host_to_device.calls == len(_tensors(net)) - len(numbers)
    assert seen.host_to_device.bytes == sum(t.nbytes for t in _tensors(net) if t.ndim)
    with pretend_gpu.counters.watch() as seen:
        net.to("cuda:0")
    assert seen.host_to_device.calls == seen.device_to_host.calls == 0, seen.report()


@pytest.mark.usefixtures("pretend_gpu")
def test_gradients_move_along() -> None:
    net = _Net()
    net(mt.tensor(X)).sum().backward()
    want = net.scale.grad.numpy(force=True)
    net.cuda()
    assert net.scale.grad.is_cuda
    net.cpu()
    np.testing.assert_array_equal(net.scale.grad.numpy(), want)


@pytest.mark.usefixtures("pretend_gpu")
def test_device_and_dtype_at_once() -> None:
    net = _Net().to("cuda", mt.float64)
    assert {t.dtype for t in net.parameters()} == {mt.float64}
    assert net.count.dtype is mt.int64
    assert net(mt.tensor(X, device="cuda").double()).dtype is mt.float64


@pytest.mark.parametrize("training", [True, False])
def test_outputs_and_gradients_equal_the_cpus(training: bool, pretend_gpu: ModuleType) -> None:
    cpu = _Net().train(training)
    gpu = copy.deepcopy(cpu).cuda()
    x = mt.tensor(X, device="cuda")
    with pretend_gpu.counters.watch() as seen:
        loss = (gpu(x) ** 2).mean()
        loss.backward()
    assert seen.host_to_device.calls == 0, seen.report()
    assert seen.device_to_host.calls == seen.synchronisations.calls == 0, seen.report()
    (cpu(mt.tensor(X)) ** 2).mean().backward()
    for (name, p), q in zip(cpu.named_parameters(), gpu.parameters(), strict=True):
        np.testing.assert_allclose(
            q.grad.cpu().numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6, err_msg=name
        )
    for p, q in zip(cpu.buffers(), gpu.buffers(), strict=True):
        np.testing.assert_allclose(q.cpu().numpy(), p.numpy(), rtol=1e-5)


@pytest.mark.usefixtures("pretend_gpu")
def test_states_load_across_devices() -> None:
    source, target = _Net().cuda(), _Net()
    target.load_state_dict(source.state_dict())
    assert {str(t.device) for t in _tensors(target)} == {"cpu"}
    for p, q in zip(source.parameters(), target.parameters(), strict=True):
        np.testing.assert_array_equal(p.detach().cpu().numpy(), q.detach().numpy())
    source.load_state_dict(_Net().state_dict())
    assert {str(t.device) for t in _tensors(source)} == {"cuda:0"}


@pytest.mark.usefixtures("pretend_gpu")
def test_files_hold_device_tensors_and_load_on_any_device(tmp_path: Path) -> None:
    net = _Net().cuda()
    mt.save(net.state_dict(), tmp_path / "net.safetensors")
    for where in (None, "cpu", "cuda"):
        state = mt.load(tmp_path / "net.safetensors", map_location=where)
        for name, value in net.state_dict().items():
            np.testing.assert_array_equal(state[name].cpu().numpy(), value.cpu().numpy())
            if where is not None:
                assert state[name].device.type == where


@pytest.mark.usefixtures("pretend_gpu")
def test_deepcopies_stay_on_their_device() -> None:
    assert {str(t.device) for t in _tensors(copy.deepcopy(_Net().to("cuda:1")))} == {"cuda:1"}


@pytest.mark.usefixtures("pretend_gpu")
def test_layers_can_be_made_on_the_device() -> None:
    mt.manual_seed(0)
    there = nn.Linear(3, 2, device="cuda")
    mt.manual_seed(0)
    here = nn.Linear(3, 2)
    assert there.weight.is_cuda
    np.testing.assert_array_equal(there.weight.detach().cpu().numpy(), here.weight.detach().numpy())


def test_norm_clipping_does_not_wait(pretend_gpu: ModuleType) -> None:
    cpu = _Net()
    gpu = copy.deepcopy(cpu).cuda()
    norms = []
    for net, where in ((cpu, "cpu"), (gpu, "cuda")):
        net(mt.tensor(X, device=where)).sum().backward()
    norms.append(nn.utils.clip_grad_norm_(cpu.parameters(), 0.5))
    with pretend_gpu.counters.watch() as seen:
        norms.append(nn.utils.clip_grad_norm_(gpu.parameters(), 0.5))
    assert seen.synchronisations.calls == seen.device_to_host.calls == 0, seen.report()
    assert seen.host_to_device.calls == 0, seen.report()
    np.testing.assert_allclose(norms[1].item(), norms[0].item(), rtol=1e-5)
    for p, q in zip(cpu.parameters(), gpu.parameters(), strict=True):
        np.testing.assert_allclose(q.grad.cpu().numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6)
