"""Precision: which dtypes compute, and the order of loss scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, weights

import minitorch as mt
from minitorch.callbacks import Callback
from minitorch.errors import TrainerError


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


def test_overflow_at_the_smallest_scale_is_an_error() -> None:
    with pytest.raises(TrainerError, match=r"even at the loss scale 1 .*no matter of scaling"):
        fit(Overflow(99), loader(24), max_epochs=9, precision="16-mixed")
