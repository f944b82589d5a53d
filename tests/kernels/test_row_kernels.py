"""Kernels over rows and elements, against what they stand for in float64."""

import itertools

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import loader
from minitorch.nn import functional as F

pytest.importorskip("numba")

SHAPES = [(1, 1), (3, 5), (33, 70), (700, 96), (9000, 8), (0, 4)]
UNARY = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "layer_norm with a weight": lambda x: F.layer_norm(x, x.shape[-1:], x[0] * 0 + 2),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], None, 1e-5),
    "rms_norm with a weight": lambda x: F.rms_norm(x, x.shape[-1:], x[0] * 0 + 2, 1e-5),
    "layer_norm with a bias": lambda x: F.layer_norm(x, x.shape[-1:], None, x[0] * 0 + 3),
}


def _values(shape, seed=0, scale=3.0):
    return np.random.default_rng(seed).normal(size=shape, scale=scale)


def _with_gradient(function, values, dtype, layout="rows"):
    """The result and the gradient for arrays that lie as `layout` says."""
    x = mt.tensor(values, dtype=dtype)
    if layout == "columns":
        x = mt.tensor(values.T.copy(), dtype=dtype).T
    if layout == "every second":
        x = mt.tensor(np.repeat(values, 2, axis=-1), dtype=dtype)[..., ::2]
    x = x.detach().requires_grad_()
    y = function(x)
    weights = mt.tensor(_values(tuple(y.shape), 1, 1.0), dtype=dtype)
    (g,) = mt.autograd.grad((y * weights).sum(), x)
    return y.detach().numpy(), g.numpy()


def _plainly(function, values, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(loader, "load", lambda family: None)
        return _with_gradient(function, values, mt.float64)


@pytest.mark.parametrize("layout", ["rows", "columns", "every second"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
def test_values_and_gradients(name, shape, dtype, layout, monkeypatch):
    if "weight" in name or "bias" in name:
        shape = (max(shape[0], 1), shape[1])
    values = _values(shape).astype(np.float32 if dtype == mt.float32 else np.float64)
    tolerance = 3e-6 if dtype == mt.float32 else 1e-12
    wanted = _plainly(UNARY[name], values, monkeypatch)
    found = _with_gradient(UNARY[name], values, dtype, layout)
    for a, b in zip(found, wanted, strict=True):
        scale = np.abs(b).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=30 * tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh"])
def test_activations_far_out(name, monkeypatch):
    values = np.concatenate([np.linspace(-150, 150, 30001), [0.0, -0.0]])[None]
    values = values.astype(np.float32)
    wanted = _plainly(UNARY[name], values, monkeypatch)
    for a, b in zip(_with_gradient(UNARY[name], values, mt.float32), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["silu", "gelu", "gelu_tanh", "softmax", "log_softmax", "rms_norm"]
)
@pytest.mark.parametrize("place", [0, 40, 77])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity(name, place, special, monkeypatch):
    values = _values((40, 78)).astype(np.float32)
    values[7, place] = special
    wanted = _plainly(UNARY[name], values, monkeypatch)[0]
    found = _with_gradient(UNARY[name], values, mt.float32)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", UNARY)
def test_bits_do_not_depend_on_threads(name):
    values = _values((701, 96)).astype(np.float32)
    before = mt.get_num_threads()
    try:
        found = []
        for number in (1, 2, 4):
            mt.set_num_threads(number)
            found.append(_with_gradient(UNARY[name], values, mt.float32))
    finally:
        mt.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


OPTIONS = list(itertools.product((None, "weight"), (-100, 1), ("mean", "sum", "none"), (0.0, 0.1)))


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize(("weight", "ignored", "reduction", "smoothing"), OPTIONS)
def test_cross_entropy(weight, ignored, reduction, smoothing, dtype, monkeypatch):
    values, rng = _values((300, 17)).astype(np.float32), np.random.default_rng(2)
    values[::50, 3] = np.inf
    targets = rng.integers(0, 17, 300)
    targets[::50] = 1
    if ignored != 1:
        values[::50, 3] = 4
    factors = rng.random(17)

    def loss(x):
        w = None if weight is None else mt.tensor(factors, dtype=x.dtype)
        return F.cross_entropy(
            x,
            mt.tensor(targets),
            w,
            ignore_index=ignored,
            reduction=reduction,
            label_smoothing=smoothing,
        )

    wanted = _plainly(loss, values, monkeypatch)
    for a, b in zip(_with_gradient(loss, values, dtype), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


LOSSES = {
    "log_softmax": lambda x, t: x.log_softmax(-1),
    "cross_entropy": F.cross_entropy,
    "each": lambda x, t: F.cross_entropy(x, t, reduction="none"),
    "smoothed": lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
    "weighted": lambda x, t: F.cross_entropy(x, t, x[0].detach() * 0 + 2, label_smoothing=0.2),
    "ignored": lambda x, t: F.cross_entropy(x, t, ignore_index=0),
}


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize("rows", [4, 900])
@pytest.mark.parametrize("name", LOSSES)
def test_large_logits_are_no_less_exact(name, rows, dtype):
    target = mt.tensor(np.arange(rows) % 3)
    small = np.random.default_rng(0).integers(-3, 4, (rows, 3)).astype(np.float64)
    y, g = _with_gradient(lambda x: LOSSES[name](x, target), small, mt.float64)
    # Whole numbers around 2**20, where float32 has eighths.
    y_large, g_large = _with_gradient(lambda x: LOSSES[name](x, target), small + 2**20, dtype)
    np.testing.assert_allclose(y_large, y, 3e-6, 1e-6)
    np.testing.assert_allclose(g_large, g, 3e-6, 1e-6)


@pytest.mark.parametrize("width", [0, 1, 3, 64, 130])
def test_rows_of_a_table(width, monkeypatch):
    index = mt.tensor(np.random.default_rng(3).integers(0, 9, (40, 50)))

    def look_up(table):
        return F.embedding(index, table)

    values = _values((9, width))
    wanted = _plainly(look_up, values, monkeypatch)
    for a, b in zip(_with_gradient(look_up, values, mt.float32), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
