"""Profilers of a run: what they show, where they write, and that they end with the run."""

from __future__ import annotations

import json
import pstats
from pathlib import Path
from typing import Any

import pytest
from toy_tasks import Regression, loader, quiet

from minitorch.loggers import TensorBoardLogger
from minitorch.ops import observing
from minitorch.trainer import AdvancedProfiler, OpsProfiler, Profiler, SimpleProfiler


class Own(Regression):
    """Measures a part of its own, and fails on request."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        profiler: Any = self.trainer.profiler
        with profiler.profile("own part"):
            if self.error is not None:
                raise self.error
            return super().training_step(batch, batch_idx)


def run(profiler: Any, folder: Path, **options: Any) -> Any:
    trainer = quiet(max_epochs=1, profiler=profiler, default_root_dir=folder, **options)
    trainer.fit(Own(), loader(24))
    return trainer


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("simple", ["part ", "training_step", "backward", "own part", "calls", "share"]),
        ("advanced", ["Profile of training_step", "Profile of own part", "cumtime"]),
        ("ops", ["Self CPU", "training_step", "Backward", "own part", "Optimizer.step#"]),
        ("pytorch", ["Self CPU"]),
    ],
)
def test_by_name(
    name: str, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(name, tmp_path)
    out = capsys.readouterr().out
    assert [part for part in parts if part not in out] == []
    assert not observing._observers


@pytest.mark.parametrize("kind", [SimpleProfiler, AdvancedProfiler, OpsProfiler])
def test_summary_in_a_file(kind: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(kind(dirpath=tmp_path / "here", filename="times"), tmp_path)
    assert "training_step" in (tmp_path / "here" / "fit-times.txt").read_text()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", [SimpleProfiler, AdvancedProfiler, OpsProfiler])
def test_an_exception_ends_it(kind: Any, tmp_path: Path) -> None:
    profiler = kind(dirpath=tmp_path, filename="times")
    with pytest.raises(ZeroDivisionError):
        quiet(profiler=profiler).fit(Own(ZeroDivisionError()), loader(24))
    assert (tmp_path / "fit-times.txt").exists()
    assert not observing._observers


def test_values_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import minitorch as mt

    def weights(profiler: Any) -> list[Any]:
        mt.manual_seed(1)
        task = Own() if profiler else Regression()
        quiet(max_epochs=2, profiler=profiler, default_root_dir=tmp_path).fit(task, loader(24))
        return [p.tolist() for p in task.parameters()]

    plain = weights(None)
    assert all(weights(name) == plain for name in ("simple", "advanced", "ops"))


def test_simple_without_the_extended_columns() -> None:
    profiler = SimpleProfiler(extended=False)
    with profiler.profile("a"):
        pass
    assert profiler.summary().splitlines()[0].split() == ["part", "total", "s", "ms/call"]


def test_advanced_measures_inner_parts_by_themselves(tmp_path: Path) -> None:
    profiler = AdvancedProfiler(tmp_path, "times", line_count_restriction=3, dump_stats=True)
    run(profiler, tmp_path)
    outer = pstats.Stats(str(tmp_path / "times-training_step.prof"))
    inner = pstats.Stats(str(tmp_path / "times-own_part.prof"))

    def functions(stats: Any) -> set[str]:
        return {name for _, _, name in stats.stats}

    assert "linear" in functions(inner)
    assert "linear" not in functions(outer)
    assert "due to restriction <3>" in profiler.summary()


def test_ops_writes_its_trace_beside_the_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = TensorBoardLogger(tmp_path)
    profiler = OpsProfiler(row_limit=2, sort_by_key="count")
    trainer = run(profiler, tmp_path, logger=logger)
    [path] = profiler.traces
    assert Path(path).parent == Path(logger.log_dir)
    assert path.endswith(".pt.trace.json")
    events = json.loads(Path(path).read_text())["traceEvents"]
    names = {event["name"] for event in events}
    assert {"training_step", "ProfilerStep#2", "ProfilerStep#4", "Linear", "linear"} <= names
    assert "ProfilerStep#1" not in names
    assert "ProfilerStep#5" not in names
    assert trainer.logger_group.failures == []
    files = list(Path(logger.log_dir).glob("*tfevents*"))
    assert any(path.encode() in file.read_bytes() for file in files)


def test_ops_without_enough_steps_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = quiet(max_steps=2, profiler=OpsProfiler(), default_root_dir=tmp_path)
    trainer.fit(Regression(), loader(24))
    assert "no step was measured" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_ops_of_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = quiet(profiler="ops", default_root_dir=tmp_path)
    trainer.validate(Regression(), loader(2), verbose=False)
    assert "linear" in capsys.readouterr().out


def test_an_object_with_two_methods_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    class Mine:
        def timed(self, name: str, call: Any) -> Any:
            return call

        def summary(self) -> str:
            return "mine"

    quiet(max_epochs=1, profiler=Mine()).fit(Regression(), loader(2))
    assert capsys.readouterr().out == "mine\n"


def test_base_class_names_what_is_missing() -> None:
    with pytest.raises(NotImplementedError, match=r"Profiler must override start\(\)"):
        Profiler().start("a")
    with pytest.raises(NotImplementedError, match=r"Profiler must override stop\(\)"):
        Profiler().stop("a")
    with pytest.raises(NotImplementedError, match=r"Profiler must override summary\(\)"):
        Profiler().summary()
