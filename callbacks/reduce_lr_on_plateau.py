"""ReduceLROnPlateau: lowers rates when a metric stops improving, as the callback of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import Mode, Watched, better, direction, key, refuse

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class ReduceLROnPlateau(Callback):
    """Multiplies all rates by `factor` once a metric did not improve for `patience` values.

    The task needs no schedule; with one, use `optim.lr_scheduler.ReduceLROnPlateau` there. Values
    are those of whole epochs or validations, each counted once.

    Args:
        monitor: Name of a logged metric.
        factor: New rate over the old one, below 1.
        patience: Values without improvement before the rate falls.
        verbose: Print what happens.
        mode: "min" if lower is better, "max" if higher is.
        min_delta: Change that counts as an improvement.
        cooldown: Values after a reduction that are not counted.
        min_lr: No rate falls below.

    Attributes:
        best: The best value so far, or None.
        wait: Values without improvement in a row.

    Raises:
        ArgumentError: `mode` is missing.
    """

    order = Order.DECIDE
    writes = {"learning rate": ("on_validation_end", "on_train_epoch_end")}
    reads = {"metrics": ("on_validation_end", "on_train_epoch_end")}

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int | bool = 0,
        mode: str | None = None,
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        self.monitor = monitor
        self.factor = factor
        self.patience = patience
        self.verbose = verbose
        self.mode: Mode = direction("ReduceLROnPlateau", monitor, mode)
        self.min_delta = min_delta
        self.cooldown = cooldown
        self.min_lr = min_lr
        self._reset()

    def _reset(self) -> None:
        self.best: float | None = None
        self.wait = 0
        self._resting = 0
        self._seen = -1
        self._watched = Watched(f"ReduceLROnPlateau: monitor={self.monitor!r}", self.monitor)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        who = "ReduceLROnPlateau"
        if not isinstance(self.factor, int | float) or not 0 < self.factor < 1:
            refuse(who, "factor", self.factor, "a number between 0 and 1")
        for name in ("patience", "cooldown"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                refuse(who, name, value, "an integer ≥ 0")
        for name in ("min_delta", "min_lr"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                refuse(who, name, value, "a number ≥ 0")
        self._reset()

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        if trainer.stage == "fit":
            self._watched.look(trainer)
            if not trainer.sanity_checking:
                self._decide(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._watched.look(trainer)
        self._decide(trainer)

    def _decide(self, trainer: Trainer) -> None:
        final = self._watched.read(trainer)
        if final is None or final.stamp == self._seen:
            return
        self._seen = final.stamp
        rests = self._resting > 0
        if rests:
            self._resting -= 1
            self.wait = 0
        if self._improves(final.value):
            self.best, self.wait = final.value, 0
        elif not self._resting:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(trainer)

    def _improves(self, value: float) -> bool:
        if self.best is None:
            return value == value
        delta = -self.min_delta if self.mode == "min" else self.min_delta
        return better(value, self.best + delta, self.mode)

    def _reduce(self, trainer: Trainer) -> None:
        changed = []
        for optimizer in trainer.optimizers:
            for group in optimizer.param_groups:
                if group["lr"] > self.min_lr:
                    group["lr"] = max(float(group["lr"]) * self.factor, self.min_lr)
                    changed.append(f"{group['lr']:g}")
        if changed:
            self._resting, self.wait = self.cooldown, 0
            if self.verbose:
                trainer.print(
                    f"ReduceLROnPlateau: {self.monitor} did not improve, rate {', '.join(changed)}"
                )

    # State.

    def key_arguments(self) -> dict[str, Any]:
        """What tells two of them apart in a checkpoint."""
        return {"monitor": self.monitor, "mode": self.mode}

    @property
    def state_key(self) -> str:
        return key(self, **self.key_arguments())

    def state_dict(self) -> dict[str, Any]:
        state = {"best": self.best, "wait": self.wait}
        return {**state, "resting": self._resting, "seen": self._seen}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.wait = state_dict["best"], state_dict["wait"]
        self._resting, self._seen = state_dict["resting"], state_dict["seen"]
