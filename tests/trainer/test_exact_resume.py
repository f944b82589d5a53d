"""A run that is interrupted after any step and resumed equals the one that never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, Order
from minitorch.errors import CheckpointError, DataError, TrainerError
from minitorch.io import load_tree
from minitorch.trainer import Trainer

EPOCHS, BATCHES = 2, 5


class Deep(Regression):
    """Everything that has state: dropout, batch norm, Adam, a schedule, metrics of all kinds."""

    interval = "step"

    def __init__(self) -> None:
        super().__init__(lr=0.05, dropout=0.3)
        self.norm = nn.BatchNorm1d(3)
        self.seen: list[float] = []

    def forward(self, x: Any) -> Any:
        return self.linear(self.dropout(self.norm(x)))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.seen.append(float(batch[0].sum()))
        loss = super().training_step(batch, batch_idx)
        self.log("train/max", loss, on_step=False, on_epoch=True, reduce_fx="max")
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.05)
        schedule = mt.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": self.interval},
        }


class Plateau(Deep):
    """A schedule that watches a validation metric."""

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.05)
        schedule = mt.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        return {"optimizer": optimizer, "lr_scheduler": schedule, "monitor": "val/loss"}


class EpochSchedule(Deep):
    interval = "epoch"


class NoSchedule(Deep):
    def configure_optimizers(self) -> Any:
        return mt.optim.Adam(self.parameters(), lr=0.05)


class Shorter:
    """Batches without a length, fewer than there were."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        return iter(self.batches)


class SaveAt(Callback):
    """Saves once, at the n-th time that an event fires outside of the sanity check."""

    def __init__(self, event: str, n: int, path: Path) -> None:
        self.count = 0
        setattr(self, event, self._make(n, path))

    def _make(self, n: int, path: Path) -> Any:
        def save(trainer: Trainer, module: Any, *args: Any) -> None:
            if trainer.sanity_checking:
                return
            self.count += 1
            if self.count == n:
                trainer.save_checkpoint(path)

        return save


def run(task: Any, *callbacks: Any, ckpt: Any = None, workers: int = 0, **options: Any) -> Any:
    options = {"max_epochs": EPOCHS, "callbacks": list(callbacks), **options}
    trainer = quiet(**options)
    train = loader(4 * BATCHES - 1, num_workers=workers)
    result = trainer.fit(task, train, loader(6, 3, shuffle=False), ckpt_path=ckpt)
    return trainer, result


