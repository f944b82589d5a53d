"""Functions that recognise calls like an earlier one, written for it.

They know what nearly every call of a step is: the same structure without keywords, tensors of the
same shapes that need no gradient, under the same modes. For everything else `signature.py` finds
the key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ops.primitive import Tensor
from .signature import modes

_MOST = 8  # tensors, each pair of which is compared

Match = Callable[[Any, Any], list[Any] | None]


def matcher(args: tuple[Any, ...]) -> Match | None:
    """What recognises calls with arguments like these, and without keywords.

    Returns:
        `match(args, kwargs)`, which gives the tensors of a call with the same signature and modes,
        and None for one that it does not know; None where that would be no quicker.
    """
    writer = _Writer()
    writer.unless("kwargs or modes() != now")
    if not writer.write("args", args) or len(writer.tensors) > _MOST:
        return None
    numbers = range(len(writer.tensors))
    for i, j in itertools.combinations(numbers, 2):
        writer.unless(f"a{i} is a{j}")
    lines = ["def match(args, kwargs):", *writer.lines, f"return [{', '.join(writer.tensors)}]"]
    names = {**writer.names, "Tensor": Tensor, "ndarray": np.ndarray, "modes": modes}
    names["now"] = modes()
    exec(compile("\n    ".join(lines), "<captured: arguments>", "exec"), names)
    made: Match = names["match"]
    return made


class _Writer:
    """Writes the tests of one call.

    Attributes:
        lines: The statements.
        tensors: Expressions of the tensors, in their order.
        names: What the statements name.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tensors: list[str] = []
        self.names: dict[str, Any] = {}

    def unless(self, test: str) -> None:
        """Calls for which `test` holds are other ones."""
        self.lines += [f"if {test}:", "    return None"]

    def write(self, name: str, x: Any) -> bool:
        """Tests whether the variable `name` holds what has the signature of `x`; False if not."""
        kind = type(x)
        if kind is Tensor:
            return self._tensor(name, x)
        if x is None or kind is bool:
            self.unless(f"{name} is not {x!r}")
            return True
        if kind is int or kind is str:
            self.unless(f"type({name}) is not {kind.__name__} or {name} != {x!r}")
            return True
        if kind is dict:
            if not all(type(key) is str for key in x):
                return False
            self.unless(f"type({name}) is not dict or list({name}) != {list(x)!r}")
            parts = {f"{name}[{key!r}]": value for key, value in x.items()}
        elif kind is tuple or kind is list:
            self.unless(f"type({name}) is not {kind.__name__} or len({name}) != {len(x)}")
            parts = {f"{name}[{i}]": value for i, value in enumerate(x)}
        else:
            return False
        for part, value in parts.items():
            fresh = f"{name}_{list(parts).index(part)}"
            self.lines.append(f"{fresh} = {part}")
            if not self.write(fresh, value):
                return False
        return True

    def _tensor(self, name: str, x: Any) -> bool:
        a, i = x._array, len(self.tensors)
        if type(a) is not np.ndarray or not a.flags.c_contiguous or x._rg or x._view is not None:
            return False
        self.tensors.append(name)
        self.names |= {f"shape{i}": a.shape, f"dtype{i}": a.dtype}
        self.unless(f"type({name}) is not Tensor or {name}._rg or {name}._view is not None")
        self.lines.append(f"a{i} = {name}._array")
        self.unless(f"type(a{i}) is not ndarray or a{i}.dtype is not dtype{i}")
        self.unless(f"a{i}.shape != shape{i} or not a{i}.flags.c_contiguous")
        return True
