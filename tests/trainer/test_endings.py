"""How runs end: limits, stops, Ctrl-C, exceptions."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from toy_tasks import Regression, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import Callback
from minitorch.trainer import Trainer


class Act(Callback):
    """Calls a function after the n-th training batch."""

    def __init__(self, n: int, act: Any) -> None:
        self.n, self.act = n, act
        self.ended: list[str] = []

    def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
        if trainer.position.batches == self.n:
            self.act(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        self.ended.append("epoch")

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self.ended.append("train")

    def on_fit_end(self, trainer: Any, module: Any) -> None:
        self.ended.append("fit")

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        self.ended.append("teardown")

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.ended.append(type(exception).__name__)


def ctrl_c(trainer: Trainer) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def terminate(trainer: Trainer) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def set_flag(trainer: Trainer) -> None:
    trainer.should_stop = True


ENDS: dict[str, tuple[dict[str, Any], Any, str, str, int]] = {
    "epochs": ({"max_epochs": 2}, None, "completed", "max_epochs=2 reached", 12),
    "no epochs": ({"max_epochs": 0}, None, "completed", "max_epochs=0 reached", 0),
    "steps": ({"max_steps": 3}, None, "completed", "max_steps=3 reached", 3),
    "steps before epochs": ({"max_steps": 6, "max_epochs": 9}, None, "completed", "max_steps", 6),
    "endless": ({"max_epochs": -1, "max_steps": 7}, None, "completed", "max_steps=7 reached", 7),
    "stop": ({}, lambda t: t.stop("good enough"), "stopped", "good enough", 4),
    "flag": ({}, set_flag, "stopped", "a callback set trainer.should_stop", 4),
    "min epochs": ({"min_epochs": 1}, set_flag, "stopped", "should_stop", 6),
    "min steps": ({"min_steps": 8}, set_flag, "stopped", "should_stop", 8),
    "ctrl-c": ({}, ctrl_c, "interrupted", "Ctrl-C was pressed", 4),
    "sigterm": ({}, terminate, "interrupted", "SIGTERM was received", 4),
}


@pytest.mark.parametrize("case", ENDS)
def test_status_and_reason(case: str) -> None:
    options, act, status, reason, steps = ENDS[case]
    end = Act(4, act or (lambda trainer: None))
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    result = fit(Regression(), loader(), callbacks=end, **options)
    assert (result.status, result.global_step) == (status, steps)
    assert reason in result.reason
    assert result.reason in str(result)
    assert [name for name in end.ended if name != "epoch"] == ["train", "fit", "teardown"]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        (ctrl_c, ctrl_c, KeyboardInterrupt),
        (terminate, ctrl_c, KeyboardInterrupt),
        (terminate, terminate, SystemExit),
    ],
)
def test_second_signal_raises_at_once(first: Any, second: Any, error: Any) -> None:
    def twice(trainer: Trainer) -> None:
        first(trainer)
        second(trainer)

    end = Act(2, twice)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(error) as caught:
        fit(Regression(), callbacks=end)
    assert end.ended == [error.__name__, "teardown"]
    if error is KeyboardInterrupt:
        [note] = caught.value.__notes__
        assert "stopped at once, after 2 updates; the module has their weights" in note
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    if error is SystemExit:
        assert caught.value.code == 128 + signal.SIGTERM


@pytest.mark.parametrize("stage", ["fit", "validate"])
def test_interrupt_of_the_set_up_says_what_is_left(stage: str) -> None:
    class Slow(Regression):
        def prepare_data(self) -> None:
            raise KeyboardInterrupt

    notes = {"fit": "before the first batch was done", "validate": "nothing was changed"}
    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(Trainer(enable_progress_bar=False), stage)(Slow(), loader())
    assert notes[stage] in caught.value.__notes__[0]


def test_handler_of_the_program_for_sigterm_stays() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        result = fit(Regression(), max_epochs=1, callbacks=Act(2, terminate))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (result.status, heard) == ("completed", [signal.SIGTERM])


def test_ctrl_c_in_validation_drops_its_metrics() -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            super().validation_step(batch, batch_idx)
            if not self.trainer.sanity_checking:
                os.kill(os.getpid(), signal.SIGINT)

    result = fit(Task(), loader(), loader(12), max_epochs=2, val_check_interval=2)
    assert result.status == "interrupted"
    assert result.global_step == 2
    assert "val/loss" not in result.history


class Interrupted(Regression):
    """Ctrl-C in the n-th validation batch of the fit, or in a training batch."""

    def __init__(self, n: int = 0, batch: int = -1) -> None:
        super().__init__()
        self.n, self.batch, self.seen = n, batch, 0
        self.swapped = False

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if self.trainer.position.batches == self.batch:
            os.kill(os.getpid(), signal.SIGINT)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        super().validation_step(batch, batch_idx)
        if not self.trainer.sanity_checking:
            self.seen += 1
            if self.seen == self.n:
                os.kill(os.getpid(), signal.SIGINT)

    def on_validation_start(self) -> None:
        self.swapped = True

    def on_validation_end(self) -> None:
        self.swapped = False


CUTS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "validation of the second epoch": ({"n": 5}, {}, True),
    "validation of the last epoch": ({"n": 10}, {}, True),
    "last batch": ({"batch": 11}, {}, True),
    "validation in the middle": ({"n": 5}, {"val_check_interval": 3}, True),
    "unsized data": ({"n": 5}, {}, False),
}


@pytest.mark.parametrize("case", CUTS)
def test_run_resumed_after_ctrl_c_begins_with_the_validation_that_was_cut(
    case: str, tmp_path: Any
) -> None:
    cut, more, sized = CUTS[case]

    class Unsized:
        def __iter__(self) -> Any:
            return iter(loader(shuffle=False))

    def run(task: Any, ckpt: Any = None) -> Any:
        trainer = quiet(max_epochs=4, **more)
        data = loader(shuffle=False) if sized else Unsized()
        # Where the run is cut is a hyper-parameter of this task.
        return trainer, trainer.fit(task, data, loader(12), ckpt_path=ckpt, hparams="new")

    mt.manual_seed(3)
    _, whole = run(Interrupted())
    mt.manual_seed(3)
    task = Interrupted(**cut)
    trainer, part = run(task)
    assert part.status == "interrupted"
    assert not task.swapped
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    _, rest = run(Interrupted(), ckpt=tmp_path / "x.ckpt")
    assert rest.status == "completed"
    assert rest.history == whole.history


def test_evaluation_after_ctrl_c_runs() -> None:
    trainer = quiet(max_epochs=1)
    task = Interrupted(batch=2)
    assert trainer.fit(task, loader()).status == "interrupted"
    (metrics,) = trainer.test(task, loader(12), verbose=False)
    assert "test/loss" in metrics


def test_exception_reaches_everybody_and_keeps_its_traceback() -> None:
    class Deaf(Act):
        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            raise RuntimeError("handler broke")

        def teardown(self, trainer: Any, module: Any, stage: str) -> None:
            raise RuntimeError("teardown broke")

    def fail(trainer: Any) -> None:
        raise LookupError("original")

    deaf, other = Deaf(0, None), Act(3, fail)
    with pytest.raises(LookupError, match="original") as caught:
        fit(Regression(), callbacks=[deaf, other])
    assert other.ended == ["LookupError", "teardown"]
    notes = "\n".join(caught.value.__notes__)
    assert "handler broke" in notes
    assert "teardown broke" in notes
    assert any(entry.name == "fail" for entry in caught.traceback)


def test_failing_teardown_is_not_hidden() -> None:
    class Broken(Callback):
        def teardown(self, trainer: Any, module: Any, stage: str) -> None:
            raise RuntimeError("teardown broke")

    other = Act(0, None)
    with pytest.raises(RuntimeError, match="teardown broke"):
        fit(Regression(), max_epochs=1, callbacks=[Broken(), other])
    assert other.ended[-1] == "teardown"


def test_setup_that_fails_is_torn_down() -> None:
    class Broken(Callback):
        def setup(self, trainer: Any, module: Any, stage: str) -> None:
            raise LookupError

    other = Act(0, None)
    with pytest.raises(LookupError):
        fit(Regression(), callbacks=[other, Broken()])
    assert other.ended == ["LookupError", "teardown"]


def test_result_shows_itself() -> None:
    result = quiet(max_epochs=1).fit(Regression(), loader())
    assert str(result) == "completed after 1 epochs, 6 updates: max_epochs=1 reached"
    assert result.best is None
    assert isinstance(result.last, Regression)


def test_failure_of_closing_the_data_ends_the_run_like_any_other() -> None:
    class Pass:
        def __init__(self) -> None:
            self.batches = iter(loader())

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            return next(self.batches)

        def state_dict(self) -> dict[str, Any]:
            return {}

        def close(self) -> None:
            raise RuntimeError("close broke")

    class Source:
        def __iter__(self) -> Any:
            return Pass()

    other = Act(0, None)
    trainer = quiet(max_epochs=1, callbacks=[other])
    with pytest.raises(RuntimeError, match="close broke"):
        trainer.fit(Regression(), Source())
    assert other.ended[-2:] == ["RuntimeError", "teardown"]
    trainer.validate(Regression(), loader(), verbose=False)

    def fail(trainer: Any) -> None:
        raise LookupError("original")

    with pytest.raises(LookupError, match="original") as caught:
        quiet(max_epochs=1, callbacks=[Act(1, fail)]).fit(Regression(), Source())
    assert "close broke" in caught.value.__notes__[-1]
