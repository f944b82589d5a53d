"""The report: what stands in the page, when it is written, and how a browser shows it."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Fails, Linear, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import Callback, HTMLReport, html_report
from minitorch.callbacks.report_page import Facts, page
from minitorch.callbacks.report_series import Thinned, charts, reduced
from minitorch.errors import ArgumentError

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


class Task(Linear):
    def __init__(self, width: int = 3, note: str = "<script>alert(1)</script>") -> None:
        super().__init__()
        self.save_hyperparameters()


def read(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The page and the data of its charts."""
    text = path.read_text()
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    return text, json.loads(data[1])


def status(text: str) -> str:
    found = re.search(r'class="badge (\w+)"', text)
    assert found is not None
    return found[1]


def test_what_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    fit(Task(), HTMLReport(path, title="A & B"), max_epochs=3, log_every_n_steps=1)
    text, found = read(path)
    assert status(text) == "completed"
    assert "max_epochs=3 reached" in text
    assert "<h1>A &amp; B</h1>" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert(1)" not in text
    for part in ("Hyper-parameters", "width", "Environment", "NumPy", "log_every_n_steps", "Model"):
        assert part in text
    assert [chart["title"] for chart in found[:2]] == ["loss", "learning rate"]
    names = {curve["name"]: curve for curve in found[0]["curves"]}
    assert [x for x, _ in names["train/loss"]["points"]] == list(range(1, 13))
    assert [x for x, _ in names["val/loss"]["points"]] == [4, 8, 12]
    assert names["train/loss"]["color"] != names["val/loss"]["color"]
    assert found[1]["curves"][0]["points"] == [[n, 0.01] for n in range(1, 13)]


def test_it_needs_no_network(tmp_path: Path) -> None:
    fit(Task(), HTMLReport(tmp_path / "r.html"), max_epochs=1)
    text = (tmp_path / "r.html").read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//cdn|<link rel=.stylesheet|src=|url\(|@import", text)
    assert "refresh" not in text


def test_test_results_are_added(tmp_path: Path) -> None:
    trainer = quiet(HTMLReport(tmp_path / "r.html"), max_epochs=1)
    task = Task()
    trainer.fit(task, loader(), loader(1))
    trainer.test(task, loader(1), verbose=False)
    text = (tmp_path / "r.html").read_text()
    assert "<h2>Test</h2>" in text
    assert status(text) == "completed"


