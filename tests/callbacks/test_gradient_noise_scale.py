"""The gradient noise scale of gradients whose mean and variance are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, GradientNoiseScale
from minitorch.errors import ArgumentError
from minitorch.trainer import TaskModule, Trainer

SIZES = [3, 2, 5]


class Linear(TaskModule):
    """The gradient of a sample is a tenth of the sample; the weights do not matter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(mt.zeros(4))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return 0.1 * (batch @ self.w).float().mean()

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=1e-3)


def windows(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    mean = np.array([0.5, -0.5, 0.2, 0.1], np.float32)
    return [
        (mean + rng.normal(size=(n, 4))).astype(np.float32) for _ in range(count) for n in SIZES
    ]


def run(callback: Any, data: list[Any], *more: Any, ckpt: Any = None, **options: Any) -> Any:
    options = {"max_epochs": 1, "accumulate_grad_batches": 3, **options}
    trainer = Trainer(
        enable_progress_bar=False, callbacks=[callback, *more], log_every_n_steps=1, **options
    )
    return trainer.fit(Linear(), data, ckpt_path=ckpt)


@pytest.mark.parametrize("precision", ["32", "16-mixed"])
def test_one_window_by_hand(precision: str) -> None:
    parts = windows(1)
    callback = GradientNoiseScale(every_n_updates=1, decay=0.0)
    result = run(callback, parts, precision=precision)
    small = 0.01 * np.mean([np.sum(part.mean(0) ** 2) for part in parts])
    large = 0.01 * np.sum(np.concatenate(parts).mean(0) ** 2)
    per_small, per_large = np.mean([1 / n for n in SIZES]), 1 / sum(SIZES)
    noise = (small - large) / (per_small - per_large)
    tolerance = 1e-4 if precision == "32" else 2e-2
    np.testing.assert_allclose(callback.noise, noise, rtol=tolerance)
    np.testing.assert_allclose(callback.signal, large - noise * per_large, rtol=tolerance)
    if callback.signal > 0:
        ((_, logged),) = result.history["gradient_noise_scale"]
        assert logged == callback.noise / callback.signal


def test_finds_the_noise_and_the_signal() -> None:
    callback = GradientNoiseScale(every_n_updates=1, decay=0.99)
    run(callback, windows(400))
    bias = 1 - 0.99**400
    assert abs(100 * callback.noise / bias - 4.0) < 0.4  # tr(Σ) of four unit variances
    assert abs(100 * callback.signal / bias - 0.55) < 0.1


def test_measures_every_so_many_updates() -> None:
    result = run(GradientNoiseScale(every_n_updates=3, decay=0.5), windows(7))
    assert {step for step, _ in result.history["gradient_noise_scale"]} <= {1, 4, 7}


@pytest.mark.parametrize("batch", [4, 5, 6])
def test_resumes_inside_of_a_window(batch: int, tmp_path: Path) -> None:
    class Save(Callback):
        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            if trainer.position.batches == batch:
                trainer.save_checkpoint(tmp_path / "x.ckpt")

    whole, again = GradientNoiseScale(1), GradientNoiseScale(1)
    run(whole, windows(4), Save())
    run(again, windows(4), ckpt=tmp_path / "x.ckpt")
    assert whole.state_dict() == again.state_dict()


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "every": ({"every_n_updates": 0}, {}, "every_n_updates must be an integer ≥ 1. Got 0"),
    "decay": ({"decay": 1.0}, {}, r"decay must be in \[0, 1\). Got 1.0"),
    "window": ({}, {"accumulate_grad_batches": 1}, "Got accumulate_grad_batches=1. Pass 2 or more"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    arguments, options, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        run(GradientNoiseScale(**arguments), windows(1), **options)


def test_several_optimizers_are_refused() -> None:
    class Two(Linear):
        def __init__(self) -> None:
            super().__init__()
            self.v = nn.Parameter(mt.zeros(4))

        def configure_optimizers(self) -> Any:
            return {n: mt.optim.SGD([getattr(self, n)], lr=0.1) for n in ("w", "v")}

    trainer = Trainer(
        enable_progress_bar=False, callbacks=GradientNoiseScale(), accumulate_grad_batches=2
    )
    with pytest.raises(ArgumentError, match="Got 2 optimizers"):
        trainer.fit(Two(), windows(1))
