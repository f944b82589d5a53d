"""Packed memory is never noticed: no alias goes stale, no kept gradient changes, no bit differs."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optim_cases import CASES, IDS, arrays, backward, parameters, values

import minitorch as mt
from minitorch import nn, optim
from minitorch.optim import flat

SHAPES: list[tuple[int, ...]] = [(3, 4), (96, 100), (4,), (), (5, 2)]


def step(params: list[Any], optimizer: Any, seed: int = 0, zero: bool = True) -> None:
    if zero:
        optimizer.zero_grad()
    backward(params, arrays([p.shape for p in params], params[0]._array.dtype, seed))
    optimizer.step()


def packed(params: list[Any]) -> list[bool]:
    """Which parameters lie in a pack."""
    return [p._grad_slot is not None and p._array is p._grad_slot.array for p in params]


def fresh(cls: Any = optim.Adam, **options: Any) -> tuple[list[Any], Any]:
    params = parameters(arrays(SHAPES))
    return params, cls(params, **({"lr": 0.1} | options))


@pytest.fixture
def no_packs(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(flat, "is_movable", lambda tensor: False)


# ---- equality ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_packed_and_unpacked_agree_bit_for_bit(
    name: str, options: dict[str, Any], no_packs: Callable[[], None]
) -> None:
    def run() -> tuple[list[np.ndarray], list[bool]]:
        params = parameters(arrays(SHAPES))
        optimizer = getattr(optim, name)(params, **options)
        for i in range(6):
            gradients: list[Any] = arrays(SHAPES, seed=i)
            gradients[i % 5] = None if i % 2 else gradients[i % 5]
            optimizer.zero_grad()
            backward(params, gradients)
            norm = nn.utils.clip_grad_norm_(params, 3.0)
            optimizer.step()
        return [*values(params), norm.numpy()], packed(params)

    together, is_packed = run()
    no_packs()
    apart, is_not = run()
    assert all(is_packed)
    assert not any(is_not)
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


def test_small_gradients_lie_in_the_pack_and_large_ones_stay() -> None:
    params, optimizer = fresh()
    step(params, optimizer)
    step(params, optimizer)
    assert all(packed(params))
    in_slot = [p.grad._array is p._grad_slot.grad for p in params]
    assert in_slot == [p._array.size < flat.LARGE for p in params]


def test_every_slot_starts_on_a_cache_line() -> None:
    params, optimizer = fresh()
    step(params, optimizer)
    assert all(p.data_ptr() % flat.ALIGN_BYTES == 0 for p in params)


def test_accumulated_gradients_are_summed() -> None:
    params, optimizer = fresh(optim.SGD)
    step(params, optimizer)
    optimizer.zero_grad()
    first, second = arrays(SHAPES, seed=1), arrays(SHAPES, seed=2)
    backward(params, first)
    backward(params, second)
    for p, a, b in zip(params, first, second, strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), a + b)


# ---- (a) parameters without gradient -------------------------------------------------------------


def test_parameters_without_gradient_and_frozen_ones_rest() -> None:
    params, optimizer = fresh(optim.AdamW, weight_decay=0.5)
    step(params, optimizer)
    step(params, optimizer)
    before = values(params)
    steps = [optimizer.state[p]["step"] for p in params]
    gradients: list[Any] = arrays(SHAPES)
    gradients[2] = None
    optimizer.zero_grad()
    backward(params, gradients)
    params[0].requires_grad_(False)
    optimizer.step()
    moved = [not np.array_equal(a, b) for a, b in zip(values(params), before, strict=True)]
    assert moved == [False, True, False, True, True]
    assert [optimizer.state[p]["step"] - s for p, s in zip(params, steps, strict=True)] == moved


def test_zeroed_gradients_are_gradients() -> None:
    params, optimizer = fresh(optim.SGD, momentum=0.9)
    step(params, optimizer)
    step(params, optimizer)
    before = values(params)
    optimizer.zero_grad(set_to_none=False)
    assert all(not p.grad.numpy().any() for p in params)
    optimizer.step()
    assert all(not np.array_equal(a, b) for a, b in zip(values(params), before, strict=True))


# ---- (b) users keep gradients --------------------------------------------------------------------

KEEPERS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda p: p.grad,
    "detached": lambda p: p.grad.detach(),
    "numpy": lambda p: p.grad.numpy(),
    "view of a view": lambda p: p.grad.numpy().reshape(-1)[:1],
    "tensor view": lambda p: p.grad.reshape(-1)[:1],
    "memoryview": lambda p: memoryview(p.grad.numpy()),
}


@pytest.mark.parametrize("keep", KEEPERS.values(), ids=KEEPERS.keys())
def test_kept_gradients_do_not_change(keep: Callable[[Any], Any]) -> None:
    params, optimizer = fresh()
    step(params, optimizer)
    step(params, optimizer, 1)
    kept = [keep(p) for p in params]
    copies = [np.array(k) for k in kept]
    for i in range(3):
        step(params, optimizer, i)
    for k, c in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(np.array(k), c)


def test_one_kept_gradient_costs_only_its_own_slot() -> None:
    params, optimizer = fresh()
    step(params, optimizer)
    step(params, optimizer)
    kept = params[0].grad
    step(params, optimizer)
    in_slot = [p.grad._array is p._grad_slot.grad for p in params]
    assert in_slot == [False, False, True, True, True]
    del kept
    step(params, optimizer)
    assert params[0].grad._array is params[0]._grad_slot.grad


@pytest.mark.parametrize("assigned", [0, 1, 4])
def test_gradients_that_a_user_assigns_are_used(assigned: int) -> None:
    params, optimizer = fresh(optim.SGD)
    step(params, optimizer)
    step(params, optimizer)
    before = values(params)
    optimizer.zero_grad()
    gradients = arrays(SHAPES, seed=7)
    backward(params, gradients)
    own = mt.tensor(np.full(SHAPES[assigned], 2.0, np.float32))
    params[assigned].grad = own
    optimizer.step()
    for i, (p, b, g) in enumerate(zip(params, before, gradients, strict=True)):
        used = np.float32(2.0) if i == assigned else g
        np.testing.assert_array_equal(p.detach().numpy(), b - used * np.float32(0.1))
    assert params[assigned].grad is own
    assert (own.numpy() == 2.0).all()


def test_shared_gradient_tensors_stay_apart() -> None:
    params = parameters(arrays([(4,), (4,)]))
    optimizer = optim.SGD(params, lr=0.1)
    step(params, optimizer)
    step(params, optimizer)
    params[1].grad = params[0].grad
    before = values(params)
    optimizer.step()
    for a, b in zip(values(params), before, strict=True):
        np.testing.assert_array_equal(a, b - params[0].grad.numpy() * np.float32(0.1))


# ---- (c) parameters that move --------------------------------------------------------------------


def replaced(params: list[Any]) -> None:
    for p in params:
        p.data = p.data.clone()


def partly_replaced(params: list[Any]) -> None:
    params[0].data = params[0].data * 1.0
    params[3].data = params[3].data * 1.0


def written(params: list[Any]) -> None:
    with mt.no_grad():
        for p in params:
            p.copy_(p * 1.0)


def swapped_and_back(params: list[Any]) -> None:
    kept = [p.data for p in params]
    for p in params:
        p.data = mt.zeros(*p.shape)
    for p, k in zip(params, kept, strict=True):
        p.data = k


@pytest.mark.parametrize("move", [replaced, partly_replaced, written, swapped_and_back])
def test_moved_parameters_are_followed(move: Callable[[list[Any]], None]) -> None:
    (params, optimizer), (others, reference) = fresh(), fresh()
    for i in range(12):
        if i in (2, 3, 7):
            move(params)
        step(params, optimizer, i)
        step(others, reference, i)
    for a, b in zip(values(params), values(others), strict=True):
        np.testing.assert_array_equal(a, b)
    assert all(packed(params))


def test_replacing_at_every_step_does_not_pack_at_every_step() -> None:
    params, optimizer = fresh()
    packs = set()
    for i in range(40):
        replaced(params)
        step(params, optimizer, i)
        packs |= {id(p._grad_slot) for p in params if p._grad_slot is not None}
    assert optimizer._pause >= 32


def test_state_follows_a_change_of_dtype() -> None:
    model = nn.Linear(4, 3)
    optimizer = optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(mt.ones(2, 4)).sum().backward()
        optimizer.step()
    model.double()
    model.zero_grad()
    model(mt.ones(2, 4, dtype=mt.float64)).sum().backward()
    optimizer.step()
    state = optimizer.state[model.weight]
    assert state["step"] == 4
    assert state["exp_avg"].dtype is mt.float64
    assert model.weight.dtype is mt.float64


def test_another_shape_is_an_error() -> None:
    params, optimizer = fresh()
    step(params, optimizer)
    params[0].data = mt.ones(2, 2)
    params[0].grad = mt.ones(2, 2)
    with pytest.raises(mt.ShapeError, match=r"state 'exp_avg' has the shape \[3, 4\].*f32\[2,2\]"):
        optimizer.step()


def test_two_optimizers_share_parameters_without_stealing() -> None:
    params, first = fresh(optim.SGD, momentum=0.9)
    second = optim.Adam(params, lr=0.01)
    (others, a), b = fresh(optim.SGD, momentum=0.9), None
    b = optim.Adam(others, lr=0.01)
    for i in range(6):
        step(params, first if i % 2 else second, i)
        step(others, a if i % 2 else b, i)
        if i == 1:
            slots = [p._grad_slot for p in params]
    assert all(p._grad_slot is s for p, s in zip(params, slots, strict=True))
    for x, y in zip(values(params), values(others), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_new_optimizer_takes_over_from_one_that_is_gone() -> None:
    params, optimizer = fresh()
    step(params, optimizer)
    del optimizer
    gc.collect()
    optimizer = optim.Adam(params)
    step(params, optimizer)
    assert all(packed(params))
    assert all(p._grad_slot.owner() is optimizer for p in params)


def test_tied_parameters_count_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

    model = Tied()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    for _ in range(3):
        before = model.a.weight.detach().numpy().copy()
        optimizer.zero_grad()
        model.b(model.a(mt.ones(1, 4))).sum().backward()
        gradient = model.a.weight.grad.numpy().copy()
        optimizer.step()
        assert model.b.weight is model.a.weight
        np.testing.assert_array_equal(model.a.weight.detach().numpy(), before - gradient)


def test_groups_added_later_are_packed_too() -> None:
    params, optimizer = fresh()
    for i in range(3):
        step(params, optimizer, i)
    more = parameters(arrays([(6,), (2, 2)]))
    optimizer.add_param_group({"params": more, "lr": 0.5})
    step(params + more, optimizer)
    assert all(packed(params + more))


# ---- (d) other tensors over the parameter's memory -----------------------------------------------

ALIASES: dict[str, Callable[[Any], Any]] = {
    "detach": lambda p: p.detach(),
    "data": lambda p: p.data,
    "row": lambda p: p.detach()[0],
    "reshaped": lambda p: p.detach().reshape(-1),
    "numpy": lambda p: p.detach().numpy(),
    "numpy row": lambda p: p.detach().numpy()[0],
}


@pytest.mark.parametrize("when", [0, 2])
@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES.keys())
def test_aliases_go_on_seeing_the_parameter(alias: Callable[[Any], Any], when: int) -> None:
    params = parameters(arrays([(3, 4), (4,), (5,)]))
    optimizer = optim.Adam(params, lr=0.1)
    seen: Any = None
    for i in range(5):
        if i == when:
            seen = alias(params[0])
        step(params, optimizer, i)
        if seen is not None:
            np.testing.assert_array_equal(np.array(seen), np.array(alias(params[0])))
    assert packed(params) == [when != 0, True, True]


def test_a_parameter_over_a_users_tensor_stays_there() -> None:
    mine = mt.ones(4)
    params = [nn.Parameter(mine), *parameters(arrays([(3,), (2,)]))]
    optimizer = optim.SGD(params, lr=0.1)
    step(params, optimizer)
    np.testing.assert_array_equal(mine.numpy(), params[0].detach().numpy())
    assert packed(params) == [False, True, True]


def test_two_parameters_over_one_memory() -> None:
    mine = mt.ones(4)
    params = [nn.Parameter(mine), nn.Parameter(mine), *parameters(arrays([(3,), (2,)]))]
    optimizer = optim.SGD(params, lr=0.5)
    for p in params:
        p.grad = mt.ones(*p.shape)
    optimizer.step()
    np.testing.assert_array_equal(mine.numpy(), 0.0)
    np.testing.assert_array_equal(params[1].detach().numpy(), 0.0)


def test_views_in_memory_of_their_own_are_packed() -> None:
    params = [nn.Parameter(mt.arange(6.0).reshape(2, 3)), nn.Parameter(mt.ones(3, 2).T.clone())]
    optimizer = optim.SGD(params, lr=0.1)
    step(params, optimizer)
    assert all(packed(params))


@pytest.mark.parametrize("order", ["transposed", "strided"])
def test_parameters_that_are_not_contiguous(order: str) -> None:
    base = mt.tensor(arrays([(4, 6)])[0])
    view = base.T if order == "transposed" else base[:, ::2]
    expected = view.numpy().copy()
    p = nn.Parameter(view)
    optimizer = optim.SGD([p], lr=1.0)
    g = arrays([tuple(p.shape)], seed=3)[0]
    p.grad = mt.tensor(g)
    optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), expected - g)
    again = base.T if order == "transposed" else base[:, ::2]
    np.testing.assert_array_equal(again.numpy(), expected - g)


def test_an_expanded_parameter_is_an_error() -> None:
    p = nn.Parameter(mt.ones(1, 3).expand(2, 3))
    p.grad = mt.ones(2, 3)
    with pytest.raises(mt.ShapeError, match=r"memory of its own for every element.*f32\[2,3\]"):
        optim.SGD([p], lr=0.1).step()


def test_kept_state_arrays_stay_true() -> None:
    params, optimizer = fresh()
    optimizer._until_pack = 2
    step(params, optimizer)
    kept = optimizer.state[params[0]]["exp_avg"].numpy()
    for i in range(4):
        step(params, optimizer, i)
        np.testing.assert_array_equal(kept, optimizer.state[params[0]]["exp_avg"].numpy())
    assert packed(params) == [False, True, True, True, True]


def test_state_that_a_user_replaces_is_used() -> None:
    params, optimizer = fresh(optim.SGD, momentum=1.0, lr=1.0)
    step(params, optimizer)
    step(params, optimizer)
    before = values(params)
    optimizer.state[params[0]]["momentum_buffer"] = mt.zeros(*SHAPES[0])
    del optimizer.state[params[2]]
    for p in params:
        p.grad = mt.ones(*p.shape)
    optimizer.step()
    for i in (0, 2):
        np.testing.assert_array_equal(values(params)[i], before[i] - np.float32(1.0))


# ---- (e) copies ----------------------------------------------------------------------------------


def by_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.deepcopy, by_pickle], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_copies_of_model_and_optimizer_go_on_alike(name: str, copied: Callable[[Any], Any]) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    optimizer = getattr(optim, name)(model.named_parameters())
    x = mt.tensor(arrays([(5, 4)])[0])

    def go(m: Any, o: Any) -> None:
        for _ in range(3):
            o.zero_grad()
            (m(x) ** 2).sum().backward()
            o.step()

    go(model, optimizer)
    twin, twin_optimizer = copied((model, optimizer))
    assert twin_optimizer.param_groups[0]["params"][0] is next(iter(twin.parameters()))
    before = values(list(model.parameters()))
    go(twin, twin_optimizer)
    for a, b in zip(values(list(model.parameters())), before, strict=True):
        np.testing.assert_array_equal(a, b)
    go(model, optimizer)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert all(packed(list(twin.parameters())))


# ---- the graph notices ---------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 3])
def test_a_stale_graph_is_an_error(before: int) -> None:
    params, optimizer = fresh()
    for i in range(before):
        step(params, optimizer, i)
    loss = (params[0] * params[0]).sum()
    step(params, optimizer)
    with pytest.raises(mt.GraphError, match=r"Adam\.step changed it in place"):
        loss.backward()
