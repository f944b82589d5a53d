"""The best k of any sequence of scores, and names of files from templates."""

from __future__ import annotations

import errno
import math
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch.callbacks.checkpoint_files import (
    check_writable,
    duplicate,
    free_path,
    remove_inside,
)
from minitorch.callbacks.checkpoint_name import CheckpointName
from minitorch.callbacks.checkpoint_ranking import Ranking
from minitorch.errors import ArgumentError
from minitorch.io.atomic import clear_folder

SCORES = st.lists(
    st.sampled_from([0.0, -0.0, 1.0, 1.5, 2.0, -3.0, math.nan, math.inf, -math.inf, 1e300, 5e-324])
    | st.floats(),
    max_size=12,
)


def expected(scores: list[float], k: int, mode: str) -> list[tuple[str, float]]:
    """All finite scores, the best first, the older first among equal ones; the first k."""
    sign = 1 if mode == "min" else -1
    finite = [(str(i), s) for i, s in enumerate(scores) if math.isfinite(s)]
    ordered = sorted(finite, key=lambda entry: sign * entry[1])
    return ordered if k == -1 else ordered[:k]


@given(SCORES, st.integers(-1, 4), st.sampled_from(["min", "max"]))
def test_ranking_is_the_sorted_head(scores: list[float], k: int, mode: str) -> None:
    ranking = Ranking(k, mode)  # type: ignore[arg-type]
    removed: list[str] = []
    for index, score in enumerate(scores):
        leaving = ranking.displaced_by(score)
        if ranking.admits(score):
            ranking.add(str(index), score)
        else:
            assert leaving is None
        if leaving is not None:
            assert leaving not in ranking
            removed.append(leaving)
    assert ranking.entries == expected(scores, k, mode)
    assert ranking.best == (ranking.entries[0] if ranking.entries else None)
    assert len(set(removed)) == len(removed)


VALUES = {"epoch": 3, "step": 70, "val/loss": 0.25, "val_acc": math.nan, "a.b": -1.5, "x y": 1e-9}

NAMES = [
    ("{epoch}-{step}", "epoch=3-step=70", "3-70"),
    ("{val/loss:.3f}", "val_loss=0.250", "0.250"),
    ("best-{epoch:03}-{val/loss:.1e}", "best-epoch=003-val_loss=2.5e-01", "best-003-2.5e-01"),
    ("loss={val/loss:.2f}", "loss=val_loss=0.25", "loss=0.25"),
    ("val_loss={val/loss:.2f}", "val_loss=0.25", "val_loss=0.25"),
    ("{val_acc:.2f}", "val_acc=nan", "nan"),
    ("{a.b}", "a.b=-1.5", "-1.5"),
    ("{x y:g}", "x_y=1e-09", "1e-09"),
    ("{{kept}}-{epoch}", "{kept}-epoch=3", "{kept}-3"),
    ("sub/{epoch}", "sub/epoch=3", "sub/3"),
    ("plain", "plain", "plain"),
]


@pytest.mark.parametrize(("template", "inserted", "bare"), NAMES)
def test_name_of_a_file(template: str, inserted: str, bare: str) -> None:
    assert CheckpointName(template, insert_names=True).render(VALUES) == inserted
    assert CheckpointName(template, insert_names=False).render(VALUES) == bare


@given(st.text(max_size=8).filter(lambda s: s and not re.search(r"[{}:!\[\]]", s)))
def test_no_name_of_a_metric_makes_folders(name: str) -> None:
    text = CheckpointName("{" + name + ":.2f}", insert_names=True).render({name: 1.0})
    assert text.endswith("=1.00")
    assert not set("/\\") & set(text)


