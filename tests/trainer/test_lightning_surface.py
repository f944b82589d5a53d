"""The names of Lightning 2.6 that exist here, and those that do not, with the reason."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from toy_tasks import Regression, arrays, loader, quiet

from minitorch.callbacks import Callback
from minitorch.trainer import TaskModule, Trainer
from minitorch.trainer.arguments import REPLACED

EVENTS = """setup teardown on_fit_start on_fit_end on_sanity_check_start on_sanity_check_end
on_train_batch_start on_train_batch_end on_train_epoch_start on_train_epoch_end on_train_start
on_train_end on_validation_epoch_start on_validation_epoch_end on_validation_batch_start
on_validation_batch_end on_validation_start on_validation_end on_test_epoch_start
on_test_epoch_end on_test_batch_start on_test_batch_end on_test_start on_test_end
on_predict_epoch_start on_predict_epoch_end on_predict_batch_start on_predict_batch_end
on_predict_start on_predict_end on_exception on_save_checkpoint on_load_checkpoint
on_before_backward on_after_backward on_before_optimizer_step on_before_zero_grad state_dict
load_state_dict state_key""".split()

PROCESSES = "there is one process"
LATER = "not here yet"
EXPORT = "there is no TorchScript, ONNX or TensorRT export yet"
MODES = "modes are a scope of the Trainer (phase.py)"
NOT_IN_MODULE = {
    "all_gather": PROCESSES,
    "global_rank": PROCESSES,
    "local_rank": PROCESSES,
    "device_mesh": PROCESSES,
    "fabric": PROCESSES,
    "on_gpu": "self.device.type tells it",
    "configure_sharded_model": "deprecated there; configure_model",
    "strict_loading": "load_from_checkpoint(strict=...)",
    "remove_ignored_hparams": "internal there",
    "to_onnx": EXPORT,
    "to_tensorrt": EXPORT,
    "to_torchscript": EXPORT,
    "on_predict_model_eval": MODES,
    "on_test_model_eval": MODES,
    "on_test_model_train": MODES,
    "on_validation_model_eval": MODES,
    "on_validation_model_train": MODES,
    "on_validation_model_zero_grad": "gradients of a half-filled window are kept",
}


@pytest.fixture(scope="module")
def lightning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torch")
        return pytest.importorskip("pytorch_lightning")


@pytest.mark.parametrize("name", EVENTS)
def test_callbacks_have_the_event(name: str) -> None:
    assert hasattr(Callback, name)


def test_callbacks_take_the_same_arguments(lightning: Any) -> None:
    for name, theirs in vars(lightning.Callback).items():
        if not name.startswith("_") and callable(theirs):
            assert name in EVENTS
            ours = inspect.signature(getattr(Callback, name)).parameters
            assert len(ours) == len(inspect.signature(theirs).parameters), name


def test_modules_have_the_names_or_a_reason(lightning: Any) -> None:
    import torch

    names = set(dir(lightning.LightningModule)) - set(dir(torch.nn.Module))
    public = {name for name in names if not name.startswith("_") and name.islower()}
    assert {name for name in public if not hasattr(TaskModule, name)} == set(NOT_IN_MODULE)


def test_arguments_of_the_trainer_exist_or_are_replaced(lightning: Any) -> None:
    theirs = set(inspect.signature(lightning.Trainer).parameters)
    ours = set(inspect.signature(Trainer).parameters)
    assert theirs - ours <= set(REPLACED)


CALLS = {
    "Trainer": ["fit", "validate", "test", "predict", "save_checkpoint", "print"],
    "LightningModule": ["log", "log_dict", "manual_backward", "toggle_optimizer", "clip_gradients"],
}
NOT_TAKEN = {
    "weights_only": "files are read without running code",
    "storage_options": "files are local",
    "sync_dist_group": PROCESSES,
    "metric_attribute": "metrics are values",
    "args": "printed values",
    "kwargs": "options",
    "enable_graph": "kept losses do not keep graphs",
}


@pytest.mark.parametrize(("owner", "call"), [(o, c) for o, calls in CALLS.items() for c in calls])
def test_arguments_have_the_same_names(owner: str, call: str, lightning: Any) -> None:
    ours = {"Trainer": Trainer, "LightningModule": TaskModule}[owner]
    theirs = set(inspect.signature(getattr(getattr(lightning, owner), call)).parameters)
    if call == "log_dict":
        theirs &= {"dictionary"}  # the rest goes to log
    assert theirs - set(inspect.signature(getattr(ours, call)).parameters) <= set(NOT_TAKEN)


def test_named_arguments_work(tmp_path: Any) -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log_dict(dictionary={"x": 1.0})

    trainer, task = quiet(max_epochs=1), Task()
    trainer.fit(model=task, train_dataloaders=loader(8), val_dataloaders=loader(4))
    assert trainer.validate(model=task, dataloaders=loader(4), verbose=False) == [{"x": 1.0}]
    assert trainer.test(model=task, dataloaders=loader(4), verbose=False)
    assert trainer.predict(model=task, dataloaders=[arrays(4)[0]])
    trainer.save_checkpoint(filepath=tmp_path / "x.ckpt")
    assert (tmp_path / "x.ckpt").exists()


def test_batch_hooks_may_leave_out_the_loader() -> None:
    seen: list[str] = []

    class Short(Callback):
        def on_validation_batch_start(  # type: ignore[override]
            self, trainer: Any, module: Any, batch: Any, batch_idx: int
        ) -> None:
            seen.append(f"start {batch_idx}")

        def on_validation_batch_end(  # type: ignore[override]
            self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            seen.append(f"end {batch_idx}")

        def on_test_batch_end(self, *args: Any) -> None:
            seen.append(f"all {len(args)}")

    class Task(Regression):
        def on_validation_batch_end(  # type: ignore[override]
            self, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            seen.append(f"module {batch_idx}")

        def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 7) -> None:
            seen.append(f"loader {dataloader_idx}")

    trainer = quiet(callbacks=Short())
    trainer.validate(Task(), loader(4), verbose=False)
    trainer.test(Task(), loader(4), verbose=False)
    assert seen == ["start 0", "end 0", "module 0", "loader 0", "all 6"]
