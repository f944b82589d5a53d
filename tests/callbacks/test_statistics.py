"""Observing callbacks: device and host, throughput, gradients, activations."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Fails, Linear, fit, loader, quiet

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import (
    ActivationStatistics,
    CancelStep,
    DeviceStatsMonitor,
    GradientStatistics,
    ThroughputMonitor,
)
from minitorch.errors import ArgumentError
from minitorch.ops import observing


def steps(result: Any, name: str) -> list[int]:
    return [step for step, _ in result.history[name]]


class Clock:
    """A second passes at each look."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


# Throughput.


def throughput(**options: Any) -> ThroughputMonitor:
    monitor = ThroughputMonitor(**options)
    monitor.clock = Clock()  # type: ignore[misc]
    return monitor


def test_throughput() -> None:
    monitor = throughput(length_fn=lambda batch: 7, available_flops=1000.0)
    result = quiet(monitor, max_epochs=2, log_every_n_steps=2).fit(Linear(), loader())
    last = {name: points[-1][1] for name, points in result.history.items()}
    assert steps(result, "train/time") == [2, 4, 6, 8]
    assert (last["train/time"], last["train/batches"]) == (8.0, 8)
    assert (last["train/samples"], last["train/lengths"]) == (16, 56)
    assert last["train/device/batches_per_sec"] == 1.0
    assert last["train/device/samples_per_sec"] == 2.0
    assert last["train/device/items_per_sec"] == 7.0
    # x f32[2,2] @ w[2,1]: 8 forward, 8 for the weight; the input needs none
    assert last["train/device/flops_per_sec"] == 16.0
    assert last["train/device/mfu"] == 0.016
    assert result.history["train/device/flops_per_sec"][0][1] == 16.0
    assert not observing._observers


def test_validation_is_no_time_of_training() -> None:
    task, monitor = Linear(), throughput()
    result = fit(task, monitor, max_epochs=2, log_every_n_steps=8)
    # 8 batches, and one look at the clock when the validation in between begins
    assert result.history["train/time"] == [(8, 9.0)]


def test_throughput_by_the_modules_own_numbers() -> None:
    task = Linear()
    task.flops_per_batch = 50
    monitor = throughput(batch_size_fn=lambda batch: 10, window_size=2, separator="|")
    result = fit(task, monitor, max_epochs=1, log_every_n_steps=4)
    assert result.history["train|device|samples_per_sec"] == [(4, 10.0)]
    assert result.history["train|device|flops_per_sec"] == [(4, 50.0)]
    assert "train|device|mfu" not in result.history


class Odd(Linear):
    """Its batches have tensors of several lengths."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return {"loss": super().loss(batch[:2]), "count": 2}


def odd_batches() -> list[Any]:
    return [[*batch, mt.zeros(5)] for batch in loader()]


def test_batches_of_unknown_size() -> None:
    with pytest.raises(ArgumentError, match="ThroughputMonitor: the size .* Pass batch_size_fn"):
        quiet(ThroughputMonitor(), max_epochs=1).fit(Odd(), odd_batches())
    monitor = throughput(batch_size_fn=lambda batch: 2)
    result = quiet(monitor, max_epochs=1, log_every_n_steps=4).fit(Odd(), odd_batches())
    assert result.history["train/samples"][-1][1] == 8


class Network(Linear):
    """A recorded step with a convolution and two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(4, 2))

    def forward(self, x: Any) -> Any:
        return super().forward(self.net(x.unsqueeze(1)))


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 2}], ids=str)
@pytest.mark.parametrize("task", [Linear, Network])
def test_flops_are_the_same_under_compile(task: Any, options: Any) -> None:
    counted = []
    for compiled in (False, True):
        result = fit(
            *(task(), throughput()), max_epochs=2, log_every_n_steps=2, compile=compiled, **options
        )
        assert result.warnings == ()
        counted.append(result.history["train/device/flops_per_sec"])
    assert counted[0] == counted[1]
    assert min(value for _, value in counted[0]) > 10


