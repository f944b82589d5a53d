"""Options of schedules that are not those of the checkpoint that a run goes on from."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from minitorch.trainer.same_value import same_value

_DERIVED = ("total_size", "step_ratio")


def differing(schedule: Any, saved: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The options that differ, of the parts of a composed schedule too: name, saved, present.

    Options are what the constructor takes and the state holds; the place of the schedule differs
    in every resumed run.
    """
    own, kind = schedule.state_dict(), type(schedule).__name__
    if saved.get("kind", kind) != kind:
        return
    names = [*inspect.signature(type(schedule)).parameters, *_DERIVED]
    for name in [key for one in names if one != "last_epoch" for key in (one, f"_{one}")]:
        if name == "schedulers" or name not in own or name not in saved:
            continue
        if not same_value(own[name], saved[name]):
            yield f"{kind}.{name.lstrip('_')}", saved[name], own[name]
    parts = getattr(schedule, "_schedulers", ())
    for part, state in zip(parts, saved.get("schedulers", ()), strict=False):
        yield from differing(part, state)


def advance(schedule: Any, fresh: list[dict[str, Any]], saved: dict[str, Any]) -> None:
    """Brings a new schedule to the step that a saved one had reached, with its own options.

    Args:
        schedule: As its constructor left it.
        fresh: Copies of the groups of its optimizer from that time.
        saved: The state of the schedule in the checkpoint.
    """
    for group, start in zip(schedule.optimizer.param_groups, fresh, strict=True):
        group["lr"] = start["lr"]
    for _ in range(saved["last_epoch"] - schedule.last_epoch):
        schedule.step()
