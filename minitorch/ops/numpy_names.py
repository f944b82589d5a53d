"""NumPy's argument names, which PyTorch accepts beside its own.

A function takes them as `**names`, which costs a normal call nothing but an empty dict:

    def sum(input, dim=None, keepdim=False, **names):
        if names:
            return renamed(sum, locals())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OURS = {"axis": "dim", "keepdims": "keepdim"}


def renamed(function: Callable[..., Any], bound: dict[str, Any]) -> Any:
    """Calls `function` with its `locals()` and, under PyTorch's names, what came as `names`.

    Raises:
        TypeError: A name is neither PyTorch's nor NumPy's, as Python says it.
    """
    names = bound.pop("names")
    for name, value in names.items():
        ours = _OURS.get(name)
        if ours not in bound:
            raise TypeError(
                f"{function.__name__}() got an unexpected keyword argument {name!r}. "
                f"It takes {', '.join(bound)}."
            )
        bound[ours] = value
    return function(**bound)
