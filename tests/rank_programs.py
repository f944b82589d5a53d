"""What the tests let several processes do: functions that new processes can import."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import distributed as dist
from minitorch import nn
from minitorch.callbacks import Callback, Order
from minitorch.data import DataLoader, TensorDataset
from minitorch.metrics import Accuracy
from minitorch.metrics.functional import f1_score
from minitorch.nn import functional as F
from minitorch.trainer import DataModule, TaskModule, Trainer

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "uint8")


def _like(rank: int, dtype: str = "float32", shape: tuple[int, ...] = (2, 3)) -> Any:
    return (mt.arange(6).reshape(shape) + rank).to(getattr(mt, dtype))


def collectives(rank: int) -> None:
    """Every collective once, against what NumPy says."""
    dist.init_process_group("gloo")
    n = dist.get_world_size()
    every = [_like(r) for r in range(n)]
    for op, expected in {
        "sum": sum(every),
        "avg": sum(every) / n,
        "product": mt.stack(every).prod(0),
        "min": every[0],
        "max": every[-1],
    }.items():
        t = _like(rank)
        assert dist.all_reduce(t, op) is None
        assert mt.allclose(t, expected), (op, t)
    for dtype in DTYPES:
        t = _like(rank, dtype)
        dist.all_reduce(t)
        assert t.dtype is getattr(mt, dtype)
        assert t.tolist() == (sum(every)).to(t.dtype).tolist()
    strided = mt.zeros(3, 2).T
    strided.copy_(_like(rank))
    work = dist.broadcast(strided, src=1, async_op=True)
    assert work.wait()
    assert work.is_completed()
    assert strided.tolist() == every[1].tolist()
    t = _like(rank)
    dist.reduce(t, dst=1)
    assert t.tolist() == (sum(every) if rank == 1 else _like(rank)).tolist()
    parts = [mt.zeros(2, 3) for _ in range(n)]
    dist.all_gather(parts, _like(rank))
    assert [p.tolist() for p in parts] == [e.tolist() for e in every]
    flat = mt.zeros(2 * n, 3)
    dist.all_gather_into_tensor(flat, _like(rank))
    assert flat.tolist() == mt.cat(every).tolist()
    parts = [mt.zeros(2, 3) for _ in range(n)]
    dist.gather(_like(rank), parts if rank == 0 else None)
    assert (parts[1].sum() > 0) == (rank == 0)
    t = mt.zeros(2, 3)
    dist.scatter(t, every if rank == 0 else None)
    assert t.tolist() == every[rank].tolist()
    dist.reduce_scatter(t, every)
    assert t.tolist() == (every[rank] * n).tolist()
    objects: list[Any] = [None] * n
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(n)]
    found = [None] * n if rank == 0 else None
    dist.gather_object(rank, found)
    assert found in (None, list(range(n)))
    objects = [rank, "x"]
    dist.broadcast_object_list(objects, src=1)
    assert objects == [1, "x"]
    scalar, empty = mt.tensor(1.5), mt.zeros(0, 3)
    dist.all_reduce(scalar)
    dist.all_reduce(empty)
    assert scalar.item() == 1.5 * n
    assert empty.shape == (0, 3)
    weight = nn.Parameter(mt.ones(2))
    dist.broadcast(weight)
    assert weight.requires_grad
    assert weight.is_leaf
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


def wrong(rank: int, kind: str) -> None:
    """Programs whose ranks do not do the same."""
    seconds = 1.0 if kind == "late" else 60.0
    dist.init_process_group(timeout=timedelta(seconds=seconds))
    t = mt.ones(3)
    if kind == "other call":
        if rank == 0:
            dist.all_reduce(t)
        else:
            dist.barrier()
    elif kind == "shapes":
        dist.all_reduce(mt.ones(3 + rank))
    elif kind == "options":
        dist.broadcast(t, src=rank)
    elif kind == "ended":
        if rank == 0:
            dist.all_reduce(t)
    elif kind == "killed":
        if rank == 1:
            os._exit(7)
        dist.barrier()
    elif kind == "raised":
        if rank == 1:
            raise ValueError("no such file")
        dist.barrier()
    elif kind == "late":
        if rank == 0:
            dist.barrier()
        else:
            time.sleep(30)
    elif kind == "first ended":
        if rank == 1:
            dist.all_reduce(t)


class Judge(TaskModule):
    """A fixed model that logs a mean, a maximum, a sum and a metric object."""

    def __init__(self) -> None:
        super().__init__()
        mt.manual_seed(3)
        self.net = nn.Linear(4, 3)
        self.accuracy = Accuracy(num_classes=3)
        self.by_hand = False

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        out = self.net(x)
        self.log("loss", F.cross_entropy(out, y))
        self.log("largest", out.max(), reduce_fx="max")
        self.log("samples", float(len(x)), reduce_fx="sum")
        self.accuracy.update(out, y)
        self.log("accuracy", self.accuracy)
        if dist.get_rank() == 0 and batch_idx == 0:
            self.log("first", 1.0)  # a name that one process alone logs

    test_step = validation_step

    def on_validation_epoch_end(self) -> None:
        if self.by_hand:
            self.log("hand", float(self.accuracy.compute()))


def judged(n: int = 21) -> Any:
    """A loader of n samples in batches of 4."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 4)).astype(np.float32), rng.integers(0, 3, n)
    return DataLoader(TensorDataset(mt.tensor(x), mt.tensor(y)), 4)


