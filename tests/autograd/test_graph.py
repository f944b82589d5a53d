"""Recording, backward, and what becomes of the graph."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd.node import Node


def leaf(*values: float) -> Any:
    return mt.tensor(list(values), requires_grad=True)


def test_gradients_of_leaves_accumulate() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_a_value_used_many_times_gets_every_gradient() -> None:
    x = leaf(2.0)
    y = x * 1
    (y + y + y * y + y).sum().backward()
    assert x.grad.tolist() == [7.0]


def test_two_leaves_never_share_the_memory_of_their_gradients() -> None:
    a, b = leaf(1.0, 1.0), leaf(1.0, 1.0)
    (a + b).sum().backward()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("build", [lambda t: t + 1, lambda t: t * 1.0, lambda t: t.exp().log()])
def test_a_long_chain_needs_no_stack(build: Any) -> None:
    x = leaf(0.5)
    y = x
    for _ in range(100_000 if build(x).grad_fn.op.name != "log" else 20_000):
        y = build(y)
    y.sum().backward()
    assert x.grad.shape == (1,)


def test_an_unused_long_chain_is_freed_without_the_stack() -> None:
    y = leaf(0.5)
    for _ in range(200_000):
        y = y * 1.0
    del y


def test_a_kept_loss_keeps_no_graph() -> None:
    w = mt.randn(50, 50, requires_grad=True)
    arrays = []
    losses = []
    for _ in range(3):
        hidden = (w @ w).relu()
        arrays.append(weakref.ref(hidden._array))
        loss = (hidden * hidden).mean()
        loss.backward()
        del hidden
        losses.append(loss)
    assert [ref() for ref in arrays] == [None] * 3
    assert all(loss.numel() == 1 for loss in losses)


def test_nodes_die_with_their_tensors_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        before = sum(type(o) is Node for o in gc.get_objects())
        x = leaf(1.0, 2.0)
        for _ in range(10):
            y = (x.exp() * x).softmax(0).sum()
            y.backward()
        del y
        assert sum(type(o) is Node for o in gc.get_objects()) == before
    finally:
        gc.enable()


def test_a_consumed_graph_says_so() -> None:
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(mt.GraphError, match="graph of mul was consumed by an earlier backward"):
        y.backward()


def test_retain_graph_allows_another_backward() -> None:
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12.0]


def test_a_shared_part_that_saves_nothing_serves_twice() -> None:
    x = leaf(3.0)
    shared = x + 1
    (shared * 2).sum().backward()
    (shared * 3).sum().backward()
    assert x.grad.tolist() == [5.0]


def test_derivatives_of_any_order() -> None:
    x = mt.tensor(1.5, dtype=mt.float64, requires_grad=True)
    y = x**5
    for factor in (5, 20, 60, 120, 120):
        (y,) = mt.autograd.grad(y, x, create_graph=True)
        power = {5: 4, 20: 3, 60: 2, 120: 1}[factor]
        if factor == 120 and y.item() == 120:
            power = 0
        assert y.item() == pytest.approx(factor * 1.5**power)


def test_backward_with_create_graph_gives_gradients_with_a_graph() -> None:
    x = leaf(2.0)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (g,) = mt.autograd.grad(x.grad.sum(), x)
    assert g.tolist() == [12.0]


def test_grad_of_an_intermediate_value_goes_no_further_than_needed() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    used = (y * 1).sum()
    used.backward(retain_graph=True)
    z = y.exp().sum()
    (g,) = mt.autograd.grad(z, y)
    np.testing.assert_allclose(g.numpy(), np.exp([1.0, 4.0]), rtol=1e-6)
    assert x.grad.tolist() == [2.0, 4.0]


def test_grad_by_leaf_and_intermediate_at_once() -> None:
    x = leaf(2.0)
    y = x * 3
    z = (y * y).sum()
    gy, gx = mt.autograd.grad(z, [y, x])
    assert (gy.tolist(), gx.tolist()) == ([12.0], [36.0])


def test_grad_leaves_dot_grad_alone() -> None:
    x, y = leaf(1.0), leaf(2.0)
    mt.autograd.grad((x * y).sum(), x)
    assert x.grad is None
    assert y.grad is None


def test_unused_inputs() -> None:
    x, y = leaf(1.0), leaf(2.0)
    assert mt.autograd.grad((x * 1).sum(), [x, y], allow_unused=True)[1] is None
    zeros = mt.autograd.grad((x * 1).sum(), [x, y], materialize_grads=True)[1]
    assert zeros.tolist() == [0.0]


def test_backward_into_chosen_inputs() -> None:
    x, y = leaf(2.0), leaf(3.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [3.0]
    assert y.grad is None


def test_backward_of_several_outputs() -> None:
    x = leaf(2.0)
    mt.autograd.backward([x * 2, x * x], [mt.ones(1), mt.tensor([10.0])])
    assert x.grad.tolist() == [42.0]


MODES = [
    (mt.no_grad, False),
    (mt.inference_mode, False),
    (mt.enable_grad, True),
]


@pytest.mark.parametrize(("mode", "records"), MODES)
def test_modes_as_context_decorator_and_generator(mode: Any, records: bool) -> None:
    x = leaf(1.0)
    with mt.set_grad_enabled(not records):
        with mode():
            assert (x * 1).requires_grad is records
        assert (x * 1).requires_grad is not records

        @mode()
        def function() -> bool:
            return bool((x * 1).requires_grad)

        @mode
        def bare() -> bool:
            return bool((x * 1).requires_grad)

        @mode()
        def generator() -> Any:
            yield bool((x * 1).requires_grad)

        assert function() is records
        assert bare() is records
        for seen in generator():
            assert seen is records
            assert (x * 1).requires_grad is not records
        assert mt.is_grad_enabled() is not records


def test_modes_end_with_an_exception_and_nest() -> None:
    with pytest.raises(KeyError), mt.no_grad(), mt.enable_grad():
        raise KeyError
    assert mt.is_grad_enabled()


def test_a_mode_belongs_to_its_thread() -> None:
    seen = []
    with mt.no_grad():
        worker = threading.Thread(target=lambda: seen.append(mt.is_grad_enabled()))
        worker.start()
        worker.join()
    assert seen == [True]


def test_set_grad_enabled_as_a_statement() -> None:
    mt.set_grad_enabled(False)
    try:
        assert not mt.is_grad_enabled()
    finally:
        mt.set_grad_enabled(True)


def test_hooks_see_and_replace_gradients() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    x.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert x.grad.tolist() == [60.0, 120.0]
    handle.remove()
    handle.remove()


def test_a_hook_on_a_leaf_runs_once_with_the_sum() -> None:
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [5.0]


def test_post_accumulate_hook() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert seen == [2.0, 4.0]


def test_retain_grad() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    assert y.retains_grad


def test_mixed_dtypes_give_each_leaf_its_own() -> None:
    a = mt.tensor([1.0], dtype=mt.float16, requires_grad=True)
    b = mt.tensor([2.0], dtype=mt.float64, requires_grad=True)
    (a.double() * b).sum().backward()
    assert a.grad.dtype is mt.float16
    assert b.grad.dtype is mt.float64


def test_anomaly_mode_names_the_forward_line() -> None:
    x = leaf(-1.0)
    with mt.autograd.detect_anomaly():
        y = x.sqrt()  # the line that the message must name
        with pytest.raises(mt.GraphError, match=r"sqrt produced NaN.*test_graph.py:\d+.*x\.sqrt"):
            y.sum().backward()


def test_anomaly_mode_is_off_afterwards() -> None:
    with mt.autograd.detect_anomaly():
        pass
    assert (leaf(1.0) * 1).grad_fn.meta is None


def test_backward_is_silent_about_numpy_warnings() -> None:
    x = leaf(0.0)
    x.sqrt().sum().backward()
    assert x.grad.tolist() == [float("inf")]
