"""Compiled elementwise operations against what they stand for in float64, over all of float32."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import loader
from minitorch.nn import functional as F

pytest.importorskip("numba")

ULPS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (mt.exp, np.exp),
    "expm1": (mt.expm1, np.expm1),
    "log": (mt.log, np.log),
    "log1p": (mt.log1p, np.log1p),
    "sqrt": (mt.sqrt, np.sqrt),
    "tanh": (mt.tanh, np.tanh),
    "erf": (mt.erf, np.vectorize(math.erf)),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": mt.sigmoid,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 1.3),
    "softplus": lambda x: F.softplus(x, 1.5, 12.0),
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.75),
}


def _every_float(step: int) -> np.ndarray:
    """Numbers of every exponent and sign, subnormal and infinite ones, and NaN."""
    bits = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    near = np.float32([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.7, -103.9])
    return np.concatenate([bits.view(np.float32), near])


@pytest.mark.parametrize("name", ULPS)
def test_values_are_right_to_two_units_in_the_last_place(name: str) -> None:
    function, exact = ULPS[name]
    x = _every_float(60013)
    with np.errstate(all="ignore"):
        wanted = exact(x.astype(np.float64))
        nearest = wanted.astype(np.float32)
    found = function(mt.tensor(x)).numpy()
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(found[~finite], nearest[~finite])
    unit = np.spacing(np.abs(nearest[finite])).astype(np.float64)
    assert (np.abs(found[finite] - wanted[finite]) / unit).max() <= 2


def _grads(function: Callable[[Any], Any], values: np.ndarray, dtype: Any) -> list[np.ndarray]:
    x = mt.tensor(values, dtype=dtype).requires_grad_()
    y = function(x)
    (g,) = mt.autograd.grad(y, x, mt.linspace(0.5, 1.5, values.size, dtype=dtype))
    return [y.detach().numpy(), g.numpy()]


@pytest.mark.parametrize("name", [*ULPS, *OTHERS])
def test_values_and_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = OTHERS.get(name) or ULPS[name][0]
    x = np.concatenate([np.linspace(-30, 30, 5001), [0.0, -0.0, 3, -3, -0.5, 0.75, 150, -150]])
    x = np.concatenate([x, [np.nan, np.inf, -np.inf]]).astype(np.float32)
    found = _grads(function, x, mt.float32)
    monkeypatch.setattr(loader, "load", lambda family: None)
    with np.errstate(all="ignore"):
        wanted = [a.astype(np.float32) for a in _grads(function, x, mt.float64)]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=4e-7)


def test_arrays_with_steps_and_writes_in_place() -> None:
    x = mt.rand(90, 100) + 0.5
    for name in ("exp", "log", "sqrt", "tanh"):
        y = getattr(mt, name)(x)
        np.testing.assert_array_equal(getattr(x.clone(), f"{name}_")().numpy(), y.numpy())
        np.testing.assert_allclose(getattr(mt, name)(x.T).numpy(), y.numpy().T, rtol=1e-6)


@pytest.mark.parametrize("which", ["arrays", "number first", "number last", "broadcast", "columns"])
def test_where_takes_the_bits_of_what_it_chooses(which: str) -> None:
    x, y = _every_float(600011).reshape(-1), _every_float(600011)[::-1].copy()
    x, y = np.tile(x, 2)[:14000].reshape(70, 200), np.tile(y, 2)[:14000].reshape(70, 200)
    condition = np.random.default_rng(0).random(x.shape) < 0.5
    a, b = mt.tensor(x), mt.tensor(y)
    c = mt.tensor(condition)
    if which == "columns":
        (a, b, c), (x, y, condition) = (a.T, b.T, c.T), (x.T, y.T, condition.T)
    if which == "number first":
        a, x = mt.tensor(2.5), np.float32(2.5)
    if which == "number last":
        b, y = mt.tensor(2.5), np.float32(2.5)
    if which == "broadcast":
        b, y = b[:1], y[:1]
    a.requires_grad_()
    b = b.detach().requires_grad_()
    found = mt.where(c, a, b)
    wanted = np.where(condition, x, y)
    assert found.detach().numpy().tobytes() == wanted.tobytes()
    g = mt.full(found.shape, np.inf)
    for d, inside, like in zip(mt.autograd.grad(found, [a, b], g), (c, ~c), (a, b), strict=True):
        expected = np.where(inside.numpy(), np.float32(np.inf), np.float32(0))
        if like.ndim and like.shape == found.shape:
            np.testing.assert_array_equal(d.numpy(), expected)
        else:
            assert d.shape == like.shape
            assert d.isinf().all()
