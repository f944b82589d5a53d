"""Float32 sums of very many numbers are exact, however the numbers lie in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import minitorch as mt

SUMS: dict[str, Callable[[mt.Tensor], mt.Tensor]] = {
    "columns": lambda x: x.sum(0),
    "rows of the transposed": lambda x: x.T.sum(1, keepdim=True),
    "two axes": lambda x: x.reshape(-1, 2, 3).sum((0, 2)),
    "all of a part": lambda x: x[:, :2].sum(),
    "all": lambda x: x.T.sum(),
    "copies": lambda x: x[:1].expand(400_000, 6).sum(),
    "mean": lambda x: x.mean(0),
    "half": lambda x: x.half().mean(0).float(),
}


@pytest.mark.parametrize("name", SUMS)
def test_long_sums(name: str) -> None:
    x = mt.full((400_000, 6), 0.1)
    found = SUMS[name](x)
    assert found.dtype is mt.float32
    rtol = 1e-3 if name == "half" else 1e-5
    np.testing.assert_allclose(found.numpy(), SUMS[name](x.double()).numpy(), rtol)
