"""The protocol: groups, names, hooks, state dicts, half precision, and the errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optim_cases import CASES, IDS, arrays, backward, parameters, values

import minitorch as mt
from minitorch import nn, optim

SHAPES: list[tuple[int, ...]] = [(3, 4), (4,), (3, 4)]


def run(params: list[Any], optimizer: Any, steps: int, seed: int = 0) -> None:
    for i in range(steps):
        optimizer.zero_grad()
        backward(params, arrays([p.shape for p in params], seed=seed + i))
        optimizer.step()


def named(names: str = "abc") -> list[tuple[str, Any]]:
    return list(zip(names, parameters(arrays(SHAPES)), strict=True))


# ---- groups and names ----------------------------------------------------------------------------


def test_groups_take_defaults_and_keep_their_own_options() -> None:
    a, b, c = parameters(arrays(SHAPES))
    optimizer = optim.Adam([{"params": a}, {"params": [b, c], "lr": 0.5, "name": "head"}], lr=0.1)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5]
    assert [g["betas"] for g in optimizer.param_groups] == [(0.9, 0.999)] * 2
    assert [g["names"] for g in optimizer.param_groups] == [["param_0"], ["param_1", "param_2"]]
    assert optimizer.param_groups[1]["name"] == "head"
    assert optimizer.defaults["lr"] == 0.1


def test_names_come_from_pairs_or_later_from_the_model() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    names = [n for n, _ in model.named_parameters()]
    assert optim.SGD(model.named_parameters()).param_groups[0]["names"] == names
    optimizer = optim.SGD(model.parameters())
    optimizer.name_parameters(model.named_parameters())
    assert optimizer.param_groups[0]["names"] == names


def test_state_is_made_on_the_first_step() -> None:
    params = parameters(arrays(SHAPES))
    optimizer = optim.Adam(params)
    assert not optimizer.state
    run(params, optimizer, 1)
    assert set(optimizer.state[params[0]]) == {"step", "exp_avg", "exp_avg_sq"}


def test_closure_runs_with_recording_on() -> None:
    (p,) = parameters([np.ones(3, np.float32)])
    optimizer = optim.SGD([p], lr=1.0)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * 2).sum()
        loss.backward()
        return loss

    with mt.no_grad():
        assert optimizer.step(closure).item() == 6.0
    np.testing.assert_array_equal(values([p])[0], -1.0)


def test_hooks_run_in_order_and_can_be_removed() -> None:
    params = parameters(arrays(SHAPES))
    optimizer = optim.SGD(params)
    seen: list[str] = []
    handle = optimizer.register_step_pre_hook(lambda o, a, k: seen.append("before"))
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(f"after {o.updates}"))
    run(params, optimizer, 1)
    handle.remove()
    run(params, optimizer, 1)
    assert seen == ["before", "after 1", "after 2"]


def test_a_pre_hook_can_change_the_arguments() -> None:
    params = parameters(arrays(SHAPES))
    optimizer = optim.SGD(params)
    optimizer.register_step_pre_hook(lambda o, a, k: ((lambda: mt.tensor(7.0),), {}))
    assert optimizer.step().item() == 7.0


def test_an_optimizer_of_the_users_own() -> None:
    class Signs(optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @mt.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self.state[p]["count"] = self.state[p].get("count", 0) + 1
                        self.state[p]["last"] = p.grad.clone()
                        p.add_(p.grad.sign(), alpha=-group["lr"])

    pairs = named()
    params = [p for _, p in pairs]
    optimizer = Signs(pairs, 0.5)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    before = values(params)
    run(params, optimizer, 1)
    schedule.step()
    assert np.allclose(abs(values(params)[0] - before[0]), 0.5)
    assert optimizer.updates == 1
    twin = Signs(named(), 0.1)
    twin.load_state_dict(optimizer.state_dict())
    state = twin.state[twin.param_groups[0]["params"][0]]
    assert state["count"] == 1
    np.testing.assert_array_equal(state["last"].numpy(), params[0].grad.numpy())
    assert twin.param_groups[0]["lr"] == 0.25


def test_repr_lists_the_options_of_each_group() -> None:
    text = repr(optim.SGD(parameters(arrays(SHAPES)), lr=0.5, momentum=0.9))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n    lr: 0.5\n")
    assert "names" not in text


# ---- state dict ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_resume_is_bit_exact(name: str, options: dict[str, Any]) -> None:
    pairs = named()
    params = [p for _, p in pairs]
    optimizer = getattr(optim, name)(pairs, **options)
    run(params, optimizer, 3)
    saved, weights = optimizer.state_dict(), values(params)
    run(params, optimizer, 3, seed=3)
    again = list(zip("abc", parameters(weights), strict=True))
    resumed = getattr(optim, name)(again, lr=0.123)
    resumed.load_state_dict(saved)
    run([p for _, p in again], resumed, 3, seed=3)
    for a, b in zip(values(params), values([p for _, p in again]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_loading_into_a_run_that_is_under_way() -> None:
    pairs = named()
    params = [p for _, p in pairs]
    optimizer = optim.Adam(pairs)
    run(params, optimizer, 2)
    saved, weights = optimizer.state_dict(), values(params)
    run(params, optimizer, 3, seed=2)
    expected = values(params)
    with mt.no_grad():
        for p, w in zip(params, weights, strict=True):
            p.copy_(mt.tensor(w))
    optimizer.load_state_dict(saved)
    run(params, optimizer, 3, seed=2)
    for a, b in zip(values(params), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_state_dict_is_a_snapshot_of_plain_values() -> None:
    pairs = named()
    params = [p for _, p in pairs]
    optimizer = optim.AdamW(pairs)
    run(params, optimizer, 2)
    saved = optimizer.state_dict()
    moment = saved["state"]["a"]["exp_avg"].numpy().copy()
    json.dumps(saved["param_groups"])
    assert saved["param_groups"][0]["params"] == ["a", "b", "c"]
    assert saved["param_groups"][0]["shapes"] == [[3, 4], [4], [3, 4]]
    assert saved["state"]["a"]["step"] == saved["updates"] == 2
    run(params, optimizer, 1)
    np.testing.assert_array_equal(saved["state"]["a"]["exp_avg"].numpy(), moment)


def test_state_goes_by_name_whatever_the_order() -> None:
    pairs = named()
    optimizer = optim.Adam(pairs)
    run([p for _, p in pairs], optimizer, 2)
    other = named()[::-1]
    twin = optim.Adam([{"params": other[:1]}, {"params": other[1:], "lr": 0.5}])
    with pytest.raises(mt.CheckpointError, match="grouped in another way"):
        twin.load_state_dict(optimizer.state_dict())
    twin = optim.Adam(other)
    twin.load_state_dict(optimizer.state_dict())
    for (name, p), (_, q) in zip(pairs, other[::-1], strict=True):
        ours, theirs = optimizer.state[p]["exp_avg"], twin.state[q]["exp_avg"]
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=name)


def test_groups_match_by_their_members() -> None:
    a, b, c = named()
    optimizer = optim.SGD([{"params": [a], "lr": 0.1}, {"params": [b, c], "lr": 0.2}])
    a, b, c = named()
    twin = optim.SGD([{"params": [c, b]}, {"params": [a]}])
    twin.load_state_dict(optimizer.state_dict())
    assert [g["lr"] for g in twin.param_groups] == [0.2, 0.1]
    assert twin.param_groups[0]["names"] == ["c", "b"]


def test_tuples_come_back_as_tuples() -> None:
    optimizer = optim.Adam(named(), betas=(0.5, 0.6))
    twin = optim.Adam(named())
    twin.load_state_dict(json.loads(json.dumps(optimizer.state_dict())))
    assert twin.param_groups[0]["betas"] == (0.5, 0.6)


def test_parameters_without_state_stay_without() -> None:
    pairs = named()
    optimizer = optim.Adam(pairs)
    saved = optimizer.state_dict()
    run([p for _, p in pairs], optimizer, 2)
    optimizer.load_state_dict(saved)
    assert not optimizer.state


# ---- half precision ------------------------------------------------------------------------------

HALVES = [mt.float16, mt.bfloat16]


def half(dtype: Any) -> tuple[Any, Any]:
    p = nn.Parameter(mt.ones(4, dtype=dtype))
    return p, optim.SGD([p], lr=1e-4)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_half_parameters_have_float32_state(name: str, dtype: Any) -> None:
    p = nn.Parameter(mt.zeros(4, dtype=dtype))
    optimizer = getattr(optim, name)([p])
    p.grad = mt.zeros(4, dtype=dtype)
    optimizer.step()
    tensors = [v for v in optimizer.state[p].values() if isinstance(v, mt.Tensor)]
    assert {t.dtype for t in tensors} == {mt.float32}
    assert p.dtype is dtype
    assert bool(p.isfinite().all())


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_small_updates_are_not_lost(dtype: Any) -> None:
    p, optimizer = half(dtype)
    for _ in range(100):
        p.grad = mt.ones(4, dtype=dtype)
        optimizer.step()
    np.testing.assert_allclose(optimizer.state[p]["master"].numpy(), 0.99, rtol=1e-5)
    np.testing.assert_allclose(p.detach().float().numpy(), 0.99, rtol=4e-3)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_half_parameter_that_was_written_leads(dtype: Any) -> None:
    p, optimizer = half(dtype)
    p.grad = mt.ones(4, dtype=dtype)
    optimizer.step()
    with mt.no_grad():
        p[:2] = 5.0
    optimizer.step()
    np.testing.assert_allclose(
        optimizer.state[p]["master"].numpy(), [4.9999, 4.9999, 0.9998, 0.9998], rtol=1e-6
    )


def test_half_resume_keeps_the_master_copy() -> None:
    p, optimizer = half(mt.bfloat16)
    p.grad = mt.ones(4, dtype=mt.bfloat16)
    optimizer.step()
    q = nn.Parameter(p.detach().clone())
    twin = optim.SGD([q])
    twin.load_state_dict(optimizer.state_dict())
    q.grad = p.grad
    optimizer.step()
    twin.step()
    np.testing.assert_array_equal(
        optimizer.state[p]["master"].numpy(), twin.state[q]["master"].numpy()
    )


# ---- errors --------------------------------------------------------------------------------------


def used_up() -> Any:
    generator = (p for p in parameters(arrays(SHAPES)))
    list(generator)
    return generator


def twice() -> list[Any]:
    (p,) = parameters([np.ones(3, np.float32)])
    return [p, p]


def in_two_groups() -> list[Any]:
    (p,) = parameters([np.ones(3, np.float32)])
    return [{"params": [("w", p)]}, {"params": [("v", p)]}]


def one() -> list[Any]:
    return parameters([np.ones(3, np.float32)])


PROGRAMS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a tensor": (lambda: optim.SGD(one()[0]), mt.ArgumentError, r"iterable.*Got f32\[3\].*list"),
    "a number": (lambda: optim.SGD(3), mt.ArgumentError, "iterable of parameters.*Got int"),
    "one group": (
        lambda: optim.SGD({"params": one()}),
        mt.ArgumentError,
        "of group dicts. Got dict",
    ),
    "nothing": (lambda: optim.SGD([]), mt.ArgumentError, "the parameter list is empty"),
    "used generator": (lambda: optim.Adam(used_up()), mt.ArgumentError, "used before gives"),
    "empty group": (
        lambda: optim.SGD([{"params": []}]),
        mt.ArgumentError,
        "a group has no parameters",
    ),
    "no params": (
        lambda: optim.SGD([{"lr": 0.1}]),
        mt.ArgumentError,
        r"a group is a dict with 'params'.*Write \{'params'",
    ),
    "not tensors": (
        lambda: optim.SGD([np.ones(3)]),
        mt.ArgumentError,
        r"params must be tensors.*Got f64\[3\].*model\.parameters",
    ),
    "not a leaf": (
        lambda: optim.SGD([one()[0] * 2]),
        mt.GraphError,
        r"only leaves can be optimized.*f32\[3\], the result of MulBackward",
    ),
    "integers": (
        lambda: optim.SGD([mt.ones(3, dtype=mt.int64)]),
        mt.DtypeError,
        r"must be floating. Got i64\[3\]",
    ),
    "twice": (lambda: optim.SGD(twice()), mt.ArgumentError, "'param_1' came before as 'param_0'"),
    "two groups": (lambda: optim.SGD(in_two_groups()), mt.ArgumentError, "'v' came before as 'w'"),
    "one name": (
        lambda: optim.SGD([("w", one()[0]), ("w", one()[0])]),
        mt.ArgumentError,
        "two parameters are named 'w'",
    ),
    "learning_rate": (
        lambda: optim.SGD([{"params": one(), "learning_rate": 1}]),
        mt.ArgumentError,
        "unknown option 'learning_rate' in a parameter group. Did you mean 'lr'?",
    ),
    "wieght_decay": (
        lambda: optim.Adam([{"params": one(), "wieght_decay": 1}]),
        mt.ArgumentError,
        "unknown option 'wieght_decay'.*Did you mean 'weight_decay'?",
    ),
    "momentum of Adam": (
        lambda: optim.Adam([{"params": one(), "momentum": 1}]),
        mt.ArgumentError,
        "unknown option 'momentum'.*Options: amsgrad, betas",
    ),
    "negative lr": (
        lambda: optim.SGD(one(), lr=-1),
        mt.ArgumentError,
        "SGD: lr must be a number, at least 0. Got -1",
    ),
    "lr in a group": (
        lambda: optim.SGD([{"params": one(), "lr": -1}]),
        mt.ArgumentError,
        "SGD: lr must be",
    ),
    "NaN lr": (lambda: optim.Adam(one(), lr=float("nan")), mt.ArgumentError, "lr must.*Got nan"),
    "text lr": (lambda: optim.Adam(one(), lr="auto"), mt.ArgumentError, "lr must.*Got 'auto'"),
    "betas": (
        lambda: optim.Adam(one(), betas=(0.9, 1.0)),
        mt.ArgumentError,
        r"betas\[1\] must be a number, at least 0 and below 1. Got 1.0",
    ),
    "one beta": (lambda: optim.AdamW(one(), betas=0.9), mt.ArgumentError, "AdamW: betas must be"),
    "eps": (lambda: optim.Adam(one(), eps=-1e-8), mt.ArgumentError, "Adam: eps must be"),
    "weight_decay": (
        lambda: optim.AdamW(one(), weight_decay=-1),
        mt.ArgumentError,
        "AdamW: weight_decay",
    ),
    "nesterov": (
        lambda: optim.SGD(one(), nesterov=True),
        mt.ArgumentError,
        "nesterov needs momentum above 0 and dampening 0. Got momentum 0",
    ),
    "dampening": (
        lambda: optim.SGD(one(), nesterov=True, momentum=0.9, dampening=0.1),
        mt.ArgumentError,
        "nesterov needs.*dampening 0.1",
    ),
    "alpha": (lambda: optim.RMSprop(one(), alpha=-1), mt.ArgumentError, "RMSprop: alpha must be"),
    "lr_decay": (
        lambda: optim.Adagrad(one(), lr_decay=-1),
        mt.ArgumentError,
        "Adagrad: lr_decay must be",
    ),
    "state of nothing": (
        lambda: optim.SGD(one()).load_state_dict({}),
        mt.CheckpointError,
        "a dict with 'state' and 'param_groups' is needed",
    ),
    "no step": (
        lambda: optim.Optimizer(one(), {}).step(),
        NotImplementedError,
        r"Optimizer must override step\(\)",
    ),
}


@pytest.mark.parametrize(("program", "error", "text"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_wrong_programs(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"(?s){text}"):
        program()


def test_names_must_stay_apart() -> None:
    a, b = parameters(arrays([(2,), (3,)]))
    optimizer = optim.SGD([a, b])
    with pytest.raises(mt.ArgumentError, match="two parameters are named 'param_1'"):
        optimizer.name_parameters([("param_1", a)])
    assert optimizer.param_groups[0]["names"] == ["param_0", "param_1"]


def test_a_wrong_state_lists_everything_that_differs() -> None:
    saved = optim.Adam(named("abx")).state_dict()
    saved["param_groups"][0]["shapes"][0] = [9, 9]
    with pytest.raises(mt.CheckpointError) as caught:
        optim.Adam(named("abc")).load_state_dict(saved)
    text = str(caught.value)
    assert "missing: c; unexpected: x; of another shape: a [9, 9] → [3, 4]" in text
    assert "name_parameters(model.named_parameters())" in text


def test_parameters_and_names_must_agree_in_number() -> None:
    optimizer = optim.SGD(one())
    optimizer.param_groups[0]["params"] += one()
    with pytest.raises(mt.ArgumentError, match="2 parameters and 1 names. Add parameters with"):
        optimizer.state_dict()


def test_a_pre_hook_with_a_wrong_result() -> None:
    optimizer = optim.SGD(one())
    optimizer.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(mt.ArgumentError, match=r"None or \(args, kwargs\). Got int"):
        optimizer.step()
