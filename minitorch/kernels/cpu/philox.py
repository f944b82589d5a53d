"""Random numbers by counter, drawn where they are used: what NumPy's Philox gives, block by block.

Block n of a draw, four words of 64 bits, is a function of the key, the position of the draw and n,
so that each thread makes the words of its own elements, and all get the bits of one generator.

Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011 (Philox 4×64-10).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import register_jitable

from .kernel import intrinsic, kernel

_U = np.uint64
_BLOCK = 4096  # elements that are drawn at a time
_LOTS = 16  # of 16 bits in a block of Philox
_M0, _M1 = _U(0xD2E7470EE14C6C93), _U(0xCA5A826395121157)
_W0, _W1 = _U(0x9E3779B97F4A7C15), _U(0xBB67AE8584CAA73B)


@intrinsic
def _product(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The upper and the lower half of a product of two words."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(x, wide) for x in args))
        halves = (builder.lshr(product, ir.Constant(wide, 64)), product)
        return cgutils.pack_array(builder, [builder.trunc(x, ir.IntType(64)) for x in halves])

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), code


@register_jitable
def _draw(words, start, key0, key1, position):  # type: ignore[no-untyped-def]
    """Fills `words` with those of the draw from block `start` on."""
    for n in range(len(words) // 4):
        a, b, c, d = _U(start + n + 1), _U(0), position, _U(0)
        k0, k1 = key0, key1
        for _ in range(10):
            high0, low0 = _product(_M0, a)
            high1, low1 = _product(_M1, c)
            a, b, c, d = high1 ^ b ^ k0, low1, high0 ^ d ^ k1, low0
            k0, k1 = k0 + _W0, k1 + _W1
        words[4 * n], words[4 * n + 1], words[4 * n + 2], words[4 * n + 3] = a, b, c, d


@kernel()
def _dropout(first, last, x, y, keep, limit, scale, key0, key1, position):  # type: ignore[no-untyped-def]
    words = np.empty(_BLOCK // 4, np.uint64)
    lots, zero = words.view(np.uint16), scale * 0
    for block in range(first, last):
        start, stop = block * _BLOCK, (block + 1) * _BLOCK
        _draw(words, start // _LOTS, key0, key1, position)
        xs, ys, ks = x[start:stop], y[start:stop], keep[start:stop]
        for i in range(len(xs)):
            kept = lots[i] >= limit
            ks[i] = kept
            ys[i] = xs[i] * (scale if kept else zero)


@kernel()
def _keep(first, last, keep, limit, key0, key1, position):  # type: ignore[no-untyped-def]
    words = np.empty(_BLOCK // 4, np.uint64)
    lots = words.view(np.uint16)
    for block in range(first, last):
        start, stop = block * _BLOCK, (block + 1) * _BLOCK
        _draw(words, start // _LOTS, key0, key1, position)
        ks = keep[start:stop]
        for i in range(len(ks)):
            ks[i] = lots[i] >= limit


@kernel()
def _uniform_f64(first, last, out, key0, key1, position):  # type: ignore[no-untyped-def]
    words = np.empty(_BLOCK, np.uint64)
    for block in range(first, last):
        start, stop = block * _BLOCK, (block + 1) * _BLOCK
        _draw(words, start // 4, key0, key1, position)
        part = out[start:stop]
        for i in range(len(part)):
            part[i] = np.int64(words[i] >> _U(11)) * 2.0**-53


@kernel()
def _uniform_f32(first, last, out, key0, key1, position):  # type: ignore[no-untyped-def]
    words = np.empty(_BLOCK // 2, np.uint64)
    halves = words.view(np.uint32)
    for block in range(first, last):
        start, stop = block * _BLOCK, (block + 1) * _BLOCK
        _draw(words, start // 8, key0, key1, position)
        part = out[start:stop]
        for i in range(len(part)):
            part[i] = np.float32(np.int32(halves[i] >> np.uint32(8))) * np.float32(2.0**-24)


def _blocks(a: Any) -> int:
    return -(-a.size // _BLOCK)


def _words(key: tuple[int, int], position: int) -> tuple[Any, Any, Any]:
    return _U(key[0]), _U(key[1]), _U(position)


def dropout(x: Any, limit: int, scale: float, key: tuple[int, int], position: int) -> Any:
    """`x · scale` where a lot of 16 bits is at least `limit`, else 0, and where that is."""
    y, keep = np.empty(x.shape, x.dtype), np.empty(x.shape, np.bool_)
    given = (np.uint16(limit), x.dtype.type(scale), *_words(key, position))
    _dropout(_blocks(x), x.reshape(-1), y.reshape(-1), keep.reshape(-1), *given)
    return y, keep


def keep(shape: tuple[int, ...], limit: int, key: tuple[int, int], position: int) -> Any:
    """Where a lot of 16 bits is at least `limit`."""
    out = np.empty(shape, np.bool_)
    _keep(_blocks(out), out.reshape(-1), np.uint16(limit), *_words(key, position))
    return out


def uniform(shape: tuple[int, ...], dtype: Any, key: tuple[int, int], position: int) -> Any:
    """Numbers from [0, 1) with as many bits as the dtype holds, float32 or float64."""
    out = np.empty(shape, dtype)
    body = _uniform_f32 if out.dtype == np.float32 else _uniform_f64
    body(_blocks(out), out.reshape(-1), *_words(key, position))
    return out
