"""Values of images and volumes at places between their elements.

The definition picks the elements around each place and weighs them by its distance; the fast body
does the same for images in one pass.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ..autograd.mode import enable_grad
from ..kernels import load_for
from . import elementwise
from .creation import arange
from .flat_positions import take_flat
from .fused import Fused
from .primitive import wrap


def _definition(x: Any, grid: Any, *, mode: str, padding_mode: str, corners: bool) -> Any:
    sizes = tuple(x.shape[2:])
    # The last number of a place belongs to the first axis.
    places = [_unnormalised(grid[..., len(sizes) - 1 - i], n, corners) for i, n in enumerate(sizes)]
    if mode != "bicubic":
        places = [_inside(p, n, padding_mode, corners) for p, n in zip(places, sizes, strict=True)]
    if mode == "nearest":
        taps = [_nearest_taps(p) for p in places]
    elif mode == "bilinear":
        taps = [_linear_taps(p) for p in places]
    else:
        taps = [
            [(_inside(at, n, padding_mode, corners), w) for at, w in _cubic_taps(p)]
            for p, n in zip(places, sizes, strict=True)
        ]
    total: Any = None
    for corner in itertools.product(*taps):
        part = _at_corner(x, [at for at, _ in corner], [w for _, w in corner])
        total = part if total is None else total + part
    return total


def _unnormalised(place: Any, size: int, corners: bool) -> Any:
    """From -1…1 to positions of elements."""
    if corners:
        return (place + 1) * ((size - 1) / 2)
    return ((place + 1) * size - 1) / 2


def _inside(place: Any, size: int, padding_mode: str, corners: bool) -> Any:
    """Places outside moved to where their values are; gradients stop at the borders."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        place = _reflected(place, low, high)
    place = elementwise.where(place > 0, place, 0.0)
    return elementwise.where(place < size - 1, place, float(size - 1))


def _reflected(place: Any, low: float, high: float) -> Any:
    span = high - low
    if span <= 0:
        return place * 0
    away = place - low
    away = elementwise.where(away < 0, -away, away)
    flips = (away.detach() / span).floor()
    rest = away - flips * span
    return elementwise.where(elementwise.remainder(flips, 2) == 0, rest + low, high - rest)


def _nearest_taps(place: Any) -> list[tuple[Any, Any]]:
    """The nearest element with weight 1, whose gradient is 0 everywhere."""
    at = place.detach().round()
    return [(at, elementwise.where(at != at.floor(), place, 1.0))]


def _linear_taps(place: Any) -> list[tuple[Any, Any]]:
    start = place.detach().floor()
    share = place - start
    return [(start, 1 - share), (start + 1, share)]


def _cubic_taps(place: Any) -> list[tuple[Any, Any]]:
    start, a = place.detach().floor(), -0.75
    t = place - start
    u = 1 - t
    return [
        (start - 1, a * (((t + 1 - 5) * (t + 1) + 8) * (t + 1) - 4)),
        (start, ((a + 2) * t - (a + 3)) * t * t + 1),
        (start + 1, ((a + 2) * u - (a + 3)) * u * u + 1),
        (start + 2, a * (((u + 1 - 5) * (u + 1) + 8) * (u + 1) - 4)),
    ]


def _at_corner(x: Any, places: list[Any], weights: list[Any]) -> Any:
    """The elements at whole places times their weights; 0 for places outside."""
    n, c, *sizes = x.shape
    inside: Any = None
    flat: Any = 0
    for at, size in zip(places, sizes, strict=True):
        within = (at >= 0) & (at <= size - 1)
        inside = within if inside is None else inside & within
        flat = flat * size + elementwise.where(within, at, 0.0).long()
    area = math.prod(sizes)
    planes = (arange(n * c, device=x.device) * area).reshape(n, c, *[1] * len(sizes))
    values = take_flat(x, planes + flat.unsqueeze(1))
    values = elementwise.where(inside.unsqueeze(1), values, 0.0)  # what is there need not be finite
    weight = elementwise.where(inside, weights[0], 0.0)
    for w in weights[1:]:
        weight = weight * w
    return values * weight.unsqueeze(1)


def _forward(
    x: Any, grid: Any, *, mode: str, padding_mode: str, corners: bool
) -> tuple[Any, tuple[Any, ...]]:
    kernels = load_for("grid", x, grid)
    assert kernels is not None  # `_supports` asked
    return kernels.sample(x, grid, mode == "nearest", padding_mode, corners)


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    grid: Any,
    *,
    mode: str,
    padding_mode: str,
    corners: bool,
) -> list[Any]:
    kernels = load_for("grid", x, grid, g, least=0)
    if kernels is None:  # another thread, which may not enter compiled bodies
        from ..autograd.engine import grad

        leaves = [wrap(x).requires_grad_(), wrap(grid).requires_grad_()]
        with enable_grad():
            y = _definition(*leaves, mode=mode, padding_mode=padding_mode, corners=corners)
        return [d._array for d in grad(y, leaves, wrap(g))]
    return [
        kernels.image_gradient(g, residuals, x.shape) if needs[0] else None,
        kernels.grid_gradient(g, x, residuals, grid.shape) if needs[1] else None,
    ]


def _supports(x: Any, grid: Any, *, mode: str, padding_mode: str, corners: bool) -> bool:
    return (
        x.ndim == 4
        and mode != "bicubic"
        and grid.size > 0
        and load_for("grid", x, grid) is not None
    )


grid_sample_op = Fused(_definition, _forward, _backward, supports=_supports)
grid_sample_op.name = "grid_sample"
"""`grid_sample(x, grid, *, mode, padding_mode, corners)`; see `nn.functional.grid_sample`."""
