"""Layers for series, images and volumes against torch, as in test_nn_layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from parity import test_nn_layers as layers  # noqa: E402

import minitorch as mt  # noqa: E402

IMAGE, VOLUME, SERIES = (2, 4, 5, 6), (2, 4, 3, 4, 5), (2, 4, 7)
LAYERS: list[tuple[str, tuple[int, ...]]] = [
    ("Conv3d(4, 6, (2, 1, 3), stride=2, padding=1, groups=2)", VOLUME),
    ("Conv3d(4, 2, 2, padding='same', padding_mode='replicate', bias=False)", VOLUME),
    ("ConvTranspose1d(4, 3, 3, 2, 1, 1)", SERIES),
    ("ConvTranspose2d(4, 6, (2, 3), 2, (0, 1), 1, groups=2, dilation=2)", IMAGE),
    ("ConvTranspose2d(4, 2, 3, bias=False)", IMAGE[1:]),
    ("ConvTranspose3d(4, 2, 2, 2)", VOLUME),
    ("MaxPool3d(2, 1, 1)", VOLUME),
    ("AvgPool3d(2, ceil_mode=True)", VOLUME),
    ("AdaptiveAvgPool3d((2, None, 3))", VOLUME),
    ("AdaptiveMaxPool1d(3)", SERIES),
    ("AdaptiveMaxPool2d((3, None))", IMAGE),
    ("AdaptiveMaxPool3d(2)", VOLUME),
    ("LPPool1d(3, 2)", SERIES),
    ("LPPool2d(2, 3, stride=(2, 1), ceil_mode=True)", IMAGE),
    ("LPPool3d(2, 2)", VOLUME),
    ("BatchNorm3d(4)", VOLUME),
    ("InstanceNorm1d(4)", SERIES),
    ("InstanceNorm1d(4, affine=True, track_running_stats=True)", SERIES),
    ("InstanceNorm2d(4, affine=True, momentum=0.3)", IMAGE),
    ("InstanceNorm2d(4, track_running_stats=True)", IMAGE[1:]),
    ("InstanceNorm3d(4, eps=0.01)", VOLUME),
    ("LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2.0)", IMAGE),
    ("Upsample(scale_factor=2)", IMAGE),
    ("Upsample(size=(3, 7), mode='bilinear', align_corners=True)", IMAGE),
    ("Upsample(scale_factor=(1.5, 0.6), mode='bicubic')", IMAGE),
    ("UpsamplingNearest2d(scale_factor=2)", IMAGE),
    ("UpsamplingBilinear2d(size=7)", IMAGE),
    ("PixelShuffle(2)", IMAGE),
    ("PixelUnshuffle(2)", (2, 4, 4, 6)),
    ("ChannelShuffle(2)", IMAGE),
    ("Unfold((2, 3), dilation=1, padding=1, stride=2)", IMAGE),
    ("Fold((4, 5), 2)", (2, 8, 12)),
    ("ConstantPad1d(2, 1.5)", SERIES),
    ("ConstantPad2d((1, 0, 2, -1), 0.5)", IMAGE),
    ("ConstantPad3d(1, 2.0)", VOLUME),
    ("ZeroPad1d((1, 2))", SERIES),
    ("ZeroPad2d(2)", IMAGE),
    ("ZeroPad3d(1)", VOLUME),
    ("ReflectionPad1d(2)", SERIES),
    ("ReflectionPad2d((1, 2, 0, 3))", IMAGE),
    ("ReflectionPad3d(1)", VOLUME),
    ("ReplicationPad1d((3, 1))", SERIES),
    ("ReplicationPad2d(2)", IMAGE),
    ("ReplicationPad3d(1)", VOLUME),
    ("CircularPad1d(2)", SERIES),
    ("CircularPad2d((1, 2, 3, 0))", IMAGE[1:]),
    ("CircularPad3d(1)", VOLUME),
]


@pytest.mark.parametrize(("text", "shape"), LAYERS, ids=[text for text, _ in LAYERS])
def test_layer(text: str, shape: tuple[int, ...]) -> None:
    layers.test_layer(text, shape)


def _values(m: Any, text: str, call: Any) -> list[np.ndarray]:
    x = np.random.Generator(np.random.Philox(5)).normal(size=(2, 3, 6, 6)).astype(np.float32)
    result = call(m, m.tensor(x), eval(f"nn.{text}", {"nn": m.nn}))
    return [y.detach().numpy() for y in (result if isinstance(result, tuple) else (result,))]


def _unpooled(m: Any, x: Any, layer: Any) -> Any:
    y, index = m.nn.MaxPool2d(2, return_indices=True)(x)
    return layer(y, index), layer(y, index, output_size=(2, 3, 7, 7))


def _fraction(m: Any, x: Any, layer: Any) -> Any:
    layer._random_samples = m.full((2, 3, 2), 0.3)
    return layer(x)


def _sized(m: Any, x: Any, layer: Any) -> Any:
    m.nn.init.constant_(layer.weight, 0.5)
    m.nn.init.constant_(layer.bias, 0.25)
    return layer(x, output_size=(13, 12)), layer(x, (2, 4, 12, 13))


SPECIAL = [
    ("MaxUnpool2d(2)", _unpooled),
    ("FractionalMaxPool2d(2, output_ratio=0.5, return_indices=True)", _fraction),
    ("FractionalMaxPool2d(2, output_size=(3, 2))", _fraction),
    ("ConvTranspose2d(3, 4, 2, 2)", _sized),
    ("AdaptiveMaxPool2d(4, return_indices=True)", lambda m, x, layer: layer(x)),
    ("MaxPool2d(3, 2, 1, return_indices=True)", lambda m, x, layer: layer(x)),
]


@pytest.mark.parametrize(("text", "call"), SPECIAL, ids=[text for text, _ in SPECIAL])
def test_special_calls(text: str, call: Any) -> None:
    for ours, theirs in zip(_values(mt, text, call), _values(torch, text, call), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", [t for t, _ in LAYERS if t.startswith(("Conv", "Instance"))])
def test_start_values_have_the_same_range(text: str) -> None:
    ours, theirs = (eval(f"nn.{text}", {"nn": m.nn}) for m in (mt, torch))
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if "Norm" in text:
            assert a.detach().numpy().tolist() == b.detach().numpy().tolist()
            continue
        fan_in = ours.weight[0].numel()
        assert abs(a.detach().numpy()).max() <= 1 / fan_in**0.5, name
        assert a.detach().numpy().std() < 2 * max(0.1, b.detach().numpy().std())


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_maxima_with_their_places(axes: int) -> None:
    x = np.random.Generator(np.random.Philox(7)).normal(size=(2, 3, *[6] * axes))
    for name, options in (
        ("max_pool", (3, 2, 1)),
        ("adaptive_max_pool", (4,)),
        ("fractional_max_pool", (2, (3,) * axes, None, False)),
    ):
        if axes == 1 and name == "fractional_max_pool":
            continue
        results = []
        for m in (mt, torch):
            samples = (m.tensor(x[..., 0].reshape(6, -1)[:, :axes] ** 2 % 1).reshape(2, 3, axes),)
            given = (*options, *samples) if name == "fractional_max_pool" else options
            function = getattr(m.nn.functional, f"{name}{axes}d_with_indices")
            results.append([y.numpy() for y in function(m.tensor(x), *given)])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_bytes_are_resized_by_nearest(mode: str) -> None:
    x = np.arange(24, dtype=np.uint8).reshape(1, 2, 3, 4)
    ours, theirs = (
        m.nn.functional.interpolate(m.tensor(x), size=(5, 3), mode=mode) for m in (mt, torch)
    )
    assert ours.numpy().tolist() == theirs.numpy().tolist()
    assert ours.dtype is mt.uint8
