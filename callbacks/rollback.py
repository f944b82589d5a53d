"""Rollback: back to the last good state after a spike or a nan, past the batch, and on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch import backend
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import refuse
from minitorch.callbacks.spike_detection import spike
from minitorch.callbacks.spikes import Spikes

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.errors import DivergenceError
    from minitorch.trainer import TaskModule, Trainer


class Rollback(Callback):
    """Restores the last good state when a step diverges, leaves its batch out, and goes on.

    A step diverges when its loss jumps, or when its loss or a gradient is not finite. Its update
    is not applied. Weights, optimizers, schedules that move by update, the loss scale and
    `global_step` go back to a copy in memory; the data go on behind the batch that failed, and the
    updates since the copy are lost. Random numbers and metrics go on, without those of the step.

    A copy is made every `every_n_steps` updates and is good once the loss of the next step is. It
    is part of checkpoints, so that a resumed run goes back to the same state.

    Each rollback is printed, warned of, kept in `FitResult.warnings`, and counted as "rollbacks"
    in the loggers. After `max_rollbacks` the error ends the run.

    The loss is read in every batch, which waits for a GPU.

    Args:
        max_rollbacks: How often in a run.
        every_n_steps: Updates between two copies.
        mode, window, warmup, atol, rtol: What is a jump, as for `SpikeDetection`; with both
            tolerances None only losses and gradients that are not finite count.

    Attributes:
        count: Rollbacks so far.
        failures: One sentence for each.
    """

    order = Order.PREPARE

    def __init__(
        self,
        max_rollbacks: int = 3,
        every_n_steps: int = 20,
        *,
        mode: str = "min",
        window: int = 10,
        warmup: int = 10,
        atol: float | None = None,
        rtol: float | None = 2.0,
    ) -> None:
        self.max_rollbacks = max_rollbacks
        self.every_n_steps = every_n_steps
        self._judges = atol is not None or rtol is not None
        self._spikes = Spikes(
            "Rollback",
            mode=mode,
            window=window,
            warmup=warmup,
            atol=atol,
            rtol=rtol,
            finite_only=True,
        )
        self._reset()

    def _reset(self) -> None:
        self.count = 0
        self.failures: list[str] = []
        self._may_have_changed = True
        self._good: dict[str, Any] | None = None
        self._candidate: dict[str, Any] | None = None

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        for name, least in (("max_rollbacks", 0), ("every_n_steps", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                refuse("Rollback", name, value, f"an integer ≥ {least}")
        self._spikes.check()
        self._spikes.reset()
        self._reset()

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        if self._good is None:
            self._good = self._copy(trainer)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        self._spikes.begin_batch()
        if not module.automatic_optimization:
            self._follow(trainer)

    def on_window_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._follow(trainer)

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._may_have_changed = True

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._may_have_changed = True

    def _follow(self, trainer: Trainer) -> None:
        """Pruning and thawing give a model other names and groups, which no older copy has."""
        if self._may_have_changed and self._good is not None:
            self._may_have_changed = False
            if not trainer.fits_snapshot(self._good):
                self._good, self._candidate = self._copy(trainer), None

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        if self._judges:
            value = float(backend.to_host(loss._array).item())
            if self._spikes.is_spike(value):
                raise spike(trainer, value, self._spikes.mean)
        return loss

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._candidate is not None:  # the step that followed it was good
            self._good, self._candidate = self._candidate, None
        if trainer.position.window:
            return
        assert self._good is not None
        if trainer.global_step >= self._good["global_step"] + self.every_n_steps:
            self._candidate = self._copy(trainer)

    def _copy(self, trainer: Trainer) -> dict[str, Any]:
        return {**trainer.take_snapshot(), "spikes": self._spikes.state_dict()}

    def on_divergence(
        self, trainer: Trainer, module: TaskModule, error: DivergenceError
    ) -> Callable[[], None] | None:
        if self.count >= self.max_rollbacks or self._good is None:
            error.add_note(f"Rollback: {self.count} of {self.max_rollbacks} are used.")
            return None
        return partial(self._go_back, trainer, error)

    def _go_back(self, trainer: Trainer, error: DivergenceError) -> None:
        assert self._good is not None
        self.count += 1
        self._candidate = None
        before = trainer.global_step
        trainer.restore_snapshot(self._good)
        self._spikes.load_state_dict(self._good["spikes"])  # older weights have higher losses
        text = (
            f"Rollback {self.count} of {self.max_rollbacks}: from update {before} back to "
            f"{trainer.global_step}, and on behind batch {error.batch} of epoch "
            f"{trainer.current_epoch}. {error}"
        )
        self.failures.append(text)
        step, value = trainer.global_step, float(self.count)
        trainer.metric_log.history.setdefault("rollbacks", []).append((step, value))
        trainer.logger_group.log_metrics({"rollbacks": value, "epoch": trainer.current_epoch}, step)
        trainer.print(text)
        warnings.warn(text, UserWarning, stacklevel=2)

    def state_dict(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "failures": list(self.failures),
            "good": self._good,
            "candidate": self._candidate,
            "spikes": self._spikes.state_dict(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.count = state_dict["count"]
        self.failures = list(state_dict["failures"])
        self._good, self._candidate = state_dict["good"], state_dict["candidate"]
        self._spikes.load_state_dict(state_dict["spikes"])
