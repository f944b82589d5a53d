"""2 000 random interpolations, samplings and rearrangements against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from parity.nn_fuzz import Call, array, named, one_of, run, shown

MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")
FITTING = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def _width(x: Any, options: dict[str, Any]) -> int:
    """The length of the last axis of the result."""

    def last(value: Any) -> Any:
        return value[-1] if isinstance(value, tuple) else value

    if "size" in options:
        return int(last(options["size"]))
    return int(x.shape[-1] * last(options.get("scale_factor", 1)))


def _interpolation(rng: np.random.Generator) -> Call:
    mode = one_of(rng, *MODES)
    axes = FITTING.get(mode, int(rng.integers(1, 4))) if rng.random() < 0.95 else 2
    batch = one_of(rng, 1, 2, 0) if rng.random() < 0.5 else 2
    x = array(rng, batch, 2, *[int(n) for n in rng.integers(1, 7, axes)])
    options: dict[str, Any] = {"mode": mode}
    kind = rng.random()
    if kind < 0.45:
        one = int(rng.integers(1, 10))
        options["size"] = one_of(rng, one, tuple(int(n) for n in rng.integers(1, 10, axes)))
    elif kind < 0.97:
        factors = tuple(float(f) for f in rng.choice([0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 2.6], axes))
        options["scale_factor"] = one_of(rng, factors[0], factors, 2)
        if rng.random() < 0.3:
            options["recompute_scale_factor"] = one_of(rng, True, False)
    if rng.random() < 0.5 and (mode in FITTING or rng.random() < 0.1):
        options["align_corners"] = one_of(rng, True, False)
    wide = _width(x, options) != 1  # torch repeats the first row for images of width 1
    if wide and rng.random() < 0.3 and (mode in ("bilinear", "bicubic") or rng.random() < 0.1):
        options["antialias"] = True
    return named("interpolate", [x], **options)


def _sampling(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(2, 4))
    x = array(rng, one_of(rng, 1, 2, 3), 2, *[int(n) for n in rng.integers(1, 6, axes)])
    places = [int(n) for n in rng.integers(1, 5, axes)]
    batch = x.shape[0] + (1 if rng.random() < 0.03 else 0)
    grid = rng.uniform(-1.6, 1.6, (batch, *places, axes)).astype(x.dtype)
    options = {
        "mode": one_of(rng, "bilinear", "nearest", "bicubic"),
        "padding_mode": one_of(rng, "zeros", "border", "reflection"),
        "align_corners": one_of(rng, True, False, None),
    }
    return named("grid_sample", [x, grid], **options)


def _grid(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(2, 4))
    batch = int(rng.integers(1, 4))
    theta = array(rng, batch, axes, axes + (1 if rng.random() < 0.95 else 0))
    size = [batch, 3, *[int(n) for n in rng.integers(1, 6, axes)]]
    return named("affine_grid", [theta], size, align_corners=one_of(rng, True, False, None))


def _rearrangement(rng: np.random.Generator) -> Call:
    name = one_of(rng, "pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
    r = int(rng.integers(1, 4))
    lead = one_of(rng, (), (2,), (2, 1)) if name != "channel_shuffle" else (2,)
    off = 1 if rng.random() < 0.1 else 0
    if name == "pixel_shuffle":
        shape: tuple[int, ...] = (*lead, 2 * r * r + off, 2, 3)
    elif name == "pixel_unshuffle":
        shape = (*lead, 2, 2 * r + off, r)
    else:
        shape = (*lead, 2 * r + off, *one_of(rng, (3,), (2, 3), (1, 2, 2)))
    return named(name, [array(rng, *shape)], r)


def _module(rng: np.random.Generator) -> Call:
    x = array(rng, 2, 4, 4, 4)
    text = one_of(
        rng,
        "Upsample(scale_factor=2)",
        "Upsample(size=(3, 5), mode='bilinear')",
        "Upsample(scale_factor=(1.5, 2), mode='bicubic', align_corners=True)",
        "UpsamplingNearest2d(scale_factor=3)",
        "UpsamplingBilinear2d(size=5)",
        "PixelShuffle(2)",
        "PixelUnshuffle(2)",
        "ChannelShuffle(2)",
        "Unfold(2, 1, 1, 2)",
    )

    def call(m: Any, F: Any, x: Any) -> Any:
        return eval(text, vars(m.nn) | {n: getattr(m.nn, n) for n in [text.split("(")[0]]})(x)

    return Call(shown(text, [x]), call, [x])


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (_interpolation, 850),
        (_sampling, 550),
        (_grid, 200),
        (_rearrangement, 300),
        (_module, 100),
    ],
)
def test_random_calls(make: Any, count: int) -> None:
    different = run(make, 4, count)
    assert not different, f"{len(different)} of {count}:\n" + "\n".join(different[:12])
