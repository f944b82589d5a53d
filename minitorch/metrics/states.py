"""States that a metric declares with `add_state`: copied, moved, saved and merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError, describe
from ..ops.primitive import wrap
from ..tensor import Tensor

Reduction = str | Callable[[Tensor], Any] | None

_CONTAINERS = (list, tuple, set, frozenset)
_PLAIN = (bool, int, float, str, type(None))


def check(owner: Any, name: str, default: Any, reduction: Reduction) -> None:
    """Raises unless `owner` can have a state like this.

    Raises:
        ArgumentError: The name is taken or none, or default or reduction are not of their kinds.
    """
    who = f"{type(owner).__name__}.add_state"
    if not isinstance(name, str) or not name.isidentifier() or hasattr(type(owner), name):
        raise ArgumentError(
            f"{who}: the name of a state is a free attribute of the metric. Got {name!r}. "
            "Choose another name."
        )
    is_array = isinstance(default, Tensor) or backend.is_array(default)
    if not is_array and type(default) not in (int, float) and default != []:
        raise ArgumentError(
            f"{who}({name!r}): default is a tensor, an array, a number or an empty list. "
            f"Got {describe(default)}. Pass for example torch.tensor(0.0)."
        )
    if reduction not in ("sum", "mean", "max", "min", "cat", None) and not callable(reduction):
        raise ArgumentError(
            f'{who}({name!r}): dist_reduce_fx is "sum", "mean", "max", "min", "cat", None or a '
            f"function of stacked states. Got {reduction!r}."
        )


def copied(value: Any) -> Any:
    """A value that later updates do not write into: arrays and containers anew."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if backend.is_array(value):
        return value.copy()
    if type(value) in _CONTAINERS:
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {key: copied(held) for key, held in value.items()}
    return value


def moved(value: Any, device: Any) -> Any:
    """The tensors of a state on a device."""
    if isinstance(value, Tensor):
        return value.detach() if value.device == device else value.detach().to(device)
    return [moved(held, device) for held in value] if type(value) is list else value


def can_be_saved(value: Any) -> bool:
    """Whether a checkpoint takes an attribute."""
    if type(value) in (list, tuple):
        return all(map(can_be_saved, value))
    if type(value) is dict:
        return all(type(key) is str and can_be_saved(held) for key, held in value.items())
    return isinstance(value, Tensor) or backend.is_array(value) or type(value) in _PLAIN


def merged(who: str, name: str, reduction: Reduction, parts: list[Any], counts: list[int]) -> Any:
    """One state of all batches.

    Args:
        who: The metric, for messages.
        name: The state, for messages.
        reduction: Its dist_reduce_fx.
        parts: The states of the metrics that took in batches.
        counts: How many batches each took in: the weights of a mean.

    Raises:
        ArgumentError: Nothing says how.
    """
    if type(parts[0]) is list:
        return [one for part in parts for one in part]
    if reduction is None:
        raise ArgumentError(
            f"{who}.merge: dist_reduce_fx says how the states of several runs or processes become "
            f"one. Got None for {name!r}, which is no list. Pass it to add_state, for example "
            '"sum".'
        )
    if reduction == "sum":
        return sum(parts[1:], parts[0])
    if reduction == "mean":
        weighted = [part * count for part, count in zip(parts, counts, strict=True)]
        return sum(weighted[1:], weighted[0]) / sum(counts)
    return _reduced(reduction, parts)


def _reduced(reduction: Any, parts: list[Any]) -> Any:
    """Maxima, minima, concatenations and functions, as the kind of value that the states are."""
    arrays = [np.asarray(backend.to_host(_array(part))) for part in parts]
    if reduction == "cat":
        found: Any = np.concatenate([np.atleast_1d(array) for array in arrays])
    elif reduction in ("max", "min"):
        stacked = np.stack(arrays)
        found = stacked.max(axis=0) if reduction == "max" else stacked.min(axis=0)
    else:
        found = reduction(wrap(np.stack(arrays)))
    if type(parts[0]) in (int, float):
        return found.item()
    if isinstance(parts[0], Tensor):
        return found if isinstance(found, Tensor) else wrap(np.asarray(found))
    return np.asarray(_array(found))


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()._array
    return value if backend.is_array(value) else np.asarray(value)
