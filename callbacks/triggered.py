"""Any callable with any trigger: `every(Steps(100), function)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import key
from minitorch.callbacks.triggers import as_trigger
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


def every(
    trigger: Any, function: Callable[..., Any], *, order: Order = Order.REPORT, name: str = ""
) -> TriggeredCall:
    """A callback that calls a function whenever a trigger comes due.

    Args:
        trigger: Such as `Steps(100)`, `Epochs(1) | Minutes(5)`, `Once(Samples(1e6))`.
        function: Called with as many of (trainer, module) as it takes. If it has `state_dict` and
            `load_state_dict`, its state is saved as well.
        order: When it runs inside of an event, relative to other callbacks; from `Order.REPORT` on
            it sees the final metrics of an epoch.
        name: What tells it apart in checkpoints from others with the same trigger; default the
            function's name.

    >>> from minitorch.callbacks import Steps, every
    >>> every(Steps(100), print, name="show")
    every(Steps(100), show)
    """
    return TriggeredCall(trigger, function, order=order, name=name)


class TriggeredCall(Callback):
    """What `every` makes."""

    def __init__(
        self,
        trigger: Any,
        function: Callable[..., Any],
        *,
        order: Order = Order.REPORT,
        name: str = "",
    ) -> None:
        self.order = order  # type: ignore[misc]
        self.trigger = as_trigger("every", trigger).fresh()
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._arguments = 2

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        if not callable(self.function):
            raise ArgumentError(
                f"every: something to call is needed. Got {self.function!r}. "
                "Pass a function of (trainer, module)."
            )
        self.trigger.check()
        self.trigger.reset()
        self._arguments = _positional(self.function)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        self.trigger.start(trainer)

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_end":
            return self.trigger.each_batch
        return super().listens(event)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.trigger.due(trainer, epoch_over=False):
            self.function(*(trainer, module)[: self._arguments])

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self.trigger.due(trainer, epoch_over=True):
            self.function(*(trainer, module)[: self._arguments])

    # State.

    def key_arguments(self) -> dict[str, Any]:
        """What tells two of them apart in a checkpoint."""
        return {"trigger": repr(self.trigger), "name": self.name}

    @property
    def state_key(self) -> str:
        return key(self, **self.key_arguments())

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"trigger": self.trigger.state_dict()}
        if hasattr(self.function, "state_dict") and hasattr(self.function, "load_state_dict"):
            state["function"] = self.function.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.trigger.load_state_dict(state_dict["trigger"])
        if "function" in state_dict:
            self.function.load_state_dict(state_dict["function"])  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"every({self.trigger!r}, {self.name})"


def _positional(function: Callable[..., Any]) -> int:
    """How many of (trainer, module) a function takes; both where it does not tell."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 2
    return min(2, sum(p.kind in kinds for p in parameters))
