"""Trains in processes that are killed at random moments, resumes them, and compares the ends.

A moment is a number of Python's profile events (calls and returns, C functions included) since
`fit` was called: of all of them, or of those of the code that writes files. The process kills
itself there with SIGKILL. In some runs the disk is full from a random batch on.

`python kill_runs.py FOLDER KILLS SEED` prints a report as JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import io, nn
from minitorch.callbacks import BackupAndRestore, Callback, ModelCheckpoint
from minitorch.data import DataLoader, TensorDataset
from minitorch.trainer import TaskModule, Trainer

EPOCHS, BATCHES = 2, 5
WRITING = ("/io/atomic", "/io/container", "/io/state", "/checkpoint_", "/backup_and_")
KEEPERS = {
    "every batch": {"every_n_train_steps": 1, "save_last": True},
    "thread": {"every_n_train_steps": 1, "save_last": True, "save_async": True},
    "best two": {
        **{"monitor": "val/loss", "mode": "min", "save_top_k": 2, "save_last": "link"},
        "save_async": True,
    },
    "backup": {"save_freq": 1, "double_checkpoint": True, "delete_checkpoint": False},
}


class Task(TaskModule):
    """Dropout, batch norm, Adam and a schedule."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.2), nn.Linear(4, 1)
        )

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return ((self.net(x) - y) ** 2).mean()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.log("train/loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("val/loss", self.loss(batch))

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.05)
        return [optimizer], [mt.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


class Witness(Callback):
    """Tells where training began, and fills the disk from a batch on."""

    def __init__(self, pipe: int, full_at: int | None) -> None:
        self.pipe, self.full_at = pipe, full_at

    def on_train_start(self, trainer: Any, module: Any) -> None:
        tell(self.pipe, f"began {trainer.position.batches}")

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if self.full_at is not None and trainer.position.batches >= self.full_at:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, hard))


def tell(pipe: int, text: str) -> None:
    """One line for the parent; short writes to a pipe are whole."""
    os.write(pipe, f"{text}\n".encode())


def data(n: int) -> Any:
    """Batches of four samples."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    dataset = TensorDataset(mt.from_numpy(x), mt.from_numpy(x[:, :1].copy()))
    return DataLoader(dataset, 4, shuffle=n > 8)


def train(folder: Path, mode: str, pipe: int, full_at: int | None) -> str:
    """One fit in this process; a digest of the state at its end."""
    options = KEEPERS[mode]
    kind: Any = BackupAndRestore if mode == "backup" else ModelCheckpoint
    keep = kind(folder, **options)
    trainer = Trainer(
        max_epochs=EPOCHS,
        val_check_interval=2,
        log_every_n_steps=1,
        enable_progress_bar=False,
        callbacks=[keep, Witness(pipe, full_at)],
    )
    mt.manual_seed(5)
    path = None if mode == "backup" else "auto"
    trainer.fit(Task(), data(4 * BATCHES), data(8), ckpt_path=path)
    tree = trainer.dump_checkpoint()
    state = [tree[key] for key in ("state_dict", "optimizer_states", "lr_schedulers", "random")]
    state += [tree["loops"]["position"], tree["callbacks"]["MetricLog"]["history"]]
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    with open(folder / "state", "wb") as file:
        io.save(state, file)
    return hashlib.sha256((folder / "state").read_bytes()).hexdigest()


class Killer:
    """Kills the process at the n-th profile event; only counts without n."""

    def __init__(self, at: int | None, *, writing: bool) -> None:
        self.at, self.writing, self.count = at, writing, 0
        self._files: dict[Any, bool] = {}

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if self.writing:
            name = frame.f_code.co_filename
            known = self._files.get(name)
            if known is None:
                known = self._files[name] = any(part in name for part in WRITING)
            if not known:
                return
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def process(
    folder: Path,
    mode: str,
    at: int | None = None,
    *,
    writing: bool = False,
    full_at: int | None = None,
) -> tuple[int, list[list[str]]]:
    """Trains in a forked process; its exit code (-9 if killed) and what it told."""
    reading, pipe = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        child(folder, mode, pipe, Killer(at, writing=writing), full_at)
    os.close(pipe)
    with open(reading) as file:
        told = [line.split() for line in file]
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), told


def child(folder: Path, mode: str, pipe: int, killer: Killer, full_at: int | None) -> None:
    """What a forked process does; it never returns."""
    warnings.simplefilter("ignore")
    sys.stdout = open(os.devnull, "w")
    save = io.save_tree

    def saving(path: Any, tree: Any) -> None:
        save(path, tree)
        tell(pipe, f"saved {tree['loops']['position']['batches']}")

    io.save_tree = saving
    threading.setprofile(killer)
    sys.setprofile(killer)
    code = 0
    try:
        digest = train(folder, mode, pipe, full_at)
        sys.setprofile(None)
        tell(pipe, f"ended {digest} {killer.count}")
    except BaseException as error:
        sys.setprofile(None)
        code = 3 if "final state could not be saved" in str(error) else 4
        if code == 4:
            traceback.print_exc()
    os._exit(code)


def words(told: list[list[str]], name: str) -> list[str]:
    """What was told under a name."""
    return [line[1] for line in told if line[0] == name]


@contextlib.contextmanager
def fresh(folder: Path) -> Iterator[Path]:
    """An empty folder that is removed behind."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)


