"""What loggers get, and what happens when one of them fails."""

from __future__ import annotations

from typing import Any

import pytest
from toy_tasks import Regression, loader, quiet


class Recorder:
    """A logger that keeps what it gets."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.calls.append(("metrics", dict(metrics), step))

    def log_hyperparams(self, params: Any, metrics: Any = None) -> None:
        self.calls.append(("hyperparams", params))

    def after_save_checkpoint(self, path: str, metrics: Any) -> None:
        self.calls.append(("saved", path, dict(metrics)))

    def save(self) -> None: ...

    def finalize(self, status: str) -> None:
        self.calls.append(("finalize", status))


class Broken(Recorder):
    """Fails at the n-th log_metrics."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        if len([call for call in self.calls if call[0] == "metrics"]) == self.n:
            raise OSError("disk full")
        super().log_metrics(metrics, step)


def test_what_a_logger_gets(tmp_path: Any) -> None:
    logger = Recorder()
    trainer = quiet(max_epochs=1, logger=logger)
    trainer.fit(Regression(lr=0.01), loader(8), loader(4))
    kinds = [call[0] for call in logger.calls]
    assert kinds == ["hyperparams", *["metrics"] * 4, "finalize"]
    assert logger.calls[0] == ("hyperparams", {"lr": 0.01, "dropout": 0.0})
    for kind, metrics, *_ in logger.calls[1:-1]:
        assert kind == "metrics"
        assert metrics["epoch"] == 0
        assert all(type(value) in (float, int) for value in metrics.values())
    assert logger.calls[-1] == ("finalize", "success")
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    kind, path, metrics = logger.calls[-1]
    assert (kind, path) == ("saved", str(tmp_path / "x.ckpt"))
    assert "val/loss" in metrics


def test_failed_run_is_told_to_the_loggers() -> None:
    class Task(Regression):
        def on_train_batch_end(self, *args: Any) -> None:
            self.trainer.stop("diverged", status="failed")

    logger = Recorder()
    trainer = quiet(max_epochs=1, logger=logger)
    assert trainer.fit(Task(), loader(8)).status == "failed"
    assert logger.calls[-1] == ("finalize", "failed")
    trainer.test(Task(), loader(8), verbose=False)
    assert logger.calls[-1] == ("finalize", "success")


def test_hyperparameters_can_stay_out_of_the_loggers() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.save_hyperparameters(logger=False)

    logger = Recorder()
    quiet(max_epochs=1, logger=logger).fit(Task(), loader(8))
    assert logger.calls[0][0] == "metrics"


def test_broken_logger_is_dropped_with_one_warning() -> None:
    broken, good = Broken(2), Recorder()
    trainer = quiet(max_epochs=1, logger=[broken, good])
    assert trainer.logger is broken
    text = r"Broken.log_metrics failed and this logger is dropped: OSError: disk full."
    with pytest.warns(UserWarning, match=text) as caught:
        result = trainer.fit(Regression(), loader())
    assert len(caught) == 1
    assert trainer.loggers == [good]
    assert len(result.warnings) == 1
    assert "disk full" in result.warnings[0]
    assert result.warnings[0] in str(result)
    assert len([call for call in good.calls if call[0] == "metrics"]) == 7
    assert result.global_step == 6


def test_failed_run_tells_the_loggers() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            raise ZeroDivisionError

    logger = Recorder()
    with pytest.raises(ZeroDivisionError):
        quiet(logger=logger).fit(Task(), loader())
    assert logger.calls[-1] == ("finalize", "failed")


def test_sanity_check_logs_nothing() -> None:
    logger = Recorder()
    trainer = quiet(max_epochs=0, logger=logger)
    result = trainer.fit(Regression(), loader(), loader(4))
    assert [call[0] for call in logger.calls] == ["hyperparams", "finalize"]
    assert result.history == {}
    assert trainer.callback_metrics == {}


def test_no_logger_by_default_nor_in_a_dev_run() -> None:
    assert quiet().loggers == []
    assert quiet().logger is None
    assert quiet(logger=Recorder(), fast_dev_run=True).loggers == []


def test_log_dir(tmp_path: Any) -> None:
    class WithDir(Recorder):
        log_dir = "somewhere"

    assert quiet(default_root_dir=tmp_path).log_dir == str(tmp_path)
    assert quiet(logger=[Recorder(), WithDir()]).log_dir == "somewhere"


def test_profiler_prints_where_the_time_went(capsys: pytest.CaptureFixture[str]) -> None:
    trainer = quiet(max_epochs=1, profiler="simple")
    trainer.fit(Regression(), loader())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["part", "total", "s", "calls", "ms/call", "share"]
    calls = {line[: line.index("  ")].strip(): line.split()[-3] for line in lines[1:-1]}
    for part in ("training_step", "backward", "optimizer_step", "next batch"):
        assert calls[part] == "6"
    assert calls["[MetricLog] on_train_batch_end"] == "6"
    assert lines[-1].startswith("run")
