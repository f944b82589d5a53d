"""Data: order, workers, random numbers, lengths, devices, waiting."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from harness import (
    Classifier,
    Regression,
    arrays,
    assert_same,
    error,
    fit,
    good,
    impossible,
    loader,
    quiet,
    steps,
    trained,
    warns,
    weights,
)

import minitorch as mt
from minitorch import nn
from minitorch.callbacks.core import LoaderWait
from minitorch.data import DataLoader, Dataset, IterableDataset, TensorDataset, random_split
from minitorch.nn import functional as F


class Order(Regression):
    """Notes the first input of every sample that it sees, by epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[float, ...]] = []

    def on_train_epoch_start(self) -> None:
        self.now: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.now += batch[0][:, 0].tolist()
        return self.loss(batch)

    def on_train_epoch_end(self) -> None:
        self.seen.append(tuple(self.now))


def orders(data: Any, epochs: int = 2) -> list[tuple[float, ...]]:
    """The order of samples in each epoch."""
    task = Order()
    quiet(max_epochs=epochs).fit(task, data)
    return task.seen


def dataset() -> Any:
    """The default arrays."""
    return TensorDataset(*map(mt.from_numpy, arrays()))


@impossible("sampler-epoch-not-set")
def _() -> None:
    first, second = orders(loader(shuffle=True))
    assert first != second
    assert sorted(first) == sorted(second)


@good("sampler-epoch-not-set")
def _() -> None:
    mt.manual_seed(7)
    first = orders(loader(shuffle=True))
    mt.manual_seed(7)
    assert orders(loader(shuffle=True)) == first


@impossible("train-not-shuffled")
def _() -> None:
    stored = tuple(arrays()[0][:, 0].tolist())
    assert all(order != stored for order in orders(DataLoader(dataset(), 4)))


@impossible("train-not-shuffled", "arrays and datasets")
def _() -> None:
    stored = tuple(arrays()[0][:, 0].tolist())
    assert orders(arrays())[0] != stored
    assert orders(dataset())[0] != stored


@good("train-not-shuffled")
def _() -> None:
    stored = tuple(arrays()[0][:, 0].tolist())
    assert orders(DataLoader(dataset(), 4, shuffle=False)) == [stored, stored]


class Augments(Dataset):
    """Adds noise from a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: Any) -> Any:
        return self.rng.normal(size=3).astype(np.float32), np.ones(1, np.float32)


class Passed(Dataset):
    """Takes the generator that the loader passes."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: Any, *, rng: Any = None) -> Any:
        return rng.normal(size=3).astype(np.float32), np.ones(1, np.float32)


@error("worker-rng-duplicated", r"dataset\.rng is a random generator.*Take the keyword rng")
def _() -> None:
    fit(Regression(), DataLoader(Augments(), 4, num_workers=2))


@impossible("worker-rng-duplicated")
def _() -> None:
    runs = [orders(DataLoader(Passed(), 4, shuffle=False, num_workers=n)) for n in (0, 2)]
    assert runs[0] == runs[1]
    assert len(set(runs[0][0] + runs[0][1])) == 16


@good("worker-rng-duplicated")
def _() -> None:
    fit(Regression(), DataLoader(Augments(), 4))


class Stream(IterableDataset):
    """Eight samples; one that knows of shards reads its own."""

    def __iter__(self, *, shard: int = 0, num_shards: int = 1) -> Any:
        for i in range(shard, 8, num_shards):
            yield np.full(3, i, np.float32), np.ones(1, np.float32)


@impossible("iterable-dataset-duplicated")
def _() -> None:
    (order,) = orders(DataLoader(Stream(), 2, num_workers=2), 1)
    assert sorted(order) == list(range(8))


@good("iterable-dataset-duplicated")
def _() -> None:
    (order,) = orders(DataLoader(Stream(), 2), 1)
    assert sorted(order) == list(range(8))


class Curriculum(Dataset):
    """Gives the epoch that it was told."""

    epoch = 0

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: Any) -> Any:
        return np.full(3, self.epoch, np.float32), np.ones(1, np.float32)


@impossible("worker-copy-stale")
def _() -> None:
    data = Curriculum()

    class Task(Order):
        def on_train_epoch_end(self) -> None:
            super().on_train_epoch_end()
            data.epoch += 1

    task = Task()
    train = DataLoader(data, 4, shuffle=False, num_workers=2, persistent_workers=True)
    quiet(max_epochs=2).fit(task, train)
    assert [set(order) for order in task.seen] == [{0.0}, {1.0}]


