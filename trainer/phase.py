"""Train mode for all but what is frozen, and freezing that is total."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minitorch.nn import Module

_MARK = "_frozen"


def freeze(module: Module) -> None:
    """Freezes parameters, running statistics and dropout of a module, until `unfreeze`.

    The Trainer keeps frozen modules in eval mode while it trains the others.
    """
    module.requires_grad_(False)
    module.eval()
    for part in module.modules():
        setattr(part, _MARK, True)


def unfreeze(module: Module) -> None:
    """Undoes `freeze`: all parameters require gradients and the module is in train mode."""
    for part in module.modules():
        if _MARK in vars(part):
            delattr(part, _MARK)
    module.requires_grad_(True)
    module.train()


def is_frozen(module: Module) -> bool:
    """Whether `freeze` was called on this module or one that holds it."""
    return bool(vars(module).get(_MARK, False))


def enter_training(module: Module) -> None:
    """Puts every submodule into train mode, except those that were frozen."""
    module.train()
    for part in module.modules():
        if is_frozen(part):
            part.eval()
