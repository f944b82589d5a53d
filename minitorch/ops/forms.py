"""In-place forms of the operations that are always loaded, as methods and as functions."""

from __future__ import annotations

from typing import Any

from .. import backend
from ..autograd.mode import state
from ..errors import ArgumentError, GraphError, ShapeError, describe
from . import comparison as cmp
from . import cumulative, methods, primitive, shape
from . import elementwise as el
from .inplace import bump, check_writable, forget, in_place
from .primitive import wrap

_SOURCES: dict[str, Any] = {
    **{name: getattr(el, name) for name in "acos acosh asin asinh atan atanh atan2".split()},
    **{name: getattr(el, name) for name in "arccos arcsin arctan arctan2 absolute".split()},
    **{name: getattr(el, name) for name in "cosh sinh tan erf exp2 expm1 log10 log1p".split()},
    **{name: getattr(el, name) for name in "log2 sign trunc fmod remainder".split()},
    **{name: getattr(el, name) for name in "floor_divide true_divide divide multiply".split()},
    **{name: getattr(el, name) for name in "subtract negative".split()},
    **{name: getattr(cmp, name) for name in "eq ne lt le gt ge".split()},
    **{name: getattr(cmp, name) for name in "logical_and logical_or logical_xor".split()},
    **{name: getattr(cmp, name) for name in "bitwise_and bitwise_or bitwise_xor".split()},
    **{name: getattr(cmp, name) for name in "bitwise_not bitwise_left_shift".split()},
    "bitwise_right_shift": cmp.bitwise_right_shift,
    "arccosh": el.acosh,
    "arcsinh": el.asinh,
    "arctanh": el.atanh,
    "greater": cmp.gt,
    "greater_equal": cmp.ge,
    "less": cmp.lt,
    "less_equal": cmp.le,
    "not_equal": cmp.ne,
    "cumsum": cumulative.cumsum,
    "cumprod": cumulative.cumprod,
}
_FORMS = {f"{name}_": in_place(f"{name}_", source) for name, source in _SOURCES.items()}


def __getattr__(name: str) -> Any:
    """The in-place form of that name: one of this file, or a method that is always there."""
    if name in _FORMS:
        return _FORMS[name]
    if name.startswith("__") or not hasattr(methods.TensorMethods, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(methods.TensorMethods, name)


def fill_diagonal_(t: Any, fill_value: float, wrap: bool = False) -> Any:
    """Writes a number on the main diagonal; with `wrap`, again below in tall matrices.

    Raises:
        ShapeError: Fewer than two axes, or more than two of different lengths.
    """
    if t.ndim < 2 or (t.ndim > 2 and len(set(t.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal_: a matrix, or axes of one length, are needed. Got {describe(t)}."
        )
    xp = backend.namespace(t._array)
    length = min(t.shape)
    steps = xp.arange(length)
    if wrap and t.ndim == 2 and t.shape[0] > t.shape[1]:
        rows = xp.arange(t.shape[0])
        columns = rows % (t.shape[1] + 1)
        inside = columns < t.shape[1]
        index = (rows[inside], columns[inside])
    else:
        index = (steps,) * t.ndim
    t[tuple(primitive.wrap(part) for part in index)] = fill_value
    return t


# ---- other shapes for the same tensor ------------------------------------------------------------


def _reshaped(t: Any, name: str, function: Any) -> Any:
    """`t` itself with the shape that `function` gives; its memory stays."""
    if t._view is not None:
        t._sync_view()
    if t._rg and t._node is None and state.recording:
        raise GraphError(
            f"{name}: a leaf that requires grad cannot be changed in place while operations are "
            f"recorded. Got {describe(t)}. Use the out-of-place form."
        )
    old = wrap(t._array)
    old._node, old._rg, old._view = t._node, t._rg, t._view
    old._version = primitive.version_of(t)
    out = function(old)
    t._array = out._array
    if t._node is not None:
        t._node, t._rg = out._node, out._rg
        t._view = None if old._view is None else out._view
    return t


def squeeze_(t: Any, dim: Any = None) -> Any:
    """Removes axes of length 1 from this tensor."""
    return _reshaped(t, "squeeze_", lambda x: shape.squeeze(x, dim))


def unsqueeze_(t: Any, dim: int) -> Any:
    """Puts an axis of length 1 into this tensor."""
    return _reshaped(t, "unsqueeze_", lambda x: shape.unsqueeze(x, dim))


def transpose_(t: Any, dim0: int, dim1: int) -> Any:
    """Exchanges two axes of this tensor."""
    return _reshaped(t, "transpose_", lambda x: shape.transpose(x, dim0, dim1))


def t_(t: Any) -> Any:
    """Transposes this matrix."""
    return _reshaped(t, "t_", shape.t)


swapaxes_ = swapdims_ = transpose_


def resize_(t: Any, *sizes: Any, memory_format: Any = None) -> Any:
    """Gives this tensor other sizes: it keeps the first elements, and new ones hold anything.

    Raises:
        GraphError: The tensor requires grad.
        ArgumentError: A size is negative.
    """
    size = shape.sizes_of(sizes)
    if t.requires_grad:
        raise GraphError(
            f"resize_: a tensor that requires grad cannot be resized. Got {describe(t)}. "
            "Use .detach() first, or reshape."
        )
    if min(size, default=0) < 0:
        raise ArgumentError(f"resize_: sizes must not be negative. Got {size}.")
    a = t._array
    xp = backend.namespace(a)
    wanted = 1
    for n in size:
        wanted *= n
    flat = a.reshape(-1)
    if wanted > flat.size:
        grown = xp.empty((wanted,), dtype=a.dtype)
        grown[: flat.size] = flat
        flat = grown
    bump(t, "resize_")
    t._array, t._view = flat[:wanted].reshape(size), None
    return t


def resize_as_(t: Any, the_template: Any, memory_format: Any = None) -> Any:
    """`resize_` to the sizes of another tensor."""
    return resize_(t, the_template.shape)


def set_(t: Any, source: Any = None) -> Any:
    """Makes this tensor another view of the memory of `source`."""
    t.data = t.new_empty(0) if source is None else source
    return t


def map_(t: Any, tensor: Any, function: Any) -> Any:
    """Puts `function(a, b)` of this tensor and another in each place; slow, on the CPU."""
    recorded = bool(state.recording) and t.requires_grad
    check_writable(t, "map_", recorded)
    other = shape.broadcast_to(tensor, t.shape)
    pairs = zip(
        backend.to_host(t._array).reshape(-1).tolist(),
        backend.to_host(other._array).reshape(-1).tolist(),
        strict=True,
    )
    values = t.new_tensor([function(a, b) for a, b in pairs]).reshape(t.shape)
    t._array[...] = values._array
    bump(t, "map_")
    if recorded:
        forget(t)
    return t
