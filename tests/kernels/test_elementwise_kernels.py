"""Compiled ReLU and batch_norm against their plain bodies in float64, for any threads."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import loader
from minitorch.nn import functional as F
from minitorch.nn.functional import norm as functional_norm
from minitorch.ops import norm

SHAPES = [(3, 5, 300), (40, 70), (65, 33, 8, 8), (1, 40, 200), (64, 2, 97), (9, 1, 5000)]


def _grads(f: Callable[..., Any], arrays: list[np.ndarray], dtype: Any) -> list[np.ndarray]:
    leaves = [mt.tensor(a, dtype=dtype).requires_grad_() for a in arrays]
    y = f(*leaves)
    weight = mt.linspace(-1, 1, y.numel(), dtype=dtype).reshape(y.shape)
    return [a.detach().numpy() for a in (y, *mt.autograd.grad(y, leaves, weight))]


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype("f4")


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_relu_has_the_bits_of_its_plain_body(
    shape: tuple[int, ...], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = _normal(*shape)
    values.reshape(-1)[:4] = np.nan, np.inf, -np.inf, 0
    result = _grads(F.relu, [values], dtype)
    monkeypatch.setattr(loader, "load", lambda family: None)
    for a, b in zip(result, _grads(F.relu, [values], dtype), strict=True):
        np.testing.assert_array_equal(a, b)


def test_relu_of_a_view_with_steps() -> None:
    x = mt.tensor(_normal(90, 100))
    np.testing.assert_array_equal(F.relu(x.T).numpy(), np.maximum(x.numpy().T, 0))


def test_relu_takes_a_gradient_that_is_the_same_for_many() -> None:
    x = mt.tensor(_normal(65, 33, 8, 8)).requires_grad_()
    F.relu(x).mean((2, 3)).square().sum().backward()
    g = np.broadcast_to(F.relu(x).mean((2, 3), keepdim=True).detach().numpy() / 32, x.shape)
    np.testing.assert_allclose(x.grad.numpy(), np.where(x.detach().numpy() > 0, g, 0), rtol=1e-6)


def _batch_norm(training: bool) -> Callable[..., Any]:
    def norm(x: Any, weight: Any, bias: Any) -> Any:
        c = x.shape[1]
        stats = [mt.full((c,), v, dtype=x.dtype) for v in (0.25, 1.5)]
        return F.batch_norm(x, *stats, weight, bias, training)

    return norm


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_agrees_with_its_plain_body(
    shape: tuple[int, ...], training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _normal(*shape) * 3
    x += 20 * np.arange(len(x), dtype="f4").reshape(-1, *[1] * (x.ndim - 1))  # images that differ
    arrays = [x, _normal(shape[1]), _normal(shape[1])]
    result = _grads(_batch_norm(training), arrays, mt.float32)
    monkeypatch.setattr(loader, "load", lambda family: None)
    expected = _grads(_batch_norm(training), arrays, mt.float64)
    for a, b in zip(result, expected, strict=True):
        assert np.abs(a - b).max() <= 2e-5 * max(1, np.abs(b).max())


@pytest.mark.parametrize("momentum", [0.1, 1.0, 0.0])
@pytest.mark.parametrize("step", [1, 2])
def test_running_statistics_move_as_those_of_the_plain_body(
    momentum: float, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, results = mt.tensor(_normal(9, 6, 500) + 3), []
    for plain in (False, True):
        mean, var = (mt.full((6 * step,), v)[::step] for v in (0.25, 1.5))
        for _ in range(2):
            centre, spread = norm.statistics(x.numpy())
            if plain:
                monkeypatch.setattr(norm, "move_statistics", lambda *_: False)
            before = mean._version[0] if mean._version else 0
            functional_norm._move(mean, var, x.numpy(), centre, spread, momentum)
            assert mean._version[0] == before + 1
        results.append((mean.numpy(), var.numpy()))
    for moved, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(moved, expected)
        assert not np.array_equal(moved, np.full(6, moved[0])) or momentum == 0


GROUPED: dict[str, Callable[..., Any]] = {
    "group_norm": lambda x, w, b: F.group_norm(x, math.gcd(x.shape[1], 6), w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    "group_norm without weights": lambda x, w, b: F.group_norm(x, 1) + (w + b).sum(),
    "instance_norm of columns": lambda x, w, b: F.instance_norm(x.transpose(0, 1)) + w[0] + b[0],
}


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("shape", [(3, 6, 300), (65, 33, 8, 8), (1, 40, 200), (5, 1, 2, 5000)])
def test_norms_of_groups_agree_with_their_plain_bodies(
    shape: tuple[int, ...], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _normal(*shape) * 3
    x += 20 * np.arange(len(x), dtype="f4").reshape(-1, *[1] * (x.ndim - 1))
    arrays = [x, _normal(shape[1]), _normal(shape[1])]
    result = _grads(GROUPED[name], arrays, mt.float32)
    monkeypatch.setattr(loader, "load", lambda family: None)
    expected = _grads(GROUPED[name], arrays, mt.float64)
    for a, b in zip(result, expected, strict=True):
        assert np.abs(a - b).max() <= 2e-5 * max(1, np.abs(b).max())


def test_norms_of_groups_keep_numbers_that_are_not_finite_in_their_group() -> None:
    x = _normal(8, 6, 100)
    x[3, 2, 5], x[4, 5, 1] = np.inf, np.nan
    y = F.group_norm(mt.tensor(x), 3).numpy().reshape(8, 3, -1)
    wrong = {(int(i), int(k)) for i, k in np.argwhere(~np.isfinite(y).all(-1))}
    assert wrong == {(3, 1), (4, 2)}


def test_norms_of_groups_of_equal_and_of_large_numbers() -> None:
    x = mt.full((4, 2, 900), 1234.5)
    assert (F.instance_norm(x) == 0).all()
    values = _normal(4, 2, 900) + 1e4
    y = F.instance_norm(mt.tensor(values)).numpy()
    wanted = values.astype("f8") - values.astype("f8").mean(-1, keepdims=True)
    wanted /= np.sqrt((wanted * wanted).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, wanted, rtol=1e-3, atol=1e-3)


def test_statistics_keep_numbers_that_are_not_finite_in_their_channel() -> None:
    x = _normal(8, 6, 100)
    x[3, 2, 5] = np.inf
    y = F.batch_norm(mt.tensor(x), None, None, training=True).numpy()
    assert [bool(np.isfinite(y[:, c]).all()) for c in range(6)] == [c != 2 for c in range(6)]


def test_nan_does_not_reach_the_gradient_of_the_bias() -> None:
    x, bias = _normal(4, 3, 200), mt.zeros(3, requires_grad=True)
    x[1, 2, 7] = np.nan
    F.batch_norm(mt.tensor(x), None, None, None, bias, training=True).sum().backward()
    np.testing.assert_array_equal(bias.grad.numpy(), 800)


@pytest.mark.parametrize("f", [F.relu, lambda x: F.batch_norm(x, None, None, training=True)])
def test_bits_do_not_depend_on_the_number_of_threads(f: Callable[..., Any]) -> None:
    before, results = mt.get_num_threads(), []
    try:
        for number in (1, 2, 4):
            mt.set_num_threads(number)
            results.append(_grads(f, [_normal(32, 37, 10, 11)], mt.float32))
    finally:
        mt.set_num_threads(before)
    for others in results[1:]:
        for a, b in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [3, 10_000])
def test_relu_hands_a_gradient_on_at_nan_as_pytorch_does(size: int) -> None:
    x = mt.full((size,), float("nan"), requires_grad=True)
    mt.relu(x).sum().backward()
    assert x.grad is not None
    assert (x.grad == 1).all()
    doubled = mt.relu(x)
    (slope,) = mt.autograd.grad(doubled.sum(), x, create_graph=True)
    assert (slope == 1).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(("size", "window"), [(4, 2), (6, 3), (12, 3), (16, 8)])
def test_averages_of_other_windows_stay_finite(bad: float, size: int, window: int) -> None:
    x = mt.ones(1, 1, size, size)
    x[0, 0, 0, 0] = bad
    y = mt.nn.functional.avg_pool2d(x, window)
    assert not y[0, 0, 0, 0].isfinite()
    assert y.isfinite().sum() == y.numel() - 1
