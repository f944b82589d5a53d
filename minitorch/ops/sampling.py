"""Random tensors; every draw comes from a named stream of `minitorch.random`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from .. import backend, dtypes, random
from ..autograd.mode import state
from ..device import CPU, get_default_device
from ..device import device as device_of
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from ..kernels import loader
from . import shape
from .inplace import bump, check_writable, forget
from .primitive import wrap
from .recording import as_a_whole, unrecordable


def draw(generator: Any = None, stream: str = "default") -> np.random.Generator:
    """The NumPy generator of the next draw of `generator`, or of the stream."""
    if isinstance(generator, np.random.Generator):
        return generator
    return (random.stream(stream) if generator is None else generator).numpy()


_COMPILED_FROM = 1 << 16  # numbers from which drawing them in blocks pays


def uniform(generator: Any, sizes: tuple[int, ...], dtype: Any) -> Any:
    """The numbers from [0, 1) of the next draw of `generator`, an array of float32 or float64."""
    large = math.prod(sizes) >= _COMPILED_FROM
    if large and not isinstance(generator, np.random.Generator):
        if (kernels := loader.load("philox")) is not None:
            source = random.stream("default") if generator is None else generator
            return kernels.uniform(sizes, dtype, *source.advance())
    return np.asarray(draw(generator).random(sizes, dtype=dtype))


def made(array: np.ndarray, dtype: Any, where: Any, requires_grad: bool) -> Any:
    """A tensor of what was drawn, in the dtype and on the device that are asked for."""
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    array = array.astype(d.numpy, copy=False)
    if where is None and get_default_device() is not CPU:
        where = get_default_device()
    t = wrap(array if where is None else backend.from_host(array, device_of(where)))
    return t.requires_grad_() if requires_grad else t


def _float_of(dtype: Any) -> Any:
    """float64 draws for float64 tensors, else float32 draws."""
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    if not d.is_floating_point:
        raise DtypeError(f"random: the dtype must be floating. Got {d}. Use randint for integers.")
    return np.float64 if d is dtypes.float64 else np.float32


def _drawn(values: Any, sizes: tuple[int, ...], dtype: Any, scale: float) -> Any:
    """`values(sizes)`; for complex dtypes two of them, times `scale`, as the parts."""
    if dtype is None or not dtypes.of(dtype).is_complex:
        return values(sizes, dtype=_float_of(dtype))
    part = np.float64 if dtypes.of(dtype) is dtypes.complex128 else np.float32
    pairs = values((*sizes, 2), dtype=part) * part(scale)
    return pairs.view(dtypes.of(dtype).numpy)[..., 0]


@as_a_whole("random")
def rand(
    *args: Any,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """Uniform numbers from [0, 1)."""
    array = _drawn(partial(uniform, generator), shape.sizes_of(args, size), dtype, 1)
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    if d.numpy in dtypes.HALF:
        array = np.minimum(array, 1 - dtypes.finfo(d).eps / 2)  # else some would round to 1
    return made(array, dtype, device, requires_grad)


@as_a_whole("random")
def randn(
    *args: Any,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """Numbers from the standard normal distribution."""
    sizes = shape.sizes_of(args, size)
    array = _drawn(draw(generator).standard_normal, sizes, dtype, math.sqrt(0.5))
    return made(np.asarray(array), dtype, device, requires_grad)


@as_a_whole("random")
def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """Whole numbers from `[low, high)`; `randint(high, size)` starts at 0.

    Raises:
        ArgumentError: The range is empty.
    """
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if high <= low:
        raise ArgumentError(f"randint: high must be above low. Got [{low}, {high}).")
    array = draw(generator).integers(low, high, shape.sizes_of((size,)))
    return made(np.asarray(array), dtypes.int64 if dtype is None else dtype, device, requires_grad)


@as_a_whole("random")
def randperm(
    n: int,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """The numbers 0 to n-1 in random order."""
    array = draw(generator).permutation(n)
    return made(array, dtypes.int64 if dtype is None else dtype, device, requires_grad)


def _like(input: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {"dtype": input.dtype, "device": input.device} | options


@as_a_whole("random")
def rand_like(input: Any, **options: Any) -> Any:
    """`rand` with the shape, dtype and device of `input`."""
    return rand(input.shape, **_like(input, options))


@as_a_whole("random")
def randn_like(input: Any, **options: Any) -> Any:
    """`randn` with the shape, dtype and device of `input`."""
    return randn(input.shape, **_like(input, options))


@as_a_whole("random")
def randint_like(input: Any, low: int, high: int | None = None, **options: Any) -> Any:
    """`randint` with the shape, dtype and device of `input`."""
    bounds = (0, low) if high is None else (low, high)
    return randint(*bounds, input.shape, **_like(input, options))


@as_a_whole("random")
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any
) -> Any:
    """Normal numbers with the given means and standard deviations (numbers or tensors)."""
    if size is None:
        sizes = shape.broadcast_shapes(*[getattr(x, "shape", ()) for x in (mean, std)])
    else:
        sizes = tuple(size)
    like = next((x for x in (mean, std) if hasattr(x, "device")), None)
    if like is not None:
        options = {"dtype": like.dtype, "device": like.device} | options
    return randn(sizes, generator=generator, **options) * std + mean


@as_a_whole("random")
def bernoulli(input: Any, p: float | None = None, *, generator: Any = None) -> Any:
    """1 with the probability that `input` (or `p`) gives, else 0.

    Raises:
        ArgumentError: A probability outside of 0 to 1.
    """
    host = backend.to_host(input._array) if p is None else np.full(input.shape, p)
    if host.size and not (0 <= host.min() and host.max() <= 1):
        raise ArgumentError(
            f"bernoulli: probabilities must be from 0 to 1. Got {host.min()} to {host.max()}."
        )
    hit = uniform(generator, host.shape, np.float64) < host
    return made(np.asarray(hit), input.dtype, input.device, False)


def multinomial(
    input: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Draws class numbers with probabilities proportional to the rows of `input`.

    Args:
        input: f[..., classes], non-negative weights.
        num_samples: Draws per row.
        replacement: A class may be drawn again.

    Returns:
        int64[..., num_samples].

    Raises:
        ArgumentError: Negative weights, or more draws than classes without replacement.
        ShapeError: More than two axes.
    """
    if input.ndim not in (1, 2):
        raise ShapeError(f"multinomial: 1 or 2 axes are needed. Got {describe(input)}.")
    weights = np.atleast_2d(backend.to_host(input._array).astype(np.float64))
    if (weights < 0).any() or not np.isfinite(weights).all() or (weights.sum(1) <= 0).any():
        raise ArgumentError(
            "multinomial: weights must be finite and not negative, with a positive sum per row."
        )
    if not replacement and num_samples > (weights > 0).sum(1).min():
        raise ArgumentError(
            f"multinomial: without replacement at most {(weights > 0).sum(1).min()} classes can "
            f"be drawn. Got num_samples={num_samples}. Pass replacement=True."
        )
    rng = draw(generator)
    if replacement:
        edges = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
        points = rng.random((weights.shape[0], num_samples))
        rows = [np.searchsorted(e, p, side="right") for e, p in zip(edges, points, strict=True)]
        found = np.minimum(np.stack(rows), weights.shape[1] - 1)
    else:
        # The largest of log(w) + Gumbel noise are a draw without replacement (Efraimidis 2006).
        with np.errstate(divide="ignore"):
            keys = np.log(weights) + rng.gumbel(size=weights.shape)
        found = np.argsort(-keys, axis=1, kind="stable")[:, :num_samples]
    found = found if input.ndim == 2 else found[0]
    return made(found, dtypes.int64, input.device, False)


