"""Steps, updates, epochs and fits that are cancelled on purpose, and losses that are left out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_exact_resume import assert_same
from toy_tasks import Regression, arrays, fit, quiet, weights

import minitorch as mt
from minitorch.callbacks import Callback, SkipNonFinite
from minitorch.errors import ArgumentError, TrainerError
from minitorch.io import load_tree
from minitorch.trainer import CancelEpoch, CancelFit, CancelStep

IN_A_STEP = [
    "transform_batch",
    "on_train_batch_start",
    "on_window_start",
    "on_before_zero_grad",
    "transform_loss",
    "on_before_backward",
    "on_after_backward",
    "on_window_end",
    "on_before_optimizer_step",
]


def batches(sizes: list[int]) -> list[Any]:
    x, y = arrays(sum(sizes))
    ends = np.cumsum(sizes)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, sizes, strict=True)]


class Task(Regression):
    def __init__(self) -> None:
        mt.manual_seed(2)
        super().__init__()


class RaiseIn(Callback):
    """Raises once, in the n-th call of an event."""

    def __init__(self, event: str, n: int, cancel: Exception) -> None:
        self.calls, self.ends = 0, []

        def raising(trainer: Any, module: Any, *args: Any) -> Any:
            self.calls += 1
            if self.calls == n:
                raise cancel
            return args[0] if event.startswith("transform") else None

        setattr(self, event, raising)

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.ends.append(sorted(outputs))


@pytest.mark.parametrize("event", IN_A_STEP)
def test_a_step_is_left_out(event: str) -> None:
    data = batches([4, 4, 4])
    callback = RaiseIn(event, 2, CancelStep("it is the second"))
    task, without = Task(), Task()
    result = fit(task, data, max_epochs=1, callbacks=[callback])
    fit(without, [data[0], data[2]], max_epochs=1)
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, weights(without)[name])
    assert (result.global_step, result.status) == (2, "completed")
    assert result.skipped == {"it is the second": 1}
    assert "skipped 1 times: it is the second" in str(result)
    computed = event in ("on_window_end", "on_before_optimizer_step")
    assert callback.ends == [["loss"], ["loss"] if computed else [], ["loss"]]


class Skips(Task):
    """Leaves out batches by number."""

    left_out: tuple[int, ...] = ()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        if batch_idx in self.left_out:
            raise CancelStep("too short")
        return loss


@pytest.mark.parametrize("left_out", [(0,), (1,), (2,), (0, 1, 2), (3, 4), (1, 3)])
def test_a_batch_adds_nothing_to_its_window(left_out: tuple[int, ...]) -> None:
    """Windows of 3 of batches with other sizes: those left out might not be there."""
    sizes = [3, 5, 2, 4, 1]
    data = batches(sizes)
    task = Skips()
    task.left_out = left_out
    result = fit(task, data, max_epochs=2, accumulate_grad_batches=3)
    merged = []
    for window in (range(3), range(3, 5)):
        kept = [data[i] for i in window if i not in left_out]
        if kept:
            merged.append(tuple(np.concatenate(column) for column in zip(*kept, strict=True)))
    without = Task()
    expected = fit(without, merged, max_epochs=2)
    for name, value in weights(task).items():
        np.testing.assert_allclose(value, weights(without)[name], rtol=1e-5, atol=1e-6)
    assert result.global_step == expected.global_step
    assert result.skipped == {"too short": 2 * len(left_out)}
    ours, right = (r.history["train/loss_epoch"] for r in (result, expected))
    np.testing.assert_allclose([v for _, v in ours], [v for _, v in right], rtol=1e-5)


def test_after_the_backward_pass_the_window_so_far_is_dropped() -> None:
    data = batches([4, 4, 4])
    task, without = Task(), Task()
    cancel = RaiseIn("on_after_backward", 2, CancelStep("no"))
    fit(task, data, max_epochs=1, accumulate_grad_batches=3, callbacks=cancel)
    fit(without, data[2:], max_epochs=1)
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, weights(without)[name])


@pytest.mark.parametrize("batch", range(1, 10))
def test_skips_resume_exactly(batch: int, tmp_path: Path) -> None:
    class Save(Callback):
        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            if trainer.position.batches == batch:
                trainer.save_checkpoint(tmp_path / "at.ckpt")

    trees = []
    for ckpt in (None, tmp_path / "at.ckpt"):
        task = Skips()
        task.left_out = (0, 2, 3)
        trainer = quiet(max_epochs=2, accumulate_grad_batches=2, callbacks=Save())
        trainer.fit(task, batches([3, 2, 4, 1, 2]), ckpt_path=ckpt)
        trainer.save_checkpoint(tmp_path / "end.ckpt")
        trees.append(load_tree(tmp_path / "end.ckpt"))
    assert_same(*trees)
    assert trees[0]["callbacks"]["ProgressCounters"]["skipped"] == {"too short": 6}


def test_manual_steps_are_left_out() -> None:
    class Manual(Task):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.manual_backward(self.loss(batch))
            if batch_idx == 1:
                raise CancelStep("manual")
            self.optimizers().step()

    data = batches([4, 4, 4])
    task, without = Manual(), Task()
    result = fit(task, data, max_epochs=1)
    fit(without, [data[0], data[2]], max_epochs=1)
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, weights(without)[name])
    assert result.skipped == {"manual": 1}


def test_an_update_of_a_loss_scaler_is_left_out() -> None:
    class Small(Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return 0.01 * self.loss(batch)

    callback = RaiseIn("on_before_optimizer_step", 2, CancelStep("no"))
    result = fit(Small(), batches([4] * 4), max_epochs=1, precision="16-mixed", callbacks=callback)
    assert (result.global_step, result.skipped) == (3, {"no": 1})


@pytest.mark.parametrize(
    "event", ["on_train_epoch_start", *IN_A_STEP, "on_train_batch_end", "on_validation_batch_end"]
)
def test_an_epoch_is_cancelled(event: str) -> None:
    seen: list[str] = []

    class Trace(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            seen.append(f"end of {trainer.current_epoch}")

        def on_train_batch_start(self, trainer: Any, *rest: Any) -> None:
            seen.append(f"batch {trainer.current_epoch}.{rest[-1]}")

        def on_validation_end(self, trainer: Any, module: Any) -> None:
            seen.append("validation")

    sanity = 1 if event.startswith("on_validation") else 0
    cancel = RaiseIn(event, 1 + sanity, CancelEpoch("enough"))
    result = quiet(max_epochs=2, callbacks=[Trace(), cancel], num_sanity_val_steps=sanity).fit(
        Task(), batches([4, 4]), batches([2]) if sanity else None
    )
    first = [] if event in ("on_train_epoch_start", "transform_batch") else ["batch 0.0"]
    if sanity:
        first = ["validation", "batch 0.0", "batch 0.1", "validation"]
    second = ["batch 1.0", "batch 1.1"] + ["validation"] * sanity
    assert seen == [*first, "end of 0", *second, "end of 1"]
    assert (result.status, result.epochs) == ("completed", 2)
    assert result.skipped == {"enough": 1}
    if sanity:
        assert [step for step, _ in result.history["val/loss"]] == [4]


@pytest.mark.parametrize(
    "event",
    ["on_train_start", "on_train_epoch_start", *IN_A_STEP, "on_train_batch_end"]
    + ["on_validation_start", "on_train_epoch_end"],
)
def test_a_fit_is_cancelled_and_can_be_resumed(event: str, tmp_path: Path) -> None:
    ended: list[str] = []

    class Saves(Callback):
        def on_train_end(self, trainer: Any, module: Any) -> None:
            ended.append(trainer.phase)
            trainer.save_checkpoint(tmp_path / "cut.ckpt")

    data, val = batches([4, 4, 3]), batches([2])
    cancel = RaiseIn(event, 1 if event == "on_train_start" else 2, CancelFit("seen enough"))
    options = {"max_epochs": 3, "num_sanity_val_steps": 0, "min_epochs": 2}
    whole, cut = Task(), Task()
    quiet(**options).fit(whole, data, val)
    result = quiet(**options, callbacks=[cancel, Saves()]).fit(cut, data, val)
    assert (result.status, result.reason) == ("stopped", "seen enough")
    assert ended == ["train"]
    again = Task()
    quiet(**options).fit(again, data, val, ckpt_path=tmp_path / "cut.ckpt")
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(value, weights(again)[name])


@pytest.mark.parametrize("kind", [CancelStep, CancelEpoch, CancelFit])
def test_a_cancel_where_nothing_runs_is_an_error(kind: Any) -> None:
    with pytest.raises(kind, match="Got one elsewhere, where nothing can be cancelled"):
        fit(Task(), batches([4]), max_epochs=1, callbacks=RaiseIn("on_fit_start", 1, kind("x")))


@pytest.mark.parametrize("reason", ["", None])
def test_a_cancel_says_why(reason: Any) -> None:
    with pytest.raises(ArgumentError, match="CancelStep: a cancel says why. Got"):
        CancelStep(reason)


def test_none_leaves_the_batch_out_if_it_is_meant() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch) if batch_idx else None

    data = batches([4, 4])
    with pytest.raises(TrainerError, match=r'raise CancelStep\("why"\).*@intended'):
        fit(type("Forgot", (Task,), {"training_step": step})(), data, max_epochs=1)
    for checks in ("on", "off"):
        body = {"training_step": mt.intended("lossless-step")(step)}
        result = fit(type("Meant", (Task,), body)(), data, max_epochs=1, checks=checks)
        assert (result.global_step, result.skipped) == (1, {"training_step returned None": 1})


# Losses and gradients that are not finite.


class Explodes(Task):
    """The loss or the gradient of chosen batches is not finite."""

    bad: tuple[int, ...] = (1,)
    what = "loss"

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        if batch_idx in self.bad:
            if self.what == "loss":
                return loss * math.nan
            loss.register_hook(lambda gradient: gradient * math.inf)
        return loss


@pytest.mark.parametrize("what", ["loss", "gradient"])
@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("window", [1, 2])
def test_not_finite_is_left_out(what: str, clip: float | None, window: int) -> None:
    data = batches([4, 4, 4, 4])
    options: dict[str, Any] = {"gradient_clip_val": clip, "accumulate_grad_batches": window}
    task, without = Explodes(), Task()
    task.what = what
    result = fit(task, data, max_epochs=1, callbacks=SkipNonFinite(), **options)
    kept = [data[0], data[2], data[3]] if window == 1 else [data[0]] * (what == "loss") + data[2:]
    if window == 1 or what == "gradient":
        fit(without, kept, max_epochs=1, **options)
    else:
        merged = tuple(np.concatenate(c) for c in zip(*data[2:], strict=True))
        fit(without, [data[0], merged], max_epochs=1, gradient_clip_val=clip)
    for name, value in weights(task).items():
        np.testing.assert_allclose(value, weights(without)[name], rtol=1e-5, atol=1e-7)
    where = "loss was" if what == "loss" else "gradients were"
    assert result.skipped == {f"the {where} not finite": 1}
    assert any(
        f"left out 1 because the {where} not finite, of 4 batches" in w for w in result.warnings
    )
    assert all(math.isfinite(v) for _, v in result.history["train/loss_epoch"])


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_too_many_in_a_row_end_the_run(what: str) -> None:
    task = Explodes()
    task.what, task.bad = what, (1, 2, 4, 5, 6)
    with pytest.raises(TrainerError, match="must be finite.* left out 2 in a row before"):
        fit(task, batches([4] * 8), max_epochs=1, callbacks=SkipNonFinite(max_in_a_row=2))
    assert task.trainer.position.batch == 6


def test_arguments_of_skip_non_finite() -> None:
    with pytest.raises(ArgumentError, match="max_in_a_row must be an integer ≥ 1. Got 0"):
        fit(Task(), batches([4]), max_epochs=1, callbacks=SkipNonFinite(0))
