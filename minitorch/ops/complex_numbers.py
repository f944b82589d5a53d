"""Complex tensors: parts, conjugates, and what is not holomorphic.

Rules get and give `h = ∂L/∂x - i ∂L/∂y` (see `autograd/engine.py`), so that `z ↦ w(z)` with a
complex derivative reads as in the real case, and the others have the rules of this file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import DtypeError, ShapeError, describe
from . import elementwise as el
from . import primitive, shape
from .families import need_real
from .primitive import Primitive, cast, raw

_COMPLEX = {"float32": dtypes.complex64.numpy, "float64": dtypes.complex128.numpy}
_REAL = {"complex64": dtypes.float32.numpy, "complex128": dtypes.float64.numpy}


def complex_of(dtype: Any) -> np.dtype[Any]:
    """The complex NumPy dtype whose parts have the NumPy dtype `dtype`; itself if complex.

    Raises:
        DtypeError: There is none, as for half types and integers.
    """
    if dtype.kind == "c":
        return np.dtype(dtype)
    if dtype.name not in _COMPLEX:
        raise DtypeError(
            f"complex: parts must be float32 or float64. Got {dtype.name}. "
            "Convert them with .float() or .double()."
        )
    return _COMPLEX[dtype.name]


def real_of(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of the parts of the complex `dtype`; itself if it is real."""
    return _REAL.get(dtype.name, dtype)


def is_complex(input: Any) -> bool:
    """True if the dtype of `input` is complex."""
    return bool(raw(input).dtype.kind == "c")


# ---- parts ---------------------------------------------------------------------------------------

_CONJ = Primitive("conj", lambda a: a.conj(), (lambda g: conj(g),))
_REAL_PART = Primitive("real", lambda a: a.real, (lambda g: _widened(g),), view=True)
_IMAG_PART = Primitive("imag", lambda a: a.imag, (lambda g: _widened(g) * -1j,), view=True)


def _widened(g: Any) -> Any:
    return cast(g, complex_of(raw(g).dtype))


def conj(input: Any) -> Any:
    """The complex conjugate, a copy; a real tensor itself."""
    return _CONJ(input) if is_complex(input) else input


def resolve_conj(input: Any) -> Any:
    """The tensor itself: conjugates are computed at once here."""
    return input


def real(input: Any) -> Any:
    """The real part, a view; a real tensor itself."""
    return _REAL_PART(input) if is_complex(input) else input


def imag(input: Any) -> Any:
    """The imaginary part, a view.

    Raises:
        DtypeError: The tensor is real.
    """
    if not is_complex(input):
        raise DtypeError(
            f"imag: only complex tensors have an imaginary part. Got {describe(input)}. "
            "Use zeros_like for the imaginary part of real numbers."
        )
    return _IMAG_PART(input)


def adjoint(input: Any) -> Any:
    """The conjugate of the last two axes exchanged."""
    return conj(shape.mT(input))


def hermitian(input: Any) -> Any:
    """The conjugate transpose of a matrix (`.H`).

    Raises:
        ShapeError: Not 0 or 2 axes.
    """
    if input.ndim not in (0, 2):
        raise ShapeError(f"H: 0 or 2 axes are needed. Got {describe(input)}. Use .mH for batches.")
    return conj(shape.t(input))


# ---- made of parts -------------------------------------------------------------------------------


def _complex_forward(re: Any, im: Any) -> Any:
    xp = backend.namespace(re)
    size = np.broadcast_shapes(re.shape, im.shape)
    out = xp.empty(size, complex_of(re.dtype))
    out.real[...] = re
    out.imag[...] = im
    return out


_COMPLEX_FROM = Primitive(
    "complex", _complex_forward, (lambda g: real(g), lambda g: -imag(_complexly(g)))
)


def _complexly(g: Any) -> Any:
    return g if is_complex(g) else _widened(g)


def complex(real: Any, imag: Any) -> Any:
    """`real + i·imag`, broadcast.

    Args:
        real: f[...], float32 or float64.
        imag: f[...], the same dtype.

    Raises:
        DtypeError: The dtypes differ, or have no complex dtype.
    """
    a, b = real._array, imag._array
    need_real("complex", a)
    if a.dtype != b.dtype:
        raise DtypeError(
            f"complex: both parts must have one dtype. Got {describe(real)} and {describe(imag)}. "
            "Convert one with .to(dtype)."
        )
    complex_of(a.dtype)
    return el.broadcasting(_COMPLEX_FROM, real, imag)