def test_metrics_of_a_template() -> None:
    template = "{epoch}-{val/loss:.2f}-{val/loss:.3f}-{step}-{acc}"
    assert CheckpointName(template, insert_names=True).metrics == ["val/loss", "acc"]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{epoch", r"filename must be a template such as .* Got '\{epoch' \("),
        ("epoch}", r"filename must be a template such as"),
        (7, r"filename must be a template such as"),
        ("{}", r"each {} of filename must hold a name. Got '{}'. Write {epoch}"),
    ],
)
def test_templates_that_cannot_be_read(template: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        CheckpointName(template, insert_names=True)


def test_format_that_does_not_fit() -> None:
    name = CheckpointName("{val/loss:d}", insert_names=True)
    message = r"format of {val/loss:d} in filename does not fit 0.25 .* Write for example"
    with pytest.raises(ArgumentError, match=message):
        name.render(VALUES)


@pytest.mark.parametrize("below", ["", "/deep/er"])
def test_folder_that_cannot_be_written_is_refused(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_writable(str(tmp_path / "new" / "folder"), "Backup")
    assert not list(tmp_path.iterdir())
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(
        ArgumentError, match=r"^Backup: place must be a folder .*/file is not a folder"
    ):
        check_writable(f"{file}{below}", "Backup", "place")

    def refuse(**options: Any) -> str:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(
        ArgumentError, match=r"not writable \(Read-only file system\). Pass another dirpath."
    ):
        check_writable(f"{tmp_path}{below}", "Backup")


def test_free_paths(tmp_path: Path) -> None:
    stem = str(tmp_path / "a")
    assert free_path(stem, taken=()) == f"{stem}.ckpt"
    Path(f"{stem}.ckpt").touch()
    assert free_path(stem, taken=()) == f"{stem}-v1.ckpt"
    assert free_path(stem, taken=(f"{stem}-v1.ckpt",)) == f"{stem}-v2.ckpt"
    assert free_path(stem, taken=(), replaceable=f"{stem}.ckpt") == f"{stem}.ckpt"


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("exists", [True, False])
def test_second_name_is_independent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool, exists: bool
) -> None:
    if not links:

        def refuse(*args: object) -> None:
            raise OSError("no hard links here")

        monkeypatch.setattr(os, "link", refuse)
    source, target = tmp_path / "a.ckpt", tmp_path / "last.ckpt"
    source.write_bytes(b"new")
    if exists:
        target.write_bytes(b"old")
    for _ in range(2):  # again: both names of one file
        duplicate(str(source), str(target))
    source.unlink()
    assert target.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]


@pytest.mark.parametrize("links", [True, False])
def test_second_name_is_on_the_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    done: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def sync(number: int) -> None:
        fsync(number)
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")

    def rename(old: str, new: str) -> None:
        clear_folder(str(tmp_path))  # of another process: this one lives
        replace(old, new)
        done.append("rename")

    def hard_link(old: str, new: str) -> None:
        if not links:
            raise OSError("no hard links here")
        link(old, new)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    monkeypatch.setattr(os, "link", hard_link)
    (tmp_path / "a.ckpt").write_bytes(b"new")
    duplicate(str(tmp_path / "a.ckpt"), str(tmp_path / "last.ckpt"))
    assert done == ["rename", "folder"] if links else ["file", "rename", "folder"]


def test_second_name_that_a_killed_process_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object) -> None:
        raise KeyboardInterrupt

    source = tmp_path / "a.ckpt"
    source.write_bytes(b"new")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed)
        patched.setattr(os, "remove", lambda path: None)
        with pytest.raises(KeyboardInterrupt):
            duplicate(str(source), str(tmp_path / "last.ckpt"))
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr("minitorch.io.atomic.is_running", lambda pid: False)
    clear_folder(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["a.ckpt"]


def test_second_name_is_there_in_full_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OSError("disk full")

    source, target = tmp_path / "a.ckpt", tmp_path / "last.ckpt"
    source.write_bytes(b"new")
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        duplicate(str(source), str(target))
    assert target.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2


def test_only_files_of_the_folder_are_removed(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "mine too"
    for folder in (mine, other):
        folder.mkdir()
        (folder / "a.ckpt").touch()
    remove_inside(str(mine), str(mine / "a.ckpt"))
    remove_inside(str(mine), str(mine / "a.ckpt"))
    remove_inside(str(mine), str(other / "a.ckpt"))
    assert not list(mine.iterdir())
    assert list(other.iterdir())
