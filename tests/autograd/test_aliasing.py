"""No write, hook or shared array can change a gradient unseen."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import Function
from minitorch.autograd.node import Node


def leaf(n: int = 3) -> Any:
    return mt.ones(n, requires_grad=True)


def _function(forward: Callable[..., Any], backward: Callable[..., Any]) -> type[Function]:
    class Custom(Function):
        pass

    Custom.forward = staticmethod(forward)  # type: ignore[method-assign]
    Custom.backward = staticmethod(backward)  # type: ignore[method-assign]
    return Custom


def test_a_function_may_return_one_array_twice_or_a_constant() -> None:
    constant = mt.ones(3)

    def twice(ctx: Any, g: Any) -> Any:
        h = g * 2
        return h, h

    shared = _function(lambda ctx, a, b: a + b, twice)
    fixed = _function(lambda ctx, a: a * 1, lambda ctx, g: constant)
    a, b, c = leaf(), leaf(), leaf()
    for _ in range(3):
        shared.apply(a, b).sum().backward()
        fixed.apply(c).sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [6.0] * 3
    assert c.grad.tolist() == [3.0] * 3
    assert constant.tolist() == [1.0] * 3


def test_hooks_may_keep_and_give_their_own_arrays() -> None:
    mine, kept = mt.full((3,), 5.0), []
    a, b = leaf(), leaf()
    a.register_hook(lambda g: mine)
    b.register_hook(lambda g: kept.append(g))
    for _ in range(3):
        (a * 2 + b * 2).sum().backward()
    assert a.grad.tolist() == [15.0] * 3
    assert mine.tolist() == [5.0] * 3
    assert [g.tolist() for g in kept] == [[2.0] * 3] * 3


STALE: dict[str, tuple[Callable[[Any, Any], Any], list[float]]] = {
    "write the stale view": (lambda y, v: (v.mul_(10), y)[1], [10.0, 10.0, 1.0]),
    "use it in place": (lambda y, v: mt.ones(2).mul_(v), [1.0, 1.0, 0.0]),
    "copy it": (lambda y, v: mt.ones(2).copy_(v), [1.0, 1.0, 0.0]),
    "set it": (lambda y, v: _set(mt.ones(2), v), [1.0, 1.0, 0.0]),
    "fill it": (lambda y, v: (v.fill_(3.0), y)[1], [0.0, 0.0, 1.0]),
}


def _set(z: Any, v: Any) -> Any:
    z[:] = v
    return z


@pytest.mark.parametrize("name", STALE)
def test_a_view_made_before_its_base_was_recorded(name: str) -> None:
    program, expected = STALE[name]
    x, y = leaf(), mt.zeros(3)
    view = y[:2]
    y.copy_(x)
    program(y, view).sum().backward()
    assert x.grad.tolist() == expected


def test_dirty_views_change_their_base() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(5)

    scale = _function(forward, lambda ctx, g: g * 5)
    x = leaf()
    y = x * 1
    scale.apply(y[:2])
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0, 1.0]


def test_an_output_that_is_a_view_of_an_input_can_be_written() -> None:
    same = _function(lambda ctx, x: x.view(3), lambda ctx, g: g)
    x = leaf()
    y = x * 1
    same.apply(y).mul_(3)
    assert y.tolist() == [1.0] * 3


@pytest.mark.parametrize("fill", ["normal_", "uniform_", "exponential_", "bernoulli_"])
def test_random_fills_forget_what_was_before(fill: str) -> None:
    x = leaf()
    y = x + 1
    getattr(y, fill)()
    (y * x).sum().backward()
    assert x.grad.tolist() == y.detach().tolist()


def test_views_made_under_no_grad_are_refused() -> None:
    y = leaf() * 1
    with mt.no_grad():
        view = y[:2]
    with pytest.raises(mt.GraphError, match="made under no_grad and cannot be changed while"):
        view.mul_(5)


@pytest.mark.parametrize("write", [lambda v: v.zero_(), lambda v: v.mul_(3)])
def test_bases_in_another_memory_order(write: Callable[[Any], Any]) -> None:
    x = mt.ones(2, 3, requires_grad=True)
    y = x.T * 2
    write(y.T.reshape(-1))
    factor = y[0, 0].item()
    y.sum().backward()
    assert x.grad.tolist() == [[factor] * 3] * 2


INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "x[i]": lambda x, i: x[i],
    "gather": lambda x, i: x.gather(0, i),
    "index_select": lambda x, i: x.index_select(0, i),
    "scatter_add": lambda x, i: mt.zeros(3).scatter_add(0, i, x[:2]),
    "setitem": lambda x, i: _at(mt.zeros(3), i, x[:2]),
}


def _at(z: Any, i: Any, value: Any) -> Any:
    z[i] = value
    return z * mt.tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize("name", INDEXED)
def test_the_caller_may_write_his_index_afterwards(name: str) -> None:
    grads = []
    for write in (False, True):
        x, i = leaf(), mt.tensor([0, 2])
        y = INDEXED[name](x, i)
        if write:
            i.fill_(1)
        y.sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_sorted_indices_may_be_written() -> None:
    x = mt.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, indices = x.sort()
    indices.zero_()
    (values * mt.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0, 2.0]


def test_a_numpy_operand_may_be_written_afterwards() -> None:
    x, a = leaf(), np.ones(3, dtype=np.float32)
    y = x * a
    a[:] = 7
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_assigned_data_shares_its_version() -> None:
    p, v = leaf(), mt.full((3,), 2.0)
    p.data = v
    y = (p * p).sum()
    v.mul_(10)
    with pytest.raises(mt.GraphError, match="mul_ changed it in place"):
        y.backward()
    with pytest.raises(mt.DtypeError, match="holds floats"):
        p.data = mt.arange(3)


def test_exported_memory_is_a_copy() -> None:
    x = leaf()
    y = x * 2
    out = np.from_dlpack(y.detach())
    out[:] = 9
    assert y.tolist() == [2.0] * 3


@pytest.mark.parametrize("index", [lambda: mt.tensor(1), lambda: 1])
def test_a_position_gives_a_view(index: Callable[[], Any]) -> None:
    x = mt.ones(2, 2)
    x[index()].zero_()
    x.diagonal().fill_(5)
    assert x.tolist() == [[5.0, 1.0], [0.0, 5.0]]


def test_frozen_operands_are_not_kept() -> None:
    h, frozen = leaf() * 1, mt.full((3,), 2.0)
    for y in (h * frozen, h * 1.5, h / 2.0, h @ frozen):
        assert not any(a is h._array for a in y.grad_fn.saved)
    y = h * 2
    h.add_(1)
    y.sum().backward()


LAYERS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "linear": (mt.nn.functional.linear, (4, 3), (2, 3)),
    "convolution": (mt.nn.functional.conv2d, (2, 3, 4, 4), (5, 3, 2, 2)),
}


@pytest.mark.parametrize("frozen", [0, 1], ids=["frozen input", "frozen weight"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_keep_only_the_factor_that_a_gradient_needs(layer: str, frozen: int) -> None:
    call, *shapes = LAYERS[layer]
    factors = [mt.randn(*shape) for shape in shapes]
    moving = factors[1 - frozen].requires_grad_()
    factors[1 - frozen] = moved = moving * 1
    bias = mt.randn(shapes[1][0], requires_grad=True)
    y = call(*factors, bias)
    kept = [a for a in y.grad_fn.saved if isinstance(a, np.ndarray) and any(a.strides)]
    kept = [a for a in kept if a is not bias._array]  # which the graph's end holds anyway
    assert [a is factors[frozen]._array for a in kept] == [True]
    with mt.no_grad():
        moved.mul_(7)  # nobody needs the old values
        bias.mul_(7)
    (g,) = mt.autograd.grad((y * y.detach()).sum(), moving, create_graph=True)
    assert g.shape == moving.shape
    factors[1 - frozen] = fresh = moving.detach().requires_grad_()
    (wanted,) = mt.autograd.grad((call(*factors) * y.detach()).sum(), fresh)
    np.testing.assert_allclose(g.numpy(force=True), wanted.numpy(), rtol=1e-5)


def test_functions_and_retained_gradients_make_no_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        before = sum(type(o) is Node for o in gc.get_objects())
        bare = _function(lambda ctx, x: x * 1, lambda ctx, g: g)

        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        saving = _function(forward, lambda ctx, g: g * ctx.saved_tensors[0])
        x = leaf()
        for _ in range(5):
            y = saving.apply(bare.apply(x)) * 1
            y.retain_grad()
            y.sum().backward()
        del y
        assert sum(type(o) is Node for o in gc.get_objects()) == before
    finally:
        gc.enable()


def test_post_accumulate_hooks_are_not_pickled() -> None:
    p = leaf()
    p.register_post_accumulate_grad_hook(lambda t: None)
    assert pickle.loads(pickle.dumps(p)).tolist() == copy.deepcopy(p).tolist() == p.tolist()


def test_axes_of_length_one_can_be_written() -> None:
    p = mt.Parameter(mt.zeros(2, 3)[None])
    with mt.no_grad():
        p.add_(1)
    assert p.sum().item() == 6


def test_dead_units_pass_nothing() -> None:
    x = mt.tensor([-1.0, 1.0], requires_grad=True)
    x.relu().backward(mt.tensor([float("inf"), 1.0]))
    assert x.grad.tolist() == [0.0, 1.0]
