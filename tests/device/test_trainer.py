"""Under the Trainer, batches of every structure travel once and nothing else does."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.callbacks.core.device import DevicePlacement
from minitorch.trainer import TaskModule, Trainer

X = np.ones((4, 3), np.float32)
Pair = namedtuple("Pair", "x y")


@dataclass
class Sample:
    x: Any
    name: str


def _placement(where: str) -> DevicePlacement:
    placement = DevicePlacement()
    placement.device = mt.device(where)
    placement._array_type = mt.backend.get("cuda").array_type
    return placement


def _t() -> mt.Tensor:
    return mt.tensor(X)


BATCHES = {
    "tensor": lambda: _t(),
    "array": lambda: X,
    "tuple": lambda: (_t(), _t()),
    "list": lambda: [_t(), _t()],
    "dict": lambda: {"x": _t(), "meta": {"y": _t(), "id": 3}},
    "ordered dict": lambda: OrderedDict(x=_t(), y=_t()),
    "named tuple": lambda: Pair(_t(), (_t(), "text")),
    "data class": lambda: Sample(_t(), "first"),
    "mixed": lambda: [(_t(), {"x": [X, None]}), 2.5, "text", {"y": Sample(_t(), "second")}],
    "integers": lambda: (_t(), np.arange(4)),
    "empty": lambda: [],
}


def _tensors(value: Any) -> list[mt.Tensor]:
    if isinstance(value, mt.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Sample):
        value = [value.x]
    if isinstance(value, list | tuple):
        return [t for item in value for t in _tensors(item)]
    return []


def _shape(value: Any) -> Any:
    """The structure of a batch: containers and leaves that are no tensors."""
    if isinstance(value, mt.Tensor | np.ndarray):
        return "tensor"
    if isinstance(value, dict):
        return type(value), {key: _shape(item) for key, item in value.items()}
    if isinstance(value, Sample):
        return Sample, _shape(value.x), value.name
    if isinstance(value, list | tuple):
        return type(value), [_shape(item) for item in value]
    return value


@pytest.mark.parametrize("where", ["cuda:0", "cuda:1"])
@pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
def test_structures_stay_and_each_tensor_travels_once(
    make: Any, where: str, pretend_gpu: ModuleType
) -> None:
    batch = make()
    with pretend_gpu.counters.watch() as seen:
        placed = _placement(where).place(batch)
    assert _shape(placed) == _shape(batch)
    assert {str(t.device) for t in _tensors(placed)} <= {where}
    assert seen.host_to_device.calls == len(_tensors(placed)), seen.report()
    assert seen.device_to_host.calls == 0
    with pretend_gpu.counters.watch() as seen:
        _placement(where).place(placed)
    assert seen.host_to_device.calls == seen.device_to_host.calls == 0, seen.report()
    assert seen.device_to_device.calls == 0, seen.report()


@pytest.mark.usefixtures("pretend_gpu")
def test_a_batch_on_another_gpu_is_moved() -> None:
    placed = _placement("cuda:0").place((_t().to("cuda:1"), _t().to("cuda:1")))
    assert {str(t.device) for t in placed} == {"cuda:0"}


class _Task(TaskModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("train/loss", loss, on_step=True, on_epoch=True)
        return loss

    def configure_optimizers(self) -> Any:
        return mt.optim.AdamW(self.parameters(), lr=0.01)


def _loader(batches: int) -> list[tuple[mt.Tensor, mt.Tensor]]:
    return [(_t(), mt.tensor([0, 1, 0, 1])) for _ in range(batches)]


def _fit(gpu: ModuleType, batches: int, **options: Any) -> Any:
    options = {"accelerator": "gpu", "max_epochs": 1, "log_every_n_steps": 1000} | options
    trainer = Trainer(
        enable_progress_bar=False, logger=False, enable_checkpointing=False, **options
    )
    with gpu.counters.watch() as seen:
        trainer.fit(_Task(), _loader(batches))
    return seen


def _more(gpu: ModuleType, kind: str, **options: Any) -> int:
    """Events of one kind that ten more batches cause."""
    few, many = (_fit(gpu, n, **options) for n in (10, 20))
    return many.total(kind).calls - few.total(kind).calls


# name: (waits for each batch, options)
OPTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (0, {}),
    "accumulated": (0, {"accumulate_grad_batches": 2}),
    "clipped by value": (0, {"gradient_clip_val": 0.5, "gradient_clip_algorithm": "value"}),
    # The norm is read so that an update that is not finite is never applied.
    "clipped by norm": (1, {"gradient_clip_val": 0.5}),
}


@pytest.mark.parametrize(("waits", "options"), OPTIONS.values(), ids=OPTIONS)
def test_a_step_moves_its_batch_and_does_not_wait(
    waits: int, options: Any, pretend_gpu: ModuleType
) -> None:
    assert _more(pretend_gpu, "host_to_device", **options) == 2 * 10
    assert _more(pretend_gpu, "device_to_host", **options) == waits * 10
    assert _more(pretend_gpu, "synchronisations", **options) == waits * 10


def test_a_logged_step_reads_the_loss_the_check_and_each_value(pretend_gpu: ModuleType) -> None:
    assert _more(pretend_gpu, "device_to_host", log_every_n_steps=5) == 3 * 2


def test_the_gpu_that_was_chosen_does_the_work(pretend_gpu: ModuleType) -> None:
    task = _Task()
    trainer = Trainer(
        accelerator="gpu", devices=[1], max_epochs=1, enable_progress_bar=False, logger=False
    )
    trainer.fit(task, _loader(2))
    assert {str(p.device) for p in task.parameters()} == {"cuda:1"}
    assert pretend_gpu.cuda.get_device_id() == 1
