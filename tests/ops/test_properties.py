"""Every operation of the table has every property that its row does not exempt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from all_rows import ROWS
from op_table import Row

import minitorch as mt
from minitorch.autograd import gradcheck, gradgradcheck


def _tensors(row: Row, shapes: Any, dtype: Any = np.float64, grad: bool = False) -> list[Any]:
    out = [mt.tensor(a) for a in row.sample(shapes, dtype)]
    return [t.requires_grad_() if grad and t.dtype.is_floating_point else t for t in out]


def rows(*properties: str, among: Any = lambda row: True) -> Any:
    """Every row that no exemption keeps from having these properties."""
    chosen = [row for row in ROWS if not set(properties) & set(row.exempt) and among(row)]
    return pytest.mark.parametrize("row", chosen, ids=lambda row: row.name)


def _two_alike(row: Row) -> bool:
    shapes = row.shapes[0]
    return len(shapes) > 1 and shapes[0] == shapes[1]


@rows("gradient")
def test_gradient(row: Row) -> None:
    for shapes in row.shapes:
        xs = _tensors(row, shapes, grad=True)
        assert row.call(mt, *xs).requires_grad
        assert gradcheck(lambda *ts: row.call(mt, *ts), xs)


@rows("gradient", "second")
def test_second_order(row: Row) -> None:
    xs = _tensors(row, row.shapes[0], grad=True)
    assert gradgradcheck(lambda *ts: row.call(mt, *ts), xs, fast_mode=True)


@rows("float dtypes")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_float_dtypes(row: Row, dtype: str) -> None:
    wide = row.call(mt, *_tensors(row, row.shapes[0]))
    xs = [mt.tensor(a).to(getattr(mt, dtype)) for a in row.sample(row.shapes[0])]
    same = [x.double() for x in xs]
    narrow, exact = row.call(mt, *xs), row.call(mt, *same)
    if wide.dtype is mt.float64:
        assert narrow.dtype is getattr(mt, dtype)
    else:
        assert narrow.dtype is wide.dtype
    tolerance = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4}[dtype]
    if narrow.dtype.is_floating_point:
        np.testing.assert_allclose(
            narrow.double().detach().numpy(),
            exact.detach().numpy(),
            rtol=tolerance,
            atol=tolerance,
        )


@rows(among=lambda row: row.integers)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integers(row: Row, dtype: str) -> None:
    xs = [mt.tensor(a) for a in row.sample(row.shapes[0], np.dtype(dtype))]
    y, exact = row.call(mt, *xs), row.call(mt, *[x.double() for x in xs])
    assert y.shape == exact.shape
    wanted = exact.double().numpy()
    if y.dtype is mt.uint8:
        wanted = wanted % 256  # below 0 it wraps round
    np.testing.assert_allclose(y.double().numpy(), wanted, rtol=1e-6)


@rows()
def test_inputs_are_not_changed(row: Row) -> None:
    for shapes in row.shapes:
        xs = _tensors(row, shapes)
        before = [x.numpy(force=True) for x in xs]
        row.call(mt, *xs)
        for x, b in zip(xs, before, strict=True):
            np.testing.assert_array_equal(x.numpy(), b)


@rows("strided")
def test_strided_inputs_give_the_same(row: Row) -> None:
    for shapes in row.shapes:
        xs = _tensors(row, shapes)
        strided = []
        for x in xs:
            array = np.empty(x.shape + (2,), dtype=np.float64)[..., 0]
            array[...] = x.numpy()
            twin = mt.ops.primitive.wrap(array if array.ndim else array.copy())
            strided.append(twin)
        a, b = row.call(mt, *xs), row.call(mt, *strided)
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@rows()
def test_no_graph_without_grad(row: Row) -> None:
    xs = _tensors(row, row.shapes[0], grad=True)
    with mt.no_grad():
        y = row.call(mt, *xs)
    assert not y.requires_grad
    assert y.grad_fn is None


@rows("gradient", among=_two_alike)
def test_repeated_input_sums_its_gradients(row: Row) -> None:
    shapes = row.shapes[0]
    xs = _tensors(row, shapes, grad=True)
    twice = [xs[0], xs[0], *xs[2:]]
    y = row.call(mt, *twice)
    (g,) = mt.autograd.grad(y.sum(), xs[0])
    apart = [mt.tensor(t.numpy(force=True)).requires_grad_() for t in twice]
    ga, gb = mt.autograd.grad(row.call(mt, *apart).sum(), apart[:2], materialize_grads=True)
    np.testing.assert_allclose(g.numpy(), (ga + gb).numpy(), rtol=1e-12)