ENDINGS = {
    "failed": RuntimeError("the disk <melted>"),
    "interrupted": KeyboardInterrupt(),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_written_on_an_exception(ending: str, tmp_path: Path) -> None:
    error = ENDINGS[ending]
    with pytest.raises(type(error)):
        fit(Task(), HTMLReport(tmp_path / "r.html"), Fails("on_train_batch_end", 3, error))
    text, _ = read(tmp_path / "r.html")
    assert status(text) == ending
    assert ("the disk &lt;melted&gt;" in text) is (ending == "failed")
    assert ("Traceback" in text) is (ending == "failed")


def test_written_when_a_run_is_stopped(tmp_path: Path) -> None:
    class Stops(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            trainer.stop("it is enough")

    fit(Task(), Stops(), HTMLReport(tmp_path / "r.html"), max_epochs=9)
    text = (tmp_path / "r.html").read_text()
    assert status(text) == "stopped"
    assert "it is enough" in text


def test_pitfalls_are_shown(tmp_path: Path) -> None:
    class Warns(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            trainer.checks.found.append("a < b, which is odd")

    fit(Task(), Warns(), HTMLReport(tmp_path / "r.html"), max_epochs=1)
    assert "a &lt; b, which is odd" in (tmp_path / "r.html").read_text()


class Versions(Callback):
    """Status of the file after each batch."""

    order = HTMLReport.order

    def __init__(self, path: Path) -> None:
        self.path, self.seen = path, list[str]()

    def on_train_batch_end(self, *args: Any) -> None:
        self.seen.append(self.path.read_text() if self.path.exists() else "")


def at(monkeypatch: pytest.MonkeyPatch, step_seconds: float) -> None:
    """A clock that goes on by so much at each look."""
    now = [0.0]

    def look() -> float:
        now[0] += step_seconds
        return now[0]

    time = SimpleNamespace(perf_counter=look, strftime=lambda form: "now")
    monkeypatch.setattr(html_report, "time", time)


def test_live_at_a_bounded_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 0.1)
    path = tmp_path / "r.html"
    versions = Versions(path)
    fit(Task(), HTMLReport(path, refresh_seconds=2.5), versions, max_epochs=20)
    assert 3 <= len(set(versions.seen)) <= 40
    assert all(status(text) == "running" for text in versions.seen)
    assert '<meta http-equiv="refresh" content="2">' in versions.seen[-1]
    assert not [p for p in tmp_path.iterdir() if p != path]


def test_only_at_the_end_on_request(tmp_path: Path) -> None:
    versions = Versions(tmp_path / "r.html")
    fit(Task(), HTMLReport(tmp_path / "r.html", live=False), versions, max_epochs=2)
    assert set(versions.seen) == {""}
    assert (tmp_path / "r.html").exists()


def test_batches_of_unknown_size(tmp_path: Path) -> None:
    class Odd(Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return {"loss": super().loss(batch[:2]), "count": 2}

    batches = [[*batch, mt.zeros(5)] for batch in loader()]
    report = HTMLReport(tmp_path / "r.html")
    assert quiet(report, max_epochs=2).fit(Odd(), batches).status == "completed"
    assert report._clock.unit == "batches"


def test_default_place_and_dry_run(tmp_path: Path) -> None:
    fit(Task(), HTMLReport(), default_root_dir=tmp_path / "a", max_epochs=1)
    assert (tmp_path / "a" / "report.html").exists()
    fit(Task(), HTMLReport(), default_root_dir=tmp_path / "b", fast_dev_run=True)
    assert not (tmp_path / "b").exists()


def test_a_file_that_cannot_be_written_does_not_end_the_run(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.mkdir()
    with pytest.warns(UserWarning, match=r"HTMLReport: .* cannot be written .*Training goes on"):
        assert fit(Task(), HTMLReport(path), max_epochs=1).status == "completed"


@pytest.mark.parametrize("value", [0, -1.0, True, "5"])
def test_wrong_rate(value: Any) -> None:
    with pytest.raises(ArgumentError, match="refresh_seconds must be a number > 0"):
        fit(Task(), HTMLReport(refresh_seconds=value))


def test_values_that_are_not_finite_are_gaps() -> None:
    points = [(1.0, 1.0), (2.0, math.nan), (3.0, math.inf), (4.0, 2.0)]
    text = page(Facts("t", "running", history={"loss": points}))
    assert "[[1.0, 1.0], [2.0, null], [3.0, null], [4.0, 2.0]]" in text


CHARTS = {
    ("train/loss", "val/loss"): {"loss": ["train/loss", "val/loss"]},
    ("train_acc", "valid_acc"): {"acc": ["train_acc", "valid_acc"]},
    ("loss_step", "loss_epoch"): {"loss": ["loss_step", "loss_epoch"]},
    ("val/acc/dataloader_idx_0", "val/acc/dataloader_idx_1"): {
        "acc": ["val/acc/dataloader_idx_0", "val/acc/dataloader_idx_1"]
    },
    ("trainable", "train"): {"train": ["train"], "trainable": ["trainable"]},
    ("b", "a_loss"): {"a_loss": ["a_loss"], "b": ["b"]},
}


@pytest.mark.parametrize("names", CHARTS)
def test_charts(names: tuple[str, ...]) -> None:
    found = charts({name: [(1, 1.0)] for name in names})
    shown = {title: [curve.name for curve in curves] for title, curves in found.items()}
    assert shown == CHARTS[names]
    assert list(shown) == list(CHARTS[names])


def test_curves_stay_small() -> None:
    series = Thinned(100)
    for n in range(100_000):
        series.add(n, n)
    assert 50 <= len(series.points) <= 100
    assert series.points[0] == (0, 0)
    assert series.points[-1][0] > 95_000
    spiky = [(float(n), 1000.0 if n == 5_555 else math.sin(n)) for n in range(20_000)]
    kept = reduced(spiky, 300)
    assert len(kept) <= 310
    assert (5555.0, 1000.0) in kept
    assert kept[-1] == spiky[-1]
    assert kept == sorted(kept)
    assert len(reduced([(float(n), math.nan) for n in range(5000)], 100)) <= 101


BLUE, ORANGE = (0x25, 0x63, 0xEB), (0xEA, 0x58, 0x0C)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_in_a_browser(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    fit(Task(), HTMLReport(tmp_path / "r.html"), max_epochs=6, log_every_n_steps=1)
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1000,900"]
    command += [f"--screenshot={tmp_path / 'page.png'}", f"file://{tmp_path / 'r.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "CONSOLE" not in done.stderr, done.stderr
    pixels = np.asarray(image.open(tmp_path / "page.png").convert("RGB"))
    for color, curve in ((BLUE, "training"), (ORANGE, "validation")):
        assert (pixels == color).all(-1).sum() > 200, f"the curve of {curve}"
