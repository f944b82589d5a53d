"""NaN among the inputs is seen in the results; guards against 0 do not hide it."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.nn import functional as F

ORDERS = [0.5, 1, 1.5, 2, 3, -1, -2.5, math.inf, -math.inf]
ROWS: dict[str, Callable[[Any], Any]] = {
    **{f"norm {p}": lambda x, p=p: x.norm(p, -1) for p in ORDERS},
    **{f"vector_norm {p}": lambda x, p=p: mt.linalg.vector_norm(x, p, -1) for p in ORDERS},
    **{f"normalize {p}": lambda x, p=p: F.normalize(x, p, -1) for p in ORDERS},
    "masked_softmax": lambda x: F.masked_softmax(x, x.detach() != 5, -1),
    "softmax": lambda x: x.softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "attention weights": lambda x: F.scaled_dot_product_attention(
        mt.ones_like(x[..., None]), x[..., None], mt.ones_like(x[..., None])
    ),
}


@pytest.mark.parametrize("shape", [(2, 4), (9, 250)], ids=str)
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_rows_with_nan(name: str, dtype: Any, shape: Any) -> None:
    values = np.ones(shape)
    values[0, 1] = np.nan
    y = ROWS[name](mt.tensor(values, dtype=dtype)).float().reshape(len(values), -1)
    assert y[0].isnan().all()
    assert y[1:].isfinite().all()


@pytest.mark.parametrize("keys", [5, 64])
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
def test_gradients_of_attention(dtype: Any, keys: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (mt.tensor(a, dtype=dtype) for a in rng.normal(size=(3, 1, 1, keys, 8)))
    mask = mt.zeros(keys, keys, dtype=dtype, requires_grad=True)
    k[0, 0, 2, 3] = math.nan
    leaves = [x.requires_grad_() for x in (q, k, v)]
    F.scaled_dot_product_attention(*leaves, attn_mask=mask).sum().backward()
    for x in (*leaves, mask):
        assert x.grad.isnan().all()


def test_the_gradient_of_a_norm_at_nan_and_at_0() -> None:
    x = mt.tensor([[math.nan, 1.0], [0.0, 0.0]], requires_grad=True)
    x.norm(2, -1).sum().backward()
    assert x.grad[0].isnan().all()
    assert x.grad[1].tolist() == [0.0, 0.0]
