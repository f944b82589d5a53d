"""Watching a metric: its direction, whether its name exists, and whether its value is fresh."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Literal

from minitorch.callbacks.callback import Callback
from minitorch.errors import ArgumentError, TrainerError

if TYPE_CHECKING:
    from minitorch.callbacks.core.metric import Final
    from minitorch.trainer import Trainer

Mode = Literal["min", "max"]
_TWIN = 0.85


def direction(owner: str, monitor: str, mode: str | None) -> Mode:
    """Checks the direction of a monitored metric.

    Args:
        owner: Name of the callback in messages.
        monitor: Name of the metric.
        mode: "min" if lower values are better, "max" if higher ones are.

    Raises:
        ArgumentError: It is missing or neither.
    """
    if mode is None:
        raise ArgumentError(
            f"{owner}: a name does not tell whether higher or lower is better, so mode must be "
            f'given. Got monitor={monitor!r} without it. Pass mode="min" (a loss) or mode="max" '
            "(an accuracy)."
        )
    if mode not in ("min", "max"):
        raise ArgumentError(
            f'{owner}: mode must be "min" (lower is better) or "max" (higher is better). '
            f"Got {mode!r}."
        )
    return mode  # type: ignore[return-value]


_HIGHER = frozenset("acc accuracy f1 auc auroc precision recall iou miou dice map bleu r2".split())
_LOWER = frozenset("loss error err mse mae rmse nll ppl perplexity wer cer".split())


def contradicts(monitor: str, mode: str | None) -> bool:
    """Whether a direction is the opposite of what the name of a metric says.

    The last part of the name that is known decides: "val/acc" is better when it is higher.
    """
    words = re.split(r"[^a-z0-9]+", monitor.lower())
    known = [word for word in words if word in _HIGHER or word in _LOWER]
    if not known or mode not in ("min", "max"):
        return False
    return (known[-1] in _HIGHER) is (mode == "min")


def better(value: float, than: float, mode: Mode) -> bool:
    """Whether a value is strictly better than another one; nan never is."""
    return value < than if mode == "min" else value > than


def refuse(owner: str, name: str, value: Any, rule: str, fix: str = "") -> None:
    """Raises ArgumentError for an argument that breaks a rule."""
    raise ArgumentError(f"{owner}: {name} must be {rule}. Got {value!r}.{' ' + fix if fix else ''}")


def key(callback: Callback, **arguments: Any) -> str:
    """A `state_key` from the arguments that tell callbacks of one class apart.

    Equal ones get their number among the Trainer's callbacks.
    """
    kind = type(callback)
    text = f"{kind.__qualname__}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"
    trainer = callback._trainer
    twins = [] if trainer is None else [cb for cb in trainer.callbacks if type(cb) is kind]
    for number, twin in enumerate(cb for cb in twins if cb.key_arguments() == arguments):  # type: ignore[attr-defined]
        if twin is callback and number:
            return f"{text}#{number + 1}"
    return text


class Watched:
    """A name of a logged metric that somebody needs.

    Args:
        what: Who needs it and how, for messages: "EarlyStopping: monitor='val/loss'".
        name: The name.
    """

    def __init__(self, what: str, name: str) -> None:
        self.what = what
        self.name = name
        self.found = False
        self._known: set[str] = set()

    @property
    def known(self) -> bool:
        """Whether the name was logged at all, if only before or within an epoch."""
        return self.name in self._known

    def read(self, trainer: Trainer) -> Final | None:
        """The aggregate of the last finished epoch, or None while there is no such value."""
        return trainer.metric_log.finished(self.name)

    def look(self, trainer: Trainer) -> bool:
        """Whether the name was logged. Looks before training, after a batch and after epochs.

        Raises:
            TrainerError: It was not, and a name that is almost the same was; or everything was
                logged once, and it is missing or has only values of single batches.
        """
        if self.found:
            return True
        log = trainer.metric_log
        self._known.update(log.names())
        certain = trainer.position.epoch_done and trainer.metrics_complete
        if self.name not in self._known:
            twin = difflib.get_close_matches(self.name, self._known, n=1, cutoff=_TWIN)
            if twin or certain:
                raise TrainerError(self._unknown(twin))
            return False
        if log.only_steps(self.name) and (certain or not trainer.val_data):
            raise TrainerError(
                f"{self.what} exists only as the value of single batches, each measured before the "
                "batch's update. Log it with on_epoch=True, or watch a validation metric."
            )
        self.found = log.finished(self.name) is not None
        return self.found

    def _unknown(self, twin: list[str]) -> str:
        if not self._known:
            return f"{self.what} was never logged; nothing was. Call self.log({self.name!r}, ...)."
        twin = twin or difflib.get_close_matches(self.name, self._known, n=1)
        hint = f" Did you mean {twin[0]!r}?" if twin else ""
        return f"{self.what} was never logged. Logged are {', '.join(sorted(self._known))}.{hint}"