def attack(folder: Path, mode: str, moments: dict[bool, int], rng: random.Random) -> dict[str, Any]:
    """Kills a run up to three times and lets it come to its end; what was seen."""
    seen: dict[str, Any] = {"kills": 0, "full": 0, "writing": 0, "problems": []}
    saved, code = 0, -9
    for _ in range(3):
        writing, full_at = rng.random() < 0.5, None
        if rng.random() < 0.3:
            full_at = rng.randrange(EPOCHS * BATCHES)
        at = rng.randint(1, moments[writing])
        code, told = process(folder, mode, at, writing=writing, full_at=full_at)
        check(folder, told, saved, seen)
        saved = max([saved, *map(int, words(told, "saved"))])
        seen["kills"] += code == -9
        seen["writing"] += code == -9 and writing
        seen["full"] += full_at is not None
        if code not in (-9, 3):
            break
    if code in (-9, 3):
        code, told = process(folder, mode)
        check(folder, told, saved, seen)
    if code:
        seen["problems"].append(f"exit code {code}")
    seen["digest"] = (words(told, "ended") or [""])[0]
    return seen


def check(folder: Path, told: list[list[str]], saved: int, seen: dict[str, Any]) -> None:
    """Nothing saved was lost, and every file with the name of a checkpoint is whole."""
    for began in words(told, "began"):
        if int(began) < saved:
            seen["problems"].append(f"saved after batch {saved}, resumed from {began}")
    for path in folder.glob("*.ckpt"):
        try:
            io.verify(path)
        except Exception as error:
            seen["problems"].append(str(error))


def main() -> None:
    """Attacks runs until so many kills have hit."""
    root, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    expected: dict[str, tuple[str, dict[bool, int]]] = {}
    report: dict[str, Any] = {"kills": 0, "writing": 0, "full": 0, "runs": 0, "problems": []}
    while report["kills"] < kills:
        mode = list(KEEPERS)[report["runs"] % len(KEEPERS)]
        if mode not in expected:
            moments, digest = {}, ""
            for writing in (False, True):
                with fresh(root / mode) as folder:
                    code, told = process(folder, mode, writing=writing)
                ((_, digest, count),) = [line for line in told if line[0] == "ended"]
                moments[writing] = int(count)
            expected[mode] = digest, moments
        with fresh(root / mode) as folder:
            seen = attack(folder, mode, expected[mode][1], rng)
        report["runs"] += 1
        for name in ("kills", "writing", "full"):
            report[name] += seen[name]
        if seen["digest"] != expected[mode][0]:
            seen["problems"].append("the end is another one")
        report["problems"] += [f"run {report['runs']} ({mode}): {p}" for p in seen["problems"]]
    print(json.dumps(report))


if __name__ == "__main__":
    main()
