"""W&B and MLflow by their own clients, offline and on a local store."""

from __future__ import annotations

import importlib.util
import json
import pickle
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.loggers import LoggerError, MLFlowLogger, WandbLogger

HAS = {name: importlib.util.find_spec(name) is not None for name in ("wandb", "mlflow")}


class Client:
    """Notes calls of any name in order, at any depth."""

    def __init__(self, calls: list[tuple[Any, ...]], name: str = "", **fixed: Any) -> None:
        self._calls, self._name = calls, name
        self.__dict__.update(fixed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Client(self._calls, f"{self._name}.{name}".lstrip("."))

    def __call__(self, *args: Any, **options: Any) -> Any:
        self._calls.append((self._name, args, options))
        return self


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """A pretend wandb: what it is asked for."""
    found: list[tuple[Any, ...]] = []
    run = Client(found, id="abc", summary={})

    def init(**options: Any) -> Any:
        found.append(("init", (), options))
        return run

    module = SimpleNamespace(
        init=init,
        Histogram=lambda values: ("histogram", len(values)),
        Image=lambda pixels: ("image", pixels.shape),
        Table=lambda columns, data: ("table", columns, data),
        Artifact=lambda name, type, metadata: Client(found, f"artifact {name}"),
    )
    monkeypatch.setitem(sys.modules, "wandb", module)
    return found


def test_wandb_is_asked_for_the_right_things(calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    logger = WandbLogger("mine", tmp_path, offline=True, project="p", prefix="a", entity="me")
    assert calls == [], "nothing begins before the first record"
    logger.log_metrics({"loss": 0.5}, 3)
    logger.log_hyperparams({"lr": 0.1})
    logger.log_histogram("h", np.arange(4.0), 4)
    logger.log_image("i", np.zeros((3, 2, 2), np.uint8), 4)
    logger.log_text("t", "words", 5)
    logger.log_table("rows", ["x"], [[1]], 6)
    logger.flush()
    begin = calls[0][2]
    assert begin["mode"] == "offline"
    assert (begin["name"], begin["entity"], begin["project"]) == ("mine", "me", "p")
    step = "trainer/global_step"
    assert [args[0] for name, args, _ in calls if name == "log"] == [
        {"a-loss": 0.5, step: 3},
        {"a-h": ("histogram", 4), step: 4},
        {"a-i": ("image", (2, 2, 3)), step: 4},
        {"a-t": ("table", ["text"], [["words"]]), step: 5},
        {"a-rows": ("table", ["x"], [[1]]), step: 6},
    ]
    assert ("config.update", ({"lr": 0.1},), {"allow_val_change": True}) in calls
    assert (logger.name, logger.version, logger.save_dir) == ("p", "abc", str(tmp_path))
    logger.finalize("failed")
    assert logger.experiment.summary == {"status": "failed"}
    logger.log_metrics({"loss": 0.25}, 9)
    logger.finalize("success")
    assert [name for name, _, _ in calls].count("init") == 1, "a test after the fit goes on"


WATCHED = {"gradients": ["gradients"], "parameters": ["parameters"], None: []}


@pytest.mark.parametrize("log", [*WATCHED, "all"])
def test_wandb_watches_a_module(
    log: str | None, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    logger, layer = WandbLogger(save_dir=tmp_path), mt.nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    logger.watch(layer, log, log_freq=2)
    for _ in range(5):
        layer(mt.ones(1, 3)).sum().backward()
    logger.unwatch(mt.nn.Linear(1, 1))
    layer(mt.ones(1, 3)).sum().backward()
    logger.unwatch(layer)
    layer(mt.ones(1, 3)).sum().backward()
    layer(mt.ones(1, 3)).sum().backward()
    logger.flush()
    kinds = WATCHED.get(log, ["gradients", "parameters"])
    assert [args[0] for name, args, _ in calls if name == "log"] == [
        {f"{kind}/weight": ("histogram", 6), "trainer/global_step": step}
        for step in (2, 4, 6)
        for kind in kinds
    ]
    with pytest.raises(ValueError, match="log_freq must be an integer ≥ 1. Got 0"):
        logger.watch(layer, log_freq=0)
    with pytest.raises(ValueError, match="log must be \"gradients\", .* Got 'weights'"):
        logger.watch(layer, "weights")


@pytest.mark.parametrize(("log_model", "uploads"), [(False, 0), (True, 1), ("all", 2)])
def test_wandb_uploads_checkpoints(
    log_model: Any, uploads: int, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    logger = WandbLogger(save_dir=tmp_path, log_model=log_model)
    for name in ("a.ckpt", "b.ckpt"):
        logger.after_save_checkpoint(str(tmp_path / name), {"acc": 0.5})
    logger.finalize("success")
    files = [args[0] for name, args, _ in calls if name == "artifact model-abc.add_file"]
    assert len([1 for name, _, _ in calls if name == "log_artifact"]) == uploads
    assert [Path(file).name for file in files] == ["a.ckpt", "b.ckpt"][2 - uploads :]


def test_a_service_that_fails_is_an_error_once(
    calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    logger = WandbLogger(save_dir=tmp_path)

    def fails(*args: Any) -> None:
        raise ConnectionResetError("gone") from None

    logger.experiment.log = fails
    logger.log_metrics({"loss": 1.0}, 1)
    with pytest.raises(LoggerError, match="WandbLogger.*cannot write the run"):
        logger.flush()


def test_a_copy_continues_the_run(calls: list[tuple[Any, ...]], tmp_path: Path) -> None:
    logger = WandbLogger(save_dir=tmp_path)
    logger.log_metrics({"loss": 1.0}, 1)
    logger.finalize("success")
    copy = pickle.loads(pickle.dumps(logger))
    copy.log_metrics({"loss": 1.0}, 2)
    copy.flush()
    begins = [options["id"] for name, _, options in calls if name == "init"]
    assert begins == [None, "abc"]


WRONG = {
    "log_model": lambda: WandbLogger(log_model="some"),
    "log_model must": lambda: MLFlowLogger(log_model="some"),
    "flush_secs": lambda: MLFlowLogger(flush_secs=0),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_arguments(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        WRONG[text]()


@pytest.mark.parametrize(("kind", "package"), [(WandbLogger, "wandb"), (MLFlowLogger, "mlflow")])
def test_missing_client(
    kind: Any, package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"trainer\[{package}\]"):
        kind(save_dir=tmp_path).log_metrics({"loss": 1.0}, 1)


def wandb_records(path: Path) -> list[Any]:
    """The records of a W&B file: blocks of 32 kB after a header of 7 bytes, as in LevelDB logs."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, parts, found = path.read_bytes(), 7, b"", []
    while place < len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            found.append(Record.FromString(parts))
            parts = b""
    return found


@pytest.mark.skipif(not HAS["wandb"], reason="wandb is not installed")
def test_wandb_offline(python: Any, tmp_path: Path) -> None:
    program = (
        "from minitorch.loggers import WandbLogger\n"
        "logger = WandbLogger(save_dir='w', offline=True, project='p', version='xyz')\n"
        "logger.log_hyperparams({'lr': 0.5})\n"
        "for n in range(3): logger.log_metrics({'train/loss': 1.0 / (n + 1)}, 10 * n)\n"
    )
    done = python(program)  # ends without finalize
    assert done.returncode == 0, done.stderr
    [file] = (tmp_path / "w").glob("wandb/offline-run-*/run-xyz.wandb")
    records = wandb_records(file)
    rows = [
        {
            item.key or item.nested_key[0]: json.loads(item.value_json)
            for item in record.history.item
        }
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    assert [(r["trainer/global_step"], r["train/loss"]) for r in rows] == [
        (0, 1.0),
        (10, 0.5),
        (20, 1.0 / 3),
    ]
    assert any("lr" in str(record.config) for record in records)


@pytest.mark.skipif(not HAS["mlflow"], reason="mlflow is not installed")
@pytest.mark.filterwarnings("ignore")  # the client's own imports
def test_mlflow_on_its_own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    logger = MLFlowLogger(
        "exp", "run", f"file:{tmp_path / 'store'}", tags={"who": 7}, log_model=True, prefix="a"
    )
    (tmp_path / "one.ckpt").write_bytes(b"weights")
    logger.log_hyperparams({"lr": 0.1, "net": {"width": 3}})
    for n in range(3):
        logger.log_metrics({"train/loss": 1.0 / (n + 1), "odd(name)": n}, 10 * n)
    logger.log_image("picture", np.zeros((3, 2, 2), np.uint8), 4)
    logger.log_text("note", "words", 5)
    logger.after_save_checkpoint(str(tmp_path / "one.ckpt"))
    logger.finalize("success")
    client = logger.experiment
    run = client.get_run(logger.version)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "run"
    assert run.data.tags["who"] == "7"
    assert run.data.params == {"lr": "0.1", "net/width": "3"}
    points = client.get_metric_history(logger.version, "a-train/loss")
    assert [(p.step, p.value) for p in points] == [(0, 1.0), (10, 0.5), (20, 1.0 / 3)]
    assert run.data.metrics["a-odd_name_"] == 2.0
    kept = {item.path for item in client.list_artifacts(logger.version)}
    assert kept == {"images", "texts", "checkpoints"}
    with pytest.warns(UserWarning, match=r"keeps the first value .* lr=0.2 after 0.1"):
        logger.log_hyperparams({"lr": 0.2})
    again = MLFlowLogger("exp", tracking_uri=f"file:{tmp_path / 'store'}", run_id=logger.version)
    again.log_metrics({"test/loss": 0.5}, 21)
    again.finalize("failed")
    run = client.get_run(logger.version)
    assert run.data.metrics["test/loss"] == 0.5
    assert run.info.status == "FAILED"
    assert len(client.search_experiments(filter_string="name = 'exp'")) == 1
