"""The parser of the command line: arguments from signatures, with what training programs need."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import minitorch
from minitorch import callbacks, loggers
from minitorch.callbacks.callback import Callback

try:
    from jsonargparse import ArgumentParser, Namespace, class_from_function
except ImportError as error:
    raise ImportError(
        "minitorch.trainer.cli needs jsonargparse. Install minitorch-trainer[cli]."
    ) from error


class CLIParser(ArgumentParser):
    """jsonargparse's parser with groups for a Trainer, a task, data, optimizers and callbacks.

    Attributes:
        callback_names: Arguments that are callbacks of the Trainer.
        has_optimizer: Somebody added arguments of an optimizer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("parser_mode", "yaml")
        super().__init__(*args, **kwargs)
        self.callback_names: list[str] = []
        self.has_optimizer = False
        self._single: dict[str, type] = {}

    def add_part(self, key: str, made_by: Any, *, subclasses: bool) -> None:
        """Adds the arguments of a class or of a function that makes an object.

        Args:
            key: Name of the group.
            made_by: The class or function.
            subclasses: Take any subclass by its import path.
        """
        if not inspect.isclass(made_by):
            self.add_class_arguments(class_from_function(made_by), key)
        elif subclasses:
            self.add_subclass_arguments(made_by, key, required=True)
        else:
            self.add_class_arguments(made_by, key)

    def add_trainer(
        self, trainer_class: type, defaults: dict[str, Any], found: dict[str, Any]
    ) -> None:
        """Adds the arguments of the Trainer.

        Args:
            trainer_class: The Trainer, or a class derived from it.
            defaults: Values of its arguments; they may be objects such as callbacks.
            found: Values from the environment, for those arguments that the class has.
        """
        _load_all(callbacks)
        _load_all(loggers)
        self.add_class_arguments(trainer_class, "trainer", instantiate=False, skip={"unknown"})
        plain = {k: v for k, v in defaults.items() if k != "callbacks"}
        known = {action.dest for action in self._actions}
        plain |= {k: v for k, v in found.items() if f"trainer.{k}" in known}
        self.set_defaults({f"trainer.{name}": value for name, value in plain.items()})

    def add_callback(self, callback_class: type[Callback], nested_key: str) -> None:
        """Adds the arguments of a callback that always takes part.

        Args:
            callback_class: Its class.
            nested_key: Name of its group.
        """
        self.callback_names.append(nested_key)
        self.add_class_arguments(callback_class, nested_key)

    add_lightning_class_args = add_callback

    def add_optimizer_args(
        self, optimizer_class: Any = None, nested_key: str = "optimizer"
    ) -> None:
        """Adds the choice of an optimizer.

        Args:
            optimizer_class: One class, or several to choose from; default all of
                `minitorch.optim`.
            nested_key: Name of the group.
        """
        self.has_optimizer = True
        _load_all(minitorch.optim)
        base = minitorch.optim.Optimizer
        self._add_choice(optimizer_class or base, nested_key, {"params"}, base)

    def add_lr_scheduler_args(
        self, lr_scheduler_class: Any = None, nested_key: str = "lr_scheduler"
    ) -> None:
        """Adds the choice of a learning rate schedule.

        Args:
            lr_scheduler_class: One class, or several to choose from; default all of
                `minitorch.optim.lr_scheduler`.
            nested_key: Name of the group.
        """
        _load_all(minitorch.optim.lr_scheduler)
        base = minitorch.optim.lr_scheduler.LRScheduler
        self._add_choice(lr_scheduler_class or base, nested_key, {"optimizer"}, base)
        self.add_argument(
            f"--{nested_key}_monitor",
            type=str | None,
            default=None,
            help="The metric that ReduceLROnPlateau watches.",
        )

    def _add_choice(self, kinds: Any, key: str, skip: set[str], base: Any) -> None:
        several = isinstance(kinds, tuple) or kinds is base
        options: dict[str, Any] = {"instantiate": False, "fail_untyped": False, "skip": skip}
        if several:
            self.add_subclass_arguments(kinds, key, required=False, **options)
        else:
            self._single[key] = kinds
            self.add_class_arguments(kinds, key, **options)

    def maker(self, key: str, config: Any) -> Callable[[Any], Any] | None:
        """What makes the optimizer or schedule that was chosen, from its first argument.

        Args:
            key: The choice's group.
            config: What was read.

        Returns:
            A function of the parameters, or of the optimizer; None if nothing was chosen.
        """
        chosen = config.get(key)
        if chosen is None:
            return None
        if key in self._single:
            return partial(_made, self._single[key], chosen.as_dict())
        home, _, name = chosen["class_path"].rpartition(".")
        options = chosen.get("init_args", Namespace()).as_dict()
        return partial(_made, getattr(importlib.import_module(home), name), options)

    def method_names(self, owner: type, method: str, without: set[str]) -> list[str]:
        """The arguments of a method that this parser reads."""
        names = inspect.signature(getattr(owner, method)).parameters
        return [name for name in names if name != "self" and name not in without]


def _made(kind: Any, options: dict[str, Any], first: Any) -> Any:
    return kind(first, **options)


def _load_all(package: Any) -> None:
    """Loads what a package loads late, so that its classes are known by their short names."""
    for name in dir(package):
        with contextlib.suppress(ImportError):  # needs an extra that is not installed
            getattr(package, name)