def assert_same(first: Any, second: Any, path: str = "") -> None:
    assert type(first) is type(second), path
    if isinstance(first, dict):
        assert list(first) == list(second), path
        for key in first:
            assert_same(first[key], second[key], f"{path}.{key}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), path
        for index, pair in enumerate(zip(first, second, strict=True)):
            assert_same(*pair, f"{path}.{index}")
    elif isinstance(first, mt.Tensor | np.ndarray):
        a, b = (x.numpy() if isinstance(x, mt.Tensor) else x for x in (first, second))
        np.testing.assert_array_equal(a, b, err_msg=path)
    else:
        assert first == second or (first != first and second != second), path


def final_state(trainer: Trainer, path: Path) -> Any:
    """The whole state tree at the end of a run."""
    trainer.save_checkpoint(path)
    return load_tree(path)


CASES: dict[str, tuple[type, dict[str, Any]]] = {
    "plain": (Deep, {}),
    "accumulate": (Deep, {"accumulate_grad_batches": 2}),
    "clip": (Deep, {"gradient_clip_val": 0.1}),
    "validate often": (Deep, {"val_check_interval": 2}),
    "validate across epochs": (Deep, {"val_check_interval": 3, "check_val_every_n_epoch": None}),
    "limited": (Deep, {"limit_train_batches": 3}),
    "epoch schedule": (EpochSchedule, {}),
    "plateau": (Plateau, {"val_check_interval": 2}),
    "workers": (Deep, {"workers": 2}),
    "rare logs": (Deep, {"log_every_n_steps": 3}),
    "double": (Deep, {"precision": "64"}),
    "half": (Deep, {"precision": "16-mixed"}),
    "bfloat": (Deep, {"precision": "bf16-mixed"}),
}


@pytest.mark.parametrize("case", CASES)
def test_resumed_equals_uninterrupted_after_any_step(case: str, tmp_path: Path) -> None:
    kind, options = CASES[case]
    steps = EPOCHS * (options.get("limit_train_batches") or BATCHES)
    mt.manual_seed(7)
    whole_task = kind()
    trainer, result = run(whole_task, **options)
    expected = final_state(trainer, tmp_path / "whole.ckpt")
    for k in range(1, steps):
        mt.manual_seed(7)
        path = tmp_path / f"{k}.ckpt"
        run(kind(), SaveAt("on_train_batch_end", k, path), **options)
        mt.manual_seed(1234 + k)
        task = kind()
        resumed, again = run(task, ckpt=path, **options)
        assert task.seen == whole_task.seen[k:], f"data after step {k}"
        assert again.history == result.history
        assert_same(expected, final_state(resumed, tmp_path / "again.ckpt"), f"after step {k}")


EVENTS = {
    "on_train_start": 1,
    "on_train_epoch_end": 1,
    "on_validation_end": 2,
    "on_validation_epoch_start": 2,
    "on_validation_batch_end": 3,
}


@pytest.mark.parametrize("event", EVENTS)
def test_resumed_equals_uninterrupted_from_any_event(event: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"val_check_interval": 2}
    mt.manual_seed(7)
    trainer, result = run(Plateau(), **options)
    expected = final_state(trainer, tmp_path / "whole.ckpt")
    mt.manual_seed(7)
    path = tmp_path / "middle.ckpt"
    run(Plateau(), SaveAt(event, EVENTS[event], path), **options)
    resumed, again = run(Plateau(), ckpt=path, **options)
    assert again.history == result.history
    assert_same(expected, final_state(resumed, tmp_path / "again.ckpt"))


@pytest.mark.parametrize("k", [1, 4, 5, 7])
def test_run_cut_by_max_steps_goes_on_with_more(k: int, tmp_path: Path) -> None:
    mt.manual_seed(3)
    whole = Deep()
    _, result = run(whole)
    mt.manual_seed(3)
    trainer, part = run(Deep(), max_steps=k)
    assert part.status == "completed"
    assert part.reason == f"max_steps={k} reached"
    trainer.save_checkpoint(tmp_path / "part.ckpt")
    task = Deep()
    _, again = run(task, ckpt=tmp_path / "part.ckpt")
    assert again.history == result.history
    assert_same(weights(whole), weights(task))


def test_iterable_without_a_position_is_read_up_to_it(tmp_path: Path) -> None:
    batches = list(loader(20, shuffle=False))
    path = tmp_path / "middle.ckpt"
    mt.manual_seed(3)
    whole = Deep()
    quiet(max_epochs=2, callbacks=SaveAt("on_train_batch_end", 7, path)).fit(whole, batches)
    task = Deep()
    quiet(max_epochs=2).fit(task, batches, ckpt_path=path)
    assert_same(weights(whole), weights(task))


def test_callbacks_are_restored_before_fit_start(tmp_path: Path) -> None:
    class Counter(Callback):
        def __init__(self) -> None:
            self.batches = 0
            self.at_start: list[int] = []

        def on_fit_start(self, trainer: Any, module: Any) -> None:
            self.at_start.append(self.batches)

        def on_train_batch_end(self, *args: Any) -> None:
            self.batches += 1

        def state_dict(self) -> dict[str, Any]:
            return {"batches": self.batches}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self.batches = state_dict["batches"]

    path = tmp_path / "middle.ckpt"
    run(Deep(), Counter(), SaveAt("on_train_batch_end", 3, path))
    counter = Counter()
    run(Deep(), counter, ckpt=path)
    assert counter.at_start == [3]
    assert counter.batches == EPOCHS * BATCHES


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("method", ["training_step", "backward", "on_before_zero_grad"])
def test_checkpoint_of_an_exception_repeats_the_batch_that_failed(
    method: str, window: int, tmp_path: Path
) -> None:
    """Without dropout the repeated step is the same; no batch is lost, none counts twice."""

    class Net(Deep):
        broken = False

        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.0)

        def fail(self) -> None:
            if self.broken and self.trainer.position.batches >= 6 and self.trainer.training:
                raise LookupError

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            if method == "training_step":
                self.fail()
            return loss

        def backward(self, loss: Any) -> None:
            super().backward(loss)
            if method == "backward":
                self.fail()

        def on_before_zero_grad(self, optimizer: Any) -> None:
            if method == "on_before_zero_grad":
                self.fail()

    class Broken(Net):
        broken = True

    class OnException(Callback):
        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            trainer.save_checkpoint(tmp_path / "x.ckpt")

    options: dict[str, Any] = {"accumulate_grad_batches": window}
    mt.manual_seed(7)
    whole = Net()
    run(whole, **options)
    mt.manual_seed(7)
    with pytest.raises(LookupError):
        run(Broken(), OnException(), **options)
    again = Net()
    run(again, ckpt=tmp_path / "x.ckpt", **options)
    expected, got = weights(whole), weights(again)
    for name in ("linear.weight", "linear.bias"):
        np.testing.assert_array_equal(expected[name], got[name])


