"""Several processes: evaluation of one data set, and calls that all of them must make."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import rank_programs as programs
from harness import error, good, impossible

from minitorch import distributed as dist
from minitorch.trainer import Trainer


def results(folder: Path, stage: str) -> list[dict[str, float]]:
    """What each of two processes says about 21 samples."""
    dist.spawn(programs.evaluate, (str(folder), stage), nprocs=2)
    texts = [(folder / f"{rank}.txt").read_text() for rank in range(2)]
    return [ast.literal_eval(text)[0][0] for text in texts]


def in_one_process(stage: str) -> dict[str, float]:
    """The same in this process."""
    trainer = Trainer(enable_progress_bar=False)
    return getattr(trainer, stage)(programs.Judge(), programs.judged(), verbose=False)[0]


@impossible("val-metric-wrong-across-ranks")
def _(tmp_path: Path) -> None:
    first, second = results(tmp_path, "validate")
    assert first == second
    assert first == pytest.approx(in_one_process("validate"), rel=1e-6)
    assert first["samples"] == 21


@impossible("val-metric-wrong-across-ranks", "test")
def _(tmp_path: Path) -> None:
    first, second = results(tmp_path, "test")
    assert first == second
    assert first["accuracy"] == in_one_process("test")["accuracy"]


@error("val-metric-wrong-across-ranks", r"by hand covers the samples of one process", "by hand")
def _() -> None:
    dist.spawn(programs.refused, ("by hand",), nprocs=2)


@good("val-metric-wrong-across-ranks")
def _(tmp_path: Path) -> None:
    results(tmp_path, "validate")


@error(
    "rank-conditional-collective",
    r"the same collectives in the same order\. Got rank 0 in all_reduce.*rank_programs\.py:\d+.*"
    r"rank 1 in barrier.*rank_programs\.py:\d+",
)
def _() -> None:
    dist.spawn(programs.wrong, ("other call",), nprocs=2)


@error("rank-conditional-collective", "rank 0 in all_reduce.*have ended: rank 1", "last call")
def _() -> None:
    dist.spawn(programs.wrong, ("ended",), nprocs=2)


@good("rank-conditional-collective")
def _() -> None:
    dist.spawn(programs.collectives, nprocs=2)
