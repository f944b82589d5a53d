"""Compiled attention against its definition in float64: sizes, strides, masks, NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import load
from minitorch.ops.attention import attention_op

pytestmark = pytest.mark.skipif(load("attention") is None, reason="there are no compiled bodies")

# Leading axes, rows, keys, widths of queries and of values.
SIZES = [
    ((2, 3), 64, 64, 32, 32),
    ((1, 2), 1, 1, 1, 1),
    ((2,), 5, 7, 3, 2),
    ((1, 1), 50, 300, 40, 17),  # more keys than are multiplied at a time
    ((1, 2), 130, 20, 16, 33),
    ((), 47, 49, 300, 8),
    ((1, 1), 20, 4100, 4, 4),  # blocks of few rows
]
TOLERANCE = 2e-5


def _made(lead: tuple[int, ...], *sizes: int) -> list[np.ndarray]:
    rows, keys, width, out_width = sizes
    draw = np.random.default_rng(0).standard_normal
    shapes = (rows, width), (keys, width), (keys, out_width)
    return [draw((*lead, *shape)) for shape in shapes]


def _results(
    arrays: list[Any], mask: Any, causal: bool, op: Any = attention_op, **options: Any
) -> list[Any]:
    """The result and the gradients of a weighted sum of it."""
    xs = [
        x.requires_grad_() if isinstance(x, mt.Tensor) else mt.tensor(x).requires_grad_()
        for x in arrays
    ]
    y = op(*xs, mask, scale=0.3, causal=causal, **options)
    weights = mt.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
    return [y.detach(), *mt.autograd.grad((y * weights).sum(), xs)]


def _compare(
    arrays: list[np.ndarray], mask: Any = None, causal: bool = False, **options: Any
) -> None:
    found = _results([a.astype(np.float32) for a in arrays], mask, causal, **options)
    if mask is not None and mask.dtype is mt.float32:
        mask = mask.double()
    wanted = _results(arrays, mask, causal, attention_op.definition, **options)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype is mt.float32
        size = max(1.0, float(np.nanmax(np.abs(b.numpy()), initial=0)))
        np.testing.assert_allclose(a.numpy(), b.numpy(), TOLERANCE, TOLERANCE * size)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values_and_gradients(sizes: Any, causal: bool) -> None:
    lead, *others = sizes
    _compare(_made(lead, *others), causal=causal)


@pytest.mark.parametrize("shape", [(70, 41), (1, 41), (70, 1), (2, 1, 1, 41), (1, 3, 70, 41)])
@pytest.mark.parametrize("kind", ["bool", "float", "both"])
def test_masks(shape: tuple[int, ...], kind: str) -> None:
    mt.manual_seed(1)
    mask = mt.rand(*shape) < 0.6 if kind == "bool" else mt.randn(*shape)
    if kind == "both":  # with rows that may attend nowhere, and causal
        mask = mt.where(mask > 0, mask, -np.inf)
    _compare(_made((2, 3), 70, 41, 24, 16), mask, kind == "both")


@pytest.mark.parametrize("shape", [(3, 2, 9, 7), (2, 1, 2, 9, 7), (2, 3, 1, 1, 7)])
def test_masks_of_more_axes(shape: tuple[int, ...]) -> None:
    mt.manual_seed(1)
    _compare(_made((2, 3, 2), 9, 7, 8, 8), mt.randn(*shape))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3)])
def test_dropout(lead: tuple[int, ...], masked: bool, causal: bool) -> None:
    mt.manual_seed(4)
    keep = np.random.default_rng(5).random((*lead, 70, 41)) < 0.8
    mask = mt.rand(70, 41) < 0.7 if masked else None
    options = {"keep": keep, "keep_scale": 1.25}
    _compare(_made(lead, 70, 41, 24, 16), mask, causal, **options)


@pytest.mark.parametrize("causal", [False, True])
def test_strides(causal: bool) -> None:
    draw = mt.Generator().manual_seed(2)
    whole = mt.randn(2, 30, 3, 4, 24, generator=draw)
    parts = [whole[:, :, i].transpose(1, 2) for i in range(3)]
    turned = [mt.randn(2, 4, 24, 30, generator=draw).transpose(2, 3) for _ in range(3)]
    apart = [mt.randn(2, 4, 30, 48, generator=draw)[..., ::2] for _ in range(3)]
    for arrays in (parts, turned, apart):
        copies = [mt.tensor(a.numpy()) for a in arrays]
        for a, b in zip(
            *(_results([x.detach() for x in xs], None, causal) for xs in (arrays, copies)),
            strict=True,
        ):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_stays_where_it_is_seen(number: float) -> None:
    q, k, v = _made((1, 1), 40, 40, 8, 8)
    k[0, 0, 20] = number
    y, dq, dk, dv = (
        a.numpy() for a in _results([a.astype(np.float32) for a in (q, k, v)], None, True)
    )
    for a, rows in ((y, 20), (dq, 18)):  # rows of a tile see the same numbers
        assert np.isfinite(a[0, 0, :rows]).all()
        assert np.isnan(a[0, 0, 20:]).any()
    assert np.isnan(dk).any()
    assert np.isnan(dv).any()


def test_hidden_keys_have_no_weight_whatever_they_are() -> None:
    q, k, v = (a.astype(np.float32) for a in _made((1, 2), 9, 12, 8, 8))
    seen = mt.arange(12) < 10
    wanted = _results([q, k[..., :10, :].copy(), v[..., :10, :].copy()], None, False)
    k[..., 10:, :] = np.inf
    found = _results([q, k, v], seen[None], False)
    np.testing.assert_allclose(found[0].numpy(), wanted[0].numpy(), 1e-5, 1e-6)
    assert not found[2].numpy()[..., 10:, :].any()


def test_as_exact_as_sums_in_float32_are() -> None:
    arrays = _made((2, 2), 128, 128, 64, 64)
    found = _results([a.astype(np.float32) for a in arrays], None, True)
    wanted = _results(arrays, None, True, attention_op.definition)
    for a, b in zip(found, wanted, strict=True):
        error = a.numpy() - b.numpy()
        assert np.sqrt(np.square(error).mean()) < 1e-6 * np.sqrt(np.square(b.numpy()).mean())
