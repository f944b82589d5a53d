"""Values, dtypes and first gradients of every row of the table against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from all_rows import ROWS  # noqa: E402
from op_table import Row  # noqa: E402

import minitorch as mt  # noqa: E402

DTYPES = ["float32", "float64", "int64", "uint8", "bool"]


def _result(m: Any, row: Row, arrays: list[Any]) -> tuple[Any, list[Any]]:
    """The output, and the gradients of its weighted sum, of library `m`."""
    xs = [m.tensor(a) for a in arrays]
    floating = [x for x in xs if x.is_floating_point()]
    for x in floating:
        x.requires_grad_()
    y = row.call(m, *xs)
    if not getattr(y, "requires_grad", False):
        return y, []
    weights = np.linspace(0.5, 1.5, max(y.numel(), 1))[: y.numel()].reshape(tuple(y.shape))
    (y * m.tensor(weights, dtype=y.dtype)).sum().backward()
    return y.detach(), [x.grad for x in floating]


CASES = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in ROWS
    if "parity" not in row.exempt
    for dtype in (DTYPES if row.integers else DTYPES[:2])
]


@pytest.mark.parametrize(("row", "dtype"), CASES)
def test_parity(row: Row, dtype: str) -> None:
    for shapes in row.shapes:
        arrays = row.sample(shapes, np.dtype(dtype))
        try:
            expected, grads = _result(torch, row, arrays)
        except (RuntimeError, IndexError, TypeError):
            with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
                _result(mt, row, arrays)
            continue
        got, ours = _result(mt, row, arrays)
        assert str(got.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        assert tuple(got.shape) == tuple(expected.shape)
        tolerance = (
            {"rtol": 3e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12}
        )
        np.testing.assert_allclose(got.numpy(), expected.numpy(), **tolerance)
        for g, e in zip(ours, grads, strict=True):
            assert (g is None) == (e is None)
            if g is not None:
                # Sums whose parts cancel are as exact as their largest part.
                finite = e.abs()[e.isfinite()]
                largest = float(finite.max()) if finite.numel() else 0.0
                atol = max(tolerance["atol"], 24 * np.finfo(g.numpy().dtype).eps * largest)
                np.testing.assert_allclose(g.numpy(), e.numpy(), tolerance["rtol"], atol)
