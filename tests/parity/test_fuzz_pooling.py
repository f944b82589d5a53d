"""2 000 random poolings of every kind against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from parity.nn_fuzz import Call, array, image, named, one_of, run, shown, sizes


def _input(rng: np.random.Generator, axes: int, infinite: bool = False) -> Any:
    x = array(rng, *image(rng, axes, int(rng.integers(1, 3)), 7 if axes < 3 else 5))
    if infinite and rng.random() < 0.1 and x.size:
        x.reshape(-1)[int(rng.integers(x.size))] = one_of(rng, np.inf, -np.inf)
    return x


def _window(rng: np.random.Generator, axes: int) -> dict[str, Any]:
    options: dict[str, Any] = {"kernel_size": sizes(rng, axes, 1, 3)}
    if rng.random() < 0.7:
        options["stride"] = sizes(rng, axes, 1, 3)
    if rng.random() < 0.6:
        options["padding"] = sizes(rng, axes, 0, 1)
    if rng.random() < 0.5:
        options["ceil_mode"] = True
    return options


def _max(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(1, 4))
    options = _window(rng, axes)
    if rng.random() < 0.4:
        options["dilation"] = sizes(rng, axes, 1, 2)
    if rng.random() < 0.5:
        options["return_indices"] = True
    return named(f"max_pool{axes}d", [_input(rng, axes, True)], **options)


def _average(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(1, 4))
    options = _window(rng, axes)
    if rng.random() < 0.5:
        options["count_include_pad"] = one_of(rng, True, False)
    if axes > 1 and rng.random() < 0.3:
        options["divisor_override"] = one_of(rng, 1, 2, 5, 0)
    return named(f"avg_pool{axes}d", [_input(rng, axes)], **options)


def _adaptive(rng: np.random.Generator) -> Call:
    axes, kind = int(rng.integers(1, 4)), one_of(rng, "avg", "max")
    wanted = sizes(rng, axes, 1, 5)
    if isinstance(wanted, tuple) and axes > 1 and rng.random() < 0.3:
        wanted = (None, *wanted[1:])
    options = {"return_indices": True} if kind == "max" and rng.random() < 0.5 else {}
    return named(f"adaptive_{kind}_pool{axes}d", [_input(rng, axes)], wanted, **options)


def _unpool(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(1, 4))
    kernel, stride = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    stride = max(stride, kernel)  # windows that overlap may name one place twice
    padding = int(rng.integers(0, kernel // 2 + 1))
    x = array(rng, *image(rng, axes, 2, 6))
    wanted = None
    if rng.random() < 0.4:
        wanted = tuple(n + int(rng.integers(-1, 2)) for n in x.shape[-axes:])

    def call(m: Any, F: Any, x: Any) -> Any:
        pool, back = getattr(F, f"max_pool{axes}d"), getattr(F, f"max_unpool{axes}d")
        y, index = pool(x, kernel, stride, padding, return_indices=True)
        return back(y, index, kernel, stride, padding, wanted)

    return Call(shown(f"max_unpool{axes}d", [x], kernel, stride, padding, wanted), call, [x])


def _powers(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(1, 4))
    options = _window(rng, axes)
    options.pop("padding", None)
    if axes == 1:  # torch's lp_pool1d knows no tuples
        options = {key: v[0] if isinstance(v, tuple) else v for key, v in options.items()}
    x = array(rng, *image(rng, axes, 2, 5), low=0.2)
    return named(f"lp_pool{axes}d", [x], one_of(rng, 1.0, 2.0, 3.0), **options)


def _fractional(rng: np.random.Generator) -> Call:
    axes = int(rng.integers(2, 4))
    x = array(rng, *[int(n) for n in rng.integers(1, 3, 2)], *rng.integers(3, 8, axes))
    samples = rng.uniform(0, 1, (*x.shape[:2], axes)).astype(x.dtype)
    kernel, wanted = sizes(rng, axes, 1, 3), sizes(rng, axes, 1, 4)
    ratio = (one_of(rng, 0.5, 0.7),) * axes if rng.random() < 0.4 else None

    def call(m: Any, F: Any, x: Any) -> Any:
        function = getattr(F, f"fractional_max_pool{axes}d")
        return function(
            x,
            kernel,
            None if ratio else wanted,
            ratio,
            return_indices=True,
            _random_samples=m.tensor(samples),
        )

    return Call(shown(f"fractional_max_pool{axes}d", [x], kernel, wanted, ratio), call, [x])


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (_max, 550),
        (_average, 500),
        (_adaptive, 450),
        (_unpool, 200),
        (_powers, 150),
        (_fractional, 150),
    ],
)
def test_random_calls(make: Any, count: int) -> None:
    different = run(make, 2, count)
    assert not different, f"{len(different)} of {count}:\n" + "\n".join(different[:12])