class Fails(Deep):
    """Raises in one of its methods, or right after it, in the n-th batch and never again."""

    def __init__(self, at: int = -1, method: str = "", *, after: bool = False) -> None:
        super().__init__()
        for name in ("at", "method", "after"):
            self.hparams.pop(name, None)  # a resumed run does not fail
        self.norm = nn.Identity()  # running statistics would see the repeated batch twice
        self.at, self.method, self.after = at, method, after

    def fail(self, method: str, *, after: bool = False) -> None:
        if (method, after) == (self.method, self.after):
            if self.trainer.position.batches >= self.at and self.trainer.training:
                raise LookupError

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        self.log("train/sum", loss, on_step=False, on_epoch=True, reduce_fx="sum")
        self.fail("training_step")
        return loss

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.fail("on_before_optimizer_step")

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None
    ) -> None:
        self.fail("optimizer_step")
        optimizer.step()
        self.fail("optimizer_step", after=True)


class FailsAfterUpdate(Callback):
    order = Order.PERSIST

    def __init__(self, at: int) -> None:
        self.at = at

    def on_after_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        if trainer.position.batches >= self.at:
            raise LookupError


class SaveOnException(Callback):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.position: Any = None

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.position = trainer.position.state_dict()
        trainer.save_checkpoint(self.path)


UPDATES = {
    "training_step": False,
    "on_before_optimizer_step": False,
    "optimizer_step": False,
    "optimizer_step, after": True,
    "on_after_optimizer_step": True,
}


@pytest.mark.parametrize("at", [0, 3, 4, 6, 9])
@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("case", UPDATES)
def test_failed_step_is_repeated_unless_its_update_is_in_the_weights(
    case: str, window: int, at: int, tmp_path: Path
) -> None:
    """Weights, dropout, updates and metrics are those of the run that never failed."""
    method, _, after = case.partition(", ")
    options: dict[str, Any] = {"accumulate_grad_batches": window}
    mt.manual_seed(7)
    whole = Fails()
    _, expected = run(whole, **options)
    save = SaveOnException(tmp_path / "x.ckpt")
    more = [FailsAfterUpdate(at)] if method == "on_after_optimizer_step" else []
    mt.manual_seed(7)
    with pytest.raises(LookupError):
        run(Fails(at, method, after=bool(after)), save, *more, **options)
    assert save.position["batch"] >= 0
    assert save.position["window"] == 0
    again = Fails()
    _, result = run(again, ckpt=tmp_path / "x.ckpt", **options)
    assert result.global_step == expected.global_step
    if not after:  # a step schedule does not hear of an update after which its hook fails
        assert_same(weights(whole), weights(again))
    if not UPDATES[case]:  # a batch that is not repeated has no on_train_batch_end
        assert result.history == expected.history


