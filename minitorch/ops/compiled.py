"""Elementwise operations whose large arrays go through a compiled body, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..kernels import load_for
from .families import Unary

FROM = 1 << 12  # elements from which that pays


def compiled(op: Unary, *numbers: str, least: int = FROM, kinds: str = "f") -> Unary:
    """Puts the compiled bodies of its name into an operation, and returns it.

    Args:
        op: An operation of which `kernels/cpu/activation.py` has the function and its slope.
        numbers: Its options, in the order in which that takes them.
        least: Elements from which it pays.
        kinds: Type characters of the dtypes that the function takes.
    """
    assert op.vjps is not None
    name, plain, plain_rule = op.name, op.forward, op.vjps[0]
    assert plain_rule is not None

    def forward(a: Any, **params: Any) -> Any:
        if a.size >= least:
            kernels = load_for("elementwise", a, least=least, kinds=kinds, contiguous=True)
            if kernels is not None:
                return kernels.value(name, a, *[params[key] for key in numbers])
        return plain(a, **params)

    def rule(g: Any, saved: Any, **params: Any) -> Any:
        if type(g) is np.ndarray and g.size >= least and g.shape == saved.shape:
            if not g.flags.c_contiguous:  # a mean gives the same number to many
                g = np.ascontiguousarray(g)
            kernels = load_for("elementwise", g, saved, least=least, kinds=kinds, contiguous=True)
            if kernels is not None:
                return kernels.gradient(name, g, saved, *[params[key] for key in numbers])
        return plain_rule(g, saved, **params)

    op.forward, op.vjps = forward, (rule,)
    return op


def where_arrays(c: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`, of arrays."""
    if type(c) is np.ndarray and c.size >= FROM and c.dtype.kind == "b" and c.flags.c_contiguous:
        full = [x for x in (a, b) if isinstance(x, np.ndarray) and x.ndim]
        numbers = [x for x in (a, b) if isinstance(x, np.ndarray | np.generic) and not x.ndim]
        alike = len(full) + len(numbers) == 2 and a.dtype == b.dtype
        if full and alike and all(x.shape == c.shape for x in full):
            kernels = load_for("elementwise", *full, least=FROM, kinds="f", contiguous=True)
            if kernels is not None:
                return kernels.choose(c, *(x if x.ndim else x[()] for x in (a, b)))
    return backend.namespace(a).where(c, a, b)
