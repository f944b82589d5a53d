"""Schedules that are over: longer runs from a checkpoint, and learning rates of 0."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from toy_tasks import Regression, loader, quiet

import minitorch as mt
from minitorch.errors import PitfallWarning, TrainerError
from minitorch.optim import lr_scheduler as S

MAKERS: dict[str, tuple[Any, str, str]] = {
    "cosine": (lambda o, n: S.CosineAnnealingLR(o, T_max=n), "epoch", "CosineAnnealingLR.T_max"),
    "linear": (lambda o, n: S.LinearLR(o, 1.0, 0.0, n), "epoch", "LinearLR.total_iters"),
    "one cycle": (lambda o, n: S.OneCycleLR(o, 0.1, 6 * n), "step", "OneCycleLR.total_steps"),
    "two parts": (
        lambda o, n: S.SequentialLR(o, [S.ConstantLR(o), S.CosineAnnealingLR(o, n)], [2]),
        "epoch",
        "CosineAnnealingLR.T_max",
    ),
    "plateau": (lambda o, n: S.ReduceLROnPlateau(o, patience=n), "epoch", "Plateau.patience"),
}


class Scheduled(Regression):
    """SGD and a schedule for a run of so many epochs."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.case = name
        self.rates: list[float] = []

    def configure_optimizers(self) -> Any:
        make, interval, _ = MAKERS[self.case]
        optimizer = mt.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        schedule = make(optimizer, self.trainer.max_epochs)
        config: Any = {"scheduler": schedule, "interval": interval}
        if self.case == "plateau":
            config["monitor"] = "train/loss_epoch"
        return [optimizer], [config]

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        self.rates.append(self.optimizers().param_groups[0]["lr"])


@pytest.mark.parametrize("name", MAKERS)
def test_a_longer_run_chooses_whose_schedule_holds(name: str, tmp_path: Path) -> None:
    short, path = quiet(max_epochs=2), tmp_path / "x.ckpt"
    short.fit(Scheduled(name), loader())
    short.save_checkpoint(path)
    with pytest.raises(TrainerError, match=f"{MAKERS[name][2]}: .* in the checkpoint, .* now"):
        quiet(max_epochs=4).fit(Scheduled(name), loader(), ckpt_path=path)
    whole, longer = Scheduled(name), Scheduled(name)
    quiet(max_epochs=4).fit(whole, loader())
    quiet(max_epochs=4).fit(longer, loader(), ckpt_path=path, hparams="new")
    assert longer.rates == pytest.approx(whole.rates[12:], rel=1e-9)
    assert min(longer.rates) > 0


def test_the_old_schedule_may_hold_and_is_warned_of(tmp_path: Path) -> None:
    short, path = quiet(max_epochs=2), tmp_path / "x.ckpt"
    short.fit(Scheduled("linear"), loader())
    short.save_checkpoint(path)
    trainer = quiet(max_epochs=4)
    with pytest.warns(PitfallWarning, match="SGD with lr=0 in all groups through epoch 2.*LinearL"):
        trainer.fit(Scheduled("linear"), loader(), ckpt_path=path, hparams="old")


class Rate(Regression):
    """SGD with a rate, and a factor for each update or epoch."""

    def __init__(self, lr: float, interval: str, factor: Any) -> None:
        super().__init__()
        self.lr, self.interval, self.factor = lr, interval, factor

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.SGD(self.parameters(), lr=self.lr)
        if self.factor is None:
            return optimizer
        schedule = S.LambdaLR(optimizer, self.factor)
        return [optimizer], [{"scheduler": schedule, "interval": self.interval}]


STILL: dict[str, tuple[Any, str | None]] = {
    "no schedule": ((0.0, "epoch", None), "epoch 0, 6 updates, without a schedule. Raise lr"),
    "first epoch": ((0.1, "epoch", lambda n: n), "epoch 0, 6 updates, under LambdaLR"),
    "ended": ((0.1, "step", lambda n: float(n < 4)), "through epoch 1, 6 updates, under"),
    "warm-up": ((0.1, "step", lambda n: n / 4), None),
    "waves": ((0.1, "step", lambda n: float(n % 6 not in (0, 5))), None),
    "last epoch ends at 0": ((0.1, "epoch", lambda n: 1 - n / 3), None),
}


@pytest.mark.parametrize("case", STILL)
def test_an_epoch_without_a_rate_is_a_warning(case: str) -> None:
    arguments, message = STILL[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet(max_epochs=3).fit(Rate(*arguments), loader())
    found = [str(w.message) for w in caught]
    assert len(found) == (message is not None)
    assert message is None or message in found[0]


def test_a_rate_of_0_may_be_meant() -> None:
    class Meant(Rate):
        @mt.intended("update-had-no-effect")
        def configure_optimizers(self) -> Any:
            return super().configure_optimizers()

    quiet(max_epochs=1).fit(Meant(0.0, "epoch", None), loader())
