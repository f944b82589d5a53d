"""Rows of embeddings and bags of embeddings."""

from __future__ import annotations

from typing import Any

from nn_table import _row

TABLE = (((5, 3),),)
PADDING = {p: "the row of padding gets no gradient" for p in ("gradient", "second")}
FREQUENT = {p: "the gradient is divided by frequencies" for p in ("gradient", "second")}


def _bag(F: Any, m: Any, w: Any, **options: Any) -> Any:
    entries = m.tensor([0, 2, 2, 4, 1, 0])
    return F.embedding_bag(entries, w, m.tensor([0, 3, 3, 5]), **options)


def _rows_of(F: Any, m: Any, w: Any, **options: Any) -> Any:
    return F.embedding_bag(m.tensor([[0, 2, 4], [1, 1, 3]]), w, **options)


ROWS = [
    _row(
        "F.embedding frequencies",
        lambda F, m, w: F.embedding(m.tensor([[0, 2, 2], [4, 1, 2]]), w, scale_grad_by_freq=True),
        TABLE,
        exempt=FREQUENT,
    ),
    *[
        _row(f"F.embedding_bag {mode}", lambda F, m, w, mode=mode: _bag(F, m, w, mode=mode), TABLE)
        for mode in ("sum", "mean", "max")
    ],
    *[
        _row(
            f"F.embedding_bag rows {mode}",
            lambda F, m, w, mode=mode: _rows_of(F, m, w, mode=mode, padding_idx=-3),
            TABLE,
            exempt=PADDING,
        )
        for mode in ("sum", "mean", "max")
    ],
    _row(
        "F.embedding_bag last",
        lambda F, m, w: F.embedding_bag(
            m.tensor([0, 2, 2]), w, m.tensor([0, 1, 3]), include_last_offset=True
        ),
        TABLE,
    ),
    _row(
        "F.embedding_bag samples",
        lambda F, m, w, s: _bag(F, m, w, mode="sum", per_sample_weights=s),
        (((5, 3), (6,)),),
    ),
    _row(
        "F.embedding_bag rows samples",
        lambda F, m, w, s: _rows_of(F, m, w, mode="sum", per_sample_weights=s),
        (((5, 3), (2, 3)),),
    ),
]
