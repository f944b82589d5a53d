"""Compiled convolution and pooling against their plain bodies in float64, for any threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import engine
from minitorch.kernels import load, loader
from minitorch.nn import functional as F

# images, channels, size, outputs, kernel, stride, padding, dilation, groups
CASES = {
    "plain": (3, 16, (9, 7), 24, (3, 3), 1, 1, 1, 1),
    "several images in a part": (33, 16, (4, 4), 16, (3, 3), 1, 1, 1, 1),
    "bands of rows": (1, 64, (56, 20), 40, (3, 3), 1, 1, 1, 1),
    "bands and stride": (1, 96, (40, 40), 16, (3, 3), 2, 1, 1, 1),
    "blocks of columns shared out": (1, 48, (9, 9), 80, (3, 3), 1, 0, 1, 1),
    "stride beyond the window": (2, 24, (12, 12), 16, (2, 2), 3, 0, 1, 1),
    "pointwise": (3, 24, (9, 7), 20, (1, 1), 1, 0, 1, 1),
    "pointwise, places of all images together": (6, 200, (3, 3), 150, (1, 1), 1, 0, 1, 1),
    "pointwise, one place": (9, 64, (1, 1), 48, (1, 1), 1, 0, 1, 1),
    "pointwise padding": (2, 24, (11, 18), 20, (1, 1), 1, 1, 1, 1),
    "pointwise strides": (2, 24, (21, 20), 20, (1, 1), (2, 3), 0, 1, 1),
    "pointwise stride, odd lines": (2, 24, (20, 35), 20, (1, 1), 2, 0, 1, 1),
    "pointwise stride and padding": (2, 24, (20, 35), 20, (1, 1), 2, 2, 1, 1),
    "pointwise stride": (7, 64, (8, 8), 32, (1, 1), 2, 0, 1, 1),
    "padding beyond the window": (2, 24, (8, 9), 8, (3, 3), 1, 4, 1, 1),
    "groups": (4, 24, (14, 10), 36, (3, 3), 2, 1, 1, 3),
    "dilation": (2, 24, (17, 15), 17, (3, 2), 2, 2, 3, 1),
    "tiles": (9, 32, (16, 16), 32, (3, 3), 1, 1, 1, 1),
    "tiles that reach over the edge": (40, 37, (9, 14), 45, (3, 3), 1, 1, 1, 1),
    "tiles, all weights at once": (6, 136, (20, 18), 72, (3, 3), 1, 0, 1, 1),
    "tiles, in several blocks": (5, 96, (88, 84), 100, (3, 3), 1, 1, 1, 1),
    "tiles of an image smaller than its padding": (99, 32, (3, 3), 32, (3, 3), 1, 4, 1, 1),
    "large window": (1, 3, (32, 32), 7, (7, 7), 2, 3, 1, 1),
    "volume": (2, 8, (5, 6, 7), 17, (3, 2, 3), 1, 1, 1, 1),
    "volume stride": (2, 8, (8, 8, 8), 16, (3, 3, 3), 2, 1, 1, 2),
    "series": (4, 16, (50,), 20, (9,), 2, 4, 1, 1),
    "many weights": (3, 128, (5, 5), 352, (3, 3), 1, 1, 1, 1),
    "many weights, stride": (2, 160, (9, 8), 288, (3, 3), 2, 1, 1, 1),
    "many pointwise weights": (5, 640, (5, 7), 640, (1, 1), 1, 0, 1, 1),
    "many pointwise weights, stride": (3, 640, (5, 7), 640, (1, 1), 2, 1, 1, 1),
    "depthwise": (5, 12, (14, 9), 12, (3, 3), 1, 1, 1, 12),
    "depthwise stride": (3, 12, (15, 18), 12, (5, 3), (2, 3), 2, 1, 12),
    "depthwise stride, odd lines": (3, 12, (18, 15), 12, (3, 3), 2, 1, 1, 12),
    "depthwise multiplier": (2, 12, (11, 13), 36, (3, 4), 2, 1, 1, 12),
    "depthwise dilation": (2, 12, (17, 15), 12, (3, 2), (1, 2), 2, (2, 3), 12),
    "depthwise stride beyond the window": (2, 12, (12, 13), 12, (2, 2), 3, 0, 1, 12),
    "depthwise padding beyond the window": (2, 12, (10, 9), 12, (3, 3), 2, 4, 1, 12),
    "depthwise large window": (70, 12, (7, 7), 12, (7, 7), 1, 3, 1, 12),
    "few channels": (3, 3, (15, 14), 20, (3, 3), 1, 1, 1, 1),
    "few channels, large window and stride": (2, 2, (33, 30), 20, (7, 5), (2, 3), 3, 1, 1),
    "few outputs": (2, 40, (30, 9), 5, (3, 3), 1, 1, 1, 1),
    "many planes to few": (1, 24, (70, 66), 2, (3, 2), 1, 1, (1, 2), 1),
    "depthwise series": (3, 16, (50,), 32, (9,), 2, 4, 1, 16),
}


def _convolve(case: Any, dtype: Any, transposed: bool = False) -> list[Any]:
    n, c, size, o, kernel, stride, padding, dilation, groups = case
    rng = np.random.default_rng(7)
    lead = (c, o // groups) if transposed else (o, c // groups)
    shapes = [(n, c, *size), (*lead, *kernel), (o,)]
    leaves = [mt.tensor(rng.standard_normal(s).astype("f4"), dtype=dtype) for s in shapes]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    name = f"conv_transpose{len(size)}d" if transposed else f"conv{len(size)}d"
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = getattr(F, name)(*leaves, **options)
    weight = mt.tensor(rng.standard_normal(y.shape).astype("f4"), dtype=dtype)
    grads = mt.autograd.grad((y * weight).sum(), leaves)
    return [a.detach().numpy() for a in (y, *grads)]


def _close(results: list[Any], expected: list[Any]) -> None:
    for a, b in zip(results, expected, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_convolution_agrees_with_its_plain_body(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _convolve(case, mt.float32)
    monkeypatch.setattr(loader, "load", lambda family: None)
    _close(result, _convolve(case, mt.float64))


PLANEWISE = [name for name in CASES if "depthwise" in name or "few" in name]


@pytest.mark.parametrize("name", PLANEWISE)
def test_planewise_convolution_agrees_in_float64(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _convolve(CASES[name], mt.float64)
    monkeypatch.setattr(loader, "load", lambda family: None)
    for a, b in zip(result, _convolve(CASES[name], mt.float64), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())


TRANSPOSED = "plain, bands and stride, groups, volume, tiles, depthwise stride"


@pytest.mark.parametrize("name", TRANSPOSED.split(", "))
def test_transposed_convolution_agrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, c, size, o, kernel, stride, _, dilation, groups = CASES[name]
    case = (n, c, size, o, kernel, stride, 1, dilation, groups)
    result = _convolve(case, mt.float32, transposed=True)
    monkeypatch.setattr(loader, "load", lambda family: None)
    _close(result, _convolve(case, mt.float64, transposed=True))


THREADED = "several images in a part, bands of rows, groups, tiles, tiles that reach over the edge"


@pytest.mark.parametrize(
    "name",
    [
        *(*THREADED.split(", "), "tiles, all weights at once", "many weights", "few outputs"),
        *("pointwise", "pointwise stride, odd lines", "many pointwise weights"),
    ],
)
def test_convolution_has_the_same_bits_for_any_number_of_threads(name: str) -> None:
    before = mt.get_num_threads()
    results = []
    try:
        for number in (1, 2, 4):
            mt.set_num_threads(number)
            results.append(_convolve(CASES[name], mt.float32))
    finally:
        mt.set_num_threads(before)
    for others in results[1:]:
        for a, b in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(a, b)


def test_convolution_does_not_spread_numbers_that_are_not_finite() -> None:
    if load("correlate") is None:
        pytest.skip("kernels are off")
    x = mt.zeros(1, 16, 12, 12)
    x[0, 3, 5, 5] = float("nan")
    y = F.conv2d(x, mt.ones(16, 16, 3, 3), padding=1)
    assert int(y.isnan().sum()) == 16 * 9


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["image", "weight", "gradient"])
def test_tiles_do_not_spread_numbers_that_are_not_finite(value: float, which: int) -> None:
    arrays = [np.ones(shape, "f4") for shape in ((2, 32, 32, 32), (32, 32, 3, 3), (2, 32, 32, 32))]
    arrays[which][0, 3, 1, 1] = value
    tensors = [mt.tensor(a) for a in arrays]
    x, weight = (t.requires_grad_() for t in tensors[:2])
    y = F.conv2d(x, weight, padding=1)
    dx, dw = mt.autograd.grad(y, (x, weight), tensors[2])
    spoilt = tuple(int((~t.isfinite()).sum()) for t in (y, dx, dw))
    # A place of an image meets 9 weights of each output; a weight in the middle meets all places.
    few, all_places = 32 * 9, 2 * 32 * 32
    assert spoilt == [(few, 0, few), (all_places, all_places, 0), (0, few, few)][which]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_depthwise_weights_see_only_places_under_their_windows(value: float) -> None:
    x, g = (mt.ones(2, 8, 12, 12) for _ in range(2))
    x[0, 3, 5, 0] = value  # the last column of the window sees it from outside of the image
    weight = mt.ones(8, 1, 3, 3).requires_grad_()
    y = F.conv2d(x, weight, padding=1, groups=8)
    (dw,) = mt.autograd.grad(y, weight, g)
    spoilt = ~dw.isfinite()
    assert spoilt[3, 0].tolist() == [[True, True, False]] * 3
    assert int(spoilt.sum()) == 6
    assert int((~y.isfinite()).sum()) == 6
    assert bool(dw[spoilt].isnan().all()) == (value != value)


# size, kernel, stride, padding, dilation
POOLS = {
    "pairs": ((9, 13), (2, 2), 2, 0, 1),
    "two": ((10, 12), (2, 2), 2, 0, 1),
    "three": ((11, 9), (3, 3), 2, 1, 1),
    "overlapping": ((9, 9), (3, 2), 1, 1, 1),
    "dilated": ((12, 12), (2, 3), (3, 1), 1, 2),
    "volume": ((6, 7, 8), (2, 3, 2), 2, 1, 1),
    "series": ((40,), (3,), 2, 1, 1),
}


@pytest.mark.parametrize("case", POOLS.values(), ids=POOLS)
def test_max_pooling_agrees_with_its_plain_body(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    size, kernel, stride, padding, dilation = case
    rng = np.random.default_rng(3)
    planes = (30, 16) if size == (10, 12) else (6, 8)  # enough for several threads, or not
    values = rng.integers(-3, 4, (*planes, *size)).astype("f4")  # many equal ones
    values[0, 0], values[1, 1] = -np.inf, np.nan
    values[2].reshape(planes[1], -1)[:, ::5] = np.nan

    def pool() -> list[Any]:
        x = mt.tensor(values).requires_grad_()
        call = getattr(F, f"max_pool{len(size)}d")
        y, index = call(x, kernel, stride, padding, dilation, return_indices=True)
        weight = mt.arange(y.numel(), dtype=mt.float32).reshape(y.shape)
        weight = mt.where(y.isfinite(), weight, 0)
        (g,) = mt.autograd.grad(y, x, weight)
        return [y.detach().numpy(), index.numpy(), g.numpy()]

    result = pool()
    monkeypatch.setattr(loader, "load", lambda family: None)
    for a, b in zip(result, pool(), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


# size, and what makes sums along its axes
SUMS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "averages": ((12, 14), lambda x: F.avg_pool2d(x, 2)),
    "averages that overlap": ((13, 11), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False)),
    "averages with gaps": ((17, 20), lambda x: F.avg_pool2d(x, 2, (4, 3))),
    "averages of a series": ((50,), lambda x: F.avg_pool1d(x, 3, 2)),
    "averages of volumes": ((6, 7, 8), lambda x: F.avg_pool3d(x, 2, 1)),
    "adaptive": ((13, 14), lambda x: F.adaptive_avg_pool2d(x, (5, 7))),
    "adaptive, one axis whole": ((9, 16), lambda x: F.adaptive_avg_pool2d(x, (1, 5))),
    "nearest": ((7, 9), lambda x: F.interpolate(x, (15, 12), mode="nearest")),
    "bilinear": ((9, 7), lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "bicubic": ((9, 8), lambda x: F.interpolate(x, (4, 19), mode="bicubic")),
}


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("case", SUMS.values(), ids=SUMS)
def test_sums_along_axes_agree_with_their_plain_body(
    case: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, function = case
    values = np.random.default_rng(5).standard_normal((9, 8, *size))

    def both(dtype: Any) -> list[Any]:
        x = mt.tensor(values, dtype=dtype).requires_grad_()
        y = function(x)
        weight = mt.linspace(-1, 1, y.numel(), dtype=dtype).reshape(y.shape)
        return [a.detach().numpy() for a in (y, *mt.autograd.grad((y * weight).sum(), x))]

    result = both(dtype)
    monkeypatch.setattr(loader, "load", lambda family: None)
    for a, b in zip(result, both(mt.float64), strict=True):
        assert a.shape == b.shape
        assert a.dtype == np.dtype(dtype.name)
        assert np.abs(a - b).max() <= (1e-6 if dtype is mt.float32 else 1e-14)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_averages_keep_what_is_not_finite_in_its_windows(value: float) -> None:
    x = mt.ones(4, 8, 13, 12).requires_grad_()
    with mt.no_grad():
        x[0, 3, 4, 5] = value
    for function, windows in (
        (lambda x: F.avg_pool2d(x, 3, 2, 1), 2),  # two windows see column 5, one sees row 4
        (lambda x: F.avg_pool2d(x, 2), 1),
        (lambda x: F.adaptive_avg_pool2d(x, (5, 6)), 1),
    ):
        y = function(x)
        assert int((~y.isfinite()).sum()) == windows
        (g,) = mt.autograd.grad(y, x, mt.ones_like(y))
        assert bool(g.isfinite().all())


ONTO: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "tiles": ((8, 32, 14, 14), (40, 32, 3, 3), {"padding": 1}),
    "stride 2": ((8, 24, 16, 16), (32, 24, 3, 3), {"padding": 1, "stride": 2}),
    "stride 2, odd": ((8, 24, 9, 15), (32, 24, 3, 3), {"padding": 1, "stride": 2}),
    "groups": ((4, 24, 12, 12), (24, 8, 5, 5), {"groups": 3}),
    "1 × 1": ((8, 24, 12, 12), (32, 24, 1, 1), {}),
    "channel by channel": ((4, 24, 12, 12), (24, 1, 3, 3), {"groups": 24}),
    "few": ((1, 2, 5, 5), (3, 2, 3, 3), {}),
}


@pytest.mark.parametrize("name", ONTO)
@pytest.mark.parametrize("dtype", [mt.float32, mt.float16])
def test_gradients_meet_in_the_kernel_with_the_bits_of_an_addition(
    name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shape, weights, options), found, added = ONTO[name], [], []
    plus = engine.Pass.plus
    monkeypatch.setattr(engine.Pass, "plus", lambda *a: added.append(a) or plus(*a))
    mt.manual_seed(0)
    x, w = mt.randn(*shape, dtype=dtype), mt.randn(*weights, dtype=dtype)
    for before, through in ((1, 0), (0, 1), (1, 1)):
        leaf = x.clone().requires_grad_()
        y = leaf * 1  # a node, into whose gradient both flow
        parts = [F.conv2d(y, w, **options).sum()] if through else []
        parts += [(y * 3).sum()] if before else []
        sum(parts[1:], parts[0]).backward()
        found.append(leaf.grad.numpy())
    np.testing.assert_array_equal(found[2], found[0] + found[1])
    assert not added
