"""self.log of metric objects that a user wrote: what compute() gives, in every kind of run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_metric_objects import SaveAt, data
from toy_tasks import Regression, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import EarlyStopping
from minitorch.callbacks.core import metric_merge
from minitorch.metrics import Metric


class Declared(Metric):
    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", default=mt.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("count", default=mt.tensor(0.0), dist_reduce_fx="sum")

    def update(self, values: Any) -> None:
        self.total += values.square().sum()
        self.count += values.numel()

    def compute(self) -> Any:
        return (self.total / self.count).sqrt()


class Plain(Metric):
    def __init__(self) -> None:
        self.parts: list[Any] = []

    def reset(self) -> None:
        self.parts = []

    def update(self, values: Any) -> None:
        self.parts.append(values.numpy().copy())

    def compute(self) -> float:
        return float(np.sqrt((np.concatenate(self.parts) ** 2).mean()))


BY_NAME = {"declared": Declared, "plain": Plain}
KINDS = pytest.mark.parametrize("kind", BY_NAME)


class Measured(Regression):
    """Logs the root mean square of the targets."""

    def __init__(self, kind: str, call: bool = False) -> None:
        super().__init__()
        self.c, self.v, self.call = BY_NAME[kind](), BY_NAME[kind](), call

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        (self.c if self.call else self.c.update)(batch[1])
        self.log("c", self.c, on_step=self.call, on_epoch=True)
        return self.loss(batch)

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self.v.update(batch[1] * (1 + dataloader_idx))
        self.log("v", self.v)


TARGETS = np.concatenate([np.asarray(y) for _, y in data()])
WHOLE = float(np.sqrt((TARGETS**2).mean()))


@KINDS
@pytest.mark.parametrize("call", [False, True])
def test_epochs_have_the_value_over_all_batches(kind: str, call: bool) -> None:
    task: Any = Measured(kind, call)
    trainer = quiet(max_epochs=2, log_every_n_steps=1)
    history = trainer.fit(task, data(), data()).history
    values = [v for _, v in history["c_epoch" if call else "c"]]
    assert values == pytest.approx([WHOLE] * 2, rel=1e-6)
    if call:
        steps = [float(np.sqrt((np.asarray(y) ** 2).mean())) for _, y in data()]
        assert [v for _, v in history["c_step"]] == pytest.approx(steps * 2, rel=1e-6)
    assert float(trainer.callback_metrics["v"]) == pytest.approx(WHOLE, rel=1e-6)
    assert task.c.updates == task.v.updates == 0


@KINDS
def test_validate_with_several_loaders(kind: str) -> None:
    loaders = [loader(8), loader(12)]
    found = quiet().validate(Measured(kind), loaders)
    for index, held_out in enumerate(loaders):
        targets = np.concatenate([np.asarray(y) for _, y in held_out])
        value = (1 + index) * float(np.sqrt((targets**2).mean()))
        assert found[index][f"v/dataloader_idx_{index}"] == pytest.approx(value, rel=1e-6)


@KINDS
def test_early_stopping_sees_it(kind: str) -> None:
    stops = EarlyStopping("v", mode="min", patience=2)
    assert fit(Measured(kind), data(), data(), max_epochs=9, callbacks=[stops]).epochs == 3


@KINDS
def test_a_run_resumes_inside_of_an_epoch(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "middle.ckpt"
    saver = SaveAt(path, 2)
    whole = fit(Measured(kind), data(), data(), max_epochs=2, callbacks=[saver])
    trainer = quiet(max_epochs=2, callbacks=[SaveAt(path, -1)])
    assert trainer.fit(Measured(kind), data(), data(), ckpt_path=path).history == whole.history


@KINDS
def test_what_is_taken_back_leaves_the_metric(kind: str) -> None:
    class Twice(Measured):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            with self.trainer.metric_log.muted():
                self.c.update(batch[1] * 100)
            return super().training_step(batch, batch_idx)

    (_, value), *_ = fit(Twice(kind), data(), max_epochs=1).history["c"]
    assert value == pytest.approx(WHOLE, rel=1e-6)


class Spread(Metric):
    """A state whose parts of several processes do not become one pair by pair."""

    def __init__(self) -> None:
        super().__init__()
        self.add_state("value", 0.0, lambda values: values.amax() - values.amin())

    def update(self, value: float) -> None:
        self.value = value

    def compute(self) -> float:
        return self.value


def test_results_of_several_processes_become_one_at_once() -> None:
    parts = []
    for value in (1.0, 5.0, 2.0):
        one = Spread()
        one.update(value)
        parts.append({"waiting": {"state": one.state_dict()}})
    mine: Any = SimpleNamespace(measured=Spread())
    joined = metric_merge._join_measured("spread", mine, parts)
    assert joined.compute() == 4.0
    assert joined.updates == 3
