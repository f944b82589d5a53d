"""Datasets and their wrappers."""

from typing import Any

import numpy as np
import pytest
from loader_samples import Noisy, NoisyStream, Plain, Sharded, Squares

import minitorch as mt
from minitorch.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
)
from minitorch.data.dataset import batch_taker, stream_keywords, takes_rng
from minitorch.errors import ArgumentError, DataError


def test_tensor_dataset_gives_rows_of_tensors_and_arrays() -> None:
    data = TensorDataset(mt.arange(6).reshape(3, 2), np.array([1.0, 2.0, 3.0]))
    x, y = data[1]
    assert x.tolist() == [2, 3]
    assert y == 2.0
    assert len(data) == 3


def test_subset_concat_and_stack() -> None:
    parts = Squares(3) + Squares(2)
    assert isinstance(parts, ConcatDataset)
    assert [parts[i][0] for i in range(5)] == [0, 1, 2, 0, 1]
    assert parts[-1] == (1, 1)
    assert parts[-5] == (0, 0)
    assert len(parts) == 5
    assert parts.cumulative_sizes == [3, 5]
    part = Subset(Squares(10), [7, 2])
    assert (len(part), part[1]) == (2, (2, 4))
    assert StackDataset(Squares(3), Squares(3))[2] == ((2, 4), (2, 4))
    assert StackDataset(a=Squares(2), b=Squares(2))[1] == {"a": (1, 1), "b": (1, 1)}
    with pytest.raises(IndexError, match="index 5 is outside of 5 samples"):
        parts[5]


def test_chain_reads_streams_one_after_the_other() -> None:
    chain = Plain(2) + Plain(3)
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [0, 1, 0, 1, 2]
    assert stream_keywords(ChainDataset([Sharded(2), Plain(1)])) == set()
    both = ChainDataset([Sharded(3), NoisyStream(2)])
    assert stream_keywords(both) == {"shard", "num_shards", "epoch", "rng"}
    batches = list(DataLoader(ChainDataset([Sharded(3), Sharded(4)]), None, num_workers=2))
    assert sorted(batches) == [0, 0, 1, 1, 2, 2, 3]


def test_wrappers_pass_the_generator_on_where_it_is_wanted() -> None:
    noisy = Noisy(4)
    wrappers = [Subset(noisy, [0, 1]), noisy + Squares(2), StackDataset(noisy, Squares(4))]
    assert all(map(takes_rng, wrappers))
    assert not any(map(takes_rng, [Subset(Squares(3), [0]), Squares(1) + Squares(2)]))
    for wrapper in wrappers:
        assert list(DataLoader(wrapper, 2))

    class Overridden(Subset[Any]):
        def __getitem__(self, index: int) -> Any:  # type: ignore[override]
            return 5

    assert not takes_rng(Overridden(noisy, [0]))


class Shifted(TensorDataset):
    def __getitem__(self, index: Any) -> Any:
        return tuple(value + 1 for value in super().__getitem__(index))


def test_a_replaced_getitem_switches_the_fast_path_off() -> None:
    x = np.arange(4)
    assert batch_taker(TensorDataset(x)) is not None
    assert batch_taker(Subset(TensorDataset(x), [1])) is not None
    assert batch_taker(Subset(Shifted(x), [1])) is None
    assert batch_taker(Shifted(x)) is None
    assert batch_taker(Squares(2)) is None
    assert [b[0].tolist() for b in DataLoader(Shifted(x), 2)] == [[1, 2], [3, 4]]


class OnlyShard(IterableDataset[Any]):
    def __iter__(self, shard: int) -> Any:  # type: ignore[override]
        return iter([shard])


WRONG = [
    (lambda: TensorDataset(), "at least one tensor or array is needed"),
    (lambda: TensorDataset(np.zeros((3, 1)), np.zeros(4)), r"be equal. Got f64\[3,1\], f64\[4\]"),
    (lambda: TensorDataset([1, 2]), "Argument 0 is list"),
    (lambda: TensorDataset(np.zeros(2), np.zeros(())), r"Argument 1 is f64\[\]"),
    (lambda: TensorDataset(np.array(["a"])), "argument 0 has dtype <U1"),
    (lambda: ConcatDataset([]), "at least one dataset"),
    (lambda: ConcatDataset([Plain(2)]), "Plain is a stream and has no index. Use ChainDataset"),
    (lambda: ChainDataset([Squares(2)]), "Squares is not an IterableDataset. Use ConcatDataset"),
    (lambda: StackDataset(), "either by position or by keyword. Got 0 .* 0"),
    (lambda: StackDataset(Squares(1), a=Squares(1)), "Got 1 by position and 1 by keyword"),
    (lambda: StackDataset(Squares(1), Squares(2)), r"lengths must be equal. Got \[1, 2\]"),
    (lambda: DataLoader(OnlyShard()), "must take both of shard and num_shards"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), WRONG)
def test_wrong_datasets(make: Any, text: str) -> None:
    with pytest.raises((DataError, ArgumentError), match=text):
        make()


def test_missing_methods_are_named() -> None:
    class Bare(Dataset[Any]):
        pass

    class BareStream(IterableDataset[Any]):
        pass

    with pytest.raises(NotImplementedError, match="Bare must define __getitem__"):
        Bare()[0]
    with pytest.raises(NotImplementedError, match="BareStream must define __iter__"):
        iter(BareStream())
    with pytest.raises(TypeError, match="Plain is a stream and has no index"):
        Plain(2)[0]
    with pytest.raises(DataError, match="Bare has no length. Define __len__"):
        DataLoader(Bare())
    with pytest.raises(DataError, match="Bare has no length"):
        ConcatDataset([Bare()])
