"""Averaged weights and their statistics, and intervals with units."""

from __future__ import annotations

from typing import Any

from harness import Regression, fit, good, impossible, loader, warns

from minitorch import nn
from minitorch.callbacks import (
    Batches,
    Callback,
    EMAWeightAveraging,
    Epochs,
    Steps,
    StochasticWeightAveraging,
    WeightAveraging,
)
from minitorch.optim.swa_utils import AveragedModel, update_bn


class Normed(Regression):
    """With batch normalisation."""

    def __init__(self, lr: float = 0.05) -> None:
        super().__init__(lr)
        self.net[1] = nn.Sequential(nn.BatchNorm1d(8), nn.Tanh())


class ByHand(Normed):
    """Keeps an average itself and validates it."""

    use_buffers = False

    def __init__(self, lr: float = 0.05) -> None:
        super().__init__(lr)
        self.average = AveragedModel(self.net, use_buffers=self.use_buffers).requires_grad_(False)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.average.update_parameters(self.net)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        self.log("val/loss", nn.functional.mse_loss(self.average(x), y))


@warns("ema-swa-buffers", r"EMAWeightAveraging: averaged weights need.*1 batch normalisations")
def _() -> None:
    fit(Normed(), val=loader(), callbacks=[EMAWeightAveraging(use_buffers=False)])


@warns("ema-swa-buffers", r"AveragedModel: .*statistics of the trained weights", "by hand")
def _() -> None:
    fit(ByHand(), val=loader(), max_epochs=2)


@good("ema-swa-buffers")
def _() -> None:
    for averaging in (
        EMAWeightAveraging(),
        WeightAveraging(use_buffers=False, buffers="copy"),
        StochasticWeightAveraging(0.05, swa_epoch_start=1),
    ):
        fit(Normed(), val=loader(), callbacks=[averaging], max_epochs=2)
    fit(Regression(), val=loader(), callbacks=[EMAWeightAveraging(use_buffers=False)])


@good("ema-swa-buffers", "good by hand")
def _() -> None:
    class Estimated(ByHand):
        def on_validation_start(self) -> None:
            update_bn(loader(), self.average)
            self.average.eval()

    fit(Estimated(), val=loader(), max_epochs=2)
    fit(type("Buffers", (ByHand,), {"use_buffers": True})(), val=loader(), max_epochs=2)


class Places(Callback):
    """Notes after which update and batch validation runs."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            self.seen.append((trainer.global_step, trainer.position.batches))


@impossible("val-interval-units")
def _() -> None:
    for interval, seen in (
        (Steps(1), [(1, 3), (2, 6)]),
        (Batches(4), [(1, 4)]),
        (Epochs(0.5), [(1, 3), (2, 6)]),
    ):
        places = Places()
        options: dict[str, Any] = {"accumulate_grad_batches": 3, "callbacks": [places]}
        fit(Regression(), val=loader(), val_check_interval=interval, **options)
        assert places.seen == seen


@warns("val-interval-units", r"Got val_check_interval=4 with accumulate.*1.333 updates.*Steps\(4\)")
def _() -> None:
    fit(Regression(), val=loader(), val_check_interval=4, accumulate_grad_batches=3)


@warns("val-interval-units", r"Got val_check_interval=1 with 6 batches.*Epochs\(1\)", "1 or 1.0")
def _() -> None:
    fit(Regression(), val=loader(), val_check_interval=1)


@good("val-interval-units")
def _() -> None:
    fit(Regression(), val=loader(), val_check_interval=3)
    fit(Regression(), val=loader(), val_check_interval=0.5, accumulate_grad_batches=3)
    fit(Regression(), val_check_interval=1)  # nothing to validate
