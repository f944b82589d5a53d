"""Dropout: each element is kept with probability 1 - p and scaled by 1 / (1 - p), in one node.

Keeping is decided from 16 random bits per element, so p is rounded to a multiple of 2⁻¹⁶; the scale
uses the rounded p, so that the expected value is exact.
"""

from __future__ import annotations

import math
from typing import Any

from .. import backend, random
from ..kernels import load_for, loader
from .primitive import Primitive, finish_one
from .recording import as_a_whole

_LEVELS = 1 << 16
_COMPILED_FROM = 1 << 14  # elements from which a compiled pass pays


def _forward(a: Any, *, keep: Any, scale: float) -> Any:
    if keep.shape == a.shape and keep.flags.c_contiguous:
        kernels = load_for("elementwise", a, least=_COMPILED_FROM, kinds="f", contiguous=True)
        if kernels is not None:
            return kernels.drop(a, keep, scale)
    return a * (keep.astype(a.dtype) * a.dtype.type(scale))


dropout_op = Primitive(
    "dropout", _forward, (lambda g, *, keep, scale: dropout_op(g, keep=keep, scale=scale),)
)


def _rounded(p: float) -> tuple[int, float]:
    """The least of 2¹⁶ lots that keeps an element, and the scale."""
    limit = min(_LEVELS, round(p * _LEVELS))
    return limit, _LEVELS / (_LEVELS - limit) if limit < _LEVELS else 0.0


@as_a_whole("random")
def draw_mask(shape: tuple[int, ...], p: float, like: Any) -> tuple[Any, float]:
    """The elements that are kept, and their scale.

    Args:
        shape: Shape of the mask.
        p: Probability of an element to be dropped, in (0, 1).
        like: An array on the device where the mask is wanted.

    Returns:
        bool[shape] and 1 / (1 - p).
    """
    (limit, scale), size, stream = _rounded(p), math.prod(shape), random.stream("dropout")
    kernels = loader.load("philox") if size >= _COMPILED_FROM and limit < _LEVELS else None
    if kernels is not None:
        keep = kernels.keep(shape, limit, *stream.advance())
    else:
        bits = stream.numpy().bit_generator.random_raw(-(-size // 4))
        lots = bits.astype("<u8", copy=False).view("<u2")[:size]
        keep = (lots >= limit).reshape(shape)
    return backend.from_host(keep, backend.device_of(like)), scale


@as_a_whole("random")
def _drawn(x: Any, p: float) -> tuple[Any, Any, float]:
    """What dropout leaves of the tensor, and its mask and scale."""
    a, (limit, scale) = x._array, _rounded(p)
    kernels = load_for("philox", a, least=_COMPILED_FROM, kinds="f", contiguous=True)
    if kernels is None or limit == _LEVELS:
        keep, scale = draw_mask(a.shape, p, a)
        return _forward(a, keep=keep, scale=scale), keep, scale
    return *kernels.dropout(a, limit, scale, *random.stream("dropout").advance()), scale


def dropped(x: Any, p: float) -> Any:
    """Dropout of the elements of the tensor, each with probability p, in (0, 1]."""
    y, keep, scale = _drawn(x, p)
    return finish_one(dropout_op, y, x, {"keep": keep, "scale": scale})
