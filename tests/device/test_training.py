"""A training step on the device: the CPU's numbers, and exactly the transfers that are meant."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn, optim

RNG = np.random.default_rng(0)
BATCHES = [
    (RNG.standard_normal((8, 6)).astype(np.float32), RNG.integers(0, 3, 8)) for _ in range(4)
]
OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "SGD with decay": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "Adam with amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
}


def _model() -> nn.Module:
    mt.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))


def _loss(model: nn.Module, batch: Any, where: str) -> mt.Tensor:
    x, y = (mt.tensor(part, device=where) for part in batch)
    return nn.functional.cross_entropy(model(x), y)


def _train(model: nn.Module, optimizer: Any, where: str, batches: Any = BATCHES) -> list[mt.Tensor]:
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = _loss(model, batch, where)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps_equal_the_cpus_and_only_batches_travel(make: Any, pretend_gpu: ModuleType) -> None:
    cpu = _model()
    gpu = copy.deepcopy(cpu).cuda()
    optimizers = make(cpu.parameters()), make(gpu.parameters())
    want = [loss.item() for loss in _train(cpu, optimizers[0], "cpu")]
    losses = _train(gpu, optimizers[1], "cuda", BATCHES[:1])
    with pretend_gpu.counters.watch() as seen:
        losses += _train(gpu, optimizers[1], "cuda", BATCHES[1:])
    assert seen.host_to_device.calls == 2 * 3, seen.report("host_to_device")
    assert seen.host_to_device.bytes == sum(x.nbytes + y.nbytes for x, y in BATCHES[1:])
    assert seen.device_to_host.calls == 0, seen.report("device_to_host")
    assert seen.synchronisations.calls == 0, seen.report("synchronisations")
    np.testing.assert_allclose([loss.item() for loss in losses], want, rtol=1e-4)
    for p, q in zip(cpu.parameters(), gpu.parameters(), strict=True):
        assert q.is_cuda
        np.testing.assert_allclose(
            q.detach().cpu().numpy(), p.detach().numpy(), rtol=1e-3, atol=1e-5
        )


def test_reading_the_loss_is_the_only_wait(pretend_gpu: ModuleType) -> None:
    model = _model().cuda()
    optimizer = optim.AdamW(model.parameters())
    with pretend_gpu.counters.watch() as seen:
        (loss,) = _train(model, optimizer, "cuda", BATCHES[:1])
        value = loss.item()
    assert isinstance(value, float)
    assert seen.device_to_host.calls == seen.synchronisations.calls == 1, seen.report()
    assert seen.device_to_host.bytes == 4


@pytest.mark.usefixtures("pretend_gpu")
def test_optimizer_states_load_across_devices() -> None:
    cpu = _model()
    gpu = copy.deepcopy(cpu).cuda()
    on_cpu, on_gpu = optim.Adam(cpu.parameters()), optim.Adam(gpu.parameters())
    _train(gpu, on_gpu, "cuda", BATCHES[:2])
    cpu.load_state_dict(gpu.state_dict())
    on_cpu.load_state_dict(on_gpu.state_dict())
    _train(cpu, on_cpu, "cpu", BATCHES[2:])
    _train(gpu, on_gpu, "cuda", BATCHES[2:])
    for p, q in zip(cpu.parameters(), gpu.parameters(), strict=True):
        np.testing.assert_allclose(
            q.detach().cpu().numpy(), p.detach().numpy(), rtol=1e-3, atol=1e-6
        )


@pytest.mark.usefixtures("pretend_gpu")
def test_a_module_moved_after_the_optimizer_was_made_is_trained() -> None:
    model = _model()
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model.cuda()
    before = [p.detach().cpu().numpy() for p in model.parameters()]
    _train(model, optimizer, "cuda", BATCHES[:1])
    for p, old in zip(model.parameters(), before, strict=True):
        assert p.is_cuda
        assert not np.array_equal(p.detach().cpu().numpy(), old)


@pytest.mark.usefixtures("pretend_gpu")
def test_a_module_moved_between_steps_is_trained_on() -> None:
    here, moving = _model(), _model()
    optimizers = optim.AdamW(here.parameters()), optim.AdamW(moving.parameters())
    _train(here, optimizers[0], "cpu")
    _train(moving, optimizers[1], "cpu", BATCHES[:2])
    _train(moving.cuda(), optimizers[1], "cuda", BATCHES[2:])
    for p, q in zip(here.parameters(), moving.parameters(), strict=True):
        np.testing.assert_allclose(
            q.detach().cpu().numpy(), p.detach().numpy(), rtol=1e-3, atol=1e-6
        )


def test_a_convolutional_step_moves_only_its_batch(pretend_gpu: ModuleType) -> None:
    mt.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    ).cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch = (RNG.standard_normal((8, 1, 4, 4)).astype(np.float32), BATCHES[0][1])
    _train(model, optimizer, "cuda", [batch])
    with pretend_gpu.counters.watch() as seen:
        _train(model, optimizer, "cuda", [batch])
    assert seen.host_to_device.calls == 2, seen.report("host_to_device")
    assert seen.device_to_host.calls == seen.synchronisations.calls == 0, seen.report()


def test_clipping_and_schedules_do_not_wait(pretend_gpu: ModuleType) -> None:
    model = _model().cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    _train(model, optimizer, "cuda", BATCHES[:1])
    loss = _loss(model, BATCHES[1], "cuda")
    with pretend_gpu.counters.watch() as seen:
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    assert seen.host_to_device.calls == 0, seen.report()
    assert seen.device_to_host.calls == seen.synchronisations.calls == 0, seen.report()


def test_loss_scaling_waits_once_a_step(pretend_gpu: ModuleType) -> None:
    model = _model().cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scaler = mt.amp.GradScaler()
    for batch in BATCHES[:2]:
        optimizer.zero_grad()
        with mt.amp.autocast("cuda", dtype=mt.float16):
            loss = _loss(model, batch, "cuda")
        with pretend_gpu.counters.watch() as seen:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert loss.is_cuda
    assert seen.synchronisations.calls <= 1, seen.report("synchronisations")
    assert seen.host_to_device.calls == 0, seen.report("host_to_device")