def fill(t: Any, name: str, array: Any) -> Any:
    """Writes what was drawn into `t`."""
    unrecordable(f"{name} draws into the memory of a tensor")
    recorded = bool(state.recording) and t.requires_grad
    check_writable(t, name, recorded)
    host = np.asarray(array).astype(t._array.dtype, copy=False)
    t._array[...] = backend.from_host(host, t.device)
    bump(t, name)
    if recorded:
        forget(t)
    return t


def need_float(t: Any, name: str) -> None:
    """Raises DtypeError unless `t` is floating."""
    if not t.dtype.is_floating_point:
        raise DtypeError(f"{name}: the tensor must be floating. Got {describe(t)}. Use random_.")


def uniform_(t: Any, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `t` with uniform numbers from [a, b)."""
    need_float(t, "uniform_")
    if a > b:
        raise ArgumentError(f"uniform_: from must not be above to. Got [{a}, {b}).")
    return fill(t, "uniform_", uniform(generator, tuple(t.shape), np.float64) * (b - a) + a)


def normal_(t: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `t` with normal numbers."""
    need_float(t, "normal_")
    if std < 0:
        raise ArgumentError(f"normal_: std must not be negative. Got {std}.")
    return fill(t, "normal_", draw(generator).standard_normal(t.shape) * std + mean)


def bernoulli_(t: Any, p: float = 0.5, *, generator: Any = None) -> Any:
    """Fills `t` with 1 with probability `p`, else 0."""
    return fill(t, "bernoulli_", uniform(generator, tuple(t.shape), np.float64) < p)


def exponential_(t: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `t` with exponential numbers of rate `lambd`."""
    need_float(t, "exponential_")
    return fill(t, "exponential_", draw(generator).exponential(1 / lambd, t.shape))


def random_(t: Any, low: int = 0, high: int | None = None, *, generator: Any = None) -> Any:
    """Fills `t` with whole numbers from [low, high), or from 0 to what the dtype holds."""
    if high is None and low:
        low, high = 0, low
    if high is None:
        high = 2**24 if t.dtype.is_floating_point else min(2**63 - 1, _largest(t.dtype))
    return fill(t, "random_", draw(generator).integers(low, high, t.shape))


def _largest(d: Any) -> int:
    return 2 if d is dtypes.bool_ else math.floor(float(np.iinfo(d.numpy).max)) + 1