def test_failed_update_of_an_open_window_is_repeated(tmp_path: Path) -> None:
    batches = Shorter(list(loader(20, shuffle=False)))
    options: dict[str, Any] = {"max_epochs": 2, "accumulate_grad_batches": 2}
    mt.manual_seed(7)
    whole = Fails()
    expected = quiet(**options).fit(whole, batches)
    for after in (False, True):
        save = SaveOnException(tmp_path / "x.ckpt")
        mt.manual_seed(7)
        with pytest.raises(LookupError):
            quiet(callbacks=save, **options).fit(Fails(5, "optimizer_step", after=after), batches)
        assert (save.position["batch"], save.position["window"]) == (5 if after else 4, 0)
        again = Fails()
        path = tmp_path / "x.ckpt"
        result = quiet(**options).fit(again, batches, ckpt_path=path)
        assert result.global_step == expected.global_step
        if not after:
            assert_same(weights(whole), weights(again))


def test_wrong_resumes_are_refused(tmp_path: Path) -> None:
    trainer, _ = run(Deep())
    trainer.save_checkpoint(tmp_path / "end.ckpt")
    trainer.save_checkpoint(tmp_path / "weights.ckpt", weights_only=True)
    with pytest.raises(TrainerError, match=r"nothing left to do: max_epochs=2.*Raise max_epochs"):
        run(Deep(), ckpt=tmp_path / "end.ckpt")
    with pytest.raises(CheckpointError, match=r"weights only.*load_from_checkpoint"):
        run(Deep(), ckpt=tmp_path / "weights.ckpt")
    with pytest.raises(TrainerError, match=r'ckpt_path="best": a ModelCheckpoint.*There is none'):
        run(Deep(), ckpt="best")
    mt.save({"state": 1}, tmp_path / "other.ckpt")
    with pytest.raises(CheckpointError, match="not written by a Trainer"):
        run(Deep(), ckpt=tmp_path / "other.ckpt")


def test_resume_needs_the_same_optimizers_and_data(tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    run(Deep(), SaveAt("on_train_batch_end", 4, path))
    with pytest.raises(CheckpointError, match=r"Got 1 and 0, saved were 1 and 1. Resume with"):
        run(NoSchedule(), ckpt=path)
    batches = list(loader(20, shuffle=False))
    quiet(max_epochs=2, callbacks=SaveAt("on_train_batch_end", 4, path)).fit(Deep(), batches)
    with pytest.raises(DataError, match=r"after batch 4 of its epoch, but there are only 2"):
        quiet(max_epochs=2).fit(Deep(), Shorter(batches[:2]), ckpt_path=path)


def test_no_checkpoint_inside_of_a_step(tmp_path: Path) -> None:
    class Saver(Deep):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.trainer.save_checkpoint(tmp_path / "x.ckpt", weights_only=True)
            self.trainer.save_checkpoint(tmp_path / "x.ckpt")

    with pytest.raises(TrainerError, match=r"between two batches.*on_train_batch_end"):
        run(Saver())
    assert (tmp_path / "x.ckpt").exists()


@pytest.mark.parametrize("at", [2, 3, 4])
def test_one_loader_for_training_and_validation(at: int, tmp_path: Path) -> None:
    """The checkpoint's position is training's, although validation read the same loader since."""

    class Save(Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
            if trainer.position.batches == at:
                trainer.save_checkpoint(tmp_path / "x.ckpt")

    finals = []
    for resumed in (False, True):
        mt.manual_seed(3)
        task, data = Regression(), loader(24)
        path = tmp_path / "x.ckpt" if resumed else None
        trainer = quiet(max_epochs=1, val_check_interval=2, callbacks=[] if resumed else Save())
        trainer.fit(task, data, data, ckpt_path=path)
        finals.append(weights(task))
    for name, value in finals[0].items():
        np.testing.assert_array_equal(finals[1][name], value)
