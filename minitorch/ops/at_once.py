"""In-place elementwise operations that write straight into the memory, without a temporary.

NumPy's ufuncs copy operands that overlap the output in another order, so that `x.add_(x.t())` is
right as it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.mode import state
from ..kernels import load_for
from . import primitive
from .arithmetic import LARGE, combined
from .compiled import FROM

_BINARY = {
    "add_": np.add,
    "sub_": np.subtract,
    "mul_": np.multiply,
    "div_": np.true_divide,
}
_UNARY = {
    "exp_": np.exp,
    "log_": np.log,
    "sqrt_": np.sqrt,
    "square_": np.square,
    "neg_": np.negative,
    "abs_": np.absolute,
    "reciprocal_": np.reciprocal,
    "sin_": np.sin,
    "cos_": np.cos,
    "tanh_": np.tanh,
    "floor_": np.floor,
    "ceil_": np.ceil,
}
UFUNCS: dict[str, np.ufunc] = {**_BINARY, **_UNARY}
NAMES = frozenset((*UFUNCS, "lerp_"))
_COMPILED = frozenset(("exp_", "log_", "sqrt_", "tanh_"))
_POLES = frozenset((np.true_divide, np.exp, np.log, np.sqrt, np.square, np.reciprocal))


def write(a: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Runs the operation with `a` as output; False where that would not give the same values.

    Args:
        a: The array to change.
        name: One of `NAMES`.
        args: The other operands: a number or a Tensor, or nothing.
        options: `alpha` of add_ and sub_.
    """
    if type(a) is not np.ndarray:
        return False
    if name == "lerp_":
        return not options and _lerp(a, *args)
    ufunc = UFUNCS[name]
    if name in _UNARY:
        if args or options or a.dtype.kind != "f":
            return False
        if name in _COMPILED and a.size >= FROM:
            kernels = load_for("elementwise", a, least=FROM, kinds="f", contiguous=True)
            if kernels is not None:
                kernels.value(name.rstrip("_"), a, out=a)
                return True
        _run(ufunc, a, a)
        return True
    if len(args) != 1 or (options and (name not in ("add_", "sub_") or set(options) != {"alpha"})):
        return False
    other = _operand(a, ufunc, args[0])
    if other is None:
        return False
    if options and options["alpha"] != 1:
        if a.dtype.kind != "f" or type(options["alpha"]) not in (int, float):
            return False
        other = other * options["alpha"]
    apart = a.size >= LARGE and not (type(other) is np.ndarray and np.may_share_memory(a, other))
    if not apart or combined(name.rstrip("_"), a, other, a) is None:
        _run(ufunc, a, other)
    return True


def _lerp(a: Any, end: Any, weight: Any) -> bool:
    b = getattr(end, "_array", None)
    fits = type(b) is np.ndarray and b.dtype == a.dtype and b.shape == a.shape
    if not fits or a.dtype.char not in "fd" or type(weight) not in (int, float):
        return False
    part = b - a
    part *= weight
    a += part
    return True


def _operand(a: Any, ufunc: np.ufunc, other: Any) -> Any:
    """What NumPy computes with in the dtype and shape of `a`, or None."""
    kind = a.dtype.kind
    if kind == "b" or (kind in "iu" and ufunc is np.true_divide):
        return None
    if isinstance(other, primitive.Tensor):
        b = other._array
        fits = type(b) is np.ndarray and b.dtype == a.dtype
        return b if fits and (b.shape == a.shape or _broadcasts(b.shape, a.shape)) else None
    if type(other) in (int, float) and kind == "f":
        return other
    if type(other) is int and a.dtype == np.int64 and -(2**63) <= other < 2**63:
        return other
    return None


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    offset = len(target) - len(shape)
    return offset >= 0 and all(n in (1, target[i + offset]) for i, n in enumerate(shape))


def _run(ufunc: np.ufunc, a: Any, other: Any) -> None:
    operands = (a,) if ufunc.nin == 1 else (a, other)
    if state.quiet or ufunc not in _POLES:
        ufunc(*operands, out=a)
        return
    with np.errstate(all="ignore"):
        ufunc(*operands, out=a)
