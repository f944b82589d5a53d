"""One program under Lightning and here: weights, metrics, updates and rates agree."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.trainer import TaskModule, Trainer

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [2.0], [-1.0]])).astype(np.float32)
WEIGHT = rng.normal(size=(1, 3)).astype(np.float32)


def make(lib: Any, base: type, optimizer: str, interval: str) -> Any:
    """The task, written once for both libraries."""

    class Task(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.linear = lib.nn.Linear(3, 1)
            self.validated: list[float] = []
            with lib.no_grad():
                self.linear.weight.copy_(lib.tensor(WEIGHT))
                self.linear.bias.zero_()

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = ((self.linear(batch[0]) - batch[1]) ** 2).mean()
            self.log("train", loss, on_step=True, on_epoch=True)
            return loss

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val", ((self.linear(batch[0]) - batch[1]) ** 2).mean())

        def on_validation_epoch_end(self) -> None:
            self.validated.append(float(self.trainer.callback_metrics["val"]))

        def configure_optimizers(self) -> Any:
            opt = getattr(lib.optim, optimizer)(self.parameters(), lr=0.05)
            schedule = lib.optim.lr_scheduler.StepLR(opt, 1, 0.7)
            return {
                "optimizer": opt,
                "lr_scheduler": {"scheduler": schedule, "interval": interval},
            }

    return Task()


def batches(cuts: list[int], convert: Any) -> list[Any]:
    ends = np.cumsum(cuts)
    return [
        (convert(X[end - n : end]), convert(Y[end - n : end]))
        for end, n in zip(ends, cuts, strict=True)
    ]


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": ("SGD", "epoch", {}),
    "step schedule": ("Adam", "step", {}),
    "accumulate": ("Adam", "step", {"accumulate_grad_batches": 2}),
    "clip norm": ("SGD", "epoch", {"gradient_clip_val": 0.5}),
    "clip value": ("SGD", "epoch", {"gradient_clip_val": 0.1, "gradient_clip_algorithm": "value"}),
    "validate often": ("Adam", "epoch", {"val_check_interval": 0.25}),
    "limits": ("Adam", "step", {"limit_train_batches": 5, "limit_val_batches": 1}),
    "max steps": ("Adam", "step", {"max_steps": 13}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_same_program_gives_the_same_numbers(case: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        pytest.importorskip("pytorch_lightning")
        lightning = importlib.import_module("pytorch_lightning")
    optimizer, interval, options = CASES[case]
    options = {
        "max_epochs": 3,
        "num_sanity_val_steps": 0,
        "logger": False,
        "enable_progress_bar": False,
        "enable_checkpointing": False,
        "enable_model_summary": False,
        "accelerator": "cpu",
        **options,
    }
    ours = make(mt, TaskModule, optimizer, interval)
    trainer = Trainer(**options)
    trainer.fit(ours, batches([4] * 10, mt.tensor), batches([7, 33], mt.tensor))
    theirs = make(torch, lightning.LightningModule, optimizer, interval)
    peer = lightning.Trainer(**options)
    loaders = [
        torch.utils.data.DataLoader(batches(cuts, torch.tensor), batch_size=None)
        for cuts in ([4] * 10, [7, 33])
    ]
    peer.fit(theirs, *loaders)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), rtol=1e-5)
    np.testing.assert_allclose(ours.validated, theirs.validated, rtol=1e-5)
    assert trainer.global_step == peer.global_step
    rates = [t.optimizers[0].param_groups[0]["lr"] for t in (trainer, peer)]
    assert rates[0] == pytest.approx(rates[1])