@good("worker-copy-stale")
def _() -> None:
    fit(Regression(), DataLoader(Curriculum(), 4, num_workers=2))


class WhoReads(Dataset):
    """Notes which object and thread reads."""

    def __init__(self) -> None:
        self.paths = [f"image-{i}" for i in range(1000)]
        self.readers: set[tuple[int, int]] = set()

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: Any) -> Any:
        self.readers.add((id(self.paths), threading.get_ident()))
        return np.ones(3, np.float32), np.ones(1, np.float32)


@impossible("loader-cow-growth")
def _() -> None:
    data = WhoReads()
    fit(Regression(), DataLoader(data, 4, num_workers=2))
    assert {paths for paths, _ in data.readers} == {id(data.paths)}
    assert threading.get_ident() not in {thread for _, thread in data.readers}


@good("loader-cow-growth")
def _() -> None:
    fit(Regression(), DataLoader(WhoReads(), 4))


@impossible("nondeterministic-runs")
def _() -> None:
    class Draws(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.net[1] = nn.Sequential(nn.Tanh(), nn.Dropout(0.5))

    class Noisy(Draws):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            mt.rand(5)
            np.random.default_rng().normal()
            self.log("noise", mt.randn(1).item())

    data = loader(shuffle=True)
    assert_same(trained(Draws(), data), trained(Noisy(), data, loader(), val_check_interval=2))


@good("nondeterministic-runs")
def _() -> None:
    mt.manual_seed(3)
    first = trained(Regression(), loader(shuffle=True))
    mt.manual_seed(3)
    assert_same(first, trained(Regression(), loader(shuffle=True)))


def normed(samples: int, **options: Any) -> tuple[Any, Any]:
    """A task with batch normalisation and a loader over so many samples."""
    task = Regression()
    task.net[1] = nn.BatchNorm1d(8)
    return task, loader(arrays(samples), **options)


@error("batch-of-one-batchnorm", r"\(net\.1\) needs two samples.*Got 25 samples in batches of 4")
def _() -> None:
    fit(*normed(25))


@error("batch-of-one-batchnorm", r"drop_last=True with 3 samples and batch_size=4", "no batch")
def _() -> None:
    fit(*normed(3, drop_last=True))


@good("batch-of-one-batchnorm")
def _() -> None:
    fit(*normed(25, drop_last=True))
    fit(*normed(25, spread_last=True))
    fit(Regression(), loader(arrays(25)))


@warns("data-leakage", r"Got 60 of 60 that are the same, inputs and targets")
def _() -> None:
    fit(Regression(), arrays(120), loader([a[60:] for a in arrays(120)]))


@warns("data-leakage", r"Got \d+ of 100 that are the same", "copied before the split")
def _() -> None:
    data = TensorDataset(*[mt.from_numpy(np.concatenate([a, a])) for a in arrays(250)])
    train, val = random_split(data, [400, 100])
    fit(Regression(), DataLoader(train, 50), DataLoader(val, 50))


@good("data-leakage")
def _() -> None:
    data = TensorDataset(*map(mt.from_numpy, arrays(200)))
    train, val = random_split(data, [100, 100])
    fit(Regression(), DataLoader(train, 50), DataLoader(val, 50))


@impossible("validation-split-unshuffled")
def _() -> None:
    x = np.repeat(np.arange(4), 25)
    train, val = random_split(TensorDataset(mt.from_numpy(x)), [0.8, 0.2])
    for part in (train, val):
        assert {int(part[i][0]) for i in range(len(part))} == {0, 1, 2, 3}


@good("validation-split-unshuffled")
def _() -> None:
    data = TensorDataset(mt.arange(10))
    first = [int(v) for part in random_split(data, [5, 5]) for (v,) in part]
    assert [int(v) for part in random_split(data, [5, 5]) for (v,) in part] == first


@error("numpy-alias-corrupts-graph", r"read-only")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        h = self(batch[0]).exp()
        h.detach().numpy()[...] = 100.0
        return h.sum()

    fit(steps(step))


@impossible("numpy-alias-corrupts-graph", "one buffer for all batches")
def _() -> None:
    class Reuses:
        def __iter__(self) -> Any:
            x, y = np.empty((4, 3), np.float32), np.empty((4, 1), np.float32)
            for i in range(0, 24, 4):
                x[...], y[...] = (a[i : i + 4] for a in arrays())
                yield x, y
                x[...] = np.nan

    assert_same(trained(Regression(), Reuses()), trained(Regression()))


@good("numpy-alias-corrupts-graph")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        self(batch[0]).detach().numpy().sum()
        return self.loss(batch)

    fit(steps(step))


class OnDevice(Regression):
    """Makes tensors in its step."""

    def loss(self, batch: Any) -> Any:
        x, y = batch
        mask = mt.ones(len(x), 1)
        return F.mse_loss(self(x + mt.zeros(3)) * mask, y)


@impossible("device-mismatch")
def _(pretend_gpu: Any) -> None:
    ours = trained(OnDevice(), accelerator="gpu")
    assert_same(ours, trained(Regression(), accelerator="cpu"), rtol=1e-5)


@good("device-mismatch")
def _(pretend_gpu: Any) -> None:
    assert mt.zeros(1).device.type == "cpu"
    fit(Regression(), accelerator="gpu")
    assert mt.zeros(1).device.type == "cpu"


@impossible("optimizer-before-move")
def _(pretend_gpu: Any) -> None:
    class Early(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.early = {"adam": mt.optim.Adam(self.net.parameters(), lr=0.1)}

        def configure_optimizers(self) -> Any:
            return self.early["adam"]

    class Late(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.Adam(self.parameters(), lr=0.1)

    assert_same(trained(Early(), accelerator="gpu"), trained(Late(), accelerator="gpu"))


@good("optimizer-before-move")
def _() -> None:
    before = weights(Regression())["net.0.weight"]
    assert not np.array_equal(trained(Regression())["net.0.weight"], before)


def reads(read: Any) -> Any:
    """A step with a read in a helper."""

    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        read(loss)
        return loss

    return steps(step)


@warns("host-sync-in-step", r"Got, in 10 batches: .*programs_data\.py:\d+ in .*item\(\).*ms\)")
def _(pretend_gpu: Any) -> None:
    fit(reads(lambda loss: loss.item()), accelerator="gpu", max_epochs=3)


@warns("host-sync-in-step", r"programs_data\.py:\d+ in <lambda>", "if on a tensor")
def _(pretend_gpu: Any) -> None:
    fit(reads(lambda loss: 1 if loss > 0 else 2), accelerator="gpu", max_epochs=3)


@good("host-sync-in-step")
def _(pretend_gpu: Any) -> None:
    class Logs(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            self.log("loss", loss)
            return loss

    fit(Logs(), accelerator="gpu", max_epochs=3)
    fit(reads(lambda loss: loss.item()), accelerator="cpu", max_epochs=3)


class Clock:
    """Time that passes when a batch is read or trained on."""

    def __init__(self, wait: float) -> None:
        self.now, self.wait = 0.0, wait

    def __call__(self) -> float:
        return self.now

    def __iter__(self) -> Any:
        for _ in range(20):
            self.now += self.wait
            yield tuple(a[:4] for a in arrays())


def waiting(seconds: float) -> None:
    """A fit whose batches take so long."""
    clock = Clock(seconds)

    class Wait(LoaderWait):
        def __init__(self) -> None:
            super().__init__()
            self.clock = clock  # type: ignore[method-assign]

        def on_train_batch_end(self, *args: Any) -> None:
            clock.now += 0.1

    fit(Regression(), clock, max_epochs=6, callbacks=[Wait()])


@warns("loader-bottleneck", r"Got 9\d% of \d+\.\d s spent waiting over 100 batches")
def _() -> None:
    waiting(1.0)


@good("loader-bottleneck")
def _() -> None:
    waiting(0.001)


@warns("empty-cache-in-loop", r"Got empty_cache\(\) at .*programs_data\.py:\d+ in _clean.*took")
def _() -> None:
    def _clean() -> None:
        mt.cuda.empty_cache()

    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        _clean()
        return self.loss(batch)

    fit(steps(step))


@good("empty-cache-in-loop")
def _() -> None:
    class Task(Classifier):
        def on_train_end(self) -> None:
            mt.cuda.empty_cache()

    fit(Task())
