"""Tensors from memory, steps and distributions that few programs use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import creation, sampling, shape
from .primitive import wrap


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Arbitrary values with the given sizes and steps in memory; on a GPU in row order.

    Raises:
        ShapeError: Not one step per size.
    """
    if len(size) != len(stride):
        raise ShapeError(
            f"empty_strided: one step per size is needed. Got {tuple(size)} and {tuple(stride)}."
        )
    reach = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
    memory = creation.empty(reach if math.prod(size) else 0, dtype=dtype, device=device)
    a = memory._array
    if type(a) is np.ndarray:
        steps = tuple(s * a.itemsize for s in stride)
        a = np.ndarray(tuple(size), a.dtype, a, 0, steps)
    else:
        a = creation.empty(size, dtype=dtype, device=device)._array
    t = wrap(a)
    return t.requires_grad_() if requires_grad else t


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **options: Any) -> Any:
    """Arbitrary values whose axes lie in memory in the order `physical_layout`."""
    outer = creation.empty([size[i] for i in physical_layout], **options)
    back = [0] * len(size)
    for place, axis in enumerate(physical_layout):
        back[axis] = place
    return shape.permute(outer, back)


def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False
) -> Any:
    """A 0-d tensor of the default dtype with the value of a number."""
    d = dtypes.get_default_dtype() if dtype is None else dtype
    return creation.tensor(s, dtype=d, device=device)


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Any:
    """`obj` as a tensor; a Tensor that fits is given back unless `copy` is true.

    Raises:
        ArgumentError: `copy` is false where a copy is needed.
    """
    if hasattr(obj, "_array"):
        out = obj.to(device=device, dtype=dtype, copy=bool(copy))
        if copy is False and out is not obj:
            raise ArgumentError(
                "asarray: another dtype or device needs a copy. Got copy=False. Use copy=None."
            )
    else:
        out = creation.tensor(obj, dtype=dtype, device=device)
    if requires_grad:
        out = out.detach() if out is obj else out
        out.requires_grad_()
    return out


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """A tensor with a copy of the bytes of a buffer, read as `dtype`.

    Raises:
        ArgumentError: The buffer does not hold what is asked for.
    """
    try:
        array = np.frombuffer(buffer, dtypes.of(dtype).numpy, count, offset)
    except ValueError as error:
        raise ArgumentError(
            f"frombuffer: the buffer must hold whole elements from the offset on: {error}. "
            f"Got count={count}, offset={offset}."
        ) from None
    t = wrap(array.copy())
    return t.requires_grad_() if requires_grad else t


def range(start: float = 0, end: float = 0, step: float = 1, **options: Any) -> Any:
    """`start, start + step, …` up to and with `end`, in the default dtype."""
    count = math.floor((end - start) / step) + 1
    d = options.pop("dtype", None) or dtypes.get_default_dtype()
    return (creation.arange(count, dtype="float64", **options) * step + start).to(d)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of a vector as columns, the highest first."""
    if x.ndim != 1:
        raise ShapeError(f"vander: a vector is needed. Got {describe(x)}.")
    n = x.shape[0] if N is None else N
    powers = creation.arange(n, device=x.device)
    if not increasing:
        powers = n - 1 - powers
    return x[:, None] ** powers


# ---- random --------------------------------------------------------------------------------------


def _rates(name: str, x: Any) -> np.ndarray:
    if not x.is_floating_point():
        raise DtypeError(f"{name}: the input must be floating. Got {describe(x)}. Use .float().")
    host = backend.to_host(x._array).astype(np.float64)
    if host.size and not (host >= 0).all():
        raise ArgumentError(f"{name}: rates must not be negative. Got {host.min()}.")
    return host


def poisson(input: Any, generator: Any = None) -> Any:
    """Counts of events with the rates `input`, in its dtype.

    Raises:
        ArgumentError: A negative rate.
        DtypeError: The input is not floating.
    """
    drawn = sampling.draw(generator).poisson(_rates("poisson", input))
    return sampling.made(np.asarray(drawn), input.dtype, input.device, False)


def binomial(count: Any, prob: Any, generator: Any = None) -> Any:
    """How many of `count` trials succeed with probability `prob`, in their dtype.

    Raises:
        ArgumentError: A negative count, or a probability outside of 0 to 1.
    """
    n, p = _rates("binomial", count), _rates("binomial", prob)
    if p.size and p.max() > 1:
        raise ArgumentError(f"binomial: probabilities must be from 0 to 1. Got {p.max()}.")
    drawn = sampling.draw(generator).binomial(n.astype(np.int64), p)
    return sampling.made(np.asarray(drawn), count.dtype, count.device, False)


def log_normal_(t: Any, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Any:
    """Fills `t` with exponentials of normal numbers."""
    sampling.need_float(t, "log_normal_")
    if std <= 0:
        raise ArgumentError(f"log_normal_: std must be positive. Got {std}.")
    return sampling.fill(t, "log_normal_", sampling.draw(generator).lognormal(mean, std, t.shape))


def cauchy_(t: Any, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Any:
    """Fills `t` with numbers of the Cauchy distribution."""
    sampling.need_float(t, "cauchy_")
    if sigma <= 0:
        raise ArgumentError(f"cauchy_: sigma must be positive. Got {sigma}.")
    drawn = sampling.draw(generator).standard_cauchy(t.shape)
    return sampling.fill(t, "cauchy_", median + sigma * np.asarray(drawn))


def geometric_(t: Any, p: float, *, generator: Any = None) -> Any:
    """Fills `t` with the number of trials until the first success of probability `p`."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: p must lie between 0 and 1. Got {p}.")
    return sampling.fill(t, "geometric_", sampling.draw(generator).geometric(p, t.shape))
