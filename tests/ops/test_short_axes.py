"""Reductions along short axes, and to narrow lines, give what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.ops import short_axes

DTYPES = {"f4": np.float32, "f8": np.float64}
SHAPES = [((2100, n), (1,)) for n in range(2, 16)] + [
    ((30, 40, 5), (2,)),
    ((1200, 3, 4), (1, 2)),
    ((1200, 3, 4), (-1, -2)),
]
WIDE = [((70_000, 8), (0,)), ((64, 512, 3), (0, 1)), ((40_000, 2), (0,)), ((8192, 100), (0,))]


def _values(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + shape[-1])
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
    values.reshape(-1)[:40] = -0.0
    return values.astype(dtype)


def _positive(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis % len(shape) for axis in axes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_sums_have_the_bits_of_numpy(shape: Any, axes: Any, keepdim: bool, dtype: str) -> None:
    a = _values(shape, DTYPES[dtype])
    a.reshape(-1)[500:502] = np.inf, np.nan
    want = np.add.reduce(a, axis=axes, keepdims=keepdim)
    got = short_axes.sums(a, _positive(shape, axes), keepdim)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.view(f"u{got.itemsize}"), want.view(f"u{got.itemsize}"))
    np.testing.assert_array_equal(mt.tensor(a).sum(axes, keepdim).numpy(), want)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize(("shape", "axes"), [*SHAPES[::5], *WIDE])
def test_extrema(shape: Any, axes: Any, dtype: str, name: str) -> None:
    a = _values(shape).astype(dtype) if dtype[0] == "f" else (_values(shape) * 0 + 3).astype(dtype)
    a.reshape(-1)[::7] += np.arange(len(a.reshape(-1)[::7]), dtype=dtype)
    if dtype[0] == "f":
        a.reshape(-1)[::9001] = np.nan
    for keepdim in (False, True):
        want = getattr(np, name)(a, axis=axes, keepdims=keepdim)
        assert short_axes.extrema(a, _positive(shape, axes), keepdim, name=name) is not None
        got = getattr(mt, f"a{name}")(mt.tensor(a), axes, keepdim).numpy()
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 5, 300), 1), ((7, 2000), 0), ((2, 32, 16, 17), 1)]
)
def test_places(shape: Any, axis: int, dtype: str, name: str) -> None:
    a = np.random.default_rng(3).integers(-4, 4, shape).astype(dtype)  # with equal ones
    for keepdim in (False, True):
        want = getattr(np, name)(a, axis=axis, keepdims=keepdim)
        assert short_axes.places(a, axis, keepdim, name=name) is not None
        got = getattr(mt, name)(mt.tensor(a), axis, keepdim).numpy()
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, want)


def test_places_of_nan_are_numpys() -> None:
    a = _values((7, 2000))
    a[3:6, 4] = np.nan
    np.testing.assert_array_equal(mt.tensor(a).argmax(0).numpy(), a.argmax(0))


@pytest.mark.parametrize(
    ("shape", "axes"), [((2100, 16), (1,)), ((5, 3), (1,)), ((300, 3, 3), (1,)), ((3, 4000), (0,))]
)
def test_what_is_left_to_numpy(shape: Any, axes: Any) -> None:
    a = _values(shape)
    assert short_axes.sums(a, axes, False) is None
    assert short_axes.sums(a.astype("i8"), axes, False) is None
    assert short_axes.sums(a.T.copy().T, axes, False) is None
    np.testing.assert_allclose(mt.tensor(a).sum(axes).numpy(), a.sum(axes), rtol=1e-4)


def test_gradients_come_through() -> None:
    x = mt.tensor(_values((2100, 5))).requires_grad_()
    (x.sum(1) * 2 + x.amax(1, True)[:, 0]).sum().backward()
    want = 2 + (x.detach().numpy() == x.detach().numpy().max(1, keepdims=True)).astype("f4")
    np.testing.assert_array_equal(x.grad.numpy()[40:], want[40:])
