"""Runs: schedules, resuming, checkpoints, monitors, endings, logging."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
from harness import (
    Regression,
    assert_same,
    error,
    fit,
    good,
    impossible,
    loader,
    quiet,
    trained,
    warns,
    weights,
)

import minitorch as mt
from minitorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from minitorch.callbacks.core import SlowModes
from minitorch.optim import lr_scheduler
from minitorch.trainer.profiler import SimpleProfiler


def with_schedule(make: Any, **config: Any) -> Any:
    """A task whose optimizer has a schedule."""

    class Task(Regression):
        rates: list[float] = []

        def configure_optimizers(self) -> Any:
            optimizer = mt.optim.SGD(self.parameters(), lr=0.1)
            schedule = make(optimizer)
            one = {"scheduler": schedule, **config} if config else schedule
            return {"optimizer": optimizer, "lr_scheduler": one}

        def on_train_end(self) -> None:
            self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

    return Task()


def cosine(length: int) -> Any:
    """A cosine of so many steps."""
    return lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, length)


@impossible("scheduler-unit-mismatch")
def _() -> None:
    task = with_schedule(cosine(12))  # updates, on the default interval
    fit(task, max_epochs=2)
    assert task.rates[-1] < 1e-6


@impossible("scheduler-unit-mismatch", "one cycle")
def _() -> None:
    task = with_schedule(lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=12))
    fit(task, max_epochs=2)
    assert task.rates[-1] < 1e-4


@error("scheduler-unit-mismatch", r'length 12 with interval="epoch".*Did you mean interval="step"')
def _() -> None:
    fit(with_schedule(cosine(12), interval="epoch"), max_epochs=2)


@error("scheduler-unit-mismatch", r"length 12, which is the number of batches", "accumulated")
def _() -> None:
    fit(with_schedule(cosine(12)), max_epochs=2, accumulate_grad_batches=2)


@good("scheduler-unit-mismatch")
def _() -> None:
    fit(with_schedule(cosine(2)), max_epochs=2)
    fit(with_schedule(cosine(12), interval="step"), max_epochs=2)
    fit(with_schedule(lambda o: lr_scheduler.StepLR(o, 10)), max_epochs=2)


@impossible("scheduler-before-optimizer")
def _() -> None:
    task = with_schedule(cosine(6), interval="step")
    fit(task, max_epochs=2)  # twice as long as the schedule
    assert task.rates[-1] < 1e-6


@good("scheduler-before-optimizer")
def _() -> None:
    fit(with_schedule(lambda o: lr_scheduler.ExponentialLR(o, 0.9)), max_epochs=2)


class Scores(Regression):
    """Logs given accuracies."""

    values = (0.5, 0.9, 0.7)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val/acc", self.values[self.current_epoch])


@impossible("monitor-mode-wrong")
def _(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/acc", mode="max")
    result = fit(Scores(), loader(), loader(), max_epochs=3, callbacks=[keep])
    assert abs(float(result.best.score) - 0.9) < 1e-6  # type: ignore[union-attr, arg-type]


@error("monitor-mode-wrong", r"so mode must be given")
def _() -> None:
    EarlyStopping("val/acc")


@error("monitor-mode-wrong", r'ReduceLROnPlateau has mode="min" by default', "plateau")
def _() -> None:
    make = lr_scheduler.ReduceLROnPlateau
    fit(with_schedule(make, monitor="val/acc"), loader(), loader())


@good("monitor-mode-wrong")
def _() -> None:
    EarlyStopping("val/loss", mode="min")
    EarlyStopping("attack/accuracy", mode="min")
    fit(with_schedule(lr_scheduler.ReduceLROnPlateau, monitor="val/loss"), loader(), loader())


@impossible("checkpoint-metric-stale")
def _(tmp_path: Path) -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("step", 0.0)
            self.log("val/loss", self.loss(batch))

    class Named(Task):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/loss", self.loss(batch))

    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min", every_n_train_steps=4)
    trainer = quiet(max_epochs=3, callbacks=[keep])
    result = trainer.fit(Named(), loader(), loader())
    again = quiet().validate(Named.load_from_checkpoint(result.best), loader(), verbose=False)
    np.testing.assert_allclose(again[0]["val/loss"], result.best.score, rtol=1e-5)  # type: ignore[union-attr, arg-type]


@good("checkpoint-metric-stale")
def _(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min")
    fit(Regression(), loader(), loader(), callbacks=[keep])


@error("early-stop-missing-or-nan", r"'val/los' was never logged. Logged are .*Did you mean")
def _() -> None:
    stop = EarlyStopping("val/los", mode="min")
    fit(Regression(), loader(), loader(), callbacks=[stop])


@impossible("early-stop-missing-or-nan", "nan")
def _() -> None:
    class Nan(Scores):
        values = (0.5, float("nan"), 0.7)

    stop = EarlyStopping("val/acc", mode="max")
    result = fit(Nan(), loader(), loader(), max_epochs=3, callbacks=[stop])
    assert result.status == "failed"
    assert stop.best_score == 0.5


@good("early-stop-missing-or-nan")
def _() -> None:
    stop = EarlyStopping("val/loss", mode="min")
    fit(Regression(), loader(), loader(), callbacks=[stop])


@error("test-with-last-not-best", r"say which weights are meant.*Pass result.best")
def _(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min")
    trainer = quiet(callbacks=[keep])
    trainer.fit(Regression(), loader(), loader())
    trainer.test(dataloaders=loader())


@impossible("test-with-last-not-best")
def _(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/acc", mode="max")
    trainer = quiet(max_epochs=3, callbacks=[keep])
    task = Scores()
    result = trainer.fit(task, loader(), loader())
    trainer.test(result.best, loader(), verbose=False)
    assert_same(weights(task), weights(Scores.load_from_checkpoint(result.best)))


@good("test-with-last-not-best")
def _() -> None:
    task = Regression()
    trainer = quiet()
    trainer.fit(task, loader())
    trainer.test(task, loader(), verbose=False)


class Presses(Callback):
    """Presses Ctrl-C in the third batch."""

    times = 1

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if batch_idx == 2:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)


@impossible("interrupt-semantics", "first")
def _() -> None:
    result = fit(Regression(), callbacks=[Presses()])
    assert (result.status, result.global_step) == ("interrupted", 3)


class Interrupted(Exception):
    """Ctrl-C, where a test can see it."""


@error("interrupt-semantics", r"Ctrl-C", "second")
def _() -> None:
    class Twice(Presses):
        times = 2

    try:
        fit(Regression(), callbacks=[Twice()])
    except KeyboardInterrupt:
        raise Interrupted("Ctrl-C") from None


@good("interrupt-semantics")
def _() -> None:
    assert fit(Regression()).status == "completed"


class Soon(SlowModes):
    """Does not wait for 100 updates."""

    after_updates = 8


@warns("debug-mode-left-on", r"anomaly mode is for finding a fault. Got it in a run of more than 8")
def _() -> None:
    fit(Regression(), max_epochs=3, detect_anomaly=True, callbacks=[Soon()])


@good("debug-mode-left-on")
def _() -> None:
    fit(Regression(), max_epochs=3, callbacks=[Soon()])
    fit(Regression(), detect_anomaly=True, callbacks=[Soon()])


def decayed(decay: float, *, split: bool = False) -> Any:
    """A task with AdamW and this weight decay."""

    class Task(Regression):
        def configure_optimizers(self) -> Any:
            params: Any = self.parameters()
            if split:
                flat = [p for p in self.parameters() if p.ndim < 2]
                params = [{"params": [p for p in self.parameters() if p.ndim > 1]}]
                params.append({"params": flat, "weight_decay": 0.0})
            return mt.optim.AdamW(params, lr=1e-3, weight_decay=decay)

    return Task()


@warns("weight-decay-on-everything", r"Got weight_decay=0.1 on vectors as well: net\.0\.bias")
def _() -> None:
    fit(decayed(0.1))


@good("weight-decay-on-everything")
def _() -> None:
    fit(decayed(0.1, split=True))
    fit(decayed(0.01))


@error("param-group-typo", r"unknown option 'learning_rate'.*Did you mean 'lr'")
def _() -> None:
    class Task(Regression):
        def configure_optimizers(self) -> Any:
            groups = [{"params": self.parameters(), "learning_rate": 0.5}]
            return mt.optim.SGD(groups, lr=0.1)

    fit(Task())


@good("param-group-typo")
def _() -> None:
    class Task(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.SGD([{"params": self.parameters(), "lr": 0.5, "name": "all"}], lr=0.1)

    fit(Task())


@impossible("async-timing-and-errors")
def _(pretend_gpu: Any) -> None:
    waits: list[int] = []

    class Counts(SimpleProfiler):
        def timed(self, name: str, call: Any) -> Any:
            timed = super().timed(name, call)
            if name == "training_step":
                waits.append(0)
            return timed

    profiler = Counts()
    fit(Regression(), accelerator="gpu", profiler=profiler)
    assert waits
    assert profiler.synchronize is not None


@good("async-timing-and-errors")
def _() -> None:
    profiler = SimpleProfiler()
    fit(Regression(), profiler=profiler)
    assert profiler.synchronize is None


@impossible("sanity-check-side-effects")
def _() -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            mt.rand(3)
            self.log("val/loss", self.loss(batch))

    kept = [trained(Task(), loader(shuffle=True), loader(), num_sanity_val_steps=n) for n in (0, 2)]
    assert_same(*kept)
    result = fit(Task(), loader(), loader())
    assert len(result.history["val/loss"]) == 1


@good("sanity-check-side-effects")
def _() -> None:
    fit(Regression(), loader(), loader())


@impossible("logging-overhead")
def _() -> None:
    writes: list[int] = []

    class Logger:
        name, version, log_dir = "count", 0, None

        def log_metrics(self, metrics: Any, step: Any = None) -> None:
            writes.append(step)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or name == "wants_graph":
                raise AttributeError(name)
            return lambda *args, **options: None

    class Chatty(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            for i in range(10):
                self.log(f"train/{i}", loss)
            return loss

    fit(Chatty(), max_epochs=20, logger=Logger())
    assert len(writes) <= 25


@good("logging-overhead")
def _() -> None:
    fit(Regression(), log_every_n_steps=1)
