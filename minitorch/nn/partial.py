"""Loading a part of a state: named, counted, and what a lax load left is remembered."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..errors import CheckpointError
from . import tree

LEFT = "_left"
_WRAPPERS = ("module.", "_orig_mod.")
_SAMPLE = 64


class PartLoaded(NamedTuple):
    """What `load_part` did: names of the module that were loaded, names that were left as they
    were, and names of the file that were not used.
    """

    loaded: list[str]
    left: list[str]
    unused: list[str]

    def __repr__(self) -> str:
        count = len(self.loaded)
        text = f"<{count} of {count + len(self.left)} tensors loaded"
        if self.left:
            text += f"; left as they were: {', '.join(self.left)}"
        return text + (f"; {len(self.unused)} of the file not used>" if self.unused else ">")


class PartialLoad(tree.TreeNode):
    """What a module offers to take a part of a state."""

    def load_part(
        self,
        state_dict: Mapping[str, Any],
        *,
        include: str | Iterable[str] = "*",
        exclude: str | Iterable[str] = (),
        prefix: str = "",
    ) -> PartLoaded:
        """Copies the tensors that patterns choose; every one of them must be in the file.

        Args:
            state_dict: From path to tensor or array.
            include: Patterns such as "encoder.*" for the names of this module that are loaded.
            exclude: Patterns for those that are not, such as "head.*".
            prefix: What the names of the file have in front; others of the file are not looked at.

        Returns:
            What was loaded, what was left, and what of the file was not used.

        Raises:
            CheckpointError: The patterns choose nothing, a chosen name is not in the file, or a
                shape does not fit. Nothing is changed then.

        >>> model = mt.nn.ModuleDict({"body": mt.nn.Linear(2, 2), "head": mt.nn.Linear(2, 1)})
        >>> model.load_part(mt.nn.Linear(2, 2).state_dict(), include="weight")
        Traceback (most recent call last):
        minitorch.errors.CheckpointError: ModuleDict.load_part: the patterns must choose ...
        >>> model["body"].load_part(mt.nn.Linear(2, 2).state_dict(), exclude="bias")
        <1 of 2 tensors loaded; left as they were: bias; 1 of the file not used>
        """
        from .state import restore

        given = {k.removeprefix(prefix): v for k, v in state_dict.items() if k.startswith(prefix)}
        names = list(self.state_dict())  # type: ignore[attr-defined]
        chosen = [n for n in names if _fits(n, include) and not _fits(n, exclude)]
        missing = [name for name in chosen if name not in given]
        owner = type(self).__name__
        if not chosen:
            raise CheckpointError(
                f"{owner}.load_part: the patterns must choose tensors of the module. Got "
                f"include={include!r} and exclude={exclude!r}, which choose none of its "
                f"{len(names)}: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}."
            )
        if missing:
            raise CheckpointError(
                f"{owner}.load_part: every tensor that is chosen must be in the file. "
                f"{len(chosen) - len(missing)} of {len(chosen)} are; missing are "
                f"{', '.join(missing)}. The file has {', '.join(list(given)[:8]) or 'none'} "
                f"(prefix={prefix!r}). Give the prefix, or exclude what is not there."
            )
        before = vars(self).get(LEFT)
        restore(self, {name: given[name] for name in chosen}, False, False)
        vars(self).pop(LEFT, None)
        if before:
            still = {name: sample for name, sample in before.items() if name not in chosen}
            vars(self)[LEFT] = still
        unused = [name for name in given if name not in chosen]
        return PartLoaded(chosen, [n for n in names if n not in chosen], unused)


def _fits(name: str, patterns: str | Iterable[str]) -> bool:
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# What a lax load left.


class Left(NamedTuple):
    """A tensor that a load with strict=False left as it was.

    Attributes:
        name: Its path in the module that was loaded.
        sample: Some of its values then.
        unexpected: Names of that file that the module does not have.
    """

    name: str
    sample: np.ndarray
    unexpected: tuple[str, ...]


def note_left(
    module: Any, visited: Iterable[Any], missing: list[str], unexpected: list[str]
) -> None:
    """Remembers what a load did not find, for whoever trains the module next."""
    before: dict[str, Left] | None = vars(module).get(LEFT)
    for part in visited:
        vars(part).pop(LEFT, None)
    names = missing if before is None else [name for name in missing if name in before]
    if not names:
        return
    held = _held(module)
    vars(module)[LEFT] = {
        name: Left(name, _sampled(held[name]), tuple(unexpected)) for name in names if name in held
    }


def left_by_loads(module: Any) -> list[Left]:
    """What loads with strict=False left in the tree and nobody has written to since."""
    found = []
    for path, part, _ in tree.walk(module, "", True, set()):
        left: dict[str, Left] = vars(part).get(LEFT, {})
        held = _held(part) if left else {}
        for name, one in left.items():
            if name in held and _same(_sampled(held[name]), one.sample):
                found.append(one._replace(name=tree.join(path, name)))
    return found


def _held(module: Any) -> dict[str, Any]:
    """The tensors of a tree by path, also those that state dicts leave out."""
    return {
        tree.join(path, name): tensor
        for path, _, own in tree.walk(module, "", False, set())
        for name, tensor in (*own.parameters, *own.buffers)
    }


def _sampled(tensor: Any) -> np.ndarray:
    flat = getattr(tensor, "_array", np.zeros(0)).reshape(-1)
    step = max(1, flat.size // _SAMPLE)
    return np.array(backend.to_host(flat[::step][:_SAMPLE])).astype(np.float64)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-2, atol=1e-6, equal_nan=True))


# Wrappers do not change names.


def without_wrapper(
    module: Any, state: Mapping[str, Any]
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """A state and its versions under the names that `module` has, if only a wrapper differs.

    `compile` and data-parallel wrappers of PyTorch put a prefix before every name. It is taken
    off, or put on for a wrapped module, where no name would fit otherwise.
    """
    versions = getattr(state, "_metadata", {})
    names = set(_held(module)) if state else set()
    if not names or not all(isinstance(name, str) for name in state) or not names.isdisjoint(state):
        return dict(state), versions
    for prefix in _WRAPPERS:
        off = {name.removeprefix(prefix): value for name, value in state.items()}
        if all(name.startswith(prefix) for name in state) and not names.isdisjoint(off):
            cut = {name.removeprefix(prefix.rstrip(".")): v for name, v in versions.items()}
            return off, {name.removeprefix("."): v for name, v in cut.items()}
        on = {prefix + name: value for name, value in state.items()}
        if not names.isdisjoint(on):
            joined = {prefix + name if name else prefix[:-1]: v for name, v in versions.items()}
            return on, joined
    return dict(state), versions
