"""Programs about data modules."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from harness import Regression, error, fit, good, impossible, loader, quiet

import minitorch as mt
from minitorch.errors import TrainerError
from minitorch.trainer import DataModule


class Prepared(DataModule):
    """Builds its vocabulary where only one process would have it."""

    def prepare_data(self) -> None:
        self.vocabulary = {"a": 0, "b": 1}

    def train_dataloader(self) -> Any:
        return loader()


@error("dataset-setup-state-on-one-process", r"prepare_data.*Got self.vocabulary assigned. Move")
def _() -> None:
    quiet().fit(Regression(), datamodule=Prepared())


@error(
    "dataset-setup-state-on-one-process", r"prepare_data.*Got self.\w+ assigned", "in the module"
)
def _() -> None:
    class Task(Regression):
        def prepare_data(self) -> None:
            self.counts = [1, 2]

    fit(Task())


@impossible("dataset-setup-state-on-one-process", "no process has it")
def _() -> None:
    data = Prepared()
    with contextlib.suppress(TrainerError):
        quiet().fit(Regression(), datamodule=data)
    assert not hasattr(data, "vocabulary")


@good("dataset-setup-state-on-one-process")
def _() -> None:
    class Good(Prepared):
        def prepare_data(self) -> None:
            Path("vocabulary.txt").write_text("a b")

        def setup(self, stage: str) -> None:
            self.vocabulary = Path("vocabulary.txt").read_text().split()

    quiet().fit(Regression(), datamodule=Good())


@good("dataset-setup-state-on-one-process", "meant")
def _() -> None:
    class Meant(Prepared):
        prepare_data = mt.intended("dataset-setup-state-on-one-process")(Prepared.prepare_data)

    quiet().fit(Regression(), datamodule=Meant())
