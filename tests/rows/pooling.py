"""Rows for pooling over three axes, adaptive maxima, unpooling, powers and fractions."""

from __future__ import annotations

from typing import Any

from nn_table import _row
from op_table import Row

VOLUME = (((1, 2, 3, 4, 3),), ((2, 3, 3, 4),), ((0, 2, 3, 4, 3),))
IMAGE = (((2, 2, 4, 5),), ((2, 4, 4),), ((0, 2, 4, 5),))
SERIES = (((2, 2, 5),), ((2, 6),), ((0, 2, 5),))


def _pool(name: str, function: str, shapes: Any, *options: Any, **named: Any) -> Row:
    low = named.pop("low", -2.0)
    return _row(
        f"F.{function} {name}",
        lambda F, m, x: getattr(F, function)(x, *options, **named),
        shapes,
        low=low,
    )


def _unpool(axes: int, shapes: Any, *options: Any) -> Row:
    def call(F: Any, m: Any, x: Any) -> Any:
        y, index = getattr(F, f"max_pool{axes}d")(x, *options, return_indices=True)
        return getattr(F, f"max_unpool{axes}d")(y, index, *options, output_size=x.shape[-axes:])

    return _row(f"F.max_unpool{axes}d", call, shapes)


def _fraction(axes: int, shapes: Any) -> Row:
    def call(F: Any, m: Any, x: Any) -> Any:
        samples = m.tensor([0.3, 0.8, 0.55][:axes], dtype=x.dtype).expand(*x.shape[:2], axes)
        function = getattr(F, f"fractional_max_pool{axes}d")
        return function(x, 2, (2,) * axes, _random_samples=samples)

    return _row(f"F.fractional_max_pool{axes}d", call, shapes)


ROWS = [
    _pool("2", "max_pool3d", VOLUME, 2),
    _pool("all", "max_pool3d", VOLUME, (2, 3, 2), 1, 1, (1, 1, 2), True),
    _pool("2", "avg_pool3d", VOLUME, 2),
    _pool("all", "avg_pool3d", VOLUME, (2, 3, 2), (1, 2, 1), (1, 0, 1), True, False),
    _pool("divisor", "avg_pool3d", VOLUME, 2, 1, 1, False, True, 3),
    _pool("1", "adaptive_avg_pool3d", VOLUME, 1),
    _pool("2x3", "adaptive_avg_pool3d", VOLUME, (2, None, 3)),
    _pool("3", "adaptive_max_pool1d", SERIES, 3),
    _pool("2x3", "adaptive_max_pool2d", IMAGE, (2, 3)),
    _pool("keep", "adaptive_max_pool2d", IMAGE, (None, 2)),
    _pool("2", "adaptive_max_pool3d", VOLUME, 2),
    _unpool(1, (((2, 2, 6),), ((2, 6),)), 2),
    _unpool(2, (((2, 2, 4, 5),), ((2, 4, 5),)), (2, 3), 3),
    _unpool(3, (((1, 2, 3, 4, 3),),), 2),
    _pool("2", "lp_pool1d", SERIES, 2.0, 3, 2, low=0.2),
    _pool("3", "lp_pool2d", IMAGE, 3.0, (2, 3), None, low=0.2),
    _pool("2", "lp_pool3d", VOLUME, 2.0, 2, 1, low=0.2),
    _fraction(2, (((2, 2, 4, 5),),)),
    _fraction(3, (((1, 2, 4, 4, 5),),)),
]
