"""CSVLogger and JSONLLogger: the text in their files."""

import csv
import json
import os
from pathlib import Path

import pytest

from minitorch.loggers import CSVLogger, JSONLLogger


def test_csv_text(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path)
    logger.log_metrics({"loss": 0.1, "epoch": 0}, 0)
    logger.log_metrics({"loss": float("nan"), "epoch": 1}, 1)
    logger.flush()
    path = Path(logger.log_dir, "metrics.csv")
    assert path.read_text() == "step,loss,epoch\n0,0.1,0\n1,nan,1\n"
    logger.log_metrics({"val/acc": 1e-30}, 2)
    logger.finalize("success")
    assert path.read_text() == "step,loss,epoch,val/acc\n0,0.1,0,\n1,nan,1,\n2,,,1e-30\n"
    assert os.listdir(logger.log_dir) == ["metrics.csv"]


@pytest.mark.parametrize("name", ["a,b", 'say "x"', "two\nlines", "cr\rlf", " blank ", "é☃", "#"])
def test_csv_header_of_odd_names(tmp_path: Path, name: str) -> None:
    for run in range(2):
        logger = CSVLogger(tmp_path, version=0)
        logger.log_metrics({name: run}, run)
        logger.log_metrics({f"later{run}": 5}, run)
        logger.finalize("success")
    with open(Path(logger.log_dir, "metrics.csv"), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["step", name, "later0", "later1"]
    assert [row[name] for row in rows] == ["0", "", "1", ""]


def test_csv_continues_a_file_of_another_writer(tmp_path: Path) -> None:
    folder = tmp_path / "default" / "version_0"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_bytes(b"epoch,loss,step\r\n0,0.5,9\r\n")
    logger = CSVLogger(tmp_path, version=0)
    logger.log_metrics({"loss": 0.25}, 10)
    logger.log_metrics({"acc": 1.0}, 11)
    logger.finalize("success")
    with open(folder / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["9", "10", "11"]
    assert [row["loss"] for row in rows] == ["0.5", "0.25", ""]
    assert [row["acc"] for row in rows] == ["", "", "1.0"]


def test_csv_appends_unless_a_column_is_new(tmp_path: Path, monkeypatch: object) -> None:
    logger = CSVLogger(tmp_path)
    inodes = []
    for step, metrics in enumerate([{"a": 1}, {"a": 2}, {"b": 3}, {"a": 4, "b": 5}, {"b": 6}]):
        logger.log_metrics(metrics, step)
        logger.flush()
        inodes.append(os.stat(Path(logger.log_dir, "metrics.csv")).st_ino)
    logger.finalize("success")
    assert inodes[0] == inodes[1]
    assert inodes[2] == inodes[3] == inodes[4] != inodes[1]


@pytest.mark.parametrize(
    ("make", "name", "tail"),
    [
        (CSVLogger, "metrics.csv", "\n5,0."),
        (CSVLogger, "metrics.csv", ""),
        (JSONLLogger, "metrics.jsonl", '\n{"step": 5, "wall'),
        (JSONLLogger, "metrics.jsonl", ""),
    ],
)
def test_a_torn_last_line_is_cut_off(tmp_path: Path, make: type, name: str, tail: str) -> None:
    logger = make(tmp_path, version=0)
    logger.log_metrics({"a": 1.0}, 0)
    logger.finalize("success")
    path = Path(logger.log_dir, name)
    whole = path.read_text()
    path.write_text(whole.rstrip("\n") + (tail or "\n"))
    logger = make(tmp_path, version=0)
    logger.log_metrics({"a": 2.0}, 1)
    logger.finalize("success")
    text = path.read_text()
    assert text.startswith(whole)
    assert len(text.splitlines()) == len(whole.splitlines()) + 1


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (CSVLogger, "step", "a metric must not be called 'step' in a CSVLogger: that is the first"),
        (JSONLLogger, "step", "must not be called 'step' in a JSONLLogger: each line has that key"),
        (JSONLLogger, "wall_time", "Log it as 'train/wall_time', or pass prefix=."),
    ],
)
def test_reserved_names(tmp_path: Path, make: type, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(tmp_path).log_metrics({name: 1.0}, 0)


@pytest.mark.parametrize("rows", [0, -1])
def test_csv_rows_in_memory(tmp_path: Path, rows: int) -> None:
    with pytest.raises(
        ValueError, match=f"flush_logs_every_n_steps must be at least 1. Got {rows}"
    ):
        CSVLogger(tmp_path, flush_logs_every_n_steps=rows)


def test_csv_wakes_after_n_rows(tmp_path: Path) -> None:
    logger = CSVLogger(tmp_path, flush_logs_every_n_steps=3, flush_secs=1000)
    logger.log_metrics({"a": 1.0}, 0)
    path = Path(logger.log_dir, "metrics.csv")
    while not path.read_text():
        logger.log_metrics({"a": 1.0}, 0)
    logger.finalize("success")


def test_jsonl_text(tmp_path: Path) -> None:
    logger = JSONLLogger(tmp_path)
    logger.log_metrics({"loss": 0.1, "bad": float("-inf")}, 3)
    logger.log_text("note", "line\nbreak ☃", 4)
    logger.finalize("success")
    lines = Path(logger.log_dir, "metrics.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)
    assert list(first) == ["step", "wall_time", "loss", "bad"]
    assert (first["loss"], first["bad"]) == (0.1, "-Infinity")
    assert (second["step"], second["note"]) == (4, "line\nbreak ☃")
    with pytest.raises(TypeError, match=r"step must be an integer. Got 1.0"):
        logger.log_text("note", "x", 1.0)  # type: ignore[arg-type]