@pytest.mark.parametrize("event", ["on_train_batch_start", "on_before_backward"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_batch_that_is_left_out_is_not_the_counted_one(event: str, compiled: bool) -> None:
    options: dict[str, Any] = {"max_epochs": 1, "log_every_n_steps": 1, "compile": compiled}
    result = fit(Linear(), throughput(), Fails(event, 2, CancelStep("bad")), **options)
    assert result.skipped == {"bad": 1}
    assert {value for _, value in result.history["train/device/flops_per_sec"]} == {16.0}
    assert not observing._observers


def test_no_products_no_key() -> None:
    class Scale(Linear):
        def forward(self, x: Any) -> Any:
            return (x * self.linear.weight).sum(1, keepdim=True) + self.linear.bias

    result = fit(Scale(), throughput(available_flops=1.0), max_epochs=1, log_every_n_steps=1)
    assert "train/time" in result.history
    assert not [name for name in result.history if "flops" in name or "mfu" in name]


def test_counting_ends_with_an_exception() -> None:
    with pytest.raises(RuntimeError, match="now"):
        fit(Linear(), throughput(), Fails("on_before_backward", 2, RuntimeError("now")))
    assert not observing._observers


def test_counting_under_a_profiler(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options: dict[str, Any] = {"profiler": "ops", "default_root_dir": tmp_path}
    result = fit(Linear(), ThroughputMonitor(), max_epochs=2, log_every_n_steps=4, **options)
    assert result.history["train/device/flops_per_sec"][0][1] > 0
    assert not observing._observers


# Device and host.


def test_host(tmp_path: Path) -> None:
    pytest.importorskip("psutil")
    result = fit(Linear(), DeviceStatsMonitor(), max_epochs=1, log_every_n_steps=2)
    found = {n.split("/")[1]: p for n, p in result.history.items() if n.startswith("Device")}
    assert set(found) == {
        *("cpu_percent", "cpu_vm_percent", "cpu_swap_percent"),
        *("process_bytes", "process_threads"),
    }
    assert [step for step, _ in found["process_bytes"]] == [2, 4]
    assert found["process_bytes"][0][1] > 1e6


def test_only_some_values() -> None:
    pytest.importorskip("psutil")
    monitor = DeviceStatsMonitor(filter_keys={"process_threads"})
    result = fit(Linear(), monitor, max_epochs=1, log_every_n_steps=4)
    assert [n for n in result.history if n.startswith("D")] == [
        "DeviceStatsMonitor/process_threads"
    ]
    with pytest.raises(ArgumentError, match="filter_keys are among cpu_percent, .* Got 'luck'"):
        fit(Linear(), DeviceStatsMonitor(filter_keys={"luck"}))


def test_device(pretend_gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mt.cuda, "mem_get_info", lambda device=None: (5, 9))
    monkeypatch.setattr(mt.cuda, "memory_allocated", lambda device=None: 3)
    monkeypatch.setattr(mt.cuda, "memory_reserved", lambda device=None: 4)
    monitor = DeviceStatsMonitor()
    result = fit(Linear(), monitor, accelerator="gpu", max_epochs=1, log_every_n_steps=4)
    found = {n: p[0][1] for n, p in result.history.items() if n.startswith("D")}
    assert found == {
        "DeviceStatsMonitor/memory_allocated": 3,
        "DeviceStatsMonitor/memory_reserved": 4,
        "DeviceStatsMonitor/memory_free": 5,
    }


def test_missing_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ModuleNotFoundError, match=r"DeviceStatsMonitor needs psutil.*\[psutil\]"):
        fit(Linear(), DeviceStatsMonitor())


# Gradients.


class Tracked(Linear):
    """Keeps gradients and weights around each update."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        self.kept.append(
            [(p.grad.numpy().copy(), p.detach().numpy().copy()) for p in self.parameters()]
        )

    def after(self, index: int) -> list[np.ndarray]:
        if index + 1 < len(self.kept):
            return [weight for _, weight in self.kept[index + 1]]
        return [p.detach().numpy() for p in self.parameters()]


def test_gradients_and_updates() -> None:
    task = Tracked()
    result = fit(task, GradientStatistics(2), max_epochs=1, log_every_n_steps=2)
    assert steps(result, "grad_norm/total") == [2, 4]
    for index, place in ((1, 0), (3, 1)):
        (gw, w), (gb, _) = task.kept[index]
        total = math.sqrt((gw**2).sum() + (gb**2).sum())
        seen = {n: points for n, points in result.history.items() if "loss" not in n}
        history = {name: points[place][1] for name, points in seen.items()}
        assert history["grad_norm/total"] == pytest.approx(total, rel=1e-5)
        assert history["grad_norm/linear.weight"] == pytest.approx(np.linalg.norm(gw), rel=1e-5)
        norm, change = np.linalg.norm(w), np.linalg.norm(task.after(index)[0] - w)
        assert history["weight_norm/linear.weight"] == pytest.approx(norm, rel=1e-5)
        assert history["update_ratio/linear.weight"] == pytest.approx(change / norm, rel=1e-4)


def test_gradients_before_clipping_and_of_whole_windows() -> None:
    def totals(**options: Any) -> list[tuple[int, float]]:
        mt.manual_seed(3)
        look = GradientStatistics(per_parameter=False)
        options |= {"max_epochs": 1, "accumulate_grad_batches": 2, "log_every_n_steps": 1}
        return list(fit(Linear(), look, **options).history["grad_norm/total"])

    plain, clipped = totals(), totals(gradient_clip_val=0.01, max_steps=1)
    assert [step for step, _ in plain] == [1, 2]
    assert clipped[0] == plain[0]


def test_total_only() -> None:
    result = fit(Linear(), GradientStatistics(1, per_parameter=False), max_steps=2)
    assert [name for name in result.history if "norm" in name or "ratio" in name] == [
        "grad_norm/total"
    ]


class Histograms(SimpleNamespace):
    """A logger that keeps histograms."""

    name, version, wants_graph = "h", 0, False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("log_dir", "log_text"):
            raise AttributeError(name)
        return lambda *args: None

    def log_histogram(self, tag: str, values: Any, step: int) -> None:
        self.seen.append((tag, values.numel(), step))


def test_histograms() -> None:
    logger = Histograms(seen=[])
    callbacks = [
        GradientStatistics(2, histograms=True),
        ActivationStatistics(2, histograms=True, max_histogram_values=1),
    ]
    fit(Linear(), *callbacks, max_epochs=1, logger=logger)
    assert logger.seen == [
        (f"{kind}/linear{part}", count, step)
        for step in (2, 4)
        for kind, part, count in (
            ("activations", "", 1),
            ("gradients", ".weight", 2),
            ("weights", ".weight", 2),
            ("gradients", ".bias", 1),
            ("weights", ".bias", 1),
        )
    ]


# Activations.


class Deep(Linear):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
        with mt.no_grad():
            self.linear[0].bias.copy_(mt.tensor([-3.0, 3.0, 3.0, -3.0]))


def test_activations() -> None:
    task = Deep()
    result = fit(task, ActivationStatistics(2), max_epochs=1, log_every_n_steps=2)
    assert steps(result, "dead_units/linear.1") == [2, 4]
    assert result.history["dead_units/linear.1"][0][1] == 0.5
    assert result.history["dead_units/linear.0"][0][1] == 0.0
    assert "activation_mean/linear" not in result.history
    assert result.history["activation_std/linear.1"][0][1] > 1
    task(mt.zeros(1, 2))  # a hook would log, which is an error now


def test_chosen_modules() -> None:
    chosen = ActivationStatistics(1, select=lambda name, part: isinstance(part, nn.Sequential))
    result = fit(Deep(), chosen, max_steps=1)
    assert [n for n in result.history if n.startswith("activation_mean")] == [
        "activation_mean/linear"
    ]


def test_hooks_go_after_an_exception() -> None:
    task = Deep()
    with pytest.raises(RuntimeError, match="now"):
        fit(task, ActivationStatistics(1), Fails("on_after_backward", 1, RuntimeError("now")))
    task(mt.zeros(1, 2))  # a hook would log, which is an error now


@pytest.mark.parametrize(
    ("values", "share"),
    [
        (mt.zeros(2, 3), 1.0),
        (mt.tensor([[0.0, 1.0], [0.0, 0.0]]), 0.5),
        (mt.cat([mt.ones(2, 1, 2, 2), mt.zeros(2, 3, 2, 2)], 1), 0.75),
    ],
)
def test_dead_units(values: Any, share: float) -> None:
    from minitorch.callbacks.activation_statistics import _dead

    assert _dead(values).item() == share


# Together.


@pytest.mark.parametrize("kind", [GradientStatistics, ActivationStatistics])
@pytest.mark.parametrize("value", [0, True, 1.5])
def test_wrong_rhythm(kind: Any, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{kind.__name__}: every_n_steps must be"):
        fit(Linear(), kind(value))


WRONG = {"window_size": 1, "available_flops": 0.0}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"ThroughputMonitor: {name} must be"):
        fit(Linear(), ThroughputMonitor(**{name: WRONG[name]}))  # type: ignore[arg-type]


def test_they_change_no_number() -> None:
    def weights(*callbacks: Any) -> list[Any]:
        mt.manual_seed(5)
        task = Deep()
        quiet(*callbacks, max_epochs=2).fit(task, loader(shuffle=True), loader(1))
        return [p.tolist() for p in task.parameters()]

    watching = [GradientStatistics(1), ActivationStatistics(1), ThroughputMonitor()]
    assert weights(*watching) == weights()


def test_on_a_device(pretend_gpu: ModuleType) -> None:
    watching = [GradientStatistics(2, histograms=True), ActivationStatistics(2)]
    logger = Histograms(seen=[])
    result = fit(Deep(), *watching, accelerator="gpu", max_epochs=1, logger=logger)
    assert result.status == "completed"
    assert len(logger.seen) == 16
