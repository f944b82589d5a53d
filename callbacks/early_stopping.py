"""EarlyStopping: ends a run when a metric has stopped improving."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import Watched, better, direction, key, refuse
from minitorch.callbacks.rhythm import Rhythm
from minitorch.errors import TrainerError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class EarlyStopping(Callback):
    """Stops training when a metric has not improved for `patience` of its values.

    The metric is looked at whenever it has a new value for a whole epoch: after a validation, or
    at the end of a training epoch. A value that is not finite, or beyond `divergence_threshold`,
    ends the run with the status "failed". `FitResult.reason` tells why it ended. A stop waits for
    the Trainer's min_epochs and min_steps, and is off if the metric improves before.

    Args:
        monitor: Name of a logged metric.
        mode: "min" if lower is better, "max" if higher is.
        min_delta: An improvement is larger than this.
        patience: Values in a row without improvement after which the run stops.
        verbose: Print improvements.
        strict: Whether it is an error that nobody logs the metric.
        check_finite: Stop on nan and inf.
        stopping_threshold: Stop as soon as the metric is better than this.
        divergence_threshold: Stop as soon as the metric is worse than this.
        check_on_train_epoch_end: True looks at the end of training epochs only, False after
            validations only.
        every: A trigger, such as `Epochs(2)`: looks at the newest value only when it has come due.
        restore_best_weights: Give the module the weights of the best value when the run has ended,
            however it did. Checkpoints hold both; the last one has the weights that it ended with.

    Attributes:
        best_score: Best value so far, None before the first one.
        wait_count: Values since then.
        stopped_epoch: Epoch in which it stopped the run, else 0.
        stopping_reason: Why it wants the run to stop, or "".

    Raises:
        ArgumentError: There is no mode.
    """

    order = Order.DECIDE

    def __init__(
        self,
        monitor: str,
        *,
        mode: str | None = None,
        min_delta: float = 0.0,
        patience: int = 3,
        verbose: bool = False,
        strict: bool = True,
        check_finite: bool = True,
        stopping_threshold: float | None = None,
        divergence_threshold: float | None = None,
        check_on_train_epoch_end: bool | None = None,
        every: Any = None,
        restore_best_weights: bool = False,
    ) -> None:
        self.monitor = monitor
        self.mode = direction("EarlyStopping", monitor, mode)
        self.min_delta = min_delta
        self.patience = patience
        self.verbose = verbose
        self.strict = strict
        self.check_finite = check_finite
        self.stopping_threshold = stopping_threshold
        self.divergence_threshold = divergence_threshold
        self.check_on_train_epoch_end = check_on_train_epoch_end
        self._rhythm = Rhythm("EarlyStopping: every", every)
        self.restore_best_weights = restore_best_weights
        self._reset()

    def _reset(self) -> None:
        self.best_score: float | None = None
        self._best_weights: dict[str, Any] | None = None
        self.wait_count = 0
        self.stopped_epoch = 0
        self.stopping_reason = ""
        self._cause = self._told = ""
        self._seen = -1
        self._first_batch = True
        self._watched = Watched(f"EarlyStopping: monitor={self.monitor!r}", self.monitor)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._check_arguments()
            self._reset()
            self._rhythm.reset()

    def _check_arguments(self) -> None:
        who = "EarlyStopping"
        if not isinstance(self.monitor, str) or not self.monitor:
            refuse(who, "monitor", self.monitor, "the name of a logged metric")
        if isinstance(self.patience, bool) or not isinstance(self.patience, int):
            refuse(who, "patience", self.patience, "an integer ≥ 0", "It counts values.")
        if self.patience < 0:
            refuse(who, "patience", self.patience, "an integer ≥ 0", "It counts values.")
        if not _number(self.min_delta) or not 0 <= self.min_delta < math.inf:
            refuse(who, "min_delta", self.min_delta, "a number ≥ 0", "mode gives the direction.")
        for name in ("stopping_threshold", "divergence_threshold"):
            value = getattr(self, name)
            if value is not None and (not _number(value) or math.isnan(value)):
                refuse(who, name, value, "a number or None")

    # Events.

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_end":
            return self._first_batch or self._rhythm.each_batch
        return super().listens(event)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._rhythm.start(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._rhythm.look(trainer, epoch_over=False)
        if self._first_batch:
            self._first_batch = False
            self._look(trainer)
            trainer.rewire()

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        if trainer.stage != "fit":
            return
        known = self._look(trainer)
        if known and not trainer.sanity_checking and self.check_on_train_epoch_end is not True:
            self._decide(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        known = self._look(trainer)
        self._rhythm.look(trainer, epoch_over=True)
        if known and self.check_on_train_epoch_end is not False:
            self._decide(trainer)
        self._stop_if_allowed(trainer)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        if not self._watched.known and trainer.metrics_complete:
            warnings.warn(
                f"EarlyStopping: monitor={self.monitor!r} had no value in this run, so that it "
                "could not stop it. Log it once per epoch, in validation_step for example.",
                UserWarning,
                stacklevel=2,
            )

    def on_fit_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self._best_weights is not None:  # after the last checkpoint: that one resumes exactly
            module.load_state_dict(self._best_weights)
            if self.verbose:
                trainer.print(f"EarlyStopping: weights of {self.monitor} = {self.best_score:.6g}")

    def _look(self, trainer: Trainer) -> bool:
        try:
            return self._watched.look(trainer)
        except TrainerError:
            if self.strict:
                raise
            return False

    # Decisions.

    def _decide(self, trainer: Trainer) -> None:
        final = self._watched.read(trainer)
        if final is None or final.stamp == self._seen or not self._rhythm.take():
            return
        self._seen = final.stamp
        value, limit, bound = final.value, self.stopping_threshold, self.divergence_threshold
        self._cause = self.stopping_reason = ""
        if self.check_finite and not math.isfinite(value):
            where = f"epoch {trainer.current_epoch}, update {trainer.global_step}"
            self._want("failure", f"{self.monitor} = {value} is not finite ({where})")
        elif limit is not None and better(value, limit, self.mode):
            self._want("threshold", f"{self.monitor} = {value:.6g} is better than {limit:.6g}")
        elif bound is not None and better(bound, value, self.mode):
            self._want("failure", f"{self.monitor} = {value:.6g} is worse than {bound:.6g}")
        elif self._improves(value):
            self._improved(trainer, value)
        else:
            self.wait_count += 1
            if self.wait_count >= self.patience:
                self._want("patience", self._waited())
        self._stop_if_allowed(trainer)

    def _want(self, cause: str, reason: str) -> None:
        self._cause, self.stopping_reason = cause, reason

    def _improves(self, value: float) -> bool:
        best, delta = self.best_score, self.min_delta
        if best is None:
            return not math.isnan(value)
        return better(value, best - delta if self.mode == "min" else best + delta, self.mode)

    def _improved(self, trainer: Trainer, value: float) -> None:
        if self.verbose:
            before = "" if self.best_score is None else f" from {self.best_score:.6g}"
            trainer.print(f"EarlyStopping: {self.monitor} improved{before} to {value:.6g}")
        self.best_score, self.wait_count = value, 0
        if self.restore_best_weights:
            from minitorch.io import snapshot

            self._best_weights = snapshot(dict(trainer.module.state_dict()))

    def _waited(self) -> str:
        best = "no value yet" if self.best_score is None else f"best {self.best_score:.6g}"
        return f"{self.monitor} did not improve for {self.wait_count} values in a row ({best})"

    def _stop_if_allowed(self, trainer: Trainer) -> None:
        if not self._cause:
            return
        finished = trainer.current_epoch + trainer.position.epoch_done
        enough = finished >= trainer.min_epochs and trainer.global_step >= trainer.min_steps
        failed = self._cause == "failure"
        if enough or failed:
            self.stopped_epoch = trainer.current_epoch
            reason = f"EarlyStopping: {self.stopping_reason}"
            trainer.stop(reason, status="failed" if failed else "stopped")
            if reason != self._told and trainer.progress_bar_callback is not None:
                trainer.print(f"{reason}. Training ends in epoch {self.stopped_epoch}.")
            self._told = reason

    # State.

    def key_arguments(self) -> dict[str, Any]:
        """What tells two of them apart in a checkpoint."""
        return {"monitor": self.monitor, "mode": self.mode}

    @property
    def state_key(self) -> str:
        return key(self, **self.key_arguments())

    def state_dict(self) -> dict[str, Any]:
        return {
            "best_score": self.best_score,
            "wait_count": self.wait_count,
            "stopped_epoch": self.stopped_epoch,
            "stopping_reason": self.stopping_reason,
            "cause": self._cause,
            "seen": self._seen,
            "rhythm": self._rhythm.state_dict(),
            "best_weights": self._best_weights,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best_score = state_dict["best_score"]
        self.wait_count = state_dict["wait_count"]
        self.stopped_epoch = state_dict["stopped_epoch"]
        self.stopping_reason = state_dict["stopping_reason"]
        self._cause = state_dict["cause"]
        self._seen = state_dict["seen"]
        self._rhythm.load_state_dict(state_dict.get("rhythm", {}))
        weights = state_dict.get("best_weights")
        self._best_weights = weights if self.restore_best_weights else None
        if self._cause == "patience" and self.wait_count < self.patience:
            self._cause = self.stopping_reason = ""  # patience was raised for the resumed run


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
