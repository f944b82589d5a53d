"""Precision: which dtypes compute, and the order of loss scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.errors import TrainerError
from minitorch.trainer import TaskModule


class Dtypes(Regression):
    """Keeps the dtypes of its output and of its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[Any] = set()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        out = self(batch[0])
        self.seen.add((out.dtype, self.linear.weight.dtype, mt.get_default_dtype()))
        return 0.01 * ((out - batch[1]) ** 2).mean()


F32, F64, F16, BF16 = mt.float32, mt.float64, mt.float16, mt.bfloat16
PRECISIONS = {
    "32": (F32, F32, F32),
    32: (F32, F32, F32),
    None: (F32, F32, F32),
    "32-true": (F32, F32, F32),
    "64": (F64, F64, F64),
    "64-true": (F64, F64, F64),
    "16-mixed": (F16, F32, F32),
    16: (F16, F32, F32),
    "bf16-mixed": (BF16, F32, F32),
    "bf16": (BF16, F32, F32),
}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_dtypes(precision: Any) -> None:
    task = Dtypes()
    result = fit(task, max_epochs=1, precision=precision)
    assert task.seen == {PRECISIONS[precision]}
    assert result.global_step == 6
    assert mt.get_default_dtype() == F32


def test_default_dtype_comes_back_after_an_exception() -> None:
    class Broken(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fit(Broken(), precision="64")
    assert mt.get_default_dtype() == F32


class Seen(Callback):
    """Gradients as callbacks see them before the update."""

    def __init__(self) -> None:
        self.gradients: list[np.ndarray] = []

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self.gradients.append(module.linear.weight.grad.numpy().copy())


class Small(Regression):
    def loss(self, batch: Any) -> Any:
        return 0.01 * super().loss(batch)


def test_callbacks_and_clipping_see_unscaled_gradients() -> None:
    runs = []
    for precision in ("32", "16-mixed"):
        mt.manual_seed(2)
        seen, task = Seen(), Small()
        options: dict[str, Any] = {"max_steps": 1, "gradient_clip_val": 0.01}
        fit(task, loader(24), callbacks=seen, precision=precision, **options)
        runs.append((seen.gradients[0], weights(task)["linear.weight"]))
    np.testing.assert_allclose(runs[0][0], runs[1][0], rtol=2e-2)
    np.testing.assert_allclose(runs[0][1], runs[1][1], rtol=1e-2)


class Overflow(Regression):
    """The loss overflows float16 in the first n batches."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.rates: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])
        loss = self.loss(batch)
        if self.trainer.position.batches < self.n:
            loss = loss * 1e36
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.SGD(self.parameters(), lr=0.5)
        schedule = mt.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def test_skipped_updates_do_not_count_nor_move_schedules() -> None:
    task = Overflow(2)
    result = fit(task, loader(24), max_epochs=1, precision="16-mixed")
    assert result.global_step == 4
    assert task.rates == [0.5, 0.5, 0.5, 0.25, 0.125, 0.0625]


class TwoHeads(TaskModule):
    """Two optimizers whose losses are both scaled before either of them steps."""

    automatic_optimization = False

    def __init__(self, *, overflow: bool = False, steps: int = 1, clip: float = 0.01) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 1), nn.Linear(3, 1)
        self.overflow, self.steps, self.clip = overflow, steps, clip

    def training_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        optimizers = self.optimizers()
        for _ in range(self.steps):
            losses = [0.01 * ((head(x) - y) ** 2).mean() for head in (self.first, self.second)]
            if self.overflow:
                losses[0] = losses[0] * 1e36
            for optimizer, loss in zip(optimizers, losses, strict=True):
                optimizer.zero_grad()
                self.manual_backward(loss)
            for optimizer in optimizers:
                self.clip_gradients(optimizer, self.clip)
                optimizer.step()

    def configure_optimizers(self) -> Any:
        return [mt.optim.SGD(head.parameters(), lr=1.0) for head in (self.first, self.second)]


@pytest.mark.parametrize("steps", [1, 3])
def test_manual_clipping_sees_unscaled_gradients(steps: int) -> None:
    found = []
    for precision in ("32", "16-mixed"):
        mt.manual_seed(2)
        task = TwoHeads(steps=steps)
        fit(task, loader(24, shuffle=False), max_epochs=1, precision=precision)
        found.append(weights(task))
    for name, value in found[0].items():
        np.testing.assert_allclose(value, found[1][name], rtol=2e-2, atol=2e-3, err_msg=name)


def test_manual_losses_of_a_batch_have_one_scale() -> None:
    scales, found = [], []
    for overflow in (False, True):
        mt.manual_seed(2)
        task = TwoHeads(overflow=overflow, clip=100.0)
        before = weights(task)
        trainer = quiet(max_steps=1, max_epochs=1, limit_train_batches=1, precision="16-mixed")
        trainer.fit(task, loader(4, shuffle=False))
        scales.append(trainer.precision.scaler.get_scale())
        found.append(weights(task)["second.weight"])
        assert trainer.precision.scaler.state_dict()["_growth_tracker"] == (0 if overflow else 1)
    assert scales == [2.0**16, 2.0**15]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(weights(task)["first.weight"], before["first.weight"])


def test_overflow_at_the_smallest_scale_is_an_error() -> None:
    with pytest.raises(TrainerError, match=r"even at the loss scale 1 .*no matter of scaling"):
        fit(Overflow(99), loader(24), max_epochs=9, precision="16-mixed")
