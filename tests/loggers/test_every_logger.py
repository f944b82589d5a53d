"""Properties that each logger of the table has."""

import gc
import json
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minitorch
import minitorch.loggers as loggers_package
from minitorch.loggers import Logger, LoggerError

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name not in ("step", "wall_time")
)
numbers = st.floats(width=32) | st.integers(-(2**20), 2**20)
histories = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.dictionaries(names, numbers, max_size=4)),
    max_size=12,
)


def same(read: list, logged: list) -> bool:
    expected = [(step, metrics) for step, metrics in logged if metrics]
    return len(read) == len(expected) and all(
        step == wanted_step
        and metrics.keys() == wanted.keys()
        and all(np.array_equal(metrics[name], wanted[name], equal_nan=True) for name in wanted)
        for (step, metrics), (wanted_step, wanted) in zip(read, expected, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(history=histories, flushes=st.sets(st.integers(0, 11)))
def test_reads_back_what_was_logged(
    row: Any, tmp_path_factory: Any, history: list, flushes: set[int]
) -> None:
    logger = row.make(tmp_path_factory.mktemp("run"))
    for i, (step, metrics) in enumerate(history):
        logger.log_metrics(metrics, step)
        if i in flushes:
            logger.flush()
            assert same(row.read(logger.log_dir), history[: i + 1])
    logger.finalize("success")
    assert same(row.read(logger.log_dir), history)


def test_is_a_logger_with_its_folders(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)
    assert isinstance(logger, Logger)
    assert (logger.save_dir, logger.name) == (str(tmp_path), "default")
    assert list(tmp_path.iterdir()) == [], "making a logger leaves nothing behind"
    assert logger.root_dir == str(tmp_path / "default")
    assert logger.version == 0
    assert logger.log_dir == str(tmp_path / "default" / "version_0")


@pytest.mark.parametrize(
    ("name", "version", "folder"),
    [
        ("exp", None, "exp/version_0"),
        ("", None, "version_0"),
        (None, 4, "version_4"),
        ("exp", 7, "exp/version_7"),
        ("exp", "night", "exp/night"),
    ],
)
def test_layout(row: Any, tmp_path: Path, name: Any, version: Any, folder: str) -> None:
    logger = row.make(tmp_path, name=name, version=version)
    logger.log_metrics({"a": 1.0}, 0)
    logger.finalize("success")
    assert logger.log_dir == str(tmp_path / folder)
    assert len(list((tmp_path / folder).glob(row.pattern))) == 1


def test_versions_count_up_and_ignore_other_folders(row: Any, tmp_path: Path) -> None:
    for name in ("version_3", "version_x", "version_9_old", "other"):
        (tmp_path / "default" / name).mkdir(parents=True)
    assert [row.make(tmp_path).version for _ in range(3)] == [4, 5, 6]


def test_threads_that_claim_at_once_get_different_versions(row: Any, tmp_path: Path) -> None:
    made = [row.make(tmp_path) for _ in range(12)]
    barrier = threading.Barrier(len(made))
    found = []

    def claim(logger: Logger) -> None:
        barrier.wait()
        found.append(logger.version)

    threads = [threading.Thread(target=claim, args=(logger,)) for logger in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(12))


def test_two_loggers_of_one_folder_keep_each_others_data(row: Any, tmp_path: Path) -> None:
    one, two = row.make(tmp_path, version=0), row.make(tmp_path, version=0)
    for step in range(5):
        one.log_metrics({"a": step}, step)
        two.log_metrics({"b": step}, step)
    one.flush()
    two.flush()
    one.finalize("success")
    two.finalize("success")
    read = row.read(one.log_dir)
    assert sorted(read, key=str) == sorted(
        [(s, {n: float(s)}) for s in range(5) for n in "ab"], key=str
    )
    assert len(list(Path(one.log_dir).glob(row.pattern))) == 2


def test_loggers_share_a_folder_by_version(tmp_path: Path) -> None:
    first = loggers_package.TensorBoardLogger(tmp_path)
    others = [
        make(tmp_path, version=first.version)
        for make in (loggers_package.CSVLogger, loggers_package.JSONLLogger)
    ]
    for logger in (first, *others):
        logger.log_hyperparams({"lr": 0.1})
        logger.log_metrics({"a": 1.0}, 0)
        logger.finalize("success")
    found = sorted(path.name for path in Path(first.log_dir).iterdir())
    assert found[1:] == ["hparams.json", "metrics.csv", "metrics.jsonl"]
    assert len(found) == 4


def test_a_later_run_of_the_same_version_adds_to_it(row: Any, tmp_path: Path) -> None:
    for run in range(3):
        logger = row.make(tmp_path, version=0)
        logger.log_metrics({f"run{run}": run}, run)
        logger.finalize("success")
    assert row.read(logger.log_dir) == [(i, {f"run{i}": float(i)}) for i in range(3)]


def test_logging_after_finalize_reopens(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)
    for step in range(3):
        logger.log_metrics({"a": step}, step)
        logger.finalize("success")
        logger.finalize("success")
    assert row.read(logger.log_dir) == [(i, {"a": float(i)}) for i in range(3)]
    assert len(list(Path(logger.log_dir).glob(row.pattern))) == 1


@pytest.mark.parametrize("method", ["save", "flush", "finalize", "after_save_checkpoint"])
def test_before_anything_was_logged_there_is_nothing_to_do(
    row: Any, tmp_path: Path, method: str
) -> None:
    logger = row.make(tmp_path)
    getattr(logger, method)(*(["success"] if method == "finalize" else []))
    assert list(tmp_path.iterdir()) == []


def test_unsupported_kinds_do_nothing(row: Any, tmp_path: Path) -> None:
    if row.make.__name__ != "CSVLogger":
        pytest.skip("supports some of them")
    logger = row.make(tmp_path)
    logger.log_histogram("h", [1.0], 0)
    logger.log_image("i", np.zeros((1, 2, 2)), 0)
    logger.log_text("t", "x", 0)
    logger.log_graph(SimpleNamespace(nodes=[]))
    assert not logger.wants_graph
    assert list(tmp_path.iterdir()) == []


SCALARS = [
    (1.5, 1.5),
    (3, 3.0),
    (True, 1.0),
    (np.float64(0.25), 0.25),
    (np.float16(0.5), 0.5),
    (np.int64(-7), -7.0),
    (np.bool_(True), 1.0),
    (np.array(2.5), 2.5),
    (np.array([[2.5]], np.float32), 2.5),
    ([4.0], 4.0),
    (float("nan"), float("nan")),
    (float("inf"), float("inf")),
    (np.float32("-inf"), float("-inf")),
]


@pytest.mark.parametrize(("value", "expected"), SCALARS, ids=repr)
def test_number_types(row: Any, tmp_path: Path, value: Any, expected: float) -> None:
    logger = row.make(tmp_path)
    logger.log_metrics({"a": value}, np.int32(3))
    logger.finalize("success")
    [(step, metrics)] = row.read(logger.log_dir)
    assert step == 3
    assert np.array_equal(metrics["a"], expected, equal_nan=True)


def test_arrays_of_other_libraries(row: Any, tmp_path: Path, array_type: Any) -> None:
    logger = row.make(tmp_path)
    logger.log_metrics({"a": array_type(1.25), "b": array_type([2.0])}, 0)
    logger.finalize("success")
    assert row.read(logger.log_dir) == [(0, {"a": 1.25, "b": 2.0})]


def test_tensors_of_the_framework(row: Any, tmp_path: Path, pretend_gpu: Any) -> None:
    weight = minitorch.tensor([2.0], requires_grad=True)
    logger = row.make(tmp_path)
    logger.log_metrics({"cpu": weight * 2, "gpu": weight.detach().to("cuda")}, 0)
    logger.log_metrics({"gpu": weight.to("cuda") * 3, "array": weight.to("cuda")._array}, 1)
    logger.log_histogram("weights", weight.to("cuda"), 1)
    logger.finalize("success")
    assert row.read(logger.log_dir) == [(0, {"cpu": 4, "gpu": 2}), (1, {"gpu": 6, "array": 2})]


def test_a_value_is_read_at_once(row: Any, tmp_path: Path) -> None:
    logger, value = row.make(tmp_path), np.array(1.0)
    metrics = {"a": value}
    logger.log_metrics(metrics, 0)
    value[...] = 9.0
    metrics["a"] = 9.0
    logger.finalize("success")
    assert row.read(logger.log_dir) == [(0, {"a": 1.0})]


BAD_CALLS: list[tuple[Any, Any, type[Exception], str]] = [
    ({"a": 1.0}, 3.5, TypeError, "step must be an integer. Got 3.5 (float). Pass trainer.global"),
    ({"a": 1.0}, None, TypeError, "step must be an integer. Got None (NoneType)"),
    ({"a": 1.0}, "3", TypeError, "step must be an integer. Got '3' (str)"),
    ({"a": 1.0}, 2**63, ValueError, "step must fit in 64 bits. Got 9223372036854775808"),
    ({1: 1.0}, 0, TypeError, "a metric's name must be a str. Got 1 (int). Pass str(name)."),
    ({"": 1.0}, 0, ValueError, 'a metric\'s name must not be empty. Got "".'),
    ({"\ud800": 1.0}, 0, ValueError, "a metric's name must be valid Unicode. Got '\\ud800'"),
    ({"a": "x"}, 0, TypeError, "must be one real number. Got a: <U1[]. Use float(...) first"),
    ({"a": None}, 0, TypeError, "must be one real number. Got a: None (NoneType)."),
    ({"a": 1j}, 0, TypeError, "must be one real number. Got a: complex128[]."),
    ({"a": {"b": 1.0}}, 0, TypeError, "must be one real number. Got a: {'b': 1.0} (dict)."),
    ({"a": np.zeros(3)}, 0, ValueError, "must be one number. Got a: float64[3]. Log its mean"),
    ({"a": []}, 0, ValueError, "must be one number. Got a: float64[0]."),
    ({"a": 10**400}, 0, ValueError, "must fit in a float. Got a: an integer of 1329 bits."),
]


@pytest.mark.parametrize(("metrics", "step", "error", "message"), BAD_CALLS)
def test_bad_calls(
    row: Any, tmp_path: Path, metrics: Any, step: Any, error: type[Exception], message: str
) -> None:
    logger = row.make(tmp_path)
    with pytest.raises(error) as caught:
        logger.log_metrics(metrics, step)
    assert message in str(caught.value)
    logger.log_metrics({"a": 1.0}, 0)
    logger.finalize("failed")
    assert row.read(logger.log_dir) == [(0, {"a": 1.0})]


def test_prefix(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path, prefix="fold1")
    logger.log_metrics({"step": 1.0, "wall_time": 2.0}, 0)
    logger.finalize("success")
    assert row.read(logger.log_dir) == [(0, {"fold1-step": 1.0, "fold1-wall_time": 2.0})]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flush_secs": 0}, "flush_secs must be positive. Got 0."),
        ({"flush_secs": float("nan")}, "flush_secs must be positive. Got nan."),
        ({"save_dir": "s3://bucket/runs"}, "save_dir must be a folder on this machine. Got 's3:"),
    ],
)
def test_bad_options(row: Any, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        row.make(**{"save_dir": tmp_path, **options})


def test_the_thread_writes_not_the_caller(
    row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers, written = [], threading.Event()
    real_write = os.write

    def write(fd: int, data: Any) -> int:
        writers.append(threading.current_thread())
        count = real_write(fd, data)
        written.set()
        return count

    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    monkeypatch.setattr(os, "write", write)
    for step in range(1, 20):
        logger.log_metrics({"a": step}, step)
    logger.save()
    assert written.wait(60)
    assert threading.current_thread() not in writers
    logger.finalize("success")
    assert len(row.read(logger.log_dir)) == 20


def test_threads_log_together(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)

    def log(first: int) -> None:
        for step in range(first, first + 500):
            logger.log_metrics({"a": step}, step)

    threads = [threading.Thread(target=log, args=(500 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logger.flush()
    assert sorted(step for step, _ in row.read(logger.log_dir)) == list(range(2000))
    logger.finalize("success")


def threads_of(folder: Path) -> list[str]:
    return [thread.name for thread in threading.enumerate() if str(folder) in thread.name]


def test_no_thread_is_left_after_finalize(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)
    logger.log_metrics({"a": 1.0}, 0)
    assert threads_of(tmp_path) == [f"{row}('{tmp_path}') writer"]
    logger.finalize("success")
    assert threads_of(tmp_path) == []


def test_a_forgotten_logger_is_written_and_its_thread_ends(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)
    logger.log_metrics({"a": 1.0}, 0)
    folder = logger.log_dir
    del logger
    assert threads_of(tmp_path) == []
    assert row.read(folder) == [(0, {"a": 1.0})]


def test_a_logger_that_its_own_thread_collects(
    row: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = row.make(tmp_path, flush_secs=1000)
    logger.log_metrics({"a": 0.0}, 0)
    logger.flush()
    writer, folder = logger._background._thread, logger.log_dir
    background, real_write = logger._background, os.write

    def write(fd: int, data: Any) -> int:
        if threading.current_thread() is writer:
            gc.collect()
        return real_write(fd, data)

    monkeypatch.setattr(os, "write", write)
    logger.log_metrics({"a": 1.0}, 1)
    logger.cycle = logger
    gc.disable()
    try:
        del logger
        background.wake()
        writer.join(60)
    finally:
        gc.enable()
    assert not writer.is_alive()
    assert row.read(folder) == [(0, {"a": 0.0}), (1, {"a": 1.0})]


def test_a_copy_continues_the_run_in_its_own_file(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)
    logger.log_metrics({"a": 1.0}, 0)
    copy = pickle.loads(pickle.dumps(logger))
    copy.log_metrics({"b": 2.0}, 1)
    assert copy.version == logger.version
    logger.finalize("success")
    copy.finalize("success")
    assert row.read(logger.log_dir) == [(0, {"a": 1.0}), (1, {"b": 2.0})]


def test_hyperparameters_file(row: Any, tmp_path: Path) -> None:
    logger = row.make(tmp_path)
    logger.log_hyperparams({"lr": 0.1, "net": {"width": np.int64(8)}, "seed": None})
    logger.log_hyperparams(SimpleNamespace(decay=float("inf"), act=json.dumps, path=Path("x")))
    logger.finalize("success")
    text = Path(logger.log_dir, "hparams.json").read_text(encoding="utf-8")
    assert json.loads(text) == {
        "lr": 0.1,
        "net": {"width": 8},
        "seed": None,
        "decay": "Infinity",
        "act": "json.dumps",
        "path": "x",
    }


def test_hyperparameters_of_another_run_are_kept(row: Any, tmp_path: Path) -> None:
    for lr in (0.1, 0.1, 0.2):
        row.make(tmp_path, version=0).log_hyperparams({"lr": lr})
    found = sorted(path.name for path in (tmp_path / "default/version_0").glob("*.json"))
    assert found == ["hparams.json", "hparams_1.json"]


def test_bad_hyperparameters(row: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"must be a mapping, a dataclass or a namespace. Got 3"):
        row.make(tmp_path).log_hyperparams(3)


def test_every_public_name_is_listed() -> None:
    for name in loggers_package.__all__:
        assert getattr(loggers_package, name).__name__ == name
        assert name in dir(loggers_package)
    with pytest.raises(AttributeError, match="has no attribute 'Nope'"):
        loggers_package.Nope  # noqa: B018


def test_import_is_lazy(python: Callable) -> None:
    done = python(
        "import sys, minitorch.loggers as l; l.TensorBoardLogger('runs'); l.CSVLogger\n"
        "print([m for m in ('tensorboardX', 'google.protobuf', 'torch') if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_base_class_does_nothing_it_was_not_told() -> None:
    class Silent(Logger):
        name, version = "n", 0

        def log_metrics(self, metrics: Any, step: int) -> None: ...

    logger = Silent()
    assert (logger.save_dir, logger.root_dir, logger.log_dir) == (None, None, None)
    assert not logger.wants_graph
    logger.log_hyperparams({}, {})
    logger.log_graph(SimpleNamespace(nodes=[]))
    logger.log_histogram("a", [1], 0)
    logger.log_image("a", [[1]], 0)
    logger.log_text("a", "b", 0)
    logger.save()
    logger.flush()
    logger.finalize("success")
    logger.after_save_checkpoint("path", {"a": 1.0})
    with pytest.raises(TypeError, match="abstract"):
        Logger()  # type: ignore[abstract]
    assert issubclass(LoggerError, RuntimeError)
