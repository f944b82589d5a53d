"""Trainer.verify_resume: what it proves, and what it says about programs that cannot resume."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, loader, quiet, weights

import minitorch as mt
from minitorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from minitorch.data import DataLoader, Dataset
from minitorch.errors import ArgumentError, TrainerError


class Good(Regression):
    def __init__(self) -> None:
        super().__init__(dropout=0.3)

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.05)
        schedule = mt.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"accumulate_grad_batches": 3},
    "half": {"precision": "16-mixed", "gradient_clip_val": 0.5},
    "validation": {"val_check_interval": 2},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_good_task_is_proved_and_left_alone(
    case: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mt.manual_seed(3)
    task = Good()
    before, drawn = weights(task), mt.random.state_dict()
    callbacks = [EarlyStopping("val/loss", mode="min"), ModelCheckpoint(tmp_path / "x")]
    trainer = quiet(max_epochs=3, callbacks=callbacks, **OPTIONS[case])
    report = trainer.verify_resume(task, loader(), loader(12))
    assert (report.steps, report.left_out) == (8, ("ModelCheckpoint",))
    assert report.after == 4
    assert report.values > 20
    text = "8 batches equal 4, a checkpoint, and 4 more in fresh objects, bit for bit in"
    assert text in str(report)
    assert f"Trainer: {report}" in capsys.readouterr().out
    assert os.listdir(tmp_path) == []
    assert all(np.array_equal(before[name], value) for name, value in weights(task).items())
    assert drawn == mt.random.state_dict()
    assert trainer.fit(task, loader(), loader(12)).epochs == 3


def test_stop_lies_inside_of_a_window_and_a_function_makes_the_task() -> None:
    trainer = quiet(max_epochs=3, accumulate_grad_batches=2)
    report = trainer.verify_resume(Good, loader())
    assert report.after == 5
    assert trainer.verify_resume(Good, loader(), steps=3, after=2).after == 2


class Counts(Good):
    """A number in the step that no checkpoint holds."""

    def __init__(self) -> None:
        super().__init__()
        self.counter = 0

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.counter += 1
        return super().training_step(batch, batch_idx) * (1 + 0.1 * self.counter)


class Hidden(Good):
    """A buffer that is left out of the state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", mt.zeros(1), persistent=False)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        with mt.no_grad():
            self.average.add_(loss.detach())
        return loss * (1 + self.average)


class Numpy(Good):
    """Noise from NumPy's global generator."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, batch_idx) * (1 + np.float32(np.random.rand()).item())


class Decays(Callback):
    """A callback with a state that it does not save."""

    def __init__(self) -> None:
        self.factor = 1.0

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, idx: int) -> None:
        self.factor *= 0.5
        with mt.no_grad():
            module.linear.bias.add_(self.factor)


class Draws(Callback):
    """Draws random numbers as training begins."""

    def on_train_start(self, trainer: Any, module: Any) -> None:
        mt.rand(3)


class Augmented(Dataset):
    """Samples with noise from a generator of its own, or from Python's."""

    def __init__(self, own: bool) -> None:
        self.rng = np.random.default_rng(0) if own else None

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> Any:
        noise = random.random() if self.rng is None else self.rng.random()
        x = np.full(3, index / 24 + noise, np.float32)
        return x, x[:1]


CASES: dict[str, tuple[Any, Any, list[Any], list[str]]] = {
    "attribute": (
        *(Counts, None, []),
        ["first in the loss of batch 4", r"self.counter \(4 before, 0 after\)", "Keep it in a buf"],
    ),
    "buffer": (Hidden, None, [], ["first in the loss of batch 4", "persistent=False"]),
    "numpy": (Numpy, None, [], ["first in the loss of batch 4", "draws from numpy.random"]),
    "callback": (
        *(Good, None, [Decays()]),
        ["first in the loss of batch 4", r"Decays.factor \(0.0625 before, 1.0 after\)"],
    ),
    "draw": (Good, None, [Draws()], ["random numbers before batch 4", "on_train_start"]),
    "dataset": (Good, True, [], ["first in the data of batch 4", "keeps a state of its own"]),
    "random": (Good, False, [], ["first in the data of batch 4", "draws from numpy.random or ra"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_does_not_resume_is_named_with_its_cause(case: str) -> None:
    kind, own, callbacks, texts = CASES[case]
    data = loader() if own is None else DataLoader(Augmented(own), 4, shuffle=True)
    trainer = quiet(max_epochs=3, callbacks=callbacks)
    state = np.random.get_state()[1].copy(), random.getstate()
    with pytest.raises(TrainerError, match="verify_resume: a resumed run must equal") as caught:
        trainer.verify_resume(kind(), data)
    for text in [*texts, "after a stop at batch 4 of 8"]:
        assert re.search(text, str(caught.value)), text
    assert np.array_equal(np.random.get_state()[1], state[0])
    assert random.getstate() == state[1]


def test_difference_in_the_state_alone_is_named() -> None:
    class Late(Callback):
        """Saves a number that depends on how long the object lives."""

        def __init__(self) -> None:
            self.calls = 0

        def on_train_batch_end(self, *args: Any) -> None:
            self.calls += 1

        def state_dict(self) -> dict[str, Any]:
            return {"calls": self.calls}

    with pytest.raises(TrainerError, match=r"first in callbacks\..*Late.calls: 8 against 4"):
        quiet(max_epochs=3, callbacks=Late()).verify_resume(Good(), loader())


def test_wrong_arguments() -> None:
    trainer = quiet(max_epochs=1)
    with pytest.raises(ArgumentError, match=r"Got after=3 and steps=3. Pass 0 < after < steps"):
        trainer.verify_resume(Good(), loader(), steps=3, after=3)
    with pytest.raises(ArgumentError, match=r"Got steps=8, and it ended after 6: max_epochs=1"):
        trainer.verify_resume(Good(), loader())


def test_checkpoints_of_the_task_write_nothing(tmp_path: Path) -> None:
    class Own(Good):
        def configure_callbacks(self) -> Any:
            return ModelCheckpoint(tmp_path, every_n_train_steps=1)

    quiet(max_epochs=2).verify_resume(Own(), loader())
    assert os.listdir(tmp_path) == []
