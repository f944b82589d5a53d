"""Train and eval mode belong to the phase, and what is frozen rests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import listed

if TYPE_CHECKING:
    from minitorch.nn import Module
    from minitorch.trainer import TaskModule, Trainer


class Modes(Callback):
    """Keeps the modes of a training epoch as its first batch finds them.

    A module whose parameters are all frozen goes into eval mode, so that its statistics and dropout
    rest as well. A mode that a step or a hook between two batches changes is put back before the
    next batch. To change modes for good use `freeze`, or the hooks at the start of a fit or epoch.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._modes: list[tuple[Module, bool]] = []
        self._resting: dict[int, Module] = {}
        self._on = False

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._on = stage == "fit" and trainer.checks.on
        self._modes, self._resting = [], {}

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_start":
            return self._on
        return super().listens(event)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx == 0 or not self._modes:
            self._settle(trainer, module)
            self._check_optimizers(trainer, module)
            return
        for part, training in self._modes:
            if part.training is not training:
                self._put_back(trainer, module)
                return

    def _settle(self, trainer: Trainer, module: TaskModule) -> None:
        check = "batchnorm-not-really-frozen"
        if not trainer.checks.meant(check):
            frozen = _frozen(module)
            for part in self._resting.values():
                if id(part) not in frozen and not part.training:
                    part.train()
            for key, part in frozen.items():
                if key not in self._resting and part.training:
                    part.eval()
            self._resting = frozen
        self._modes = [(part, part.training) for part in module.modules()]

    @staticmethod
    def _check_optimizers(trainer: Trainer, module: TaskModule) -> None:
        """A layer that somebody replaced or thawed since the fit began is optimised, too."""
        if not trainer.optimizers:
            return
        held = {id(p) for o in trainer.optimizers for g in o.param_groups for p in g["params"]}
        left = [n for n, p in module.named_parameters() if p.requires_grad and id(p) not in held]
        if left:
            trainer.checks.error(
                "params-missing-from-optimizer",
                "training: every trainable parameter must be in an optimizer. Missing are "
                f"{listed(left)} (epoch {trainer.position.epoch}). Pass new layers to "
                'optimizer.add_param_group({"params": ...}), replace them before '
                "configure_optimizers, or freeze them with requires_grad_(False).",
            )

    def _put_back(self, trainer: Trainer, module: TaskModule) -> None:
        names = {id(part): name or "the module" for name, part in module.named_modules()}
        changed = [part for part, training in self._modes if part.training is not training]
        for part in changed:
            part.training = not part.training
        shown = ", ".join(names.get(id(part), "a module") for part in changed[:4])
        more = f" and {len(changed) - 4} more" if len(changed) > 4 else ""
        trainer.checks.warn(
            "train-eval-mode-wrong",
            f"training: the mode of a module is the same in all batches of an epoch. Got {shown}"
            f"{more} switched by a step or a hook between batches, and put it back. Use "
            "minitorch.trainer.freeze(module), or on_train_epoch_start.",
        )


def _frozen(module: Module) -> dict[int, Module]:
    """The topmost submodules that have parameters and train none of them."""
    found: dict[int, Module] = {}

    def visit(part: Module) -> None:
        for child in part.children():
            flags = [p.requires_grad for p in child.parameters()]
            if flags and not any(flags):
                found[id(child)] = child
            elif flags:
                visit(child)

    visit(module)
    return found
