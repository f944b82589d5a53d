"""State, half precision, devices, frozen parameters and the errors of the later optimizers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from optim_cases import CASES, arrays, parameters, values

import minitorch as mt
from minitorch import nn, optim

MATRICES: list[tuple[int, ...]] = [(3, 4), (5, 2)]
SINGLE = ["Adafactor", "Muon", "SparseAdam"]
EVERY = sorted({name for name, _ in CASES}) + SINGLE


def give(params: list[Any], seed: int) -> None:
    for p, g in zip(params, arrays([p.shape for p in params], seed=seed), strict=True):
        p.grad = mt.tensor(g).to(p.device, p.dtype)


def quadratic(params: list[Any], optimizer: Any) -> Callable[[], Any]:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum(((p - 1) ** 2).sum() for p in params if p.requires_grad)
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("name", EVERY)
def test_a_resumed_run_goes_on_bit_for_bit(name: str) -> None:
    params = parameters(arrays(MATRICES))
    optimizer = getattr(optim, name)(params)
    for i in range(3):
        give(params, i)
        optimizer.step()
    saved, weights = optimizer.state_dict(), values(params)
    for i in range(3, 6):
        give(params, i)
        optimizer.step()
    others = parameters(weights)
    resumed = getattr(optim, name)(others)
    resumed.load_state_dict(saved)
    for i in range(3, 6):
        give(others, i)
        resumed.step()
    for a, b in zip(values(params), values(others), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [*EVERY, "LBFGS"])
def test_frozen_parameters_rest(name: str) -> None:
    params = parameters(arrays(MATRICES))
    optimizer = getattr(optim, name)(params)
    give(params, 0)
    params[0].requires_grad_(False)
    before = values(params)
    if name == "LBFGS":
        optimizer.step(quadratic(params, optimizer))
    else:
        optimizer.step()
    moved = [not np.array_equal(a, b) for a, b in zip(values(params), before, strict=True)]
    assert moved == [False, True]


@pytest.mark.parametrize("name", [*SINGLE, "LBFGS"])
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16])
def test_half_parameters_follow_float32(name: str, dtype: Any) -> None:
    wide = parameters(arrays(MATRICES))
    half = [nn.Parameter(p.detach().to(dtype)) for p in wide]
    wide = [nn.Parameter(p.detach().float()) for p in half]
    for params in (wide, half):
        optimizer = getattr(optim, name)(params)
        for i in range(4):
            give(params, i)
            closure = quadratic(params, optimizer) if name == "LBFGS" else None
            optimizer.step(closure)
    for a, b in zip(values(wide), [p.float() for p in half], strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), 2e-2, 2e-2)


@pytest.mark.parametrize("name", [*SINGLE, "LBFGS"])
def test_the_device_gives_the_same(name: str, pretend_gpu: ModuleType) -> None:
    here = parameters(arrays(MATRICES))
    there = [nn.Parameter(p.detach().to("cuda")) for p in parameters(arrays(MATRICES))]
    for params in (here, there):
        optimizer = getattr(optim, name)(params)
        for i in range(3):
            give(params, i)
            if name == "LBFGS":
                optimizer.step(quadratic(params, optimizer))
                continue
            with pretend_gpu.counters.watch() as seen:
                optimizer.step()
            moved = seen.host_to_device + seen.device_to_host + seen.synchronisations
            assert not moved.calls, seen.report()
    for p, q in zip(here, there, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().cpu().numpy(), 1e-4, 1e-5)


def test_lion_steps_are_signs() -> None:
    (p,) = parameters([np.array([1.0, -2.0, 0.0], np.float32)])
    optimizer = optim.Lion([p], lr=0.5, betas=(0.5, 0.5), weight_decay=1.0)
    p.grad = mt.tensor([2.0, -4.0, 0.0])
    optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), [0.0, -0.5, 0.0])
    p.grad = mt.tensor([-0.5, 6.0, 0.0])
    optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), [-0.5, -0.75, 0.0])


def test_state_dict_hooks() -> None:
    params = parameters(arrays(MATRICES))
    optimizer = optim.Adadelta(params)
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    handle = optimizer.register_state_dict_post_hook(lambda o, s: {**s, "note": 1})
    saved = optimizer.state_dict()
    assert saved.pop("note") == 1
    handle.remove()
    assert "note" not in optimizer.state_dict()
    optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append("load") or {**s})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(saved)
    assert seen == ["first", "second", "first", "second", "load", "loaded"]


def one() -> list[Any]:
    return parameters(arrays([(2, 2)]))


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "differentiable": (
        lambda: optim.RAdam(one(), differentiable=True),
        mt.ArgumentError,
        r"RAdam: updates are made in place .*differentiable=True.*create_graph=True",
    ),
    "rho": (lambda: optim.Adadelta(one(), rho=2.0), mt.ArgumentError, "rho must be a number"),
    "betas": (lambda: optim.NAdam(one(), betas=0.9), mt.ArgumentError, "betas must be two"),
    "etas": (lambda: optim.Rprop(one(), etas=(2, 3)), mt.ArgumentError, r"Got \(2, 3\)"),
    "step sizes": (lambda: optim.Rprop(one(), step_sizes=1), mt.ArgumentError, "two numbers"),
    "clipping": (lambda: optim.Adafactor(one(), d=0.5), mt.ArgumentError, "d must be a number"),
    "decay": (lambda: optim.Adafactor(one(), beta2_decay=1), mt.ArgumentError, "at most 0. Got 1"),
    "eps": (lambda: optim.Adafactor(one(), eps=1e-3), mt.ArgumentError, "eps must be two"),
    "eps value": (lambda: optim.Adafactor(one(), eps=(None, -1)), mt.ArgumentError, r"eps\[1\]"),
    "Muon's axes": (
        lambda: optim.Muon(parameters(arrays([(3,)]))),
        mt.ShapeError,
        r"must have two axes. Got .*f32\[3\].*AdamW",
    ),
    "Muon's rate": (
        lambda: optim.Muon(one(), adjust_lr_fn="other"), mt.ArgumentError, "Got 'other'"
    ),
    "Muon's polynomial": (
        lambda: optim.Muon(one(), ns_coefficients=(1.0,)), mt.ArgumentError, "three numbers"
    ),
    "Muon's steps": (
        lambda: optim.Muon(one(), ns_steps=100), mt.ArgumentError, "ns_steps must be a number"
    ),
    "no closure": (lambda: optim.LBFGS(one()).step(), mt.ArgumentError, r"needs a closure"),
    "two groups": (
        lambda: optim.LBFGS([{"params": one()}, {"params": one()}]),
        mt.ArgumentError,
        "one group",
    ),
    "line search": (
        lambda: optim.LBFGS(one(), line_search_fn="wolfe"), mt.ArgumentError, "'strong_wolfe'"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "error", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()


def test_lbfgs_needs_one_device(pretend_gpu: ModuleType) -> None:
    params = [*one(), nn.Parameter(mt.ones(2).to("cuda"))]
    optimizer = optim.LBFGS(params)
    with pytest.raises(mt.DeviceError, match=r"one device. Got cpu, cuda:0"):
        optimizer.step(quadratic(params, optimizer))
