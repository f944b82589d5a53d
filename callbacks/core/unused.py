"""Parameters that no loss reaches: they are optimised, moved and saved, and never learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import listed

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.trainer import TaskModule, Trainer

_CHECK = "unused-params"
_PATIENCE = 50


class UnusedParameters(Callback):
    """Refuses a trainable parameter that had no gradient in the first 50 updates or first epoch.

    A branch that is taken now and then may miss a few batches; one that is never taken in so many
    is no part of the model. Only the parameters of optimizers that have stepped are looked at. Once
    each had a gradient, nothing listens any more.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._looking = False
        self._missing: dict[str, Tensor] = {}
        self._before = 0
        self._updates = 0
        self._known: list[str] | None = None

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._looking = stage == "fit" and trainer.checks.on
        self._known, self._updates = None, 0

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._looking, self._missing = False, {}

    def listens(self, event: str) -> bool:
        if event in ("on_after_backward", "on_train_batch_end", "on_train_epoch_end"):
            return self._looking
        return super().listens(event)

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        known = self._known
        self._missing = {
            name: p
            for name, p in module.named_parameters()
            if p.requires_grad and (known is None or name in known)
        }
        self._before = trainer.position.global_step - self._updates
        if known == []:
            self._stop_looking(trainer)

    def on_after_backward(self, trainer: Trainer, module: TaskModule) -> None:
        self._missing = {n: p for n, p in self._missing.items() if p._grad is None}

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._updates = trainer.position.global_step - self._before
        if self._updates and not self._missing:
            self._stop_looking(trainer)
        elif self._updates >= _PATIENCE:
            self._refuse(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._updates = trainer.position.global_step - self._before
        if self._updates:
            self._refuse(trainer)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        unused = self._unused(trainer) if self._looking and self._updates else []
        if unused:
            trainer.checks.warn(_CHECK, _text(unused, self._updates))

    def _refuse(self, trainer: Trainer) -> None:
        unused = self._unused(trainer)
        self._missing = {n: p for n, p in self._missing.items() if n not in unused}
        if not self._missing:
            self._stop_looking(trainer)
        if unused:
            trainer.checks.error(_CHECK, _text(unused, self._updates))

    def _unused(self, trainer: Trainer) -> list[str]:
        """What optimizers that have stepped hold and no loss has reached."""
        stepped = {
            id(p)
            for optimizer in trainer.optimizers
            if optimizer.updates
            for group in optimizer.param_groups
            for p in group["params"]
        }
        return [
            name
            for name, p in self._missing.items()
            if id(p) in stepped and p.requires_grad and not trainer.checks.meant(_CHECK, name)
        ]

    def _stop_looking(self, trainer: Trainer) -> None:
        self._looking, self._updates = False, 0
        trainer.rewire()

    def state_dict(self) -> dict[str, Any]:
        return {"missing": list(self._missing), "updates": self._updates}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._known, self._updates = state_dict["missing"], state_dict["updates"]


def _text(unused: list[str], updates: int) -> str:
    owners = dict.fromkeys(name.rpartition(".")[0] for name in unused)
    patterns = ", ".join(f'"{owner}.*"' if owner else '"*"' for owner in list(owners)[:8])
    return (
        "training_step: every trainable parameter must take part in the loss. Got no gradient "
        f"for {listed(unused)}. Use them, freeze them with requires_grad_(False), or remove them; "
        f"what is computed before a step begins is a constant in it. {updates} updates were "
        f'looked at. If it is meant: @intended("unused-params", {patterns}) on training_step.'
    )
