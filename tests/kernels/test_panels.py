"""Products of float32 in panels equal NumPy's in float64, for all sizes, strides and threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import load

pytest.importorskip("numba")

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _panels_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = mt.get_num_threads()
    load("product")
    monkeypatch.setattr("minitorch.kernels.cpu.product.available", False)  # OpenBLAS
    yield
    mt.set_num_threads(before)


def _numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def _turned(*shape: int) -> np.ndarray:
    return np.ascontiguousarray(_numbers(*shape).swapaxes(-1, -2)).swapaxes(-1, -2)


def _sparse(*shape: int) -> np.ndarray:
    return _numbers(*shape[:-1], 2 * shape[-1])[..., ::2]


def _backwards(*shape: int) -> np.ndarray:
    return _numbers(*shape)[..., ::-1, :]


def _cut_out(*shape: int) -> np.ndarray:
    return _numbers(*shape[:-1], shape[-1] + 5)[..., 3:-2]


def _spread(*shape: int) -> np.ndarray:
    return np.broadcast_to(_numbers(1, shape[-1]), shape)


def _check(c: np.ndarray, a: np.ndarray, b: np.ndarray, more: float | np.ndarray = 0) -> None:
    exact = a.astype("d") @ b.astype("d") + more
    size = np.abs(a).astype("d") @ np.abs(b).astype("d") + 1
    assert c.dtype == np.float32
    np.testing.assert_array_less(np.abs(c - exact) / size, 2e-6)


SIZES = [
    *((1, 1, 1), (1, 40, 9), (3, 16, 8), (4, 17, 5), (5, 15, 16), (6, 32, 33), (10, 10, 256)),
    *((13, 64, 257), (97, 130, 31), (100, 7, 600), (200, 300, 40), (2, 500, 3), (800, 20, 12)),
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("left", [_numbers, _turned, _sparse])
@pytest.mark.parametrize("right", [_numbers, _turned, _sparse])
def test_products(
    size: tuple[int, int, int], left: Callable[..., np.ndarray], right: Callable[..., np.ndarray]
) -> None:
    from minitorch.kernels.cpu.product import product

    m, n, k = size
    a, b, bias = left(m, k), right(k, n), _numbers(n)
    _check(product(a, b), a, b)
    _check(product(a, b, bias), a, b, bias)


@pytest.mark.parametrize("lying", [_backwards, _cut_out, _spread])
def test_products_of_views(lying: Callable[..., np.ndarray]) -> None:
    from minitorch.kernels.cpu.product import product

    a, b = lying(50, 70), lying(70, 90)
    _check(product(a, b), a, b)
    a, b = lying(70, 50).T, lying(90, 70).T
    _check(product(a, b), a, b)


@pytest.mark.parametrize("lying", [_numbers, _turned, _sparse, _backwards, _cut_out, _spread])
def test_batches(lying: Callable[..., np.ndarray]) -> None:
    from minitorch.kernels.cpu.product import batched

    a, b = lying(5, 23, 37), lying(5, 37, 41)
    _check(batched(a, b), a, b)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_products(m: int, n: int, k: int) -> None:
    from minitorch.kernels.cpu.product import batched, column_sums, product

    a, b, bias = _numbers(m, k), _numbers(k, n), _numbers(n)
    np.testing.assert_array_equal(product(a, b, bias), np.broadcast_to(bias, (m, n)))
    assert batched(a[None], b[None]).shape == (1, m, n)
    np.testing.assert_array_equal(column_sums(a), a.sum(0))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(1, 18), (1023, 18), (1024, 64), (1025, 83), (5000, 64), (5000, 18), (400_000, 18)],
)
def test_sums_of_many_rows_stay_exact(rows: int, columns: int) -> None:
    from minitorch.kernels.cpu.product import column_sums

    x = np.full((rows, columns), 0.1, np.float32)
    np.testing.assert_allclose(column_sums(x), x.sum(0, dtype="d"), 5e-5)
    x = _numbers(rows % 7000, columns)
    np.testing.assert_allclose(column_sums(x), x.sum(0, dtype="d"), 1e-4, 1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_not_finite_stays_in_its_row_and_column(value: float, turned: bool) -> None:
    from minitorch.kernels.cpu.product import product

    make = _turned if turned else _numbers
    for m, n, k in ((20, 35, 30), (5, 3, 300)):
        a, b = make(m, k), make(k, n)
        a[m - 1, k - 1] = b[2, n - 1] = value
        with np.errstate(invalid="ignore"):
            expected = a.astype("d") @ b.astype("d")
        found = product(a, b)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
        np.testing.assert_allclose(found[:-1, :-1], expected[:-1, :-1], 1e-4, 1e-4)


@pytest.mark.parametrize("columns", [63, 64, 130])
def test_sums_of_columns_do_not_spread_what_is_not_finite(columns: int) -> None:
    from minitorch.kernels.cpu.product import column_sums

    x = _numbers(1100, columns)
    x[1050, columns - 1], x[3, 0] = np.nan, np.inf
    found = column_sums(x)
    assert np.isnan(found[-1])
    assert np.isinf(found[0])
    assert np.isfinite(found[1:-1]).all()


def test_arrays_elsewhere_than_expected_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from minitorch.kernels.cpu import memory

    monkeypatch.setattr(memory, "READABLE", False)
    with pytest.raises(RuntimeError, match=r"keeps the addresses .* MINITORCH_KERNELS=off"):
        memory._check_addresses()


def test_a_product_can_be_added_to_what_is_there() -> None:
    from minitorch.kernels.cpu.panels import Jobs

    for m, n, k in ((100, 60, 30), (7, 9, 700)):
        a, b, c = _numbers(m, k), _turned(k, n), _numbers(m, n + 4)[:, 2:-2]
        before, jobs = c.copy(), Jobs()
        jobs.add_product(c, a, b, c)
        jobs.compute()
        _check(c, a, b, before)


@pytest.mark.parametrize("needs", [(True, True, True), (True, False, True), (False, True, False)])
@pytest.mark.parametrize("lying", [_numbers, _turned, _cut_out, _spread])
def test_gradients_of_a_linear_layer(
    needs: Sequence[bool], lying: Callable[..., np.ndarray]
) -> None:
    from minitorch.kernels.cpu.product import linear_gradients

    g, x, w = lying(130, 50), lying(130, 70), lying(50, 70)
    dx, dw, db = linear_gradients(g, x, w, needs)
    if needs[0]:
        _check(dx, g, w)
    if needs[1]:
        _check(dw, g.T, x)
    if needs[2]:
        np.testing.assert_allclose(db, g.sum(0), 1e-4, 1e-4)
    assert [d is not None for d in (dx, dw, db)] == list(needs)


@pytest.mark.parametrize("lying", [_numbers, _turned])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers_of_many_rows(bias: bool, lying: Callable[..., np.ndarray]) -> None:
    from minitorch.kernels.cpu.product import linear, linear_gradients

    x, w = lying(260, 200), lying(170, 200)
    x, b, needs = x.reshape(2, 130, 200), _numbers(170) if bias else None, (True, True, bias)
    y, g = linear(x, w, b), lying(260, 170)
    np.testing.assert_allclose(y, x @ w.T + (0 if b is None else b), 1e-4, 1e-4)
    dx, dw, db = linear_gradients(g.reshape(2, 130, 170), x, w, needs)
    assert dx.shape == x.shape
    np.testing.assert_allclose(dx.reshape(260, 200), g @ w, 1e-4, 1e-4)
    np.testing.assert_allclose(dw, g.T @ x.reshape(260, 200), 1e-4, 1e-4)
    if bias:
        np.testing.assert_allclose(db, g.sum(0), 1e-4, 1e-4)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    from minitorch.kernels.cpu.product import batched, linear_gradients, product

    a, b, bias = _numbers(300, 500), _turned(500, 333), _numbers(333)
    c, w = _numbers(20, 40, 300), _numbers(500, 70)

    def call() -> list[np.ndarray]:
        gradients = linear_gradients(a, a[:, :70], w, (True, True, True))
        return [product(a, b, bias), batched(c, c.swapaxes(1, 2)), *gradients]

    results = []
    for number in (1, 2, 4):
        mt.set_num_threads(number)
        load("product")
        results.append(call())
    for other in results[1:]:
        for x, y in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(x, y)
