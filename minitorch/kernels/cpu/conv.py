"""Patches of images and back, in parallel over the rows of the patch matrix and over images."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel


@kernel()
def _patches(first_row, last_row, x, cols, kh, kw, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    n, _, h, w = x.shape
    oh, ow = cols.shape[4], cols.shape[5]
    for row in range(first_row, last_row):
        ch, i, j = row // (kh * kw), row // kw % kh, row % kw
        first = max(0, -((j * dw - left) // sw))
        last = min(ow, (w - 1 - j * dw + left) // sw + 1)
        for m in range(n):
            for a in range(oh):
                y = a * sh + i * dh - t
                out = cols[ch, i, j, m, a]
                if y < 0 or y >= h or last <= first:
                    out[:] = 0
                    continue
                out[:first] = 0
                out[last:] = 0
                middle, source = out[first:last], x[m, ch, y, first * sw + j * dw - left :]
                if sw == 1:
                    for b in range(len(middle)):
                        middle[b] = source[b]
                else:
                    for b in range(len(middle)):
                        middle[b] = source[b * sw]


@kernel()
def _add_patches(first_plane, last_plane, out, cols, kh, kw, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    _, c, h, w = out.shape
    oh, ow = cols.shape[4], cols.shape[5]
    for plane in range(first_plane, last_plane):
        m, ch = plane // c, plane % c
        for i in range(kh):
            for j in range(kw):
                first = max(0, -((j * dw - left) // sw))
                last = max(first, min(ow, (w - 1 - j * dw + left) // sw + 1))
                offset = j * dw - left
                for a in range(oh):
                    y = a * sh + i * dh - t
                    if y < 0 or y >= h:
                        continue
                    target = out[m, ch, y, first * sw + offset :]
                    source = cols[ch, i, j, m, a, first:last]
                    if sw == 1:
                        for b in range(len(source)):
                            target[b] += source[b]
                    else:
                        for b in range(len(source)):
                            target[b * sw] += source[b]


def patches(x: Any, window: Any, oh: int, ow: int) -> Any:
    """The patches of x_NCHW as c·kh·kw rows of n·oh·ow values."""
    (kh, kw), (sh, sw), (t, left), _, (dh, dw) = window
    n, c = x.shape[:2]
    cols = np.empty((c, kh, kw, n, oh, ow), x.dtype)
    _patches(c * kh * kw, x, cols, kh, kw, sh, sw, t, left, dh, dw)
    return cols.reshape(-1, n * oh * ow)


def add_patches(out: Any, cols: Any, window: Any, oh: int, ow: int) -> None:
    """Adds patches to the images `out`, in place."""
    (kh, kw), (sh, sw), (t, left), _, (dh, dw) = window
    n, c = out.shape[:2]
    cols = cols.reshape(c, kh, kw, n, oh, ow)
    _add_patches(n * c, out, cols, kh, kw, sh, sw, t, left, dh, dw)
