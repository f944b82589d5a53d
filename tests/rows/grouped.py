"""Rows of a size that compiled bodies are used for: channels one by one, volumes, groups."""

from __future__ import annotations

from dataclasses import replace

from nn_table import _large
from op_table import Row

PADDINGS = ("zeros", "border", "reflection")


def _sampled(mode: str, padding: str, corners: bool) -> Row:
    row = _large(
        f"grid_sample {mode} {padding} {corners}",
        lambda F, m, x, grid: F.grid_sample(x, grid, mode, padding, corners),
        (2, 5, 15, 17),
        (2, 9, 11, 2),
        low=-1.5,
    )
    reason = "float32 places are rounded in another order; the random calls compare"
    return replace(row, exempt={**row.exempt, "parity": reason})


ROWS = [
    _large(
        "conv2d depthwise",
        lambda F, m, x, w, b: F.conv2d(x, w, b, 1, 1, 1, 4),
        (3, 4, 12, 11),
        (8, 1, 3, 2),
        (8,),
    ),
    _large(
        "conv2d depthwise stride",
        lambda F, m, x, w: F.conv2d(x, w, None, (2, 3), (2, 4), (1, 2), 6),
        (3, 6, 12, 11),
        (6, 1, 3, 3),
    ),
    _large(
        "conv1d depthwise",
        lambda F, m, x, w: F.conv1d(x, w, None, 1, 3, 1, 6),
        (3, 6, 130),
        (6, 1, 4),
    ),
    _large(
        "conv_transpose2d depthwise",
        lambda F, m, x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, 4),
        (3, 4, 14, 13),
        (4, 2, 3, 3),
    ),
    _large(
        "conv3d",
        lambda F, m, x, w, b: F.conv3d(x, w, b, (1, 2, 1), (1, 0, 2), (1, 1, 2)),
        (2, 3, 6, 7, 8),
        (4, 3, 2, 3, 2),
        (4,),
        low=-0.3,
    ),
    _large(
        "conv_transpose3d",
        lambda F, m, x, w: F.conv_transpose3d(x, w, None, (1, 2, 3), 1, (0, 1, 2)),
        (2, 3, 5, 6, 5),
        (3, 2, 2, 3, 3),
        low=-0.3,
    ),
    _large(
        "group_norm",
        lambda F, m, x, w, b: F.group_norm(x, 3, w, b),
        (4, 6, 9, 11),
        (6,),
        (6,),
    ),
    _large("instance_norm", lambda F, m, x: F.instance_norm(x), (4, 6, 9, 11)),
    _large("max_pool3d", lambda F, m, x: F.max_pool3d(x, 3, 2, 1), (3, 4, 8, 7, 9)),
    *[_sampled(m, p, c) for m in ("bilinear", "nearest") for p in PADDINGS for c in (False, True)],
]
