"""2 000 random convolutions, transposed convolutions, patches and paddings against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from parity.nn_fuzz import Call, array, image, named, one_of, run, sizes


def _convolution(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(1, 4))
    groups = one_of(rng, 1, 1, 1, 2, 3)
    per_group, out = int(rng.integers(1, 4)), groups * int(rng.integers(1, 3))
    if rng.random() < 0.03:
        out += 1
    channels = per_group * groups + (1 if rng.random() < 0.03 else 0)
    x = array(rng, *image(rng, axes, channels, 7 if axes < 3 else 4))
    kernel = tuple(int(k) for k in rng.integers(1, 4, axes))
    arrays = [x, rng.uniform(-1, 1, (out, per_group, *kernel)).astype(x.dtype)]
    if rng.random() < 0.6:
        arrays.append(rng.uniform(-1, 1, out).astype(x.dtype))
    padding: Any = sizes(rng, axes, 0, 3)
    stride = sizes(rng, axes, 1, 3)
    if rng.random() < 0.2:
        padding, stride = one_of(rng, "same", "valid", "other"), one_of(rng, 1, 1, stride)
    options = {"stride": stride, "padding": padding, "dilation": sizes(rng, axes, 1, 2)}
    return named(f"conv{axes}d", arrays, **options, groups=groups)


def _transposed(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(1, 4))
    groups = one_of(rng, 1, 1, 1, 2, 3)
    per_group, channels = int(rng.integers(1, 3)), groups * int(rng.integers(1, 4))
    given = channels + (1 if rng.random() < 0.03 else 0)
    x = array(rng, *image(rng, axes, given, 5 if axes < 3 else 3))
    kernel = tuple(int(k) for k in rng.integers(1, 4, axes))
    arrays = [x, rng.uniform(-1, 1, (channels, per_group, *kernel)).astype(x.dtype)]
    if rng.random() < 0.6:
        arrays.append(rng.uniform(-1, 1, per_group * groups).astype(x.dtype))
    return named(
        f"conv_transpose{axes}d",
        arrays,
        stride=sizes(rng, axes, 1, 3),
        padding=sizes(rng, axes, 0, 2),
        output_padding=sizes(rng, axes, 0, 1) if rng.random() < 0.6 else 0,
        groups=groups,
        dilation=sizes(rng, axes, 1, 2),
    )


def _patches(rng: np.random.Generator) -> Call:
    options = {
        "kernel_size": sizes(rng, 2, 1, 3),
        "dilation": sizes(rng, 2, 1, 2),
        "padding": sizes(rng, 2, 0, 2),
        "stride": sizes(rng, 2, 1, 2),
    }
    if rng.random() < 0.5:
        return named("unfold", [array(rng, *image(rng, 2, 2))], **options)
    size = tuple(int(n) for n in rng.integers(3, 7, 2))

    def both(value: Any) -> tuple[int, ...]:
        return (value, value) if isinstance(value, int) else tuple(value)[:2]

    per_axis = zip(size, *(both(v) for v in options.values()), strict=True)
    columns = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in per_axis]
    count = max(1, columns[0] * columns[1]) + (1 if rng.random() < 0.05 else 0)
    area = int(np.prod(both(options["kernel_size"])))
    lead = one_of(rng, (), (1,), (2,))
    return named("fold", [array(rng, *lead, 2 * area, count)], output_size=size, **options)


def _padding(rng: np.random.Generator) -> Call:
    mode = one_of(rng, "constant", "reflect", "replicate", "circular")
    axes = int(rng.integers(1, 4))
    low = -2 if rng.random() < 0.3 else 0
    widths = tuple(int(n) for n in rng.integers(low, 4, 2 * axes))
    x = array(rng, *image(rng, axes, 2, 5))
    if mode != "constant":
        for i in range(min(axes, x.ndim)):
            left = x.shape[-1 - i] + min(0, *widths[2 * i : 2 * i + 2])
            if left < 1 or max(widths[2 * i : 2 * i + 2]) > left:  # torch reads what is not there
                widths = tuple(max(n, 0) for n in widths)
    value = {"value": 1.5} if mode == "constant" and rng.random() < 0.5 else {}
    return named("pad", [x], widths, mode=mode, **value)


@pytest.mark.parametrize(
    ("make", "count"),
    [(_convolution, 700), (_transposed, 500), (_patches, 300), (_padding, 500)],
)
def test_random_calls(make: Any, count: int) -> None:
    different = run(make, 1, count)
    assert not different, f"{len(different)} of {count}:\n" + "\n".join(different[:12])
