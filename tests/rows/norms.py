"""Rows for normalisation of samples and across channels."""

from __future__ import annotations

from typing import Any

from nn_table import _row

AFFINE = (((2, 3, 4), (3,), (3,)), ((2, 3, 2, 2), (3,), (3,)))


def _normalised(use_input: bool) -> Any:
    def call(F: Any, m: Any, x: Any, w: Any, b: Any) -> Any:
        mean = m.tensor([0.5, -0.5, 1.0], dtype=x.dtype)
        var = m.tensor([1.0, 2.0, 0.5], dtype=x.dtype)
        return F.instance_norm(x, mean, var, w, b, use_input, 0.3, 1e-3)

    return call


ROWS = [
    _row("F.instance_norm affine", _normalised(True), AFFINE),
    _row("F.instance_norm evaluation", _normalised(False), AFFINE),
    _row(
        "F.local_response_norm",
        lambda F, m, x: F.local_response_norm(x, 3, 0.5, 0.75, 1.5),
        (((2, 4, 3),), ((1, 5, 2, 2),), ((0, 4, 3),)),
    ),
    _row(
        "F.local_response_norm even",
        lambda F, m, x: F.local_response_norm(x, 4, 0.5),
        (((2, 3, 2, 2),),),
    ),
]
