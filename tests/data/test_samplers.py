"""Samplers and random_split."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from loader_samples import Squares

import minitorch as mt
from minitorch.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)
from minitorch.errors import ArgumentError
from minitorch.random import numpy_at


def test_random_sampler_is_a_function_of_seed_and_epoch() -> None:
    sampler = RandomSampler(range(20))
    first, second = list(sampler), list(sampler)
    assert first == numpy_at("shuffle", 0).permutation(20).tolist()
    assert second == numpy_at("shuffle", 1).permutation(20).tolist()
    sampler.set_epoch(0)
    assert list(sampler) == first
    seeded = RandomSampler(range(20), generator=mt.Generator().manual_seed(7))
    assert list(seeded) == numpy_at("shuffle", 0, seed=7).permutation(20).tolist()


def test_random_sampler_draws_as_many_as_wanted() -> None:
    seven = list(RandomSampler(range(3), num_samples=7))
    assert len(seven) == 7
    assert sorted(seven[:3]) == sorted(seven[3:6]) == [0, 1, 2]
    assert len(set(RandomSampler(range(9), num_samples=4))) == 4
    drawn = list(RandomSampler(range(3), True, 50))
    assert set(drawn) == {0, 1, 2}
    assert len(RandomSampler(range(3), num_samples=7)) == 7


def test_other_samplers() -> None:
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([5, 3, 8])) == [3, 5, 8]
    assert len(SubsetRandomSampler([5, 3, 8])) == 3
    weighted = WeightedRandomSampler([0, 1, 3], 4000)
    counts = np.bincount(list(weighted), minlength=3)
    assert counts[0] == 0
    assert 2800 < counts[2] < 3200
    assert sorted(WeightedRandomSampler([1, 0, 3], 2, replacement=False)) == [0, 2]
    with pytest.raises(NotImplementedError, match="Sampler must define __iter__"):
        iter(Sampler(None))


@given(st.integers(0, 40), st.integers(1, 9), st.booleans())
def test_batches_are_torchs(n: int, size: int, drop_last: bool) -> None:
    ours = BatchSampler(SequentialSampler(range(n)), size, drop_last)
    theirs = torch.utils.data.BatchSampler(range(n), size, drop_last)
    assert list(ours) == list(theirs)
    assert len(ours) == len(theirs)
    assert [list(b) for b in ours.split(np.arange(n))] == list(theirs)


@given(st.integers(0, 40), st.integers(1, 9))
def test_spread_sizes_differ_by_one_at_most(n: int, size: int) -> None:
    sampler = BatchSampler(range(n), size, False, spread_last=True)
    batches = list(sampler)
    assert sum(batches, []) == list(range(n))
    assert len(batches) == len(sampler) == -(-n // size)
    sizes = [len(batch) for batch in batches]
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert max(sizes, default=0) <= size


@given(st.integers(0, 30), st.integers(1, 5), st.integers(0, 9), st.booleans(), st.booleans())
def test_batches_can_start_anywhere(
    n: int, size: int, start: int, drop_last: bool, spread_last: bool
) -> None:
    sampler = BatchSampler(range(n), size, drop_last, spread_last=spread_last and not drop_last)
    for order in (range(n), np.arange(n)):
        assert [list(b) for b in sampler.split(order, start)] == list(sampler)[start:]
    assert [list(b) for b in sampler.split(iter(range(n)), start)] == list(sampler)[start:]


WRONG = [
    (lambda: BatchSampler(range(3), 0, False), "batch_size must be an integer ≥ 1. Got 0"),
    (lambda: BatchSampler(range(3), 1.5, False), "batch_size must be an integer ≥ 1. Got 1.5"),
    (lambda: BatchSampler(range(3), 2, 1), "drop_last must be True or False. Got 1"),
    (lambda: BatchSampler(range(3), 2, True, spread_last=True), "exclude each other"),
    (lambda: BatchSampler(iter("abc"), 2, False, spread_last=True), "needs a sampler with a len"),
    (lambda: RandomSampler(range(3), num_samples=0), "num_samples must be an integer ≥ 1"),
    (lambda: RandomSampler(range(3), "yes"), "replacement must be True or False"),
    (lambda: RandomSampler(range(3), generator=np.random.default_rng(0)), "a minitorch.Generator"),
    (lambda: RandomSampler(range(3)).set_epoch(-1), "epoch must be an integer ≥ 0. Got -1"),
    (lambda: SubsetRandomSampler(np.zeros((2, 2))), r"flat sequence of .* shape \(2, 2\)"),
    (lambda: WeightedRandomSampler([1, -1, 2], 2), "1 of them bad, first at position 1"),
    (lambda: WeightedRandomSampler([1, np.nan], 2), "1 of them bad"),
    (lambda: WeightedRandomSampler([0, 0], 2), "with a positive sum"),
    (lambda: WeightedRandomSampler([[1]], 2), r"Got shape \(1, 1\)"),
    (lambda: WeightedRandomSampler([1], 0), "num_samples must be an integer ≥ 1"),
    (lambda: WeightedRandomSampler([1, 0], 2, False), "Got 2 > 1. Use replacement=True"),
    (lambda: random_split(Squares(5), [2, 2]), r"must sum to .* Got 2 \+ 2 = 4 for 5"),
    (lambda: random_split(Squares(5), [0.5, 0.2]), "fractions must sum to 1. Got .* sum 0.7"),
    (lambda: random_split(Squares(5), [-1, 6]), "lengths must be numbers ≥ 0"),
    (lambda: random_split(Squares(5), []), "lengths must be numbers ≥ 0"),
    (lambda: random_split(Squares(2), [0.9, 0.05, 0.05]), "0.05 of 2 samples is an empty"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_wrong_arguments(make: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        make()


@given(st.integers(20, 300), st.sampled_from([[0.5, 0.5], [0.7, 0.2, 0.1], [0.29, 0.71], [1.0]]))
def test_split_sizes_are_torchs_and_parts_do_not_overlap(n: int, lengths: list[float]) -> None:
    parts = random_split(Squares(n), lengths)
    theirs = torch.utils.data.random_split(range(n), lengths)  # type: ignore[arg-type]
    assert [len(part) for part in parts] == [len(part) for part in theirs]
    assert sorted(i for part in parts for i in part.indices) == list(range(n))


def test_split_is_random_but_the_same_each_time() -> None:
    def split(**options: Any) -> list[Any]:
        return [part.indices for part in random_split(Squares(50), [30, 20], **options)]

    first = split()
    assert first == split()
    assert first[0] != list(range(30))
    mt.manual_seed(1)
    assert split() != first
    assert split(generator=mt.Generator().manual_seed(3)) == split(
        generator=mt.Generator().manual_seed(3)
    )
