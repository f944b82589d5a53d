"""Where two runs part, and what usually causes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import Tensor

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer
    from minitorch.trainer.verify_resume import Trace

_PLAIN = (bool, int, float, str, type(None))
_OURS = ("minitorch.",)


def differences(
    first: Any, second: Any, path: str = "", *, every: bool = False
) -> Iterator[tuple[str, str]]:
    """Names and values that differ in two state trees, in their order.

    Args:
        first, second: The trees.
        path: Name of the root.
        every: Yield also what is equal.
    """
    if type(first) is not type(second):
        yield path, f"{type(first).__name__} against {type(second).__name__}"
    elif isinstance(first, dict):
        for key in dict.fromkeys([*first, *second]):
            name = f"{path}.{key}" if path else str(key)
            if key not in first or key not in second:
                yield name, "only in one of them"
            else:
                yield from differences(first[key], second[key], name, every=every)
    elif isinstance(first, list | tuple):
        if len(first) != len(second):
            yield path, f"{len(first)} entries against {len(second)}"
        for index, (one, other) in enumerate(zip(first, second, strict=False)):
            yield from differences(one, other, f"{path}.{index}", every=every)
    elif isinstance(first, Tensor | np.ndarray):
        yield from _arrays(first, second, path, every=every)
    elif every or not _equal(first, second):
        yield path, f"{first!r} against {second!r}"


def _arrays(first: Any, second: Any, path: str, *, every: bool) -> Iterator[tuple[str, str]]:
    a, b = (x.detach().cpu().numpy() if isinstance(x, Tensor) else x for x in (first, second))
    if a.shape != b.shape or a.dtype != b.dtype:
        yield path, f"{a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)}"
    elif every or a.tobytes() != b.tobytes():
        apart = np.abs(np.nan_to_num(a.astype(np.float64)) - np.nan_to_num(b.astype(np.float64)))
        place = np.unravel_index(int(apart.argmax()), a.shape) if a.size and a.ndim else ()
        at = f" at {[int(i) for i in place]}" if place else ""
        yield path, f"{a[place]!s} against {b[place]!s}{at}" if a.size else ""


def _equal(first: Any, second: Any) -> bool:
    both_nan = isinstance(first, float) and math.isnan(first) and math.isnan(second)
    return bool(both_nan or first == second)


def plain_state(trainer: Trainer) -> dict[str, Any]:
    """Numbers and texts that modules and the user's callbacks keep as attributes."""
    found: dict[str, Any] = {}
    for name, module in trainer.module.named_modules():
        label = f"self.{name}." if name else "self."
        found |= {f"{label}{key}": value for key, value in _attributes(module)}
    for callback in trainer.user_callbacks:
        if not type(callback).__module__.startswith(_OURS):
            kind = type(callback).__name__
            found |= {f"{kind}.{key}": value for key, value in _attributes(callback)}
    return found


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    for key, value in vars(owner).items():
        if key.startswith("__") or key == "training":
            continue
        if isinstance(value, _PLAIN):
            yield key, value
        elif isinstance(value, list | tuple | set | dict) and len(value) <= 1000:
            text = repr(value)
            if " at 0x" not in text:
                yield key, text if len(text) < 60 else f"{text[:56]} …"


def explain(whole: Trace, rest: Trace, after: int, drew: bool) -> str:
    """The first difference and its usual cause; "" if the runs are equal."""
    apart = list(differences(whole.end, rest.end))
    for number, ours in rest.batches.items():
        theirs = whole.batches[number]
        if ours[0] != theirs[0]:
            return f"first in the data of batch {number}. {_data_cause(drew)}"
        if ours[1] != theirs[1]:
            return (
                f"first in the random numbers before batch {number}. Something draws in the "
                "resumed run alone, or not in it: look at on_train_start, on_load_checkpoint and "
                "setup."
            )
        if not _equal(ours[2], theirs[2]):
            return (
                f"first in the loss of batch {number}, {theirs[2]!r} against {ours[2]!r}, from "
                f"equal data and random numbers. {_state_cause(whole, rest, drew)}"
            )
    if not apart:
        return ""
    name, values = apart[0]
    more = f" (and {len(apart) - 1} more)" if len(apart) > 1 else ""
    return f"first in {name}: {values}{more}. {_state_cause(whole, rest, drew)}"


def _data_cause(drew: bool) -> str:
    if drew:
        return (
            "The run draws from numpy.random or random, whose state no checkpoint holds. Take the "
            "numbers from the `rng` that __getitem__ may ask for, or from minitorch."
        )
    return (
        "The dataset or sampler keeps a state of its own, or the loader's order depends on one. "
        "Make samples a function of index and `rng`, or give the loader state_dict and "
        "load_state_dict."
    )


def _state_cause(whole: Trace, rest: Trace, drew: bool) -> str:
    (before, kept), (loaded, attributes) = whole.cut, rest.start
    lost = [
        f"{name} ({value!r} before, {attributes[name]!r} after)"
        for name, value in kept.items()
        if name in attributes and not _equal(value, attributes[name])
    ]
    lost += [
        f"{name} ({values})"
        for name, values in differences(before, loaded)
        if not name.startswith(("loops.", "random."))
    ]
    if lost:
        return (
            f"Not restored by the checkpoint: {'; '.join(lost[:4])}. Keep it in a buffer, in "
            "state_dict and load_state_dict of the callback, or in on_save_checkpoint and "
            "on_load_checkpoint."
        )
    if drew:
        return (
            "The run draws from numpy.random or random, whose state no checkpoint holds. Draw "
            "from minitorch instead."
        )
    return (
        "Something outside of the state tree has a part in it: an object behind an attribute, a "
        "buffer with persistent=False, a global variable, the clock."
    )
