"""Conflicts between callbacks that declare what they read and write, found before training.

A callback may declare `reads` and `writes`: from the name of a thing to the event, or events, in
which it does so. The things of a run are "batch", "loss", "gradients", "weights", "learning rate",
"accumulation", "metrics" and "stop"; packages may add names of their own. Two rules hold:

* One callback writes a thing in an event, or the order of a list decides what comes out. A learning
  rate has one writer in the whole run, since it stays. To stop is everybody's right.
* Who reads a thing comes after its writer in that event.

Core callbacks among each other are in order. What is meant all the same is said at the object:
`callback.writes = {}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minitorch.callbacks.callback import EVENTS, Callback, Touched
from minitorch.callbacks.core import CORE
from minitorch.errors import ArgumentError, TrainerError

THINGS = (
    "batch",
    "loss",
    "gradients",
    "weights",
    "learning rate",
    "accumulation",
    "metrics",
    "stop",
)
_STAYS = frozenset({"learning rate"})
_SHARED = frozenset({"stop"})


def check(callbacks: Sequence[Callback]) -> None:
    """Raises for the first conflict between callbacks of a run.

    Args:
        callbacks: In the order in which they run.

    Raises:
        ArgumentError: A declaration names something that is no event.
        TrainerError: Names both callbacks, and what to do.
    """
    writers: dict[tuple[str, str], list[Callback]] = {}
    for callback in callbacks:
        for thing, event in _touched(callback, "writes"):
            writers.setdefault((thing, event), []).append(callback)
    for (thing, event), both in writers.items():
        if thing not in _SHARED:
            _check_writers(thing, f" in {event}", both)
    for thing in _STAYS:
        every = [cb for (name, _), found in writers.items() if name == thing for cb in found]
        _check_writers(thing, ", which stays until somebody sets it again", every)
    for place, callback in enumerate(callbacks):
        for thing, event in _touched(callback, "reads"):
            for writer in writers.get((thing, event), ()):
                if place < callbacks.index(writer):
                    _refuse_reader(thing, event, callback, writer)


def _touched(callback: Callback, kind: str) -> Iterable[tuple[str, str]]:
    """Pairs of thing and event that a callback declares and takes part in."""
    declared: Touched = getattr(callback, kind)
    if not declared:
        return
    for thing, events in declared.items():
        for event in (events,) if isinstance(events, str) else events:
            if event not in EVENTS:
                raise ArgumentError(
                    f"{_name(callback)}: {kind} names events. Got {event!r} for {thing!r}. "
                    'Write for example {"metrics": "on_train_epoch_end"}.'
                )
            if callback.listens(event):
                yield thing, event


def _check_writers(thing: str, where: str, writers: list[Callback]) -> None:
    each = list({id(callback): callback for callback in writers}.values())
    if len(each) < 2 or all(isinstance(callback, CORE) for callback in each):
        return
    names = " and ".join(_name(callback) for callback in each)
    core = [callback for callback in each if isinstance(callback, CORE)]
    what = "callback" if not core or thing != "learning rate" else "callback or schedule"
    raise TrainerError(
        f"Trainer: one {what} writes the {thing}{where}. Got {names}. Leave one of them out; if "
        "both are meant, set writes = {} on one of the objects."
    )


def _refuse_reader(thing: str, event: str, reader: Callback, writer: Callback) -> None:
    order = writer.order
    raise TrainerError(
        f"Trainer: who reads the {thing} comes after who writes them. Got {_name(reader)} "
        f"({reader.order.name}) before {_name(writer)} ({order.name}) in {event}. Give "
        f"{_name(reader)} order = Order.{order.name} or a later one"
        + (", or list it after the other." if reader.order == order else ".")
    )


def _name(callback: Callback) -> str:
    return type(callback).__name__
