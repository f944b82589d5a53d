"""Fifty updates with every option against torch, float32 and float64, with and without kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from optim_cases import SHAPES, TORCH_CASES, TORCH_IDS, arrays, backward, parameters  # noqa: E402

import minitorch as mt  # noqa: E402
from minitorch import nn, optim  # noqa: E402

STEPS = 50


def both(name: str, options: dict[str, Any], dtype: Any, groups: int = 1) -> Any:
    """The same parameters and optimizer here and in torch."""
    start = arrays(dtype=dtype)
    ours = parameters(start)
    theirs = [torch.nn.Parameter(torch.tensor(v)) for v in start]

    def grouped(params: list[Any]) -> Any:
        if groups == 1:
            return params
        return [{"params": params[::2]}, {"params": params[1::2], "lr": 0.003}]

    return (
        ours,
        theirs,
        getattr(optim, name)(grouped(ours), **options),
        getattr(torch.optim, name)(grouped(theirs), **options),
    )


def assert_same(ours: list[Any], theirs: list[Any], dtype: Any, name: str = "") -> None:
    # torch keeps a float32 product (NAdam) and rate (ASGD) also for float64 parameters.
    wide = 1e-6 if name in ("NAdam", "ASGD") else 1e-13
    tolerance = 5e-6 if dtype == np.float32 else wide
    for p, q in zip(ours, theirs, strict=True):
        expected = q.detach().numpy()
        np.testing.assert_allclose(p.detach().numpy(), expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "options"), TORCH_CASES, ids=TORCH_IDS)
def test_updates(name: str, options: dict[str, Any], dtype: Any) -> None:
    ours, theirs, optimizer, reference = both(name, options, dtype)
    for step in range(STEPS):
        gradients: list[Any] = arrays(dtype=dtype, seed=1 + step)
        gradients = [None if (step + i) % 5 == 4 else g for i, g in enumerate(gradients)]
        optimizer.zero_grad()
        backward(ours, gradients)
        for q, g in zip(theirs, gradients, strict=True):
            q.grad = None if g is None else torch.tensor(g)
        optimizer.step()
        reference.step()
    assert_same(ours, theirs, dtype, name)


NAMES = sorted({name for name, _ in TORCH_CASES})


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_rates_changed_on_the_way(name: str) -> None:
    ours, theirs, optimizer, reference = both(name, {}, np.float32, groups=2)
    for step in range(STEPS):
        gradients = arrays(seed=step)
        optimizer.zero_grad()
        backward(ours, gradients)
        for q, g in zip(theirs, gradients, strict=True):
            q.grad = torch.tensor(g)
        for o in (optimizer, reference):
            o.param_groups[step % 2]["lr"] *= 0.97
            if step == 20 and name != "Rprop":
                o.param_groups[0]["weight_decay"] = 0.05
        optimizer.step()
        reference.step()
    assert_same(ours, theirs, np.float32)


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_a_training_run(name: str) -> None:
    mine = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 5))
    other = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.Tanh(), torch.nn.Linear(32, 5))
    with torch.no_grad():
        for p, q in zip(mine.parameters(), other.parameters(), strict=True):
            q.copy_(torch.tensor(p.detach().numpy().copy()))
    optimizer = getattr(optim, name)(mine.parameters(), lr=0.01)
    reference = getattr(torch.optim, name)(other.parameters(), lr=0.01)
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x = rng.standard_normal((16, 20)).astype(np.float32)
        y = rng.integers(0, 5, 16)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(mine(mt.tensor(x)), mt.tensor(y))
        loss.backward()
        optimizer.step()
        reference.zero_grad()
        expected = torch.nn.functional.cross_entropy(other(torch.tensor(x)), torch.tensor(y))
        expected.backward()
        reference.step()
        assert loss.item() == pytest.approx(expected.item(), rel=2e-5)


@pytest.mark.parametrize("norm_type", [1, 2, 2.5, float("inf")])
@pytest.mark.parametrize("max_norm", [1.0, 1e4])
def test_clipping_by_norm(norm_type: float, max_norm: float) -> None:
    ours, theirs, optimizer, _ = both("SGD", {}, np.float32)
    for step in range(3):
        gradients = arrays(seed=step)
        optimizer.zero_grad()
        backward(ours, gradients)
        for q, g in zip(theirs, gradients, strict=True):
            q.grad = torch.tensor(g)
        kept = [i for i, s in enumerate(SHAPES) if 0 not in s or norm_type != float("inf")]
        total = nn.utils.clip_grad_norm_([ours[i] for i in kept], max_norm, norm_type)
        expected = torch.nn.utils.clip_grad_norm_([theirs[i] for i in kept], max_norm, norm_type)
        assert total.item() == pytest.approx(expected.item(), rel=1e-5)
        for p, q in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), 1e-5, 1e-7)
        optimizer.step()


def test_clipping_by_value() -> None:
    ours, theirs, _, _ = both("SGD", {}, np.float32)
    gradients = arrays()
    backward(ours, gradients)
    for q, g in zip(theirs, gradients, strict=True):
        q.grad = torch.tensor(g)
    nn.utils.clip_grad_value_(ours, 0.5)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(p.grad.numpy(), q.grad.numpy())


def test_loss_scaling() -> None:
    ours, theirs, optimizer, reference = both("SGD", {"lr": 0.1}, np.float32)
    scaler = mt.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
    expected = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
    for step in range(20):
        gradients = arrays(seed=step)
        if step % 6 == 5:
            gradients[0][0, 0] = np.inf
        for params, lib, s, o in (
            (ours, mt, scaler, optimizer),
            (theirs, torch, expected, reference),
        ):
            o.zero_grad()
            loss = sum((p * lib.tensor(g)).sum() for p, g in zip(params, gradients, strict=True))
            s.scale(loss).backward()
            s.step(o)
            s.update()
        assert scaler.get_scale() == expected.get_scale()
        ours_state, theirs_state = scaler.state_dict(), expected.state_dict()
        assert {k: ours_state[k] for k in theirs_state} == theirs_state
    assert scaler.skipped_steps == 3
    assert_same(ours, theirs, np.float32)
