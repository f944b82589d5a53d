"""What a batch may cost: frames on the stack and Python calls, counted, never timed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from toy_tasks import Regression, loader, quiet

import minitorch.callbacks
import minitorch.trainer
from minitorch.callbacks import Callback

FOLDERS = tuple(
    str(Path(package.__file__ or "").parent) for package in (minitorch.trainer, minitorch.callbacks)
)
MAX_FRAMES, MAX_FILES, MAX_CALLS = 5, 1, 60


class Three(Callback):
    """A user's callback with events in every batch."""

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        return None

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        return None

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        module.log("loss copy", outputs["loss"])


class Empty(Callback):
    """A callback without events."""


def test_few_frames_and_one_file_between_fit_and_training_step() -> None:
    stacks: list[list[str]] = []

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            files, frame = [], sys._getframe(1)
            while frame is not None and frame.f_code.co_filename != __file__:
                files.append(frame.f_code.co_filename)
                frame = frame.f_back  # type: ignore[assignment]
            stacks.append(files)
            return super().training_step(batch, batch_idx)

    quiet(max_epochs=1).fit(Task(), loader(8))
    assert all(len(files) <= MAX_FRAMES for files in stacks)
    assert all(len(set(files)) <= MAX_FILES for files in stacks)


def calls_per_batch(callbacks: list[Callback]) -> list[str]:
    """Names of the framework's functions that one batch in the middle of a fit calls."""
    names: list[str] = []
    batches: list[int] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(FOLDERS):
            if code.co_name == "_train_batch":
                batches.append(len(names))
            names.append(code.co_qualname)

    trainer = quiet(max_epochs=1, callbacks=callbacks, log_every_n_steps=50)
    sys.setprofile(profile)
    try:
        trainer.fit(Regression(), loader(24))
    finally:
        sys.setprofile(None)
    return names[batches[3] : batches[4]]


def test_few_framework_calls_in_a_batch() -> None:
    names = calls_per_batch([Three(), Three(), Three()])
    assert len(names) <= MAX_CALLS, names


def test_callbacks_without_events_cost_nothing() -> None:
    assert calls_per_batch([Empty() for _ in range(50)]) == calls_per_batch([])
