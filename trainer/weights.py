"""What is looked at before a fit about where weights came from: lax loads and broken ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backend
from minitorch.errors import listed
from minitorch.nn.partial import left_by_loads

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

_LOAD = "prefix-mismatch-nonstrict"
_TIE = "weight-tying-broken"
_SAMPLE = 256


def check_loads(trainer: Trainer, module: TaskModule) -> None:
    """Nothing that a load with strict=False left random is trained in silence."""
    left = [one for one in left_by_loads(module) if not trainer.checks.meant(_LOAD, one.name)]
    if not left:
        return
    total = len(module.state_dict())
    names = [one.name for one in left]
    prefix = next((p for one in left if (p := _prefix(one.name, one.unexpected))), "")
    text = (
        "fit: what load_state_dict(strict=False) did not find is as it was initialised. Got "
        f"{len(left)} of {total} tensors: {listed(names)}. "
    )
    if prefix:
        trainer.checks.error(
            _LOAD,
            f"{text}The file has them under other names, with or without the prefix '{prefix}'. "
            f"Load with load_part(state, prefix={prefix!r}), or into the submodule of that name.",
        )
        return
    owners = dict.fromkeys(name.rpartition(".")[0] for name in names)
    patterns = ", ".join(f'"{owner}.*"' if owner else '"*"' for owner in list(owners)[:8])
    trainer.checks.warn(
        _LOAD, f"{text}If they shall be, say which: load_part(state, exclude=[{patterns}])."
    )


def _prefix(name: str, unexpected: tuple[str, ...]) -> str:
    """What stands before `name` in a file, or before the file's names in `name`; "" if nothing."""
    for other in unexpected:
        if other.endswith(f".{name}"):
            return other.removesuffix(name)
        if name.endswith(f".{other}"):
            return name.removesuffix(other)
    return ""


def check_ties(trainer: Trainer, module: TaskModule) -> None:
    """Warns of two trained parameters that were one: equal values in places that are no copies.

    A layer that was copied as a whole, as the layers of an encoder are, is no tie that broke.
    """
    owners: dict[int, tuple[str, Any]] = {}
    groups: dict[tuple[int, ...], list[tuple[str, Any]]] = {}
    chains: dict[str, list[Any]] = {"": []}
    for path, part in module.named_modules():
        chains[path] = [*chains.get(path.rpartition(".")[0], []), part]
        for name, value in part.named_parameters(recurse=False):
            full = f"{path}.{name}" if path else name
            if id(value) not in owners and value.requires_grad and value.numel() > 1:
                owners[id(value)] = (path, part)
                groups.setdefault(tuple(value.shape), []).append((full, value))
    for named in groups.values():
        for (a, one), (b, other) in _equal_pairs(named):
            if trainer.checks.meant(_TIE, a) or trainer.checks.meant(_TIE, b):
                continue
            if _are_copies(chains[owners[id(one)][0]], chains[owners[id(other)][0]]):
                continue
            trainer.checks.warn(
                _TIE,
                f"fit: parameters that start with the same values and are no copies of a layer "
                f"were one. Got {a} and {b}, which are trained apart: a deepcopy or an assignment "
                f'of values has broken the tie. Declare it: self.tie("{b}", "{a}").',
            )
            return


def stale_average(trainer: Trainer) -> None:
    """Warns of an `AveragedModel` that is evaluated with statistics of other weights."""
    trainer.checks.warn(
        "ema-swa-buffers",
        "AveragedModel: averaged weights need running statistics of their own. Got an evaluation "
        f"at {trainer.checks.line()} with statistics of the trained weights. Call "
        "update_bn(loader, averaged) after the last update, or make it with use_buffers=True.",
    )


def _equal_pairs(named: list[tuple[str, Any]]) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Pairs of tensors with the same values, most of which differ within a tensor."""
    if len(named) < 2:
        return
    first: dict[bytes, tuple[str, Any]] = {}
    for name, tensor in named:
        flat = tensor._array.reshape(-1)
        sample = np.asarray(backend.to_host(flat[:: max(1, flat.size // _SAMPLE)]))
        if np.unique(sample).size <= sample.size // 2:  # ones, an identity: nothing was drawn
            continue
        seen = first.setdefault(sample.tobytes(), (name, tensor))
        other = seen[1]
        if other is not tensor and bool(backend.to_host((other._array == tensor._array).all())):
            yield seen, (name, tensor)


def _are_copies(a: list[Any], b: list[Any]) -> bool:
    """Whether the modules that hold two parameters are copies of one layer in places alike.

    Args:
        a, b: The modules from the root down to the owner of each.
    """
    a, b = list(a), list(b)
    if not _alike(a[-1], b[-1]):
        return False
    while len(a) > 1 and len(b) > 1 and a[-1] is not b[-1] and _alike(a[-1], b[-1]):
        a, b = a[:-1], b[:-1]
    return a[-1] is b[-1] or type(a[-1]) is type(b[-1])


def _alike(a: Any, b: Any) -> bool:
    """Whether two modules have one class and the same values everywhere."""
    if type(a) is not type(b):
        return False
    ours, theirs = list(a.parameters()), list(b.parameters())
    return len(ours) == len(theirs) and all(
        p.shape == q.shape and bool(backend.to_host((p._array == q._array).all()))
        for p, q in zip(ours, theirs, strict=True)
    )
