"""A logger that cannot write says so once, loses nothing it can keep, and never hangs."""

import errno
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minitorch.loggers import LoggerError, background

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def steps(row: Any, logger: Any) -> list[int]:
    return [step for step, _ in row.read(logger.log_dir)]


def log_until_the_thread_has_failed(logger: Any, first: int) -> tuple[int, LoggerError]:
    step = first
    while True:
        logger.save()
        try:
            logger.log_metrics({"a": step}, step)
        except LoggerError as error:
            return step, error
        step += 1


def test_a_full_disk_is_reported_and_nothing_is_lost(row: Any, tmp_path: Path, disk: Any) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    before = next(Path(logger.log_dir).glob(row.pattern)).read_bytes()
    disk.error = FULL
    logger.log_metrics({"a": 1.0}, 1)
    with pytest.raises(LoggerError) as caught:
        logger.flush()
    message = str(caught.value)
    assert message.startswith(f"{row}('{tmp_path}'): cannot write {logger.log_dir}/")
    assert "No space left on device. 1 records wait in memory and are tried again. " in message
    assert message.endswith("Free space on this disk, or pass a save_dir on another one.")
    assert next(Path(logger.log_dir).glob(row.pattern)).read_bytes() == before, "half a record"
    disk.error = None
    logger.log_metrics({"a": 2.0, "b": 3.0}, 2)
    logger.finalize("success")
    assert row.read(logger.log_dir) == [(0, {"a": 0}), (1, {"a": 1}), (2, {"a": 2, "b": 3})]


def test_a_failure_in_the_thread_surfaces_once(row: Any, tmp_path: Path, disk: Any) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    disk.error, disk.once = FULL, True
    last, error = log_until_the_thread_has_failed(logger, 1)
    assert "No space left on device" in str(error)
    logger.log_metrics({"a": last + 1}, last + 1)
    logger.finalize("success")
    assert steps(row, logger) == list(range(last + 2)), "records lost or doubled"


@pytest.mark.parametrize("method", ["flush", "finalize"])
def test_a_failure_in_the_thread_surfaces_without_another_log_call(
    row: Any, tmp_path: Path, disk: Any, method: str
) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    disk.error, disk.once = FULL, True
    logger.log_metrics({"a": 1.0}, 1)
    while not disk.failures:
        logger.save()
    call = getattr(logger, method)
    arguments = ["success"] if method == "finalize" else []
    with pytest.raises(LoggerError, match="No space left"):
        call(*arguments)
    call(*arguments)
    logger.finalize("success")
    assert steps(row, logger) == [0, 1]


def test_finalize_on_a_full_disk_says_what_is_lost_and_closes(
    row: Any, tmp_path: Path, disk: Any
) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    disk.error = FULL
    logger.log_metrics({"a": 1.0}, 1)
    with pytest.raises(LoggerError, match="1 records were not written"):
        logger.finalize("failed")
    logger.finalize("failed")
    disk.error = None
    logger.log_metrics({"a": 2.0}, 2)
    logger.finalize("success")
    assert steps(row, logger) == [0, 2]


