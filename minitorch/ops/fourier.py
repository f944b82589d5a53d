"""Discrete Fourier transforms along chosen axes, with gradients.

The matrix of a transform is symmetric, so that what flows backward (see `autograd/engine.py`) is
transformed in the same direction with the same factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import creation, primitive, shape
from .complex_numbers import complex_of, conj, is_complex, real, real_of
from .primitive import Primitive, cast, raw, wrap

_NORMS = ("backward", "ortho", "forward")
_OTHER = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# ---- the three transforms ------------------------------------------------------------------------


def _whole_forward(a: Any, *, axes: tuple[int, ...], norm: str, inverse: bool) -> Any:
    fft = backend.namespace(a).fft
    if not a.size:
        return a.copy()
    return (fft.ifftn if inverse else fft.fftn)(a, axes=axes, norm=norm).astype(a.dtype, copy=False)


_WHOLE = Primitive(
    "fft",
    _whole_forward,
    (
        lambda g, *, axes, norm, inverse: _WHOLE(
            cast(g, complex_of(raw(g).dtype)), axes=axes, norm=norm, inverse=inverse
        ),
    ),
)


def _half_forward(a: Any, *, axis: int, norm: str) -> Any:
    out = backend.namespace(a).fft.rfft(a, axis=axis, norm=norm)
    return out.astype(complex_of(a.dtype), copy=False)


def _half_rule(g: Any, *, axis: int, norm: str, length: int) -> Any:
    g = _sized(cast(g, complex_of(raw(g).dtype)), axis, length)
    return real(_WHOLE(g, axes=(axis,), norm=norm, inverse=False))


_HALF = Primitive(
    "rfft",
    lambda a, *, axis, norm, length: _half_forward(a, axis=axis, norm=norm),
    (_half_rule,),
)


def _back_forward(a: Any, *, axis: int, norm: str, length: int) -> Any:
    out = backend.namespace(a).fft.irfft(a, length, axis=axis, norm=norm)
    return out.astype(real_of(a.dtype), copy=False)


def _back_rule(g: Any, *, axis: int, norm: str, length: int) -> Any:
    """Every frequency but 0 and the highest of an even length stands for two."""
    spectrum = conj(_HALF(g, axis=axis, norm=_OTHER[norm], length=length))
    a = raw(spectrum)
    weights = backend.namespace(a).full((a.shape[axis],), 2, real_of(a.dtype))
    weights[:1] = 1
    if length % 2 == 0:
        weights[-1:] = 1
    weights = weights.reshape((-1,) + (1,) * (a.ndim - axis - 1))
    return spectrum * (wrap(weights) if isinstance(spectrum, primitive.Tensor) else weights)


_BACK = Primitive("irfft", _back_forward, (_back_rule,))


# ---- arguments -----------------------------------------------------------------------------------


def _sized(x: Any, axis: int, n: int) -> Any:
    """`x` cut, or filled with zeros, to the length `n`; for arrays and Tensors."""
    size = raw(x).shape[axis]
    if size > n:
        return x[(slice(None),) * axis + (slice(0, n),)]
    if size < n:
        widths = [(0, 0)] * raw(x).ndim
        widths[axis] = (0, n - size)
        return shape.pad_constant(x, widths)
    return x


def _norm_of(name: str, norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in _NORMS:
        raise ArgumentError(f"{name}: norm must be one of {', '.join(_NORMS)}. Got {norm!r}.")
    return norm


def _prepared(name: str, x: Any, kind: str) -> Any:
    """`x` as floats for `kind` "real", as complex numbers for "complex"."""
    dtype = x._array.dtype
    if dtype.kind in "iub":
        x = cast(x, dtypes.get_default_dtype().numpy)
    elif dtype.itemsize < 4:
        raise DtypeError(
            f"{name}: half types have no transform. Got {describe(x)}. Convert with .float()."
        )
    if kind == "real":
        if is_complex(x):
            raise DtypeError(f"{name}: the input must be real. Got {describe(x)}. Use fft.")
        return x
    return cast(x, complex_of(x._array.dtype))


def _axes_and_sizes(
    name: str, x: Any, s: Any, dim: Any, default: Any
) -> tuple[tuple[int, ...], list[int]]:
    """The axes, and their lengths before the transform (-1: as they are)."""
    s = [s] if isinstance(s, int) else s
    dim = [dim] if isinstance(dim, int | np.integer) else dim
    if dim is None:
        dim = range(x.ndim - len(s), x.ndim) if s is not None else default(x.ndim)
    axes = tuple(shape.axis_of(name, x.ndim, d) for d in dim)
    if len(set(axes)) != len(axes) or (s is not None and len(s) != len(axes)):
        raise ShapeError(
            f"{name}: each axis may be named once, with one size each. Got s={s}, dim={tuple(dim)}."
        )
    sizes = [
        x.shape[axis] if s is None or s[i] in (None, -1) else s[i] for i, axis in enumerate(axes)
    ]
    if any(n < 1 for n in sizes):
        raise ShapeError(
            f"{name}: an axis must have at least one element. Got {describe(x)}, sizes {sizes}."
        )
    return axes, sizes


def _every(ndim: int) -> range:
    return range(ndim)


def _transform(name: str, x: Any, s: Any, dim: Any, norm: Any, inverse: bool) -> Any:
    """The transform of complex numbers."""
    factor = _norm_of(name, norm)
    axes, sizes = _axes_and_sizes(name, x, s, dim, _every)
    x = _prepared(name, x, "complex")
    for axis, n in zip(axes, sizes, strict=True):
        x = _sized(x, axis, n)
    return _WHOLE(x, axes=axes, norm=factor, inverse=inverse) if axes else x


def _to_half(name: str, x: Any, s: Any, dim: Any, norm: Any, inverse: bool = False) -> Any:
    """The transform of real numbers: half a spectrum along the last of the axes."""
    factor = _norm_of(name, norm)
    x = _prepared(name, x, "real")
    axes, sizes = _axes_and_sizes(name, x, s, dim, _every)
    if not axes:
        raise ShapeError(f"{name}: at least one axis is needed. Got dim={dim}.")
    for axis, n in zip(axes, sizes, strict=True):
        x = _sized(x, axis, n)
    out = _HALF(x, axis=axes[-1], norm=_OTHER[factor] if inverse else factor, length=sizes[-1])
    if inverse:
        out = conj(out)
    others = axes[:-1]
    return _WHOLE(out, axes=others, norm=factor, inverse=inverse) if others else out


def _from_half(name: str, x: Any, s: Any, dim: Any, norm: Any, inverse: bool = True) -> Any:
    """Real numbers from half a spectrum along the last of the axes."""
    factor = _norm_of(name, norm)
    x = _prepared(name, x, "complex")
    axes, sizes = _axes_and_sizes(name, x, s, dim, _every)
    if not axes:
        raise ShapeError(f"{name}: at least one axis is needed. Got dim={dim}.")
    given = s if s is None or not isinstance(s, int) else [s]
    length = sizes[-1]
    if given is None or given[-1] in (None, -1):
        length = 2 * (sizes[-1] - 1)
    if length < 1:
        raise ShapeError(
            f"{name}: the result must have at least one element. Got {describe(x)}, {length} along "
            f"axis {axes[-1]}. Pass its length."
        )
    for axis, n in zip(axes, [*sizes[:-1], length // 2 + 1], strict=True):
        x = _sized(x, axis, n)
    others = axes[:-1]
    if others:
        x = _WHOLE(x, axes=others, norm=factor, inverse=inverse)
    if not inverse:
        x = conj(x)
    return _BACK(x, axis=axes[-1], norm=factor if inverse else _OTHER[factor], length=length)


# ---- public names --------------------------------------------------------------------------------


def fft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """`X_k = Σ_j x_j exp(-2πi jk/n)` along `dim`.

    Args:
        input: f[...] or complex, float32 or float64.
        n: The length; `input` is cut or filled with zeros.
        dim: The axis.
        norm: `"backward"` (no factor), `"ortho"` (1/√n) or `"forward"` (1/n).

    Returns:
        Complex, with length n along `dim`.

    Raises:
        DtypeError: A half type.
        ShapeError: No element along `dim`.
        ArgumentError: Another norm.
    """
    return _transform("fft", input, n, dim, norm, False)


def ifft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`, with the factor 1/n for `norm="backward"`."""
    return _transform("ifft", input, n, dim, norm, True)


def rfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The first n//2 + 1 elements of `fft` of real numbers; the others are their conjugates."""
    return _to_half("rfft", input, n, dim, norm)


def irfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `rfft`: n real numbers, 2·(length - 1) by default."""
    return _from_half("irfft", input, n, dim, norm)


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The real `fft` of a Hermitian signal, of which `input` is the first half."""
    return _from_half("hfft", input, n, dim, norm, False)


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`."""
    return _to_half("ihfft", input, n, dim, norm, True)


def fft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`fftn` over the last two axes."""
    return _transform("fft2", input, s, dim, norm, False)


def ifft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`ifftn` over the last two axes."""
    return _transform("ifft2", input, s, dim, norm, True)


def rfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`rfftn` over the last two axes."""
    return _to_half("rfft2", input, s, dim, norm)


def irfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`irfftn` over the last two axes."""
    return _from_half("irfft2", input, s, dim, norm)


def fftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """`fft` along several axes.

    Args:
        input: f[...] or complex.
        s: The lengths along the axes; -1 keeps one.
        dim: The axes; by default the last `len(s)`, or all.
        norm: As for `fft`, with n the product of the lengths.
    """
    return _transform("fftn", input, s, dim, norm, False)


def ifftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """`ifft` along several axes; arguments as for `fftn`."""
    return _transform("ifftn", input, s, dim, norm, True)


def rfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """`fftn` of real numbers, the first half along the last of the axes."""
    return _to_half("rfftn", input, s, dim, norm)


def irfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `rfftn`."""
    return _from_half("irfftn", input, s, dim, norm)


def hfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`hfftn` over the last two axes."""
    return _from_half("hfft2", input, s, dim, norm, False)


def ihfft2(input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
    """`ihfftn` over the last two axes."""
    return _to_half("ihfft2", input, s, dim, norm, True)


def hfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """`hfft` along the last axis, `fft` along the others; arguments as for `fftn`."""
    return _from_half("hfftn", input, s, dim, norm, False)


def ihfftn(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `hfftn`."""
    return _to_half("ihfftn", input, s, dim, norm, True)


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """The frequencies of `fft`: 0, 1, …, -2, -1 over n·d; `dtype, device, requires_grad`."""
    steps = list(range((n + 1) // 2)) + list(range(-(n // 2), 0))
    return creation.tensor([float(k) for k in steps], **options) / (n * d)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """The frequencies of `rfft`: 0, 1, …, n//2 over n·d; `dtype, device, requires_grad`."""
    return creation.tensor([float(k) for k in range(n // 2 + 1)], **options) / (n * d)


def _shifted(name: str, input: Any, dim: Any, amount: Any) -> Any:
    dims: Sequence[int] = range(input.ndim) if dim is None else dim
    if isinstance(dim, int | np.integer):
        dims = [int(dim)]
    axes = [shape.axis_of(name, input.ndim, d) for d in dims]
    if not axes:
        return input.clone()
    return shape.roll(input, [amount(input.shape[d]) for d in axes], axes)


def fftshift(input: Any, dim: Any = None) -> Any:
    """The frequency 0 in the middle of the axes `dim`."""
    return _shifted("fftshift", input, dim, lambda n: n // 2)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shifted("ifftshift", input, dim, lambda n: -(n // 2))
