"""Every error of convolutions, pooling, norms and resampling states rule, value and fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, DtypeError, IndexRangeError, ShapeError

F = nn.functional
SERIES, IMAGE, VOLUME = mt.ones(2, 3, 6), mt.ones(2, 3, 6, 6), mt.ones(2, 3, 4, 4, 4)
W = mt.ones(3, 2, 3, 3)
SHAPE, VALUE, DTYPE = ShapeError, ArgumentError, DtypeError


def _unpool(**options: Any) -> Any:
    y, index = F.max_pool2d(IMAGE, 2, return_indices=True)
    return F.max_unpool2d(options.pop("y", y), options.pop("index", index), 2, **options)


CASES: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("conv3d axes", lambda: F.conv3d(SERIES, W), SHAPE, "NCDHW or CDHW"),
    ("conv3d weight", lambda: F.conv3d(VOLUME, W), SHAPE, "KD, KH, KW"),
    ("conv groups", lambda: F.conv2d(IMAGE, mt.ones(4, 3, 3, 3), groups=0), VALUE, "at least 1"),
    (
        "transposed channels",
        lambda: F.conv_transpose2d(mt.ones(1, 4, 5, 5), W),
        SHAPE,
        "3 channels",
    ),
    ("transposed groups", lambda: F.conv_transpose2d(IMAGE, W, groups=2), VALUE, "input channels"),
    ("transposed bias", lambda: F.conv_transpose2d(IMAGE, W, mt.ones(3)), SHAPE, "shape (2,)"),
    (
        "transposed extra",
        lambda: F.conv_transpose2d(IMAGE, W, output_padding=1),
        VALUE,
        "smaller than stride or dilation",
    ),
    (
        "transposed small",
        lambda: F.conv_transpose2d(IMAGE, W, padding=5),
        SHAPE,
        "Use less padding",
    ),
    ("ConvTranspose mode", lambda: nn.ConvTranspose1d(1, 1, 1, padding_mode="x"), VALUE, "'zeros'"),
    ("ConvTranspose groups", lambda: nn.ConvTranspose1d(3, 2, 1, groups=2), VALUE, "must divide"),
    (
        "ConvTranspose size",
        lambda: nn.ConvTranspose2d(3, 1, 2, 2)(IMAGE, (14, 12)),
        VALUE,
        "from [12, 12] to [13, 13]",
    ),
    (
        "ConvTranspose sizes",
        lambda: nn.ConvTranspose2d(3, 1, 2, 2)(IMAGE, (12,)),
        SHAPE,
        "must have 2 or 4 numbers",
    ),
    ("pad value", lambda: F.pad(SERIES, (1, 1), "reflect", 1.0), VALUE, "belongs to mode"),
    ("pad axes", lambda: F.pad(mt.ones(3), (1, 1), "reflect"), SHAPE, "one or two axes more"),
    ("pad empty", lambda: F.pad(mt.ones(2, 0), (1, 1), "replicate"), SHAPE, "elements to repeat"),
    ("pad all cut", lambda: F.pad(SERIES, (-3, -3), "reflect"), SHAPE, "something must be left"),
    ("pad cut", lambda: F.pad(SERIES, (-9, 1), "replicate"), SHAPE, "no more can be cut off"),
    ("pad constant cut", lambda: F.pad(SERIES, (-9, 9)), SHAPE, "no more can be cut off"),
    ("pad twice", lambda: F.pad(SERIES, (-4, 3), "circular"), SHAPE, "once at most"),
    ("max pool empty", lambda: F.max_pool1d(mt.ones(2, 0), 1), SHAPE, "only the batch"),
    (
        "max pool outside",
        lambda: F.max_pool1d(mt.ones(1, 1), 2, 1, 1, 2),
        SHAPE,
        "an element of the image",
    ),
    ("avg pool 3d", lambda: F.avg_pool3d(VOLUME, 5, 1, 1), SHAPE, "smaller than the window"),
    ("unpool indices", lambda: _unpool(index=mt.ones(2, 3, 3, 3)), DTYPE, "int64"),
    ("unpool size", lambda: _unpool(output_size=(9, 6)), VALUE, "less than a step"),
    ("unpool sizes", lambda: _unpool(output_size=(6,)), VALUE, "2 or 4 numbers"),
    (
        "unpool range",
        lambda: _unpool(index=mt.ones(2, 3, 3, 3).long() * 99),
        IndexRangeError,
        "from 0 to 35",
    ),
    ("fractional", lambda: F.fractional_max_pool2d(IMAGE, 2), VALUE, "exactly one"),
    (
        "fractional ratio",
        lambda: F.fractional_max_pool2d(IMAGE, 2, None, (0.5, 1.5)),
        VALUE,
        "from 0 to 1",
    ),
    ("fractional size", lambda: F.fractional_max_pool2d(IMAGE, 3, 5), SHAPE, "at most the axis"),
    ("FractionalMaxPool", lambda: nn.FractionalMaxPool2d(2), VALUE, "exactly one"),
    (
        "FractionalMaxPool ratio",
        lambda: nn.FractionalMaxPool2d(2, output_ratio=2.0),
        VALUE,
        "from 0 to 1",
    ),
    ("group one", lambda: F.group_norm(mt.ones(1, 6), 6), VALUE, "more than 1 value"),
    ("group weight", lambda: F.group_norm(IMAGE, 3, mt.ones(2)), SHAPE, "num_features=3"),
    ("InstanceNorm axes", lambda: nn.InstanceNorm2d(3)(SERIES[0]), SHAPE, "must have 4 axes"),
    (
        "InstanceNorm channels",
        lambda: nn.InstanceNorm2d(4, affine=True)(IMAGE),
        VALUE,
        "num_features=3",
    ),
    ("response axes", lambda: F.local_response_norm(mt.ones(2, 3), 2), SHAPE, "at least 3 axes"),
    ("resize mode", lambda: F.interpolate(IMAGE, 3, mode="cubic"), VALUE, "mode must be one of"),
    ("resize axes", lambda: F.interpolate(SERIES, 3, mode="bilinear"), SHAPE, "4 axes"),
    ("resize axes any", lambda: F.interpolate(mt.ones(2, 3), 3), SHAPE, "3, 4 or 5 axes"),
    ("resize corners", lambda: F.interpolate(IMAGE, 3, align_corners=True), VALUE, "belongs to"),
    ("resize antialias", lambda: F.interpolate(IMAGE, 3, antialias=True), VALUE, "belongs to"),
    ("resize both", lambda: F.interpolate(IMAGE, 3, 2.0), VALUE, "exactly one"),
    ("resize several", lambda: F.interpolate(IMAGE, (3, 3, 3)), VALUE, "a number or 2"),
    ("resize size", lambda: F.interpolate(IMAGE, 3.5), TypeError, "whole numbers"),
    (
        "resize recompute",
        lambda: F.interpolate(IMAGE, 3, recompute_scale_factor=True),
        VALUE,
        "belongs to scale_factor",
    ),
    ("resize empty", lambda: F.interpolate(IMAGE, scale_factor=0.1), SHAPE, "only the batch"),
    ("resize dtype", lambda: F.interpolate(IMAGE.long(), 3), DTYPE, "must be floating"),
    (
        "resize bytes",
        lambda: F.interpolate(IMAGE.to(mt.uint8), 3, mode="bilinear"),
        DTYPE,
        "by 'nearest'",
    ),
    ("sample mode", lambda: F.grid_sample(IMAGE, IMAGE, "cubic"), VALUE, "'bicubic'"),
    (
        "sample padding",
        lambda: F.grid_sample(IMAGE, mt.ones(2, 1, 1, 2), padding_mode="edge"),
        VALUE,
        "'border'",
    ),
    ("sample grid", lambda: F.grid_sample(IMAGE, mt.ones(2, 1, 1, 3)), SHAPE, "[N, H_out, W_out"),
    (
        "sample cubic",
        lambda: F.grid_sample(VOLUME, mt.ones(2, 1, 1, 1, 3), "bicubic"),
        SHAPE,
        "for images",
    ),
    (
        "sample dtype",
        lambda: F.grid_sample(IMAGE, mt.ones(2, 1, 1, 2).double()),
        DTYPE,
        "grid.to(input.dtype)",
    ),
    ("affine dtype", lambda: F.affine_grid(mt.ones(1, 2, 3).long(), (1, 1, 2, 2)), DTYPE, "theta"),
    ("affine shape", lambda: F.affine_grid(mt.ones(1, 2, 3), (2, 1, 2, 2)), SHAPE, "[N, 2, 3]"),
    ("shuffle", lambda: F.pixel_shuffle(IMAGE, 2), SHAPE, "multiple of 4"),
    ("shuffle factor", lambda: F.pixel_shuffle(IMAGE, 0), VALUE, "upscale_factor"),
    ("unshuffle", lambda: F.pixel_unshuffle(IMAGE, 4), SHAPE, "multiples of 4"),
    ("channel shuffle", lambda: F.channel_shuffle(IMAGE, 2), SHAPE, "must divide"),
    ("lazy use", lambda: nn.LazyLinear(3).weight + 1, SHAPE, "Run the lazy module once"),
    ("lazy scalar", lambda: nn.LazyLinear(3)(mt.tensor(1.0)), SHAPE, "needs an axis"),
    ("lazy axes", lambda: nn.LazyConv2d(4, 3)(mt.ones(3, 3)), SHAPE, "must have 4 axes"),
    ("lazy groups", lambda: nn.LazyConv2d(4, 3, groups=2)(IMAGE), VALUE, "must divide"),
    ("lazy norm", lambda: nn.LazyBatchNorm1d()(IMAGE), SHAPE, "2 or 3 axes"),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_message(call: Callable[[], object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as error:
        call()
    assert text in str(error.value)
    assert "Got" in str(error.value) or "must be given" in str(error.value) or "lazy" in text


def test_an_empty_batch_has_no_window_without_an_element() -> None:
    assert F.max_pool2d(mt.ones(0, 2, 1, 1), 2, 1, 1, 2).shape == (0, 2, 1, 1)
    assert F.max_pool2d(mt.ones(0, 2, 5, 5), 3, 2, 1).shape == (0, 2, 3, 3)
