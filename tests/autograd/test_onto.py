"""Rules that add their gradient to what has flowed into the input before, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import engine

F = mt.nn.functional
WIDTH = 72
NORMS: dict[str, Callable[[Any, Any], Any]] = {
    "layer_norm": lambda x, w: F.layer_norm(x, (WIDTH,), w, w.detach() * 0.5),
    "rms_norm": lambda x, w: F.rms_norm(x, (WIDTH,), w),
}


def _gradients(norm: Callable[[Any, Any], Any], shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """Those of `3 x` and of the norm apart, and of their sum; the last is that of the weight."""
    mt.manual_seed(0)
    x, w = mt.randn(shape, dtype=dtype), mt.randn(WIDTH, dtype=dtype)
    seed, found = mt.randn(shape, dtype=dtype), []
    for before, through in ((True, False), (False, True), (True, True)):
        leaf, weight = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = leaf * 2  # a node, into whose gradient both flow
        parts = ([norm(y, weight)] if through else []) + ([y * 3] if before else [])
        sum(parts[1:], parts[0]).backward(seed)
        found.append(leaf.grad.numpy())
    return [*found, weight.grad.numpy()]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64, mt.float16])
@pytest.mark.parametrize("shape", [(40, 2, WIDTH), (3, WIDTH)])
def test_the_sum_has_the_bits_of_an_addition(
    norm: str, dtype: Any, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[Any] = []
    plus = engine.Pass.plus
    monkeypatch.setattr(engine.Pass, "plus", lambda *a: added.append(a) or plus(*a))
    before, through, both, weight = _gradients(NORMS[norm], shape, dtype)
    assert not added
    np.testing.assert_array_equal(both, before + through)
    assert np.isfinite(weight.astype(np.float64)).all()


@pytest.mark.parametrize("norm", NORMS)
def test_who_looks_at_gradients_sees_the_same(norm: str) -> None:
    x, w = mt.randn(40, WIDTH), mt.randn(WIDTH)

    def gradient(watch: Callable[[Any, Any], None], **options: Any) -> tuple[Any, Any]:
        leaf = x.clone().requires_grad_()
        y = leaf * 2
        z = NORMS[norm](y, w)
        watch(y, z)
        (z + y * 3).backward(mt.ones(40, WIDTH), **options)
        return leaf.grad.detach().numpy(), y.grad

    plain, _ = gradient(lambda y, z: None)
    seen: list[Any] = []

    def watch(y: Any, z: Any) -> None:
        y.retain_grad()
        z.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[0].numpy()))

    hooked, kept = gradient(watch)
    np.testing.assert_array_equal(hooked, plain)
    np.testing.assert_array_equal(kept.numpy() * 2, plain)
    np.testing.assert_array_equal(seen[0] + 3, kept.numpy())
    np.testing.assert_allclose(
        gradient(lambda y, z: None, create_graph=True)[0], plain, rtol=1e-4, atol=1e-5
    )