def test_memory_stays_bounded_on_a_full_disk(
    row: Any, tmp_path: Path, disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MAX_RECORDS", 10)
    monkeypatch.setattr(row.make, "_wake_at", lambda self: 10)
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    disk.error = FULL
    messages = []
    for step in range(1, 60):
        try:
            logger.log_metrics({"a": step}, step)
        except LoggerError as error:
            messages.append(str(error))
    assert any("The oldest 10 records were dropped." in message for message in messages)
    disk.error = None
    logger.flush()
    kept = steps(row, logger)
    assert kept == [0, *range(61 - len(kept), 60)]
    assert len(kept) <= 21
    logger.finalize("success")


def test_an_interrupt_leaves_whole_records(row: Any, tmp_path: Path, disk: Any) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    logger.log_metrics({"a": 1.0}, 1)
    disk.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        logger.flush()
    assert steps(row, logger) == [0]
    disk.error = None
    logger.finalize("interrupted")
    assert steps(row, logger) == [0, 1]


def test_a_flush_inside_a_flush_does_not_hang(
    row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    real_write = os.write

    def write(fd: int, data: Any) -> int:  # stands for a signal handler that runs meanwhile
        logger.flush()
        return real_write(fd, data)

    monkeypatch.setattr(os, "write", write)
    logger.flush()
    assert steps(row, logger) == [0]
    logger.finalize("success")


def test_a_deleted_folder_is_noticed(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    shutil.rmtree(logger.log_dir)
    logger.log_metrics({"a": 1.0}, 1)
    with pytest.raises(LoggerError) as caught:
        logger.flush()
    assert "the file was deleted while in use." in str(caught.value)
    assert "Keep the run's folder in place until training ends" in str(caught.value)
    with pytest.raises(LoggerError, match="1 records were not written"):
        logger.finalize("success")
    logger.log_metrics({"a": 2.0}, 2)
    logger.finalize("success")
    assert steps(row, logger) == [2]


def test_a_file_in_the_place_of_the_folder(row: Any, tmp_path: Path) -> None:
    (tmp_path / "default").write_text("")
    logger = row.make(tmp_path)
    for _ in range(2):
        with pytest.raises(LoggerError, match="A file stands where the folder should be: remove"):
            logger.log_metrics({"a": 1.0}, 0)
    (tmp_path / "default").unlink()
    logger.log_metrics({"a": 1.0}, 0)
    logger.finalize("success")
    assert steps(row, logger) == [0]


FIXES = {
    errno.EACCES: "Permission denied. Give this user write permission there, or pass another",
    errno.EROFS: "Read-only file system. Pass a save_dir on a disk that is writable.",
    errno.EDQUOT: "Free space in your quota, or pass a save_dir on another disk.",
    errno.EIO: "Input/output error. Check this path, or pass another save_dir.",
}


@pytest.mark.parametrize("call", ["mkdir", "open"])
@pytest.mark.parametrize(("number", "message"), FIXES.items())
def test_folders_and_files_that_cannot_be_made(
    row: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    number: int,
    message: str,
) -> None:
    real = getattr(os, call)

    def fail(path: Any, *args: Any, **options: Any) -> Any:
        if not str(path).startswith(str(tmp_path)):
            return real(path, *args, **options)
        raise OSError(number, os.strerror(number), str(path))

    logger = row.make(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(LoggerError, match=re.escape(message)) as caught:
            logger.log_metrics({"a": 1.0}, 0)
    assert f"{row}('{tmp_path}'): cannot write {tmp_path}" in str(caught.value)
    assert caught.value.__cause__.errno == number  # type: ignore[union-attr]


def test_hyperparameters_that_cannot_be_written(
    row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = row.make(tmp_path, version=0)
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "version_0").write_text("")
    with pytest.raises(LoggerError, match=r"hparams.json: File exists. A file stands where"):
        logger.log_hyperparams({"lr": 0.1})


def test_a_record_that_cannot_be_encoded_is_named_and_the_rest_is_written(
    row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    sink = type(logger._background._sink)
    real = sink.encode

    def encode(self: Any, item: Any) -> Any:
        if item[1] == 1:
            raise RuntimeError("no such letter")
        return real(self, item)

    monkeypatch.setattr(sink, "encode", encode)
    logger.log_metrics({"a": 1.0}, 1)
    logger.log_metrics({"a": 2.0}, 2)
    with pytest.raises(LoggerError, match=r"cannot encode a record for .*no such letter.*left out"):
        logger.flush()
    logger.finalize("success")
    assert steps(row, logger) == [0, 2]


def test_a_defect_while_writing_is_not_silent(row: Any, tmp_path: Path, disk: Any) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    disk.error = RuntimeError("defect")
    with pytest.raises(LoggerError, match=r"cannot write records for .*defect.*left out"):
        logger.flush()
    disk.error = None
    logger.log_metrics({"a": 1.0}, 1)
    logger.finalize("success")
    assert steps(row, logger) == [1]


PROGRAM = """
import os, sys
from minitorch.loggers import {logger}
logger = {logger}("runs", version=0, flush_secs=1000)
for step in range(5):
    logger.log_metrics({{"a": step}}, step)
"""


def run(python: Callable, row: Any, rest: str) -> Any:
    return python(PROGRAM.format(logger=row) + rest)


def read_run(row: Any, tmp_path: Path) -> list[int]:
    return [step for step, _ in row.read(tmp_path / "runs/default/version_0")]


@pytest.mark.parametrize(
    "ending",
    ["", "sys.exit(0)", "sys.exit(3)", "raise SystemExit", "1 / 0"],
    ids=["end", "exit 0", "exit 3", "SystemExit", "exception"],
)
def test_the_end_of_the_program_writes_everything(
    row: Any, tmp_path: Path, python: Callable, ending: str
) -> None:
    done = run(python, row, ending)
    assert read_run(row, tmp_path) == [0, 1, 2, 3, 4]
    assert done.returncode == {"sys.exit(3)": 3, "1 / 0": 1}.get(ending, 0)
    assert ("ZeroDivisionError" in done.stderr) if ending == "1 / 0" else (done.stderr == "")


def test_logging_while_the_interpreter_ends(row: Any, tmp_path: Path, python: Callable) -> None:
    done = run(
        python,
        row,
        "import atexit, threading\n"
        "atexit.register(lambda: logger.log_metrics({'a': 5}, 5))\n"
        "logger.finalize('success')\n"
        "class Late:\n"
        "    def __del__(self): logger.log_metrics({'a': 6}, 6)\n"
        "late = Late()\n",
    )
    assert read_run(row, tmp_path)[:6] == [0, 1, 2, 3, 4, 5]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failure_at_the_end_of_the_program_is_told(
    row: Any, tmp_path: Path, python: Callable
) -> None:
    done = run(
        python,
        row,
        "logger.flush(); logger.log_metrics({'a': 9}, 9)\nimport shutil; shutil.rmtree('runs')",
    )
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert re.match(rf"minitorch: {row}\('runs'\): cannot write .* were not written", done.stderr)


def test_what_was_flushed_survives_a_kill(row: Any, tmp_path: Path, python: Callable) -> None:
    done = run(
        python, row, "logger.flush(); logger.log_metrics({'a': 9}, 9); os.kill(os.getpid(), 9)"
    )
    assert done.returncode == -signal.SIGKILL
    assert read_run(row, tmp_path) == [0, 1, 2, 3, 4]
    done = run(python, row, "")
    assert read_run(row, tmp_path) == [0, 1, 2, 3, 4] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_neither_writes_nor_hangs(
    row: Any, tmp_path: Path, python: Callable, leave: str
) -> None:
    done = run(
        python,
        row,
        "import warnings; warnings.filterwarnings('ignore', category=DeprecationWarning)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for step in range(100, 110): logger.log_metrics({'b': step}, step)\n"
        "    logger.save(); logger.flush(); logger.finalize('success')\n"
        f"    {leave}\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "logger.log_metrics({'a': 5}, 5)\n",
    )
    assert done.returncode == 0, done.stderr
    assert read_run(row, tmp_path) == [0, 1, 2, 3, 4, 5]
    assert done.stderr.count("RuntimeWarning") == 1
    assert "was forked from the one that opened runs/default/version_0/" in done.stderr
    assert "so nothing is logged here. Make a logger in the child." in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_may_use_a_logger_of_its_own(
    row: Any, tmp_path: Path, python: Callable
) -> None:
    done = run(
        python,
        row,
        "import warnings; warnings.filterwarnings('ignore', category=DeprecationWarning)\n"
        f"mine = {row}('runs', version=0)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    mine.log_metrics({'b': 100}, 100)\n"
        "    mine.finalize('success')\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(read_run(row, tmp_path)) == [0, 1, 2, 3, 4, 100]


def test_processes_that_start_at_once_get_different_versions(
    row: Any, tmp_path: Path, python: Callable
) -> None:
    done = python(
        "import subprocess, sys\n"
        "program = '''\n"
        "import sys\n"
        f"from minitorch.loggers import {row}\n"
        f'logger = {row}("runs")\n'
        "sys.stdin.read()\n"
        'logger.log_metrics({"a": logger.version}, 0)\n'
        "'''\n"
        "all = [subprocess.Popen([sys.executable, '-c', program], stdin=subprocess.PIPE)\n"
        "       for _ in range(4)]\n"
        "for p in all: p.stdin.close()\n"
        "sys.exit(sum(p.wait() for p in all))\n"
    )
    assert done.returncode == 0, done.stderr
    for version in range(4):
        assert row.read(tmp_path / f"runs/default/version_{version}") == [(0, {"a": version})]
