"""Attention on float32, block of rows by block of rows; the scores of one block exist at a time.

A block of query rows is multiplied with all keys that it may see, so that a softmax has its whole
row; causal attention skips the keys after the block. The backward pass computes the weights again
from the largest score of each row and its factor, one by the sum of `exp(score - largest)`.

Source: Dao et al., FlashAttention, 2022, for what is kept and what is computed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from .. import threads
from .blas import available, gemm
from .kernel import FAST, kernel
from .scalars import exp_f32

_F = np.float32
_ONE = _F(1)
_ROWS, _FEW_ROWS, _LONG = 64, 16, 4096  # rows of a block; fewer where there are many keys
_ITEMSIZE = 4


@register_jitable
def _place(places, i, b, h):  # type: ignore[no-untyped-def]
    """Address of sequence b, head h of array number i, and the numbers from row to row."""
    at = places[i]
    return at[0] + _ITEMSIZE * (b * at[1] + h * at[2]), at[3]


@register_jitable
def _add_bias(row, bias, b, h, r):  # type: ignore[no-untyped-def]
    nb, nh, nr = bias.shape[:3]
    line = bias[b if nb > 1 else 0, h if nh > 1 else 0, r if nr > 1 else 0]
    for j in range(len(row)):
        row[j] += line[j]


@kernel(fastmath=FAST)
def _forward(first, last, tops, factors, places, bias, sizes, scale, causal):  # type: ignore[no-untyped-def]
    heads, length, keys, width, out_width, most = sizes
    blocks = (length + most - 1) // most
    scores = np.empty((most, keys), _F)
    at_scores = scores.ctypes.data
    for number in range(first, last):
        n, block = number // blocks, blocks - 1 - number % blocks
        b, h = n // heads, n % heads
        (q, ldq), (k, ldk) = _place(places, 0, b, h), _place(places, 1, b, h)
        (v, ldv), (o, ldo) = _place(places, 2, b, h), _place(places, 3, b, h)
        start = block * most
        rows = min(length, start + most) - start
        seen = min(keys, start + rows) if causal else keys
        q += _ITEMSIZE * start * ldq
        o += _ITEMSIZE * start * ldo
        gemm(False, True, rows, seen, width, scale, q, ldq, k, ldk, 0, at_scores, keys)
        for r in range(rows):
            row = scores[r, : min(seen, start + r + 1) if causal else seen]
            if bias.size:
                _add_bias(row, bias, b, h, start + r)
            top = _F(-np.inf)
            for j in range(len(row)):
                top = max(top, row[j])
            if top == _F(-np.inf):
                scores[r, :seen] = 0  # a row that may attend nowhere
                tops[n, start + r], factors[n, start + r] = 0, 0
                continue
            total = _F(0)
            for j in range(len(row)):
                e = exp_f32(row[j] - top)
                row[j] = e
                total += e
            factor = _ONE / total
            for j in range(len(row)):
                row[j] *= factor
            scores[r, len(row) : seen] = 0
            tops[n, start + r], factors[n, start + r] = top, factor
        gemm(False, False, rows, out_width, seen, _ONE, at_scores, keys, v, ldv, 0, o, ldo)


@kernel(fastmath=FAST)
def _backward(first, last, tops, factors, places, bias, sizes, scale, causal):  # type: ignore[no-untyped-def]
    heads, length, keys, width, out_width, most = sizes
    blocks = (length + most - 1) // most
    weights, slopes = np.empty((most, keys), _F), np.empty((most, keys), _F)
    at_w, at_s = weights.ctypes.data, slopes.ctypes.data
    for n in range(first, last):
        b, h = n // heads, n % heads
        (q, ldq), (k, ldk) = _place(places, 0, b, h), _place(places, 1, b, h)
        (v, ldv), (g, ldg) = _place(places, 2, b, h), _place(places, 3, b, h)
        (dq, ld_dq), (dk, ld_dk) = _place(places, 4, b, h), _place(places, 5, b, h)
        dv, ld_dv = _place(places, 6, b, h)
        keep = 0
        for block in range(blocks - 1, -1, -1):  # the last block sees the most keys
            start = block * most
            rows = min(length, start + most) - start
            seen = min(keys, start + rows) if causal else keys
            at_q, at_g = q + _ITEMSIZE * start * ldq, g + _ITEMSIZE * start * ldg
            at_dq = dq + _ITEMSIZE * start * ld_dq
            gemm(False, True, rows, seen, width, scale, at_q, ldq, k, ldk, 0, at_w, keys)
            gemm(False, True, rows, seen, out_width, _ONE, at_g, ldg, v, ldv, 0, at_s, keys)
            for r in range(rows):
                top, factor = tops[n, start + r], factors[n, start + r]
                many = min(seen, start + r + 1) if causal else seen
                w, s = weights[r, :many], slopes[r, :many]
                if bias.size:
                    _add_bias(w, bias, b, h, start + r)
                dot = _F(0)
                for j in range(len(w)):
                    e = exp_f32(w[j] - top) * factor
                    w[j] = e
                    dot += e * s[j]
                for j in range(len(w)):
                    s[j] = w[j] * (s[j] - dot) * scale
                weights[r, many:seen] = 0
                slopes[r, many:seen] = 0
            gemm(False, False, rows, width, seen, _ONE, at_s, keys, k, ldk, 0, at_dq, ld_dq)
            gemm(True, False, seen, width, rows, _ONE, at_s, keys, at_q, ldq, keep, dk, ld_dk)
            gemm(
                True, False, seen, out_width, rows, _ONE, at_w, keys, at_g, ldg, keep, dv, ld_dv
            )  # fmt: skip
            keep = 1


def _heads_apart(a: Any) -> Any:
    """a_…LD as a_BHLD whose rows lie in one piece."""
    a = a.reshape(-1, *a.shape[-3:]) if a.ndim > 2 else a[None, None]
    rows_apart = a.strides[2] % _ITEMSIZE == 0 and a.strides[2] >= a.shape[3] * _ITEMSIZE
    return a if a.strides[3] == _ITEMSIZE and rows_apart else np.ascontiguousarray(a)


def _heads_beside(shape: tuple[int, ...]) -> Any:
    """New memory for a_BHLD that lies as BLHD, as the layer around will want it."""
    b, h, length, width = shape
    return np.empty((b, length, h, width), _F).transpose(0, 2, 1, 3)


def _side_by_side(*arrays: Any) -> bool:
    """Whether arrays_BHLD are what a projection's result of all of them was split into."""
    first, *others = arrays
    _, heads, _, width = first.shape
    line = _ITEMSIZE * heads * width
    places = [a.__array_interface__["data"][0] for a in arrays]
    return (
        all(a.shape == first.shape and a.strides == first.strides for a in others)
        and places == [places[0] + i * line for i in range(len(arrays))]
        and first.strides[1:] == (_ITEMSIZE * width, len(arrays) * line, _ITEMSIZE)
    )


