"""2 000 random normalisations against torch: values, gradients and running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from parity.nn_fuzz import Call, array, one_of, run, shown


def _shape(rng: np.random.Generator) -> tuple[int, ...]:
    axes = int(rng.integers(0, 4))
    batch = one_of(rng, 1, 2, 3, 4)
    return (batch, one_of(rng, 1, 2, 4, 6), *[int(n) for n in rng.integers(1, 5, axes)])


def _per_channel(rng: np.random.Generator, x: Any, low: float) -> Any:
    count = x.shape[1] + (1 if rng.random() < 0.02 else 0)
    return rng.uniform(low, 2, count).astype(x.dtype)


def _running(rng: np.random.Generator) -> Call:
    """batch_norm and instance_norm, with everything optional."""
    x = array(rng, *_shape(rng))
    name = one_of(rng, "batch_norm", "instance_norm")
    stats, affine = rng.random() < 0.6, rng.random() < 0.6
    arrays = [x]
    if stats:
        arrays += [_per_channel(rng, x, -1.0), _per_channel(rng, x, 0.5)]
    if affine:
        arrays += [_per_channel(rng, x, -1.0), _per_channel(rng, x, -1.0)]
    mode = bool(rng.random() < 0.7)
    options = {"momentum": float(rng.uniform(0, 1)), "eps": one_of(rng, 1e-5, 1e-2)}

    def call(m: Any, F: Any, *xs: Any) -> Any:
        rest = list(xs[1:])
        mean, var = (rest.pop(0).detach(), rest.pop(0).detach()) if stats else (None, None)
        weight, bias = rest or (None, None)
        return getattr(F, name)(xs[0], mean, var, weight, bias, mode, **options)

    text = shown(name, arrays, stats=stats, affine=affine, mode=mode, **options)
    return Call(text, call, arrays)


def _layer(rng: np.random.Generator) -> Call:
    x = array(rng, *_shape(rng))
    last = int(rng.integers(1, x.ndim + 1))
    shape = list(x.shape[x.ndim - last :])
    if rng.random() < 0.05:
        shape[0] += 1
    name = one_of(rng, "layer_norm", "rms_norm")
    tensors = int(rng.integers(0, 3 if name == "layer_norm" else 2))
    arrays = [x, *[rng.uniform(-1, 2, shape).astype(x.dtype) for _ in range(tensors)]]
    eps = one_of(rng, 1e-5, 1e-2) if name == "layer_norm" or rng.random() < 0.7 else None

    def call(m: Any, F: Any, *xs: Any) -> Any:
        return getattr(F, name)(xs[0], shape, *xs[1:], eps=eps)

    return Call(shown(name, arrays, shape, eps=eps), call, arrays)


def _group(rng: np.random.Generator) -> Call:
    x = array(rng, *_shape(rng))
    arrays = [x]
    if rng.random() < 0.6:
        arrays += [_per_channel(rng, x, -1.0), _per_channel(rng, x, -1.0)]
    groups, eps = one_of(rng, 1, 2, 3, 6), one_of(rng, 1e-5, 1e-2)

    def call(m: Any, F: Any, *xs: Any) -> Any:
        return F.group_norm(xs[0], groups, *xs[1:], eps=eps)

    return Call(shown("group_norm", arrays, groups, eps=eps), call, arrays)


def _neighbours(rng: np.random.Generator) -> Call:
    x = array(rng, *_shape(rng))
    size = int(rng.integers(1, 6))
    options = {"alpha": one_of(rng, 1e-4, 0.5), "beta": one_of(rng, 0.75, 1.5), "k": 1.0}

    def call(m: Any, F: Any, x: Any) -> Any:
        return F.local_response_norm(x, size, **options)

    return Call(shown("local_response_norm", [x], size, **options), call, [x])


def _unit(rng: np.random.Generator) -> Call:
    x = array(rng, *_shape(rng), low=0.1)
    options = {"p": one_of(rng, 1.0, 2.0, 3.0), "dim": int(rng.integers(-2, 3))}
    return Call(shown("normalize", [x], **options), lambda m, F, x: F.normalize(x, **options), [x])


@pytest.mark.parametrize(
    ("make", "count"),
    [(_running, 800), (_layer, 450), (_group, 350), (_neighbours, 250), (_unit, 150)],
)
def test_random_calls(make: Any, count: int) -> None:
    different = run(make, 3, count)
    assert not different, f"{len(different)} of {count}:\n" + "\n".join(different[:12])
