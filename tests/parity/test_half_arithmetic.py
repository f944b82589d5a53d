"""Half types on the CPU: stored rounded, computed in float32, rounded once, to PyTorch's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

X, Z = np.random.default_rng(0).normal(size=(2, 32, 48)).astype(np.float32)
EXACT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda m, x, z: x + z,
    "mul": lambda m, x, z: x * z,
    "div": lambda m, x, z: x / z,
    "add number": lambda m, x, z: x + 0.7,
    "number sub": lambda m, x, z: 0.7 - x,
    "mul number": lambda m, x, z: x * 0.3,
    "div number": lambda m, x, z: x / 0.3,
    "square": lambda m, x, z: x**2,
    "sqrt": lambda m, x, z: x.abs().sqrt(),
    "rsqrt": lambda m, x, z: x.abs().rsqrt(),
    "reciprocal": lambda m, x, z: x.reciprocal(),
    "exp": lambda m, x, z: x.exp(),
    "tanh": lambda m, x, z: x.tanh(),
    "sigmoid": lambda m, x, z: x.sigmoid(),
    "silu": lambda m, x, z: m.nn.functional.silu(x),
    "sum": lambda m, x, z: x.sum(),
    "sum axis": lambda m, x, z: x.sum(0),
    "mean": lambda m, x, z: x.mean(-1),
    "var": lambda m, x, z: x.var(-1),
    "norm": lambda m, x, z: x.norm(),
    "logsumexp": lambda m, x, z: x.logsumexp(-1),
    "cumsum": lambda m, x, z: x.cumsum(-1),
    "max": lambda m, x, z: x.max(-1).values,
    "mse_loss": lambda m, x, z: m.nn.functional.mse_loss(x, z),
}


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", EXACT)
def test_one_rounding(name: str, half: str) -> None:
    results = []
    for library in (torch, mt):
        tensors = [library.from_numpy(a).to(getattr(library, half)) for a in (X, Z)]
        out = EXACT[name](library, *tensors)
        assert str(out.dtype).endswith(half)
        results.append(out.float().numpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_a_product_is_rounded_once(half: str) -> None:
    x = mt.from_numpy(1 + X / 100).to(getattr(mt, half))
    exact = x.double().prod()
    assert x.prod().item() == exact.to(getattr(mt, half)).item()
