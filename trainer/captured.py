"""`Trainer(compile=True)`: training_step and its backward pass, recorded once and replayed."""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.autograd.node import user_level
from minitorch.ops import primitive
from minitorch.ops.recording import unrecordable
from minitorch.trainer.checks import OURS
from minitorch.trainer.task import positional_count

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer

CHECK = "compile-breaks-recompiles"


def captured_step(trainer: Trainer) -> Callable[..., Any]:
    """What the loop calls in place of `training_step`; it is made once a run.

    Zeroing, clipping, the update, schedules, logging and all hooks stay where they are. A step
    that uses batch_idx is a break: it means another number in every batch. Loggers get the number
    of recordings and of reasons for breaks whenever one is added.
    """
    from minitorch.capture import Captured, CaptureWarning

    step: Callable[..., Any] = trainer.module.training_step

    def report(text: str) -> None:
        if trainer.checks.on:
            trainer.checks.warn(CHECK, text.replace("compile:", "Trainer(compile=True):", 1))
        else:
            warnings.warn(text, CaptureWarning, stacklevel=user_level(skip=OURS))

    def counted(counts: Any) -> None:
        values = {
            "compile/recordings": counts.recordings,
            "compile/breaks": len(counts.breaks),
            "epoch": trainer.current_epoch,
        }
        trainer.logger_group.log_metrics(values, trainer.global_step)

    if inspect.isgeneratorfunction(step):
        report(
            "compile: a captured step returns its losses. Got "
            f"{type(trainer.module).__name__}.training_step, which yields them and runs eagerly. "
            "Return them as a dict of names where no loss needs the update of another, or leave "
            "compile away."
        )
        return step

    @functools.wraps(step)
    def _with_index(batch: Any, batch_idx: Any) -> Any:
        return step(batch, batch_idx if primitive.tape is None else BatchIndex(batch_idx))

    takes_index = positional_count(step, 2) == 2
    return Captured(
        _with_index if takes_index else step,
        name=f"{type(trainer.module).__name__}.training_step",
        roots=[("the module", trainer.module), ("training_step", step)],
        report=report,
        ignored=1 if takes_index else None,
        counted=counted,
    )


class BatchIndex:
    """The number of the batch while a step is recorded: whatever uses it ends the recording.

    It may be handed on. It is no subclass of int, because C takes the value of one without asking.
    """

    def __init__(self, value: int) -> None:
        self._value = value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """int, for those who ask."""
        return int

    def __index__(self) -> int:
        unrecordable("batch_idx is another number in every batch")
        return self._value


def _forwarded(name: str) -> Callable[..., Any]:
    def _method(self: Any, *args: Any) -> Any:
        value = operator.index(self)
        return getattr(value, name)(*args)

    return _method


for _name in dir(int):
    if _name.startswith("__") and _name not in dir(object) and _name not in vars(BatchIndex):
        setattr(BatchIndex, _name, _forwarded(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "hash", "repr", "str", "format"):
    setattr(BatchIndex, f"__{_name}__", _forwarded(f"__{_name}__"))
