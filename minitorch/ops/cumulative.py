"""Running sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from . import elementwise as el
from . import joining, shape
from .numpy_names import renamed
from .primitive import OUT, Primitive, raw
from .reduction import product_primitive, sum_along, widened


def _cumsum_forward(a: Any, *, axis: int) -> Any:
    if a.dtype in dtypes.HALF:
        return a.astype(np.float32).cumsum(axis=axis).astype(a.dtype)
    return a.cumsum(axis=axis)


def _reversed_cumsum(g: Any, axis: int) -> Any:
    return shape.flip(_CUMSUM(shape.flip(g, (axis,)), axis=axis), (axis,))


_CUMSUM = Primitive("cumsum", _cumsum_forward, (lambda g, *, axis: _reversed_cumsum(g, axis),))


def cumsum(input: Any, dim: Any = None, *, dtype: Any = None, **names: Any) -> Any:
    """The running sum along `dim`."""
    if names:
        return renamed(cumsum, locals())
    x = widened(input, dtype)
    axis = shape.axis_of("cumsum", raw(x).ndim, dim)
    return _CUMSUM(x, axis=axis) if raw(x).ndim else x.clone()


def cumprod(input: Any, dim: Any = None, *, dtype: Any = None, **names: Any) -> Any:
    """The running product along `dim`."""
    if names:
        return renamed(cumprod, locals())
    x = widened(input, dtype)
    axis = shape.axis_of("cumprod", raw(x).ndim, dim)
    return _CUMPROD(x, axis=axis) if raw(x).ndim else x.clone()


def _cumprod_rule(g: Any, a: Any, out: Any, *, axis: int) -> Any:
    """`Σ_{k≥i} g_k out_k / a_i`; rows with a 0 are summed term by term."""
    array = raw(a)
    if bool((array != 0).all()):
        return _reversed_cumsum(g * out, axis) / a
    n = array.shape[axis]
    parts = []
    for i in range(n):
        head = prod_before(a, axis, i)
        tail = joining.narrow(a, axis, i + 1, n - i - 1)
        later = joining.cat(
            [el.ones_like(joining.narrow(a, axis, i, 1)), cumprod(tail, axis)], axis
        )
        parts.append(sum_along(joining.narrow(g, axis, i, n - i) * later * head, axis))
    return joining.cat(parts, axis)


def prod_before(a: Any, axis: int, i: int) -> Any:
    """The product of the first `i` elements along `axis`, with the axis kept."""
    return product_primitive(joining.narrow(a, axis, 0, i), axis=axis, keepdim=True)


_CUMPROD = Primitive("cumprod", lambda a, *, axis: a.cumprod(axis=axis), (_cumprod_rule,), (0, OUT))
