"""DistributedSampler, and where PyTorch has the names of `minitorch.data`."""

import importlib
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.data import DataLoader, DistributedSampler
from minitorch.errors import ArgumentError


@pytest.mark.parametrize("n", [1, 4, 5, 7])
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_parts_are_those_of_torch_without_shuffling(n: int, replicas: int, drop_last: bool) -> None:
    torch = pytest.importorskip("torch")
    if drop_last and n < replicas:
        return  # torch pads there all the same
    for rank in range(replicas):
        options: dict[str, Any] = {"shuffle": False, "drop_last": drop_last}
        theirs = torch.utils.data.DistributedSampler(range(n), replicas, rank, **options)
        ours = DistributedSampler(range(n), replicas, rank, **options)
        assert list(ours) == list(theirs)
        assert (len(ours), ours.total_size) == (len(theirs), theirs.total_size)


def test_processes_share_one_order_of_each_epoch() -> None:
    samplers = [DistributedSampler(range(10), 3, rank, seed=4) for rank in range(3)]
    first = [list(sampler) for sampler in samplers]
    second = [list(sampler) for sampler in samplers]
    assert set(sum(first, [])) == set(range(10))
    assert [len(part) for part in first] == [4, 4, 4]
    assert first != second
    mt.manual_seed(99)
    samplers[0].set_epoch(0)
    assert list(samplers[0]) == first[0]


def test_one_process_needs_no_arguments() -> None:
    sampler = DistributedSampler(range(6))
    loader = DataLoader(np.arange(6), 2, sampler=sampler)
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        read = [int(x) for batch in loader for x in batch]
        assert read == sampler.order(epoch).tolist()
        assert sorted(read) == list(range(6))


def test_wrong_ranks_are_refused() -> None:
    with pytest.raises(ArgumentError, match="rank must be below num_replicas=2. Got 2"):
        DistributedSampler(range(3), 2, 2)
    with pytest.raises(ArgumentError, match="num_replicas must be an integer ≥ 1"):
        DistributedSampler(range(3), 0)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("", "DataLoader Dataset DistributedSampler default_convert get_worker_info StackDataset"),
        ("dataset", "Dataset IterableDataset TensorDataset Subset random_split ConcatDataset"),
        ("sampler", "Sampler BatchSampler RandomSampler SequentialSampler SubsetRandomSampler"),
        ("dataloader", "DataLoader default_collate default_convert get_worker_info"),
        ("distributed", "DistributedSampler"),
    ],
)
def test_names_are_where_pytorch_has_them(module: str, names: str) -> None:
    place = importlib.import_module(f"minitorch.utils.data.{module}".rstrip("."))
    for name in names.split():
        assert getattr(place, name) is getattr(mt.data, name)


def test_arguments_of_the_loader_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    inspect = importlib.import_module("inspect")
    theirs = inspect.signature(torch.utils.data.DataLoader).parameters
    ours = inspect.signature(DataLoader).parameters
    assert [name for name in theirs if name not in ours] == []
    positional = [n for n, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert list(ours)[: len(positional)] == positional
    assert len(list(DataLoader(range(3), in_order=False))) == 3
