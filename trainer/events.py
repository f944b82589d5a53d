"""For each event the list of its calls: computed once, so that an unused event is free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import EVENTS, Callback, Order
from minitorch.errors import ArgumentError
from minitorch.trainer.hooks import Hooks
from minitorch.trainer.task import positional_count

if TYPE_CHECKING:
    from minitorch.trainer.profiler import Profiler
    from minitorch.trainer.status import Status
    from minitorch.trainer.task import TaskModule

Calls = list[Callable[..., Any]]
BORDERS = frozenset(
    {
        "on_train_start",
        "on_train_epoch_start",
        "on_train_batch_end",
        "on_validation_end",
        "on_train_epoch_end",
        "on_train_end",
        "on_fit_end",
    }
)
"""Events in which the state of a run is complete once the callbacks before PERSIST have run."""

BATCH_EVENTS = {
    f"on_{phase}_batch_{border}": count
    for phase in ("validation", "test", "predict")
    for border, count in (("start", 3), ("end", 4))
}
"""Events that end with dataloader_idx, which a method may leave out, and what they are told."""


class Events:
    """One attribute for each event: the calls to make, in order, with the event's own arguments.

    Callbacks' methods are bound to (trainer, module), so that callbacks and the module's hooks are
    called alike: `for call in events.on_train_batch_start: call(batch, batch_idx)`.
    """

    __slots__ = EVENTS

    if TYPE_CHECKING:

        def __getattr__(self, event: str) -> Calls: ...

    def __init__(
        self,
        callbacks: Sequence[Callback],
        trainer: Status,
        module: TaskModule,
        profiler: Profiler | None = None,
    ) -> None:
        for event in EVENTS:
            calls: Calls = []
            before_persist = event in BORDERS
            for owner, method in listeners(event, callbacks, module):
                if before_persist and getattr(owner, "order", None) is Order.PERSIST:
                    calls.append(trainer.save_now)
                    before_persist = False
                if event in BATCH_EVENTS:
                    method = _trimmed(method, BATCH_EVENTS[event] + 2 * (owner is not module))
                call = method if owner is module else partial(method, trainer, module)
                if profiler is not None:
                    call = profiler.timed(f"[{label(owner)}] {event}", call)
                calls.append(call)
            setattr(self, event, calls)


def _trimmed(method: Callable[..., Any], count: int) -> Callable[..., Any]:
    if positional_count(method, count) == count:
        return method
    return lambda *args: method(*args[: count - 1])


def listeners(
    event: str, callbacks: Sequence[Callback], module: TaskModule | None
) -> list[tuple[Any, Callable[..., Any]]]:
    """Who takes part in an event, in order: pairs of owner and method."""
    calls: list[tuple[Any, Callable[..., Any]]]
    calls = [(cb, getattr(cb, event)) for cb in callbacks if cb.listens(event)]
    hook = getattr(module, event) if module is not None and hasattr(Hooks, event) else None
    if hook is not None and getattr(hook, "__func__", hook) is not getattr(Hooks, event):
        place = sum(1 for owner, _ in calls if owner.order <= Order.MEASURE)
        calls.insert(place, (module, hook))
    return calls


def label(owner: Any) -> str:
    """Name of a callback or module in tables."""
    return type(owner).__name__


def order_table(callbacks: Sequence[Callback], module: TaskModule | None) -> str:
    """A table of all events in use and of who takes part in them, in order."""
    lines = []
    for event in EVENTS:
        names = [
            f"{label(owner)} ({_place(owner, event)})"
            if isinstance(owner, Callback)
            else label(owner)
            for owner, _ in listeners(event, callbacks, module)
        ]
        if names:
            lines.append(f"{event:<26}{' → '.join(names)}")
    return "\n".join(lines)


def _place(owner: Callback, event: str) -> str:
    """The order of a callback, and what it declares to read and write in an event."""
    parts = [owner.order.name]
    for kind in ("reads", "writes"):
        declared = getattr(owner, kind).items()
        things = [thing for thing, events in declared if event in (events, *events)]
        if things:
            parts.append(f"{kind} {', '.join(things)}")
    return ", ".join(parts)


def as_list(callbacks: Any) -> list[Callback]:
    """The callbacks of an argument: one, several or None.

    Raises:
        ArgumentError: One is no callback.
    """
    if callbacks is None:
        return []
    found = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for callback in found:
        if not isinstance(callback, Callback):
            what = "a class" if isinstance(callback, type) else type(callback).__name__
            raise ArgumentError(
                "Trainer: callbacks are objects of subclasses of minitorch.callbacks.Callback. "
                f"Got {what} ({callback!r}). Make an object, or derive from Callback."
            )
    return found
