"""Fast bodies agree with the definition of their operation, with and without compiled kernels."""

from typing import Any

import nn_table
import numpy as np
import pytest
from op_table import Row
from rows import convolution, grouped, norms, pooling

import minitorch as mt
from minitorch.kernels import loader
from minitorch.nn import functional
from minitorch.ops.fused import Fused

ROWS = [*nn_table.ROWS, *convolution.ROWS, *grouped.ROWS, *norms.ROWS, *pooling.ROWS]
# Embedding and the activations are primitives: their plain bodies are their definition.
FUSED = [row for row in ROWS if not row.name.startswith("F.pad")]


def _results(row: Row, dtype: str) -> list[Any]:
    """Output and gradients for the last shapes of the row, as float64."""
    shapes = next(s for s in row.shapes if all(all(shape) for shape in s))
    xs = [mt.tensor(a).requires_grad_() for a in row.sample(shapes, np.dtype(dtype))]
    y = row.call(mt, *xs)
    weights = mt.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
    grads = mt.autograd.grad((y * weights).sum(), xs, allow_unused=True)
    return [y.detach().numpy(), *[None if g is None else g.numpy() for g in grads]]


def _compare(row: Row, dtype: str, expected: list[Any]) -> None:
    tolerance = {"float32": 2e-5, "float64": 1e-10}[dtype]
    for i, (a, b) in enumerate(zip(_results(row, dtype), expected, strict=True)):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            scale = max(1.0, float(np.abs(b).max()))
            np.testing.assert_allclose(a, b, tolerance, tolerance * scale, err_msg=f"value {i}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", FUSED, ids=lambda row: row.name)
def test_plain_bodies_and_definitions_agree(
    row: Row, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = _results(row, dtype)
    monkeypatch.setattr(loader, "load", lambda family: None)
    _compare(row, dtype, fast)
    monkeypatch.setattr(Fused, "__call__", lambda op, *xs, **options: op.definition(*xs, **options))
    _compare(row, dtype, fast)


@pytest.mark.parametrize("row", [r for r in ROWS if "large" in r.name], ids=lambda row: row.name)
def test_results_do_not_depend_on_the_number_of_threads(row: Row) -> None:
    before = mt.get_num_threads()
    results = []
    try:
        for number in (1, 2):
            mt.set_num_threads(number)
            results.append(_results(row, "float32")[0])
    finally:
        mt.set_num_threads(before)
    np.testing.assert_allclose(*results, rtol=1e-6, atol=1e-6)


def test_gradients_of_a_fast_body_without_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backward may run in a thread that may not enter compiled bodies."""
    x, places = mt.randn(2, 3, 24, 24), mt.rand(2, 9, 9, 2) * 2 - 1
    grads = []
    for kernels in (True, False):
        leaves = [x.clone().requires_grad_(), places.clone().requires_grad_()]
        y = (mt.nn.functional.grid_sample(*leaves) ** 2).sum()
        if not kernels:
            monkeypatch.setattr(loader, "load", lambda family: None)
        grads.append(mt.autograd.grad(y, leaves))
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [4, 60])
def test_what_lies_outside_of_a_grid_is_zero(size: int) -> None:
    """Whatever the images hold, with the kernel and without."""
    x, outside = mt.zeros(1, 1, size, size), mt.full((1, 48, 48, 2), 1.5)
    x[0, 0, 0, 0] = float("nan")
    outside.requires_grad_()
    y = mt.nn.functional.grid_sample(x, outside, align_corners=True)
    y.sum().backward()
    assert outside.grad is not None
    assert not y.detach().numpy().any()
    assert not outside.grad.numpy().any()


@pytest.mark.parametrize(("features", "outputs"), [(4, 0), (0, 4), (0, 0)])
def test_linear_layers_without_features(features: int, outputs: int) -> None:
    x = mt.ones(2, 3, features, requires_grad=True)
    weight = mt.ones(outputs, features, requires_grad=True)
    functional.linear(x, weight, mt.zeros(outputs)).sum().backward()
    assert x.grad is not None
    assert weight.grad is not None
    assert x.grad.tolist() == mt.zeros(2, 3, features).tolist()
    assert weight.grad.tolist() == mt.zeros(outputs, features).tolist()
