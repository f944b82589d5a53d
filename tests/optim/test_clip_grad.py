"""Norms and clipping: the factor, gradients that are not finite, packed memory, the errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optim_cases import arrays, backward, parameters

import minitorch as mt
from minitorch import nn, optim
from minitorch.nn.utils import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)

SHAPES: list[tuple[int, ...]] = [(3, 4), (4,), (100, 96), ()]


def with_gradients(dtype: Any = np.float32, packed: bool = False) -> list[Any]:
    params = parameters(arrays(SHAPES, dtype))
    if packed:
        optimizer = optim.SGD(params, lr=0.0)
        for _ in range(2):
            optimizer.zero_grad()
            backward(params, arrays(SHAPES, dtype))
            optimizer.step()
        params[0].keep = optimizer  # the slots stay in use
        optimizer.zero_grad()
    backward(params, arrays(SHAPES, dtype))
    return params


def gradients(params: list[Any]) -> list[np.ndarray]:
    return [p.grad.numpy().copy() for p in params]


def test_the_norm_is_that_of_all_gradients_together() -> None:
    params = with_gradients()
    flat = np.concatenate([g.reshape(-1).astype(np.float64) for g in gradients(params)])
    expected = np.float32(np.sqrt((flat * flat).sum()))
    norm = get_total_norm([p.grad for p in params])
    assert norm.dtype is mt.float32
    assert norm.shape == ()
    assert norm.item() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_and_single_gradients_have_the_same_norm(dtype: Any, norm_type: float) -> None:
    apart, together = with_gradients(dtype), with_gradients(dtype, packed=True)
    assert together[0].grad._array is together[0]._grad_slot.grad
    a = clip_grad_norm_(apart, 0.5, norm_type)
    b = clip_grad_norm_(together, 0.5, norm_type)
    assert a.item() == b.item()
    for x, y in zip(gradients(apart), gradients(together), strict=True):
        np.testing.assert_array_equal(x, y)


def test_only_the_parameters_given_are_clipped() -> None:
    params = with_gradients(packed=True)
    before = gradients(params)
    clip_grad_norm_([params[0], params[3]], 1e-3)
    changed = [not np.array_equal(a, b) for a, b in zip(gradients(params), before, strict=True)]
    assert changed == [True, False, False, True]


def test_a_parameter_given_twice_counts_twice() -> None:
    """As in PyTorch, wherever the gradients lie."""
    found = []
    for packed in (False, True):
        params = with_gradients(packed=packed)
        norm = clip_grad_norm_([params[0], params[1], params[0]], 1e-3)
        squares = [float((params[i].grad.numpy().astype(np.float64) ** 2).sum()) for i in (0, 1)]
        found.append((norm.item(), *squares))
    np.testing.assert_allclose(found[0], found[1], 1e-5)


def test_small_norms_change_nothing() -> None:
    params = with_gradients()
    before = gradients(params)
    clip_grad_norm_(params, 1e6)
    for a, b in zip(gradients(params), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_norm_that_is_not_finite_leaves_the_gradients(bad: float) -> None:
    params = with_gradients()
    params[1].grad[0] = bad
    before = gradients(params)
    assert not np.isfinite(clip_grad_norm_(params, 1.0).item())
    for a, b in zip(gradients(params), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_huge_norm_that_overflows_is_infinite() -> None:
    params = parameters([np.ones(2), np.ones(2)])
    for p in params:
        p.grad = mt.full((2,), 9e153, dtype=mt.float64)
    assert clip_grad_norm_(params, 1.0).item() == np.inf


def test_parameters_without_gradient_are_left_out() -> None:
    params = with_gradients()
    params[0].grad = None
    clip_grad_norm_(params, 0.1)
    clip_grad_value_(params, 0.1)
    assert params[0].grad is None
    assert clip_grad_norm_([params[0]], 1.0).item() == 0.0
    assert clip_grad_norm_([], 1.0).item() == 0.0


def test_one_tensor_will_do() -> None:
    (p,) = parameters([np.ones(4, np.float32)])
    p.grad = mt.full((4,), 3.0)
    assert clip_grad_norm_(p, 1.0).item() == 6.0
    assert get_total_norm(p.grad).item() == pytest.approx(1.0, rel=1e-6)
    clip_grad_value_(p, 0.25)
    np.testing.assert_array_equal(p.grad.numpy(), 0.25)


def test_norm_first_then_clip() -> None:
    params, others = with_gradients(), with_gradients()
    norm = get_total_norm([p.grad for p in params])
    clip_grads_with_norm_(params, 0.5, norm)
    clip_grad_norm_(others, 0.5)
    for a, b in zip(gradients(params), gradients(others), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_half_gradients() -> None:
    p = nn.Parameter(mt.ones(4, dtype=mt.float16))
    p.grad = mt.full((4,), 300.0, dtype=mt.float16)
    norm = clip_grad_norm_(p, 6.0)
    assert norm.dtype is mt.float32
    assert norm.item() == 600.0
    np.testing.assert_allclose(p.grad.float().numpy(), 3.0, rtol=1e-3)


def test_a_graph_over_clipped_gradients_notices() -> None:
    (p,) = parameters([np.ones(4, np.float32)])
    p.grad = mt.full((4,), 3.0)
    w = mt.ones(4, requires_grad=True)
    loss = (w * p.grad).sum()
    clip_grad_norm_(p, 1.0)
    with pytest.raises(mt.GraphError, match="clip_grad_norm_ changed it in place"):
        loss.backward()


def used_up() -> Any:
    generator = (p for p in with_gradients())
    list(generator)
    return generator


def infinite() -> list[Any]:
    params = with_gradients()
    params[1].grad[0] = np.inf
    return params


PROGRAMS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "norm of a used generator": (
        lambda: clip_grad_norm_(used_up(), 1.0),
        mt.ArgumentError,
        r"clip_grad_norm_: the generator of parameters gave nothing.*model\.parameters\(\) again",
    ),
    "value of a used generator": (
        lambda: clip_grad_value_(used_up(), 1.0),
        mt.ArgumentError,
        "clip_grad_value_: the generator",
    ),
    "total of a used generator": (
        lambda: get_total_norm(used_up()),
        mt.ArgumentError,
        "get_total_norm: the generator",
    ),
    "negative norm": (
        lambda: clip_grad_norm_(with_gradients(), -1),
        mt.ArgumentError,
        "max_norm must be a number, at least 0. Got -1",
    ),
    "negative value": (
        lambda: clip_grad_value_(with_gradients(), -1),
        mt.ArgumentError,
        "clip_value must be a number, at least 0. Got -1",
    ),
    "order 0": (
        lambda: clip_grad_norm_(with_gradients(), 1, 0),
        mt.ArgumentError,
        "norm_type must be above 0, or infinity. Got 0",
    ),
    "infinite gradient": (
        lambda: clip_grad_norm_(infinite(), 1.0, error_if_nonfinite=True),
        mt.GraphError,
        r"must be finite. Got inf, from gradient 1 \(f32\[4\]\). Skip this update",
    ),
}


@pytest.mark.parametrize(("program", "error", "text"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_wrong_programs(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()