def polar(abs: Any, angle: Any) -> Any:
    """`abs · exp(i·angle)`.

    Args:
        abs: f[...], the absolute values.
        angle: f[...], in radians.
    """
    need_real("polar", abs)
    if abs._array.dtype != angle._array.dtype:
        raise DtypeError(
            f"polar: both arguments must have one dtype. Got {describe(abs)} and "
            f"{describe(angle)}. Convert one with .to(dtype)."
        )
    return complex(abs * el.cos(angle), abs * el.sin(angle))


def _as_pairs(a: Any) -> Any:
    return a[..., None].view(real_of(a.dtype))


def _from_pairs(a: Any) -> Any:
    if a.strides[-1] != a.dtype.itemsize or any(s % (2 * a.dtype.itemsize) for s in a.strides[:-1]):
        a = backend.namespace(a).ascontiguousarray(a)
    return a.view(complex_of(a.dtype))[..., 0]


_VIEW_REAL = Primitive("view_as_real", _as_pairs, (lambda g: conj(_from_real_pairs(g)),), view=True)
_VIEW_COMPLEX = Primitive(
    "view_as_complex", _from_pairs, (lambda g: _to_real_pairs(conj(g)),), view=True
)


def _from_real_pairs(g: Any) -> Any:
    return _VIEW_COMPLEX(g)


def _to_real_pairs(g: Any) -> Any:
    return _VIEW_REAL(_complexly(g))


def view_as_real(input: Any) -> Any:
    """The parts of `c[...]` as `f[..., 2]`, a view.

    Raises:
        DtypeError: The tensor is real.
    """
    if not is_complex(input):
        raise DtypeError(
            f"view_as_real: the tensor must be complex. Got {describe(input)}. It is real already."
        )
    return _VIEW_REAL(input)


def view_as_complex(input: Any) -> Any:
    """`f[..., 2]` as `c[...]`, a view where the pairs lie side by side.

    Raises:
        ShapeError: The last axis has not 2 elements.
        DtypeError: There is no complex dtype for it.
    """
    a = input._array
    if not a.ndim or a.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: the last axis must hold 2 parts. Got {describe(input)}. "
            "Use complex(real, imag) for parts in two tensors."
        )
    complex_of(a.dtype)
    return _VIEW_COMPLEX(input)


# ---- absolute value and angle --------------------------------------------------------------------


def _angle_forward(a: Any) -> Any:
    xp = backend.namespace(a)
    if a.dtype.kind == "c":
        return xp.arctan2(a.imag, a.real)
    return xp.where(a < 0, a.dtype.type(math.pi), a * 0)


def _angle_rule(g: Any, a: Any) -> Any:
    if not is_complex(a):
        return el.zeros_like(a)
    at_zero = a == 0
    return el.where(at_zero, el.zeros_like(a), g * -1j / el.where(at_zero, el.ones_like(a), a))


_ANGLE = Primitive("angle", _angle_forward, (_angle_rule,), (0,))


def angle(input: Any) -> Any:
    """The angle in radians, from -π to π; π for negative real numbers."""
    if input._array.dtype.kind in "iub":
        input = cast(input, dtypes.get_default_dtype().numpy)
    return _ANGLE(input)


def _sgn_forward(a: Any) -> Any:
    xp = backend.namespace(a)
    size = xp.abs(a)
    size = xp.where(size == 0, size.dtype.type(1), size)
    out = xp.empty_like(a)
    out.real[...] = a.real / size  # part by part: a division by complex numbers takes ten times
    out.imag[...] = a.imag / size
    return out


def _sgn_rule(g: Any, a: Any, out: Any) -> Any:
    size = el.abs(a)
    at_zero = size == 0
    along = real(_complexly(g) * out)
    h = (g - conj(out) * along) / el.where(at_zero, el.ones_like(size), size)
    return el.where(at_zero, el.zeros_like(h), h)


_SGN = Primitive("sgn", _sgn_forward, (_sgn_rule,), (0, primitive.OUT))


def sgn(input: Any) -> Any:
    """`z / |z|`, 0 at 0; the sign of real numbers."""
    return _SGN(input) if is_complex(input) else el.sign(input)


def isreal(input: Any) -> Any:
    """True where the imaginary part is 0."""
    if is_complex(input):
        return imag(input) == 0
    return primitive.wrap(backend.namespace(input._array).ones(input._array.shape, bool))


def is_conj(input: Any) -> bool:
    """False: conjugates are computed at once here."""
    return False


def cfloat(input: Any) -> Any:
    """The tensor in complex64."""
    return cast(input, dtypes.complex64.numpy)


def cdouble(input: Any) -> Any:
    """The tensor in complex128."""
    return cast(input, dtypes.complex128.numpy)


conj_physical = conj