def _gradients_like(q: Any, k: Any, v: Any) -> list[Any]:
    """New memory for the gradients, side by side where q, k and v are."""
    if not _side_by_side(q, k, v):
        return [_heads_beside(a.shape) for a in (q, k, v)]
    b, h, length, width = q.shape
    together = np.empty((b, length, 3, h, width), _F)
    return [together[:, :, i].transpose(0, 2, 1, 3) for i in range(3)]


def _places(*arrays: Any) -> Any:
    """The address of each a_BHLD, and how many numbers lie from one B, H and L to the next."""
    rows = [
        (a.__array_interface__["data"][0], *[step // _ITEMSIZE for step in a.strides[:3]])
        for a in arrays
    ]
    return np.array(rows, np.int64)


def _sizes(q: Any, k: Any, v: Any) -> tuple[int, ...]:
    keys = k.shape[2]
    most = min(_ROWS if keys <= _LONG else _FEW_ROWS, q.shape[2])
    return (q.shape[1], q.shape[2], keys, q.shape[3], v.shape[3], most)


def forward(q: Any, k: Any, v: Any, bias: Any, scale: float, causal: bool) -> tuple[Any, Any, Any]:
    """The result, and the largest score and the factor of each row.

    Args:
        q: f32[…, L, D].
        k: f32[…, S, D].
        v: f32[…, S, E].
        bias: What is added to the scores, f32[B or 1, H or 1, L or 1, S], or None.
        scale: Factor of the scores.
        causal: Row i sees keys up to i.
    """
    shape = (*q.shape[:-1], v.shape[-1])
    q, k, v = _heads_apart(q), _heads_apart(k), _heads_apart(v)
    out = _heads_beside((*q.shape[:3], v.shape[3]))
    tops, factors = (np.empty((q.shape[0] * q.shape[1], q.shape[2]), _F) for _ in range(2))
    bias = np.empty((0, 0, 0, 0), _F) if bias is None else bias
    sizes = _sizes(q, k, v)
    blocks = len(tops) * -(-q.shape[2] // sizes[-1])
    places = _places(q, k, v, out)
    _forward.share(threads.count(), blocks, tops, factors, places, bias, sizes, _F(scale), causal)
    return out.reshape(shape), tops, factors


def backward(
    g: Any, q: Any, k: Any, v: Any, bias: Any, rows: Any, scale: float, causal: bool
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v; `rows` is what `forward` gave of them."""
    shapes = q.shape, k.shape, v.shape
    q, k, v, g = _heads_apart(q), _heads_apart(k), _heads_apart(v), _heads_apart(g)
    grads = _gradients_like(q, k, v)
    if causal:
        for d in grads[1:]:
            d[:, :, q.shape[2] :] = 0  # keys that no row sees
    bias = np.empty((0, 0, 0, 0), _F) if bias is None else bias
    given = (*rows, _places(q, k, v, g, *grads), bias, _sizes(q, k, v), _F(scale), causal)
    _backward.share(threads.count(), len(rows[0]), *given)
    dq, dk, dv = (d.reshape(shape) for d, shape in zip(grads, shapes, strict=True))
    return dq, dk, dv


__all__ = ["available", "backward", "forward"]
