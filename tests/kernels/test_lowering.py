"""Elements, parts of arrays, ranges and quotients in bodies mean what they mean in Python."""

from __future__ import annotations

import numpy as np
import pytest

kernel_module = pytest.importorskip("minitorch.kernels.cpu.kernel", reason="numba is not installed")


def _walk(first, last, out, x, y, ends, step):  # type: ignore[no-untyped-def]
    """One number after the other for all that `lowering.py` writes itself."""
    at = 0
    for i in range(first, last):
        for a in ends:
            for b in ends:
                part, row = x[a:b], y[i % len(y)]
                out[at] = len(part) + (part[-1] if part.size else 0) + y[i % y.shape[0], -1]
                out[at + 1] = len(x[a:]) + x[:b].size + row[a:b].size + y[1:, a:b].shape[1]
                out[at + 2] = 100 * (a // 3) + a % 3 + 10 * (a // b if b else 7) + a % 4 - (b // 8)
                out[at + 3] = min(a, b) * 1000 + max(a, b, 2) + min(7, b)
                at += 4
        for j in range(7, -3, step):
            out[at] += j * 3
        for j in range(last, first + 1):
            out[at] += 1000 * j
        for j in range(-2, 9, 3):
            out[at] += j
        at += 1
        own = np.zeros(4)
        own[1:][-1] = i
        kept = own[2:] if i % 2 else x[1:3]
        out[at] = own.sum() + kept[1] + y[-1][0] + x[np.int32(2)]
        room, whole = np.zeros((last, 3), x.dtype), np.empty(2, np.int64)
        room[i, -1], whole[-1] = 5, 9
        out[at + 1] = room.sum() + whole[1] + room[:, 2].size
        at += 2


@pytest.mark.parametrize("layout", ["in one piece", "with steps"])
def test_statements_of_bodies_mean_what_they_mean_in_python(layout: str) -> None:
    x, y = np.arange(1.0, 7.0), np.arange(12.0).reshape(3, 4)
    if layout == "with steps":
        x, y = np.repeat(x, 2)[::2], np.repeat(y, 3, axis=1)[:, ::3]
    ends = np.array([-9, -6, -2, 0, 1, 5, 6, 11])
    given = x, y, ends, -2
    out, expected = np.zeros(1000), np.zeros(1000)
    _walk(0, 3, expected, *given)
    kernel_module.Kernel(_walk)(3, out, *given)
    np.testing.assert_array_equal(out, expected)
