"""Arithmetic of large arrays by threads has the bits of NumPy's, also in place and in backward."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import accumulation
from minitorch.kernels import threads
from minitorch.ops import arithmetic, at_once, families

pytest.importorskip("numba", reason="without numba there are no kernels")

OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}
LARGE = 1 << 16  # here, so that the tests take little time
ROWS = 1 + LARGE // 201  # of 201 numbers
OPERANDS = {
    "one shape": ((ROWS, 201), (ROWS, 201)),
    "rows and a line": ((ROWS, 201), (201,)),
    "a line and rows": ((201,), (ROWS, 201)),
    "blocks and a plane": ((3, ROWS, 70), (ROWS, 70)),
    "rows and a number": ((ROWS, 201), 0.3),
    "a number and rows": (-7, (ROWS, 201)),
    "one axis": ((LARGE + 5,), (LARGE + 5,)),
}


@pytest.fixture(autouse=True)
def _several_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine with two cores, from fewer elements on."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    for module in (arithmetic, families, at_once, accumulation):
        monkeypatch.setattr(module, "LARGE", LARGE)
    with np.errstate(all="ignore"):
        yield


def _values(shape: Any, dtype: str, seed: int) -> Any:
    if not isinstance(shape, tuple):
        return shape
    a = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    if a.size > 5:
        a.reshape(-1)[:5] = np.nan, np.inf, -np.inf, 0, -0.0
    return a


def _same(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_results_have_the_bits_of_numpy(name: str, kind: str, dtype: str) -> None:
    a, b = (_values(shape, dtype, i) for i, shape in enumerate(OPERANDS[kind]))
    got = arithmetic.combined(name, a, b)
    want = OPERATIONS[name](a, b)
    tensors = [mt.tensor(x) if isinstance(x, np.ndarray) else x for x in (a, b)]
    _same(OPERATIONS[name](*tensors).numpy(), want)
    assert got is not None
    _same(got, want)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((ROWS, 201), (ROWS, 1)),
        ((1, 201), (ROWS, 201)),
        ((ROWS * 201, 1), (1,)),
        ((ROWS, 201), 1e39),
        ((20, 20), (20, 20)),
        ((LARGE // 4, 8), (8,)),
    ],
)
def test_what_is_left_to_numpy(a: Any, b: Any) -> None:
    assert arithmetic.combined("add", _values(a, "f4", 0), _values(b, "f4", 1)) is None


def test_arrays_of_another_order_dtype_or_one_thread_are_left_to_numpy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = _values((ROWS, 201), "f4", 0)
    assert arithmetic.combined("add", a.T, a.T) is None
    assert arithmetic.combined("add", a, a.astype("f8")) is None
    assert arithmetic.combined("add", a.astype("i8"), a.astype("i8")) is None
    monkeypatch.setattr(threads, "count", lambda: 1)
    assert arithmetic.combined("add", a, a) is None


@pytest.mark.parametrize("other", [(ROWS, 201), (201,), 1.5])
@pytest.mark.parametrize("name", OPERATIONS)
def test_in_place(name: str, other: Any) -> None:
    a, b = _values((ROWS, 201), "f4", 0), _values(other, "f4", 1)
    want = OPERATIONS[name](a, b)
    x = mt.tensor(a)
    memory = x._array
    getattr(x, f"{name}_")(mt.tensor(b) if isinstance(b, np.ndarray) else b)
    assert x._array is memory
    _same(x.numpy(), want)


def test_in_place_with_a_part_of_its_own_memory() -> None:
    a = _values((2 * LARGE,), "f4", 0)
    x = mt.tensor(a)
    x[1:].add_(x[:-1])
    _same(x.numpy()[1:], a[1:] + a[:-1])


def test_sums_of_gradients_leave_what_others_hold() -> None:
    """The same gradient flows to two places, and what is summed there is not one array."""
    shape = (ROWS, 201)
    x, y = (mt.tensor(_values(shape, "f4", i)).requires_grad_() for i in (0, 1))
    h, k = x * 2, y * 3
    s = h + k
    kept: list[Any] = []
    h.register_hook(lambda g: kept.append(g.clone()))
    weight = mt.tensor(_values(shape, "f4", 2))
    ((s + h * weight + s.reshape(-1).reshape(shape) * 2 + k) * weight).sum().backward()
    w = weight.numpy()
    np.testing.assert_allclose(kept[0].numpy(), w + w * w + 2 * w, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), 2 * (w + w * w + 2 * w), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y.grad.numpy(), 3 * (w + 2 * w + w), rtol=1e-5, atol=1e-5)