def evaluate(rank: int, folder: str, stage: str = "validate") -> None:
    """Writes what the Trainer of each process says."""
    dist.init_process_group()
    trainer = Trainer(default_root_dir=folder, logger=True)
    results = getattr(trainer, stage)(Judge(), judged())
    with open(os.path.join(folder, f"{rank}.txt"), "w") as file:
        file.write(repr((results, len(trainer.loggers), trainer.progress_bar_callback is None)))


def refused(rank: int, kind: str) -> None:
    """What the Trainer does not do in a group."""
    dist.init_process_group()
    task, trainer = Judge(), Trainer(enable_progress_bar=False)
    if kind == "fit":
        trainer.fit(task, judged())
    elif kind == "predict":
        trainer.predict(task, judged())
    elif kind == "by hand":
        task.by_hand = True
        trainer.validate(task, judged(), verbose=False)
    elif kind == "few":
        trainer.validate(task, judged(1))
    elif kind == "sampler":
        from minitorch.data import DistributedSampler

        dataset = judged().dataset
        sampler = DistributedSampler(dataset, 2, rank)
        trainer.validate(task, DataLoader(dataset, 4, sampler=sampler))
    elif kind == "late":
        late = Trainer(enable_progress_bar=False, callbacks=Late())
        late.validate(task, judged(), verbose=False)
    elif kind == "stream":
        trainer.validate(task, Stream())
    elif kind == "loose":
        del task.accuracy
        box = type("Box", (), {"metric": Accuracy(num_classes=3)})()
        task.box = box
        type(task).accuracy = property(lambda self: box.metric)  # type: ignore[assignment]
        trainer.validate(task, judged())


class Late(Callback):
    """Logs when the values of the epoch are merged already."""

    order = Order.PERSIST

    def on_validation_epoch_end(self, trainer: Any, module: Any) -> None:
        module.log("late", 1.0)


class Stream:
    """Batches without a length."""

    def __iter__(self) -> Any:
        return iter(judged())


class Shared(DataModule):
    """Writes a line when it prepares, and reads the file in every process."""

    def __init__(self, folder: str) -> None:
        self.file = Path(folder) / "prepared.txt"

    def prepare_data(self) -> None:
        with self.file.open("a") as file:
            file.write("line\n")

    def setup(self, stage: str) -> None:
        self.lines = self.file.read_text().splitlines()

    def val_dataloader(self) -> Any:
        return DataLoader(TensorDataset(*judged_classes()), batch_size=4)


def judged_classes() -> tuple[Any, Any]:
    """Predicted and true classes of 22 samples."""
    return mt.arange(22) % 3, mt.arange(22) * 5 % 7 % 3


class LogsResults(TaskModule):
    """Logs the F1 of each batch, as a result."""

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("f1", f1_score(*batch, num_classes=3, average="macro"))


def prepared(rank: int, folder: str) -> None:
    """One process prepares, and results of metrics are exact over all processes."""
    dist.init_process_group("gloo")
    data = Shared(folder)
    trainer = Trainer(enable_progress_bar=False)
    [values] = trainer.validate(LogsResults(), datamodule=data, verbose=False)
    assert data.lines == ["line"]
    expected = f1_score(*judged_classes(), num_classes=3, average="macro")
    assert values == {"f1": float(expected)}
    assert LogsResults.all_gather(trainer.module, mt.tensor(rank)).tolist() == [0, 1]
