"""A 0-d value that is used often gets every part of its gradient."""

from __future__ import annotations

import pytest

import minitorch as mt


@pytest.mark.parametrize("uses", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("shape", [(), (1,), (2,)])
def test_every_use_counts(uses: int, shape: tuple[int, ...]) -> None:
    x = mt.full(shape, 3.0, dtype=mt.float64, requires_grad=True)
    total = x.sum()
    mt.stack([total * (i + 1) for i in range(uses)]).sum().backward()
    assert x.grad.reshape(-1).tolist() == [uses * (uses + 1) / 2] * x.numel()


def test_squares_of_a_sum() -> None:
    x = mt.tensor([0.3, 0.9], dtype=mt.float64, requires_grad=True)
    s = x.sum()
    (s * s + s * s).backward()
    assert x.grad.tolist() == pytest.approx([4.8, 4.8])
