"""Optimizers, clipping and loss scaling on the pretend GPU: the CPU's numbers, and no waits."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from optim_cases import CASES, IDS, arrays, parameters

import minitorch as mt
from minitorch import nn, optim
from minitorch.nn import utils

SHAPES: list[tuple[int, ...]] = [(3, 4), (4,), ()]


def on(device: str) -> list[Any]:
    return [nn.Parameter(p.detach().to(device)) for p in parameters(arrays(SHAPES))]


def give(params: list[Any], seed: int) -> None:
    for p, g in zip(params, arrays(SHAPES, seed=seed), strict=True):
        p.grad = mt.tensor(g).to(p.device)


def host(tensors: list[Any]) -> list[np.ndarray]:
    return [t.detach().cpu().numpy().copy() for t in tensors]


def assert_close(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(host(a), host(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


def assert_quiet(seen: Any) -> None:
    """Nothing was moved to or from the device, and nobody waited for it."""
    moved = seen.host_to_device + seen.device_to_host + seen.synchronisations
    assert not moved.calls, seen.report()


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_updates_agree_and_stay_on_the_device(
    name: str, options: dict[str, Any], pretend_gpu: ModuleType
) -> None:
    ours, theirs = on("cuda"), on("cpu")
    optimizer = getattr(optim, name)(ours, **options)
    reference = getattr(optim, name)(theirs, **options)
    for i in range(4):
        give(ours, i)
        give(theirs, i)
        with pretend_gpu.counters.watch() as seen:
            optimizer.step()
        assert_quiet(seen)
        reference.step()
    assert_close(ours, theirs)


@pytest.mark.parametrize("there", ["cuda", "cpu"])
def test_state_follows_the_model(there: str, pretend_gpu: ModuleType) -> None:
    back = "cpu" if there == "cuda" else "cuda"
    model, twin = nn.Linear(4, 3), nn.Linear(4, 3)
    twin.load_state_dict(model.state_dict())
    model.to(there)
    optimizer, reference = optim.Adam(model.parameters()), optim.Adam(twin.parameters())
    for i in range(6):
        if i in (2, 4):
            model.to(back if i == 2 else there)
        for m, o in ((model, optimizer), (twin, reference)):
            o.zero_grad()
            x = mt.tensor(arrays([(5, 4)], seed=i)[0]).to(m.weight.device)
            (m(x) ** 2).sum().backward()
            o.step()
    assert optimizer.state[model.weight]["exp_avg"].device.type == there
    assert_close(list(model.parameters()), list(twin.parameters()))


def test_state_dicts_cross_devices(pretend_gpu: ModuleType) -> None:
    ours, theirs = on("cuda"), on("cpu")
    optimizer, reference = optim.AdamW(ours), optim.AdamW(theirs)
    give(ours, 0)
    optimizer.step()
    reference.load_state_dict(optimizer.state_dict())
    assert reference.state[theirs[0]]["exp_avg"].device.type == "cpu"
    assert_close([optimizer.state[ours[0]]["exp_avg"]], [reference.state[theirs[0]]["exp_avg"]])
    optimizer.load_state_dict(reference.state_dict())
    assert optimizer.state[ours[0]]["exp_avg"].device.type == "cuda"


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("max_norm", [0.1, 1e6])
def test_clipping_by_norm_does_not_wait(
    norm_type: float, max_norm: float, pretend_gpu: ModuleType
) -> None:
    ours, theirs = on("cuda"), on("cpu")
    give(ours, 0)
    give(theirs, 0)
    with pretend_gpu.counters.watch() as seen:
        norm = utils.clip_grad_norm_(ours, max_norm, norm_type)
    assert_quiet(seen)
    assert norm.device.type == "cuda"
    assert norm.item() == pytest.approx(
        utils.clip_grad_norm_(theirs, max_norm, norm_type).item(), rel=1e-6
    )
    assert_close([p.grad for p in ours], [p.grad for p in theirs])


def test_a_norm_that_is_not_finite_leaves_the_gradients(pretend_gpu: ModuleType) -> None:
    ours = on("cuda")
    give(ours, 0)
    ours[0].grad[0, 0] = float("inf")
    before = host([p.grad for p in ours])
    utils.clip_grad_norm_(ours, 0.1)
    for a, b in zip(host([p.grad for p in ours]), before, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(mt.GraphError, match=r"from gradient 0 \(f32\[3,4\]\)"):
        utils.clip_grad_norm_(ours, 0.1, error_if_nonfinite=True)


def test_clipping_by_value(pretend_gpu: ModuleType) -> None:
    ours, theirs = on("cuda"), on("cpu")
    for params in (ours, theirs):
        give(params, 0)
        utils.clip_grad_value_(params, 0.3)
    assert_close([p.grad for p in ours], [p.grad for p in theirs])


@pytest.mark.parametrize("places", [("cuda", "cuda", "cpu"), ("cpu", "cuda", "cuda")])
@pytest.mark.parametrize("with_norm", [False, True])
def test_parameters_on_several_devices_have_one_norm(
    places: tuple[str, ...], with_norm: bool, pretend_gpu: ModuleType
) -> None:
    ours, theirs = [on(place)[i] for i, place in enumerate(places)], on("cpu")
    for params in (ours, theirs):
        give(params, 0)
    if with_norm:
        norm = utils.get_total_norm([p.grad for p in ours])
        utils.clip_grads_with_norm_(ours, 0.1, norm)
    else:
        norm = utils.clip_grad_norm_(ours, 0.1)
    expected = utils.clip_grad_norm_(theirs, 0.1).item()
    assert norm.item() == pytest.approx(expected, rel=1e-6)
    assert_close([p.grad for p in ours], [p.grad for p in theirs])


@pytest.mark.parametrize("bad", [False, True])
def test_loss_scaling_waits_once(bad: bool, pretend_gpu: ModuleType) -> None:
    ours = on("cuda")
    optimizer, scaler = optim.SGD(ours, lr=1.0), mt.amp.GradScaler(init_scale=4.0)
    before = host(ours)
    loss = scaler.scale(sum((p * 0.5).sum() for p in ours))
    loss.backward()
    if bad:
        ours[1].grad[0] = float("nan")
    with pretend_gpu.counters.watch() as seen:
        scaler.step(optimizer)
        scaler.update()
    assert seen.synchronisations.calls <= len(ours), seen.report()
    assert scaler.skipped_steps == bad
    for a, b in zip(host(ours), before, strict=True):
        np.testing.assert_array_equal(a, b if bad else b - np.float32(0.5))


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none: bool, pretend_gpu: ModuleType) -> None:
    ours = on("cuda")
    give(ours, 0)
    optim.SGD(ours).zero_grad(set_to_none)
    assert all(p.grad is None if set_to_none else not p.grad.any().item() for p in ours)
