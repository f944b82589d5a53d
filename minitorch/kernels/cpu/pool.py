"""Maximum pooling over one to three axes, plane by plane.

For each window the number of the winning element within it is kept, in the order of the memory: two
bytes instead of a position of eight. Images have bodies of their own: windows of 2 × 2 side by side
are compared in pairs, others element after element on planes laid out anew (`plane_plan`). What has
one or three axes is a volume here.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..plane_plan import pool_plan
from .instructions import VECTOR_BYTES
from .kernel import FAST, inlined, kernel
from .memory import copy
from .planes import fill
from .taps import BEST, best_over_taps

NONE = 65535  # the number of an element that does not exist
_PAIRS = ((2, 2), (2, 2), (0, 0), (1, 1))  # window, stride, padding and dilation of 2 × 2


@kernel()
def _max_pairs(first, last, x, y, winners):  # type: ignore[no-untyped-def]
    for p in range(first, last):
        for row in range(y.shape[1]):
            one, two = x[p, 2 * row], x[p, 2 * row + 1]
            best, place = y[p, row], winners[p, row]
            for b in range(len(best)):
                v0, v1, v2, v3 = one[2 * b], one[2 * b + 1], two[2 * b], two[2 * b + 1]
                # What is greater or NaN wins, but not over NaN.
                left = v0 if (v1 <= v0) | (v0 != v0) else v1
                right = v2 if (v3 <= v2) | (v2 != v2) else v3
                top = left if (right <= left) | (left != left) else right
                best[b] = top
                k = np.int32(3)
                k = np.int32(2) if (v2 == top) | (v2 != v2) else k
                k = np.int32(1) if (v1 == top) | (v1 != v1) else k
                place[b] = np.int32(0) if (v0 == top) | (v0 != v0) else k


@kernel(fastmath=FAST)
def _spread_pairs(first, last, g, winners, dx):  # type: ignore[no-untyped-def]
    for p in range(first, last):
        for row in range(g.shape[1]):
            one, two = dx[p, 2 * row], dx[p, 2 * row + 1]
            gs, place = g[p, row], winners[p, row]
            for b in range(len(gs)):
                value, k = gs[b], np.int32(place[b])
                one[2 * b] = value if k == 0 else 0
                one[2 * b + 1] = value if k == 1 else 0
            for b in range(len(gs)):
                value, k = gs[b], np.int32(place[b])
                two[2 * b] = value if k == 2 else 0
                two[2 * b + 1] = value if k == 3 else 0
            for b in range(2 * len(gs), len(one)):
                one[b] = 0
                two[b] = 0
        for row in range(2 * g.shape[1], dx.shape[1]):
            one = dx[p, row]
            for b in range(len(one)):
                one[b] = 0


@kernel()
def _max_planes(first, last, x, y, found, sizes, shifts, starts, moves):  # type: ignore[no-untyped-def]
    s, tile = sizes[0], BEST * VECTOR_BYTES // x.itemsize
    buffer, best = np.empty(s.buffer, x.dtype), np.empty(len(starts), x.dtype)
    winner = np.empty(len(starts), np.uint16)
    for i in range(s.buffer):
        buffer[i] = -np.inf
    for p in range(first, last):
        fill(x, p * s.source, buffer, 0, moves, s.step_across)
        for q in range(0, s.target_height * s.line, tile):
            best_over_taps(buffer, q, shifts, len(shifts), starts, best, winner, q)
        for a in range(s.target_height):
            to = p * s.target + a * s.target_width
            copy(best, a * s.line, y, to, s.target_width)
            copy(winner, a * s.line, found, to, s.target_width)


@inlined
def _challenge(best, winner, source, step, element):  # type: ignore[no-untyped-def]
    """Writes what is greater, or NaN, or first. Without branches it becomes vector code."""
    for b in range(len(best)):
        value, old, place = source[b * step], best[b], winner[b]
        stays = ((value <= old) | (old != old)) & (place != NONE)
        best[b] = old if stays else value
        winner[b] = place if stays else element


@kernel()
def _max_pool(begin, end, xs, ys, found, numbers):  # type: ignore[no-untyped-def]
    kd, kh, kw, sd, sh, sw, front, top, left, dd, dh, dw = numbers
    _, depth, height, width = xs.shape
    winner = np.empty(ys.shape[3], np.int32)  # as wide as the numbers, for vector code
    per = ys.shape[1] * ys.shape[2]
    for line in range(begin * per, end * per):
        p, e, a = line // per, line % per // ys.shape[2], line % ys.shape[2]
        best, kept = ys[p, e, a], found[p, e, a]
        for b in range(len(best)):
            best[b] = -np.inf
            winner[b] = NONE
        for k in range(kd * kh * kw):
            z = e * sd + k // (kh * kw) * dd - front
            r = a * sh + k // kw % kh * dh - top
            if z < 0 or z >= depth or r < 0 or r >= height:
                continue
            offset = k % kw * dw - left
            first = max(0, -(offset // sw))
            last = max(first, min(len(best), (width - 1 - offset) // sw + 1))
            source = xs[p, z, r, first * sw + offset :]
            reached, places = best[first:last], winner[first:last]
            if sw == 1:
                _challenge(reached, places, source, 1, np.int32(k))
            elif sw == 2:
                _challenge(reached, places, source, 2, np.int32(k))
            else:
                _challenge(reached, places, source, sw, np.int32(k))
        for b in range(len(kept)):
            kept[b] = winner[b]


@kernel()
def _spread(begin, end, gs, found, dx, offsets, numbers):  # type: ignore[no-untyped-def]
    start, first, second, third = numbers
    for p in range(begin, end):
        g, winners, out = gs[p], found[p], dx[p]
        for i in range(len(out)):
            out[i] = 0
        for e in range(g.shape[0]):
            for a in range(g.shape[1]):
                at = start + e * first + a * second
                for b in range(g.shape[2]):
                    if winners[e, a, b] != NONE:
                        out[at + b * third + offsets[winners[e, a, b]]] += g[e, a, b]


def _three(values: tuple[int, ...], filler: int) -> tuple[int, ...]:
    return (filler,) * (3 - len(values)) + tuple([*map(int, values)])


def _planes(a: Any) -> Any:
    """x_NC… as planes with three axes."""
    shape = (a.shape[0] * a.shape[1], *_three(a.shape[2:], 1))
    return np.ascontiguousarray(a).reshape(shape)


def _settings(window: Any) -> tuple[tuple[int, ...], ...]:
    return window.kernel, window.stride, window.low, window.dilation


def _in_pairs(window: Any, size: tuple[int, ...], outputs: tuple[int, ...]) -> bool:
    """Whether the windows are 2 × 2, side by side, and all there."""
    if tuple([tuple(setting) for setting in _settings(window)]) != _PAIRS:
        return False
    return all(2 * count <= n for count, n in zip(outputs, size, strict=True))


def max_pool(x: Any, window: Any, *outputs: int) -> tuple[Any, Any]:
    """The maxima of the windows of x_NC…, and which of a window's elements they are, uint16."""
    y = np.empty((*x.shape[:2], *outputs), x.dtype)
    winners = np.empty(y.shape, np.uint16)
    xs, ys, places = map(_planes, (x, y, winners))
    if _in_pairs(window, x.shape[2:], outputs):
        _max_pairs(len(xs), xs[:, 0], ys[:, 0], places[:, 0])
        return y, winners
    if len(outputs) == 2:
        plan, starts = pool_plan(x.shape, window)
        flat = (a.reshape(-1) for a in (xs, y, winners))
        shifts = plan.shifts[: len(plan.elements)]
        _max_planes(len(xs), *flat, plan.sizes, shifts, starts, plan.moves)
        return y, winners
    settings = zip(_settings(window), (1, 1, 0, 1), strict=True)
    numbers = tuple(number for values, filler in settings for number in _three(values, filler))
    _max_pool(len(xs), xs, ys, places, numbers)
    return y, winners


def max_pool_backward(g: Any, winners: Any, window: Any, size: tuple[int, ...]) -> Any:
    """The gradient of images of the given size: each g goes to the element that won."""
    dx = np.empty((*g.shape[:2], *size), g.dtype)
    gs, places = _planes(g), _planes(winners)
    if _in_pairs(window, size, g.shape[2:]):
        _spread_pairs(len(gs), gs[:, 0], places[:, 0], _planes(dx)[:, 0])
        return dx
    lines = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    ranges = (range(k) for k in window.kernel)
    offsets = np.array(list(itertools.product(*ranges))) @ np.multiply(lines, window.dilation)
    start = -int(np.dot(lines, window.low))
    numbers = (start, *_three(np.multiply(lines, window.stride), 0))
    _spread(len(gs), gs, places, dx.reshape(len(g) * g.shape[1], -1), offsets, numbers)
    return dx
