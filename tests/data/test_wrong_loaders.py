"""Wrong programs, and what the DataLoader says to them."""

import random
from typing import Any

import numpy as np
import pytest
from loader_samples import Plain, Sharded, Squares

import minitorch as mt
from minitorch.data import BatchSampler, ConcatDataset, DataLoader, Subset, TensorDataset
from minitorch.errors import ArgumentError, DataError


class Stored(Squares):
    def __init__(self, generator: Any) -> None:
        super().__init__(4)
        self.generator = generator


def batches() -> BatchSampler:
    return BatchSampler(range(4), 2, drop_last=False)


D = Squares(5)
ARGUMENTS = [
    ({"batch_size": 0}, "batch_size must be an integer ≥ 1. Got 0"),
    ({"batch_size": -3}, "batch_size must be an integer ≥ 1. Got -3"),
    ({"batch_size": 2.0}, "batch_size must be an integer ≥ 1. Got 2.0"),
    ({"batch_size": True}, "batch_size must be an integer ≥ 1. Got True"),
    ({"shuffle": "yes"}, "shuffle must be True or False. Got 'yes'"),
    ({"drop_last": 1}, "drop_last must be True or False. Got 1"),
    ({"shuffle": True, "sampler": [0]}, "sampler and shuffle=True exclude each other"),
    ({"drop_last": True, "spread_last": True}, "drop_last and spread_last exclude each other"),
    ({"batch_size": 2, "batch_sampler": batches()}, "batch_sampler excludes batch_size,"),
    ({"shuffle": True, "batch_sampler": batches()}, "batch_sampler excludes shuffle"),
    ({"sampler": [0], "batch_sampler": batches()}, "batch_sampler excludes sampler"),
    ({"drop_last": True, "batch_sampler": batches()}, "batch_sampler excludes drop_last"),
    ({"spread_last": True, "sampler": iter([0])}, "spread_last needs a sampler with a length"),
    ({"batch_size": None, "drop_last": True}, "batch_size=None hands out samples one by one"),
    ({"num_workers": -1}, "num_workers must be an integer ≥ 0. Got -1"),
    ({"num_workers": 1, "worker_type": "fiber"}, "one of 'thread', 'process'. Got 'fiber'"),
    ({"num_workers": 1, "timeout": -1}, "timeout must be seconds ≥ 0. Got -1"),
    ({"num_workers": 1, "timeout": None}, "timeout must be seconds ≥ 0. Got None"),
    ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor must be an integer ≥ 1. Got 0"),
    ({"prefetch_factor": 2}, "prefetch_factor needs workers, but num_workers=0"),
    ({"persistent_workers": True}, "persistent_workers needs workers"),
    ({"timeout": 3}, "timeout needs workers"),
    ({"multiprocessing_context": "fork"}, "must be 'spawn'. Got 'fork'"),
    ({"in_order": 2}, "in_order must be True or False"),
    ({"collate_fn": 3}, "collate_fn must be a function. Got 3"),
    ({"generator": np.random.default_rng(0)}, "must be a minitorch.Generator. Got Generator"),
    ({"generator": 3}, "must be a minitorch.Generator. Got int"),
]


@pytest.mark.parametrize(("options", "text"), ARGUMENTS)
def test_wrong_arguments(options: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        DataLoader(D, **options)


@pytest.mark.parametrize(
    "options",
    [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": batches()}, {"spread_last": True}],
    ids=lambda options: next(iter(options)),
)
def test_a_stream_has_its_own_order(options: Any) -> None:
    name = next(iter(options))
    with pytest.raises(ArgumentError, match=f"Plain is an IterableDataset, .* so {name}.* cannot"):
        DataLoader(Plain(3), **options)


DATA = [
    (lambda: DataLoader(Squares(0)), r"the dataset is empty \(Squares gives 0 samples\)"),
    (lambda: DataLoader(Squares(0), shuffle=True), "the dataset is empty"),
    (lambda: DataLoader(D, sampler=[]), "the dataset is empty"),
    (lambda: DataLoader(D, batch_sampler=[]), "the dataset is empty"),
    (lambda: DataLoader(Subset(D, [])), r"\(Subset gives 0 samples\)"),
    (lambda: DataLoader(D, 6, drop_last=True), "with 5 samples and batch_size=6 leaves no batch"),
    (lambda: DataLoader((np.zeros(3), np.zeros(3))), r"a tuple of arrays, f64\[3\], f64\[3\]"),
    (lambda: DataLoader(i for i in range(3)), "needs __getitem__ and __len__, .* Got generator"),
    (lambda: DataLoader(Sharded(3, num_shards=0)), "Sharded.num_shards must be an integer ≥ 1"),
]


@pytest.mark.parametrize(("make", "text"), DATA)
def test_wrong_data(make: Any, text: str) -> None:
    with pytest.raises((DataError, ArgumentError), match=text):
        make()


def test_a_dataset_that_has_become_empty_is_noticed_at_the_next_epoch() -> None:
    dataset = Squares(2)
    loader = DataLoader(dataset)
    dataset.n = 0
    with pytest.raises(DataError, match="the dataset is empty"):
        iter(loader)


GENERATORS = [
    np.random.default_rng(0),
    np.random.RandomState(0),
    random.Random(0),
    mt.Generator(),
]


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: type(g).__name__)
def test_a_generator_in_a_dataset_is_not_shared_by_workers(generator: Any) -> None:
    stored = Stored(generator)
    DataLoader(stored)
    for dataset, path in (
        (stored, "dataset.generator"),
        (Subset(stored, [0]), r"dataset.parts\[0\].generator"),
        (ConcatDataset([D, Subset(stored, [0])]), r"dataset.parts\[1\].parts\[0\].generator"),
    ):
        with pytest.raises(DataError, match=f"{path} is a random generator, which num_workers=2"):
            DataLoader(dataset, num_workers=2)


def test_spawn_contexts_are_accepted() -> None:
    import multiprocessing

    for context in ("spawn", multiprocessing.get_context("spawn")):
        DataLoader(TensorDataset(np.zeros(3)), multiprocessing_context=context)
