"""Dropout: each element is kept with probability 1 - p and scaled by 1 / (1 - p), in one node.

Keeping is decided from 16 random bits per element, so p is rounded to a multiple of 2⁻¹⁶; the scale
uses the rounded p, so that the expected value is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend, random
from .primitive import Primitive
from .recording import as_a_whole

_LEVELS = 1 << 16


def _forward(a: Any, *, keep: Any, scale: float) -> Any:
    out = a * keep
    out *= a.dtype.type(scale)
    return out


dropout_op = Primitive(
    "dropout", _forward, (lambda g, *, keep, scale: dropout_op(g, keep=keep, scale=scale),)
)


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
    size = int(np.prod(shape))
    limit = min(_LEVELS, round(p * _LEVELS))
    bits = random.stream("dropout").numpy().bit_generator.random_raw(-(-size // 4))
    lots = bits.astype("<u8", copy=False).view("<u2")[:size]
    keep = (lots >= limit).reshape(shape) if limit < _LEVELS else np.zeros(shape, bool)
    scale = _LEVELS / (_LEVELS - limit) if limit < _LEVELS else 0.0
    return backend.from_host(keep, backend.device_of(like)), scale
