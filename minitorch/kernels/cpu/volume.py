"""Patches of volumes and back, in parallel over the rows of the patch matrix and over volumes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .kernel import kernel


@kernel()
def _patches(first_row, last_row, x, cols, sd, sh, sw, front, t, left, dd, dh, dw):  # type: ignore[no-untyped-def]
    n, _, depth, h, w = x.shape
    _, kd, kh, kw, _, od, oh, ow = cols.shape
    for row in range(first_row, last_row):
        ch, q = row // (kd * kh * kw), row // (kh * kw) % kd
        i, j = row // kw % kh, row % kw
        offset = j * dw - left
        first = max(0, -(offset // sw))
        last = min(ow, (w - 1 - offset) // sw + 1)
        for m in range(n):
            for e in range(od):
                z = e * sd + q * dd - front
                for a in range(oh):
                    y = a * sh + i * dh - t
                    out = cols[ch, q, i, j, m, e, a]
                    if z < 0 or z >= depth or y < 0 or y >= h or last <= first:
                        out[:] = 0
                        continue
                    out[:first] = 0
                    out[last:] = 0
                    middle, source = out[first:last], x[m, ch, z, y, first * sw + offset :]
                    if sw == 1:
                        for b in range(len(middle)):
                            middle[b] = source[b]
                    else:
                        for b in range(len(middle)):
                            middle[b] = source[b * sw]


@kernel()
def _add_patches(first_volume, last_volume, out, cols, sd, sh, sw, front, t, left, dd, dh, dw):  # type: ignore[no-untyped-def]
    _, c, depth, h, w = out.shape
    _, kd, kh, kw, _, od, oh, ow = cols.shape
    for volume in range(first_volume, last_volume):
        m, ch = volume // c, volume % c
        for k in range(kd * kh * kw):
            q, i, j = k // (kh * kw), k // kw % kh, k % kw
            offset = j * dw - left
            first = max(0, -(offset // sw))
            last = max(first, min(ow, (w - 1 - offset) // sw + 1))
            for e in range(od):
                z = e * sd + q * dd - front
                if z < 0 or z >= depth:
                    continue
                for a in range(oh):
                    y = a * sh + i * dh - t
                    if y < 0 or y >= h:
                        continue
                    target = out[m, ch, z, y, first * sw + offset :]
                    source = cols[ch, q, i, j, m, e, a, first:last]
                    if sw == 1:
                        for b in range(len(source)):
                            target[b] += source[b]
                    else:
                        for b in range(len(source)):
                            target[b * sw] += source[b]


def _numbers(window: Any) -> tuple[int, ...]:
    return (*window.stride, *window.low, *window.dilation)


def patches(x: Any, window: Any, *outputs: int) -> Any:
    """The patches of x_NCDHW as c·kd·kh·kw rows of n·od·oh·ow values."""
    n, c = x.shape[:2]
    cols = np.empty((c, *window.kernel, n, *outputs), x.dtype)
    _patches(c * math.prod(window.kernel), x, cols, *_numbers(window))
    return cols.reshape(c * math.prod(window.kernel), n * math.prod(outputs))


def add_patches(out: Any, cols: Any, window: Any, *outputs: int) -> None:
    """Adds patches to the volumes `out`, in place."""
    n, c = out.shape[:2]
    cols = cols.reshape(c, *window.kernel, n, *outputs)
    _add_patches(n * c, out, cols, *_numbers(window))
