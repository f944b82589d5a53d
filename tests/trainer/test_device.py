"""Placement, and a fit on the pretend GPU that equals the one on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_exact_resume import Deep, Plateau, SaveAt
from toy_tasks import Regression, loader, quiet, weights

import minitorch as mt
from minitorch import backend
from minitorch.callbacks.core.device import choose_device
from minitorch.errors import DeviceError

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulate": {"accumulate_grad_batches": 2},
    "clip norm": {"gradient_clip_val": 0.1},
    "clip value": {"gradient_clip_val": 0.1, "gradient_clip_algorithm": "value"},
    "double": {"precision": "64"},
    "validate often": {"val_check_interval": 2},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_fit_on_a_gpu_equals_the_cpu(case: str, pretend_gpu: Any) -> None:
    results = []
    for accelerator in ("cpu", "gpu"):
        mt.manual_seed(4)
        task = Plateau() if case == "validate often" else Deep()
        trainer = quiet(max_epochs=2, accelerator=accelerator, **OPTIONS[case])
        history = trainer.fit(task, loader(20), loader(6, 3, shuffle=False)).history
        results.append((history, {k: v.cpu().numpy() for k, v in task.state_dict().items()}))
    (cpu, cpu_weights), (gpu, gpu_weights) = results
    assert list(cpu) == list(gpu)
    for name, points in cpu.items():
        np.testing.assert_allclose(points, gpu[name], rtol=1e-4, atol=1e-6)
    for name, value in cpu_weights.items():
        np.testing.assert_allclose(value, gpu_weights[name], rtol=1e-3, atol=1e-5)


def test_everything_is_on_the_device(pretend_gpu: Any) -> None:
    devices: set[Any] = set()

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            devices.update(t.device for t in batch)
            devices.update(p.device for p in self.parameters())
            return super().training_step(batch, batch_idx)

    trainer = quiet(max_epochs=1, accelerator="gpu", devices=[0])
    trainer.fit(Task(), loader(8))
    assert devices == {mt.device("cuda:0")}
    assert trainer.device == mt.device("cuda:0")


def test_resume_on_a_gpu(pretend_gpu: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    options: dict[str, Any] = {"max_epochs": 2, "accelerator": "gpu", "accumulate_grad_batches": 2}
    finals = []
    for k in (0, 3):
        mt.manual_seed(4)
        task = Deep()
        quiet(callbacks=SaveAt("on_train_batch_end", k, path), **options).fit(task, loader(20))
        if k:
            task = Deep()
            quiet(**options).fit(task, loader(20), ckpt_path=path)
        finals.append({name: value.cpu().numpy() for name, value in task.state_dict().items()})
    for name, value in finals[0].items():
        np.testing.assert_array_equal(value, finals[1][name])


def test_auto_takes_the_gpu_that_is_there(pretend_gpu: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert choose_device("auto", "auto") == mt.device("cuda:0")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert choose_device("auto", "auto") == mt.device("cpu")
    assert choose_device("cpu", 1) == mt.device("cpu")
    assert choose_device("gpu", [1]) == mt.device("cuda:1")


def test_gpu_that_is_missing(monkeypatch: Any) -> None:
    def missing(device_type: str) -> Any:
        raise DeviceError("device: 'cuda' needs CuPy, which cannot be imported")

    monkeypatch.setattr(backend, "get", missing)
    with pytest.raises(DeviceError, match="needs CuPy"):
        quiet(accelerator="gpu").fit(Regression(), loader())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert choose_device("auto", "auto") == mt.device("cpu")


def test_batches_of_own_classes_move_themselves() -> None:
    class Batch:
        def __init__(self, x: Any, moved: Any = None) -> None:
            self.x, self.moved = x, moved

        def to(self, device: Any) -> Batch:
            return Batch(mt.tensor(self.x), device)

    seen: list[Any] = []

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            seen.append(batch.moved)
            return self.linear(batch.x).mean()

    quiet(max_epochs=1).fit(Task(), [Batch(np.ones((2, 3), np.float32))])
    assert seen == [mt.device("cpu")]


def test_module_is_back_in_use_after_the_run() -> None:
    task = Regression()
    quiet(max_epochs=1).fit(task, loader())
    assert task.device == mt.device("cpu")
    assert task.dtype == mt.float32
    assert set(weights(task)) == {"linear.weight", "linear.bias"}
