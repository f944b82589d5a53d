"""Rows for interpolation, sampling at places, and rearrangement of pixels and channels."""

from __future__ import annotations

from typing import Any

from nn_table import _row
from op_table import Row

SERIES = (((2, 2, 4),), ((0, 2, 4),))
IMAGE = (((1, 2, 3, 4),), ((2, 1, 5, 2),), ((0, 2, 3, 4),))
VOLUME = (((1, 2, 2, 3, 2),),)


def _resize(name: str, shapes: Any, **options: Any) -> Row:
    return _row(f"F.interpolate {name}", lambda F, m, x: F.interpolate(x, **options), shapes)


def _grid(m: Any, x: Any, axes: int) -> Any:
    """Places from -1.4 to 1.4, some of them outside."""
    values = [((7 * i + 3) % 29) / 10 - 1.4 + 0.013 * i for i in range(x.shape[0] * 4 * axes)]
    shape = (x.shape[0], *[1, 2, 2][3 - axes :], axes)
    return m.tensor(values, dtype=x.dtype).reshape(shape)


def _sample(mode: str, padding: str, corners: bool, shape: tuple[int, ...]) -> Row:
    places = (shape[0], 2, 3, 2) if len(shape) == 4 else (shape[0], 1, 2, 2, 3)

    def call(F: Any, m: Any, x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, mode, padding, corners)

    return _row(
        f"F.grid_sample {mode} {padding} {corners} {len(shape)}",
        call,
        ((shape, places),),
        low=-1.4,
        high=1.4,
        seed=6,
    )


RESIZE = [
    _resize("nearest", IMAGE, scale_factor=2),
    _resize("nearest size", IMAGE, size=(5, 3)),
    _resize("nearest 1d", SERIES, size=7),
    _resize("nearest 3d", VOLUME, scale_factor=(2, 1, 1.5)),
    _resize("nearest-exact", IMAGE, size=(5, 3), mode="nearest-exact"),
    _resize("linear", SERIES, size=7, mode="linear"),
    _resize("bilinear", IMAGE, scale_factor=2, mode="bilinear"),
    _resize("bilinear corners", IMAGE, size=(7, 3), mode="bilinear", align_corners=True),
    _resize("bilinear factor", IMAGE, scale_factor=1.7, mode="bilinear"),
    _resize(
        "bilinear recompute",
        IMAGE,
        scale_factor=1.7,
        mode="bilinear",
        recompute_scale_factor=True,
    ),
    _resize("bilinear antialias", IMAGE, size=(2, 2), mode="bilinear", antialias=True),
    _resize("bicubic", IMAGE, size=(5, 6), mode="bicubic"),
    _resize("bicubic corners", IMAGE, size=(5, 3), mode="bicubic", align_corners=True),
    _resize("bicubic antialias", IMAGE, size=(2, 2), mode="bicubic", antialias=True),
    _resize("trilinear", VOLUME, size=(3, 2, 5), mode="trilinear"),
    _resize("area", IMAGE, size=(2, 3), mode="area"),
]

SAMPLE = [
    _sample("bilinear", "zeros", False, (2, 2, 3, 4)),
    _sample("bilinear", "border", True, (1, 2, 3, 4)),
    _sample("bilinear", "reflection", False, (1, 2, 3, 4)),
    _sample("bilinear", "zeros", True, (1, 2, 2, 3, 2)),
    _sample("bicubic", "zeros", False, (1, 2, 3, 4)),
    _sample("bicubic", "border", False, (1, 1, 3, 4)),
    _sample("bicubic", "reflection", True, (1, 2, 3, 4)),
    _row(
        "F.grid_sample nearest",
        lambda F, m, x: F.grid_sample(x, _grid(m, x, 2), "nearest", align_corners=False),
        (((2, 2, 3, 4),),),
    ),
    _row(
        "F.affine_grid",
        lambda F, m, t: F.affine_grid(t, (2, 3, 3, 4), align_corners=False),
        (((2, 2, 3),),),
    ),
    _row(
        "F.affine_grid 3d",
        lambda F, m, t: F.affine_grid(t, (1, 3, 2, 2, 3), align_corners=True),
        (((1, 3, 4),),),
    ),
]

REARRANGE = [
    _row("F.pixel_shuffle", lambda F, m, x: F.pixel_shuffle(x, 2), (((1, 8, 2, 3),), ((4, 2, 2),))),
    _row("F.pixel_unshuffle", lambda F, m, x: F.pixel_unshuffle(x, 2), (((1, 2, 4, 2),),)),
    _row("F.channel_shuffle", lambda F, m, x: F.channel_shuffle(x, 2), (((2, 4, 3),),)),
]

ROWS = [*RESIZE, *SAMPLE, *REARRANGE]
