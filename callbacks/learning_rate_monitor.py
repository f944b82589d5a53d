"""LearningRateMonitor: logs the learning rate of every parameter group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import refuse

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class LearningRateMonitor(Callback):
    """Logs learning rates as "lr-Adam", "lr-Adam/NAME" or "lr-Adam/pg1" where there are groups.

    NAME is the group's "name"; the name of the schedule's configuration replaces "lr-Adam". A
    value is the one that the updates of this step, or of the epoch's start, are made with.

    Args:
        logging_interval: "step" for each training batch, "epoch" for each epoch; None takes
            "step" for optimizers with a schedule that moves by steps, else "epoch".
        log_momentum: Also log momentum (or the first beta), as "lr-Adam-momentum".
        log_weight_decay: Also log weight decay, as "lr-Adam-weight_decay".
    """

    order = Order.MEASURE

    def __init__(
        self,
        logging_interval: str | None = None,
        *,
        log_momentum: bool = False,
        log_weight_decay: bool = False,
    ) -> None:
        self.logging_interval = logging_interval
        self.log_momentum = log_momentum
        self.log_weight_decay = log_weight_decay
        self._by_step: list[tuple[str, Optimizer]] = []
        self._by_epoch: list[tuple[str, Optimizer]] = []

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self.logging_interval not in (None, "step", "epoch"):
            refuse(
                "LearningRateMonitor",
                "logging_interval",
                self.logging_interval,
                '"step", "epoch" or None',
            )

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_start":
            return bool(self._by_step)
        return super().listens(event)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._by_step, self._by_epoch = [], []
        taken: set[str] = set()
        names = {id(entry.optimizer): name for name, entry in trainer.named.items()}
        for optimizer in trainer.optimizers:
            moving = [
                config
                for config in trainer.lr_scheduler_configs
                if getattr(config.scheduler, "optimizer", None) is optimizer
                or len(trainer.optimizers) == 1  # a schedule may not tell
            ]
            kind = names.get(id(optimizer), type(optimizer).__name__)
            base = next((c.name for c in moving if c.name), f"lr-{kind}")
            name, number = base, 0
            while name in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
            steps = any(config.interval == "step" for config in moving)
            interval = self.logging_interval or ("step" if steps else "epoch")
            (self._by_step if interval == "step" else self._by_epoch).append((name, optimizer))
        trainer.rewire()

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._log(module, self._by_epoch, on_epoch=True)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        self._log(module, self._by_step, on_epoch=False)

    def _log(
        self, module: TaskModule, optimizers: list[tuple[str, Optimizer]], *, on_epoch: bool
    ) -> None:
        for base, optimizer in optimizers:
            groups = optimizer.param_groups
            for index, group in enumerate(groups):
                name = base
                if len(groups) > 1 or "name" in group:
                    name = f"{base}/{group.get('name', f'pg{index + 1}')}"
                module.log(name, group["lr"], on_epoch=on_epoch)
                if self.log_momentum:
                    module.log(f"{name}-momentum", _momentum(group), on_epoch=on_epoch)
                if self.log_weight_decay:
                    decay = group.get("weight_decay", 0.0)
                    module.log(f"{name}-weight_decay", decay, on_epoch=on_epoch)


def _momentum(group: dict[str, Any]) -> Any:
    return group["betas"][0] if "betas" in group else group.get("momentum", 0.0)
