"""Rows of CTC."""

from __future__ import annotations

from typing import Any

from nn_table import REDUCTIONS, _row


def _loss(F: Any, m: Any, x: Any, reduction: str, **options: Any) -> Any:
    targets = m.tensor([[1, 2, 2], [3, 0, 0], [1, 2, 3]])
    return F.ctc_loss(
        F.log_softmax(x, 2), targets, (6, 5, 4), (3, 1, 2), reduction=reduction, **options
    )


SHAPES = (((6, 3, 5),),)
ROWS = [
    *[_row(f"F.ctc_loss {r}", lambda F, m, x, r=r: _loss(F, m, x, r), SHAPES) for r in REDUCTIONS],
    _row(
        "F.ctc_loss joined",
        lambda F, m, x: F.ctc_loss(
            F.log_softmax(x, 2), m.tensor([1, 1, 0, 2]), (6, 0, 4), (2, 0, 2), blank=4
        ),
        SHAPES,
    ),
    _row(
        "F.ctc_loss impossible",
        lambda F, m, x: F.ctc_loss(
            F.log_softmax(x, 2),
            m.tensor([[1, 1], [1, 1], [1, 2]]),
            (2, 3, 2),
            (2, 2, 2),
            zero_infinity=True,
        ),
        SHAPES,
    ),
    _row(
        "F.ctc_loss one",
        lambda F, m, x: F.ctc_loss(
            F.log_softmax(x, 1), m.tensor([1, 2, 2]), (5,), (3,), reduction="none"
        ),
        (((6, 4),),),
    ),
]
