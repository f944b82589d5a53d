"""Precision: which dtypes compute, and the order of loss scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.errors import PitfallWarning, TrainerError
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
    "16-true": (F16, F16, F16),
    "bf16-true": (BF16, BF16, BF16),
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


@pytest.mark.parametrize("precision", ["16-true", "bf16-true"])
class TestHalfWeights:
    """Weights of a half type are the rounded copies of float32 ones in the optimizer."""

    def test_updates_add_up_below_the_last_place(self, precision: str) -> None:
        class Constant(Small):
            def __init__(self) -> None:
                super().__init__()
                nn.init.ones_(self.linear.weight)

            def training_step(self, batch: Any, batch_idx: int) -> Any:
                return self.linear.weight.sum() + 0.0 * self.loss(batch)

            def configure_optimizers(self) -> Any:
                return mt.optim.SGD(self.parameters(), lr=2.0**-14)

        task = Constant()
        fit(task, loader(64), max_epochs=16, precision=precision)
        expected = np.float32(1 - 256 * 2.0**-14)
        assert (task.linear.weight.detach().float().numpy() == expected).all()
        state = task.trainer.optimizers[0].state[task.linear.weight]
        assert state["master"].dtype == F32

    def test_a_run_resumes_exactly(self, precision: str, tmp_path: Any) -> None:
        class Save(Callback):
            def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
                if trainer.position.batches == 5:
                    trainer.save_checkpoint(tmp_path / "x.ckpt")

        class Adam(Regression):
            def configure_optimizers(self) -> Any:
                return mt.optim.Adam(self.parameters(), lr=1e-3)

        options: dict[str, Any] = {"precision": precision, "accumulate_grad_batches": 2}
        whole, again = Adam(), Adam()
        one = fit(whole, max_epochs=2, callbacks=Save(), **options)
        trainer = quiet(max_epochs=2, callbacks=Save(), **options)
        two = trainer.fit(again, loader(), ckpt_path=tmp_path / "x.ckpt")
        assert one.history == two.history
        for name, value in weights(whole).items():
            np.testing.assert_array_equal(value, weights(again)[name])

    def test_follows_float32(self, precision: str) -> None:
        losses = []
        for name in ("32", precision):
            mt.manual_seed(4)
            result = fit(Regression(), loader(24, shuffle=False), max_epochs=4, precision=name)
            losses.append(result.history["train/loss_epoch"][-1][1])
        assert losses[1] == pytest.approx(losses[0], rel=0.2, abs=0.02)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"max_epochs": 1}, True), ({"fast_dev_run": 2}, False), ({"max_epochs": 3}, False)],
    ids=["nothing", "trial", "most"],
)
def test_a_run_whose_updates_are_left_out_says_so(options: dict[str, Any], error: bool) -> None:
    """The scale halves from 65536; a run of a few batches may end before it fits."""
    task, few = Overflow(4), loader(8, shuffle=False)
    kind = TrainerError if error else PitfallWarning
    with pytest.raises(kind, match=r"the loss scaler left out .* to (4096|16384) now") as found:
        fit(task, few, precision="16-mixed", **options)
    applied = 2 if options == {"max_epochs": 3} else 0
    assert f"Got {applied} in this run, and {4 if applied else 2}" in str(found.value)
