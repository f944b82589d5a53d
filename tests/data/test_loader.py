"""The DataLoader: order, shapes of batches, the fast path, epochs."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from loader_samples import Noisy, Plain, Squares, Words, doubled, plain, stringy

import minitorch as mt
from minitorch.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)
from minitorch.random import numpy_at


def indices_of(loader: DataLoader[Any]) -> list[list[int]]:
    return [batch[0].tolist() for batch in loader]


@given(st.integers(1, 30), st.integers(1, 8), st.booleans())
def test_batches_are_torchs(n: int, size: int, drop_last: bool) -> None:
    if drop_last and n < size:
        return
    ours = DataLoader(Squares(n), size, drop_last=drop_last)
    theirs = torch.utils.data.DataLoader(Squares(n), size, drop_last=drop_last)  # type: ignore[arg-type]
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert type(mine) is type(other) is list
        assert plain(mine) == plain(other)
        assert str(mine[0].dtype).split(".")[1] == str(other[0].dtype).split(".")[1]


def test_shuffling_is_a_function_of_seed_and_epoch() -> None:
    loader = DataLoader(Squares(10), 4, shuffle=True)
    for epoch in range(3):
        order = numpy_at("shuffle", epoch).permutation(10).tolist()
        assert sum(indices_of(loader), []) == order
    loader.set_epoch(1)
    assert sum(indices_of(loader), []) == numpy_at("shuffle", 1).permutation(10).tolist()
    mt.manual_seed(5)
    loader.set_epoch(0)
    assert sum(indices_of(loader), []) == numpy_at("shuffle", 0, seed=5).permutation(10).tolist()
    generator = mt.Generator().manual_seed(9)
    order = numpy_at("shuffle", 0, seed=9).permutation(10).tolist()
    for loader in (
        DataLoader(Squares(10), 10, shuffle=True, generator=generator),
        DataLoader(Squares(10), 10, sampler=RandomSampler(range(10), generator=generator)),
        DataLoader(
            Squares(10),
            batch_sampler=BatchSampler(
                RandomSampler(range(10), generator=generator), 10, drop_last=False
            ),
        ),
    ):
        assert indices_of(loader) == [order]


def test_other_draws_do_not_move_the_order() -> None:
    loader = DataLoader(Squares(10), 4, shuffle=True)
    first = indices_of(loader)
    mt.manual_seed(0)
    mt.rand(5)
    np.random.default_rng().random()
    assert indices_of(DataLoader(Squares(10), 4, shuffle=True)) == first


def test_last_batch() -> None:
    def sizes(**options: Any) -> list[int]:
        loader = DataLoader(Squares(9), 4, **options)
        found = [len(batch) for batch in indices_of(loader)]
        assert len(loader) == len(found)
        return found

    assert sizes() == [4, 4, 1]
    assert sizes(drop_last=True) == [4, 4]
    assert sizes(spread_last=True) == [3, 3, 3]


def test_samples_one_by_one_without_batching() -> None:
    loader = DataLoader(Squares(3), batch_size=None)
    assert list(loader) == [[0, 0], [1, 1], [2, 4]]
    assert len(loader) == 3
    arrays = DataLoader(TensorDataset(np.arange(6).reshape(3, 2)), None, shuffle=True)
    first = next(iter(arrays))[0]
    assert isinstance(first, mt.Tensor)
    assert first.shape == (2,)
    assert list(DataLoader(Squares(2), None, collate_fn=str)) == ["(0, 0)", "(1, 1)"]


def test_collate_fn_and_samplers_of_the_user() -> None:
    assert next(iter(DataLoader(Squares(4), 2, collate_fn=stringy))) == ["(0, 0)", "(1, 1)"]
    assert indices_of(DataLoader(Squares(9), 2, sampler=[4, 2, 8])) == [[4, 2], [8]]
    batches = [[1, 2], [3], [4, 5, 6]]
    loader = DataLoader(Squares(9), batch_sampler=batches)
    assert indices_of(loader) == batches
    assert len(loader) == 3
    assert loader.batch_size is None
    words = DataLoader(Words(), 2, sampler=["one", "two", "three"])
    first = list(words)
    assert [batch[0] for batch in first] == [["one", "two"], ["three"]]
    words.set_epoch(0)
    assert plain(list(words)) == plain(first)


class EpochWise(Sampler[int]):
    def __init__(self) -> None:
        self.epochs: list[int] = []

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def __iter__(self) -> Any:
        return iter([0, 1, 2])


def test_a_sampler_of_the_user_is_told_the_epoch() -> None:
    for wrap in (
        lambda s: {"sampler": s},
        lambda s: {"batch_sampler": BatchSampler(s, 2, drop_last=False)},
    ):
        sampler = EpochWise()
        loader = DataLoader(Squares(3), **wrap(sampler))
        list(loader), list(loader)
        loader.set_epoch(7)
        list(loader)
        assert sampler.epochs == [0, 1, 7]


def test_the_generator_of_a_sampler_wins_over_that_of_the_loader() -> None:
    one, two = (mt.Generator().manual_seed(seed) for seed in (1, 2))
    sampler = RandomSampler(range(10), generator=one)
    loader = DataLoader(Squares(10), 10, sampler=sampler, generator=two)
    assert indices_of(loader) == [numpy_at("shuffle", 0, seed=1).permutation(10).tolist()]
    own = EpochWise()
    own.generator = np.random.default_rng(0)  # type: ignore[attr-defined]
    assert len(list(DataLoader(Squares(3), sampler=own))) == 3


class OwnBatches(BatchSampler):
    def __iter__(self) -> Any:
        return (batch[::-1] for batch in super().__iter__())


def test_a_subclass_of_our_samplers_keeps_its_own_iter() -> None:
    sampler = OwnBatches(SequentialSampler(range(4)), 2, drop_last=False)
    assert indices_of(DataLoader(Squares(4), batch_sampler=sampler)) == [[1, 0], [3, 2]]


class Getitems(Squares):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        assert isinstance(indices, list)
        return [(i, -i) for i in indices]


def test_getitems_reads_a_whole_batch() -> None:
    assert plain(list(DataLoader(Getitems(3), 2))) == [[[0, 1], [0, -1]], [[2], [-2]]]


# ---- arrays ------------------------------------------------------------------------------------


class Slow(Dataset[Any]):
    """The samples of another dataset, without its fast path."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getitem__(self, index: int) -> Any:
        return self.inner[index]

    def __len__(self) -> int:
        return len(self.inner)


X = np.arange(60, dtype=np.float32).reshape(10, 3, 2)
SOURCES = [
    X,
    mt.tensor(X),
    TensorDataset(X, np.arange(10)),
    TensorDataset(mt.tensor(X), np.arange(10, dtype=np.float64), np.arange(10) % 2 == 0),
    Subset(TensorDataset(X, np.arange(10)), [7, 1, 1, 4, 0]),
    Subset(Subset(TensorDataset(X), range(9)), np.array([2, 8, 3])),
    random_split(TensorDataset(X, np.arange(10)), [0.5, 0.5])[1],
    np.asfortranarray(X),
]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("source", SOURCES, ids=lambda s: type(s).__name__)
def test_the_fast_path_gives_what_the_slow_one_gives(source: Any, shuffle: bool) -> None:
    fast = list(DataLoader(source, 3, shuffle=shuffle))
    slow = list(DataLoader(Slow(source), 3, shuffle=shuffle))
    assert type(fast[0]) is type(slow[0])
    assert len(fast) == len(slow)
    for a, b in zip(fast, slow, strict=True):
        for x, y in zip(*((a, b) if isinstance(a, list) else ([a], [b])), strict=True):
            assert x.dtype is y.dtype
            np.testing.assert_array_equal(x.numpy(), y.numpy())


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_copies(shuffle: bool) -> None:
    source = np.ones((4, 2), np.float32)
    for batch in DataLoader(source, 2, shuffle=shuffle):
        assert batch.numpy().flags.c_contiguous
        batch.mul_(0)
    assert source.all()


def test_a_batch_takes_one_numpy_call_per_array(monkeypatch: pytest.MonkeyPatch) -> None:
    from minitorch.data import dataset as module

    calls = []
    real = module.take_rows
    monkeypatch.setattr(module, "take_rows", lambda v, i: calls.append(len(i)) or real(v, i))
    list(DataLoader(TensorDataset(X, np.arange(10)), 4, shuffle=True))
    assert calls == [4, 4, 4, 4, 2, 2]


def test_gpu_arrays_are_taken_on_the_gpu(pretend_gpu: Any) -> None:
    data = TensorDataset(mt.tensor(X).to("cuda"), mt.arange(10).to("cuda"))
    before = pretend_gpu.counters.device_to_host
    batches = list(DataLoader(data, 4, shuffle=True))
    assert batches[0][0].device.type == "cuda"
    assert pretend_gpu.counters.device_to_host == before
    order = numpy_at("shuffle", 0).permutation(10)
    np.testing.assert_array_equal(batches[0][0].cpu().numpy(), X[order[:4]])
    slow = default_collate([data[i] for i in range(2)])
    assert slow[0].device.type == "cuda"


# ---- random numbers of samples --------------------------------------------------------------


def test_a_sample_gets_numbers_of_seed_epoch_and_index() -> None:
    def epoch_of(loader: DataLoader[Any]) -> dict[int, int]:
        return {i: v for batch in loader for i, v in zip(*plain(batch), strict=True)}

    loader = DataLoader(Noisy(12), 5, shuffle=True)
    first, second = epoch_of(loader), epoch_of(loader)
    assert len(set(first.values()) | set(second.values())) == 24
    assert epoch_of(DataLoader(Noisy(12), 2)) == first
    assert first[3] == numpy_at("sample", 0, 3, 0).integers(2**40)
    mt.manual_seed(1)
    assert epoch_of(DataLoader(Noisy(12), 5)) != first


def test_a_sample_drawn_twice_gets_other_numbers() -> None:
    loader = DataLoader(Noisy(2), 3, sampler=WeightedRandomSampler([1, 1], 40))
    values = [v for batch in loader for v in plain(batch)[1]]
    assert len(set(values)) == 40


def test_a_sample_in_hand_has_its_numbers_also_without_batching() -> None:
    (batch,) = DataLoader(Noisy(4), 4)
    assert list(DataLoader(Noisy(4), None)) == plain(list(zip(*plain(batch), strict=True)))


# ---- the object -------------------------------------------------------------------------------


def test_fixed_attributes_cannot_be_changed() -> None:
    loader = DataLoader(Squares(4), 2, shuffle=True)
    with pytest.raises(ValueError, match="batch_size cannot be changed after construction"):
        loader.batch_size = 3
    loader.note = "free"  # type: ignore[attr-defined]


def test_a_loader_can_be_copied_and_pickled() -> None:
    loader = DataLoader(Squares(6), 2, shuffle=True, num_workers=1, persistent_workers=True)
    first = indices_of(loader)
    twins = [copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))]
    second = indices_of(loader)
    assert first != second
    for twin in twins:
        assert indices_of(twin) == second


def test_attributes_are_torchs() -> None:
    loader = DataLoader(Squares(4), 2, True, None, None, 1, doubled, False, True, 3, print, None)
    assert (loader.batch_size, loader.num_workers, loader.drop_last) == (2, 1, True)
    assert (loader.collate_fn, loader.timeout, loader.worker_init_fn) == (doubled, 3, print)
    assert isinstance(loader.sampler, RandomSampler)
    assert isinstance(loader.batch_sampler, BatchSampler)
    assert isinstance(DataLoader(Squares(4)).sampler, SequentialSampler)
    theirs = torch.utils.data.DataLoader(Squares(4))  # type: ignore[arg-type]
    assert {name for name in vars(theirs) if not name.startswith("_")} - set(vars(loader)) == set()


def test_length_of_a_stream_is_an_estimate_from_its_own() -> None:
    class Sized(Plain):
        def __len__(self) -> int:
            return self.n

    assert len(DataLoader(Sized(7), 3)) == 3
    assert len(DataLoader(Sized(7), 3, drop_last=True)) == 2
    assert len(DataLoader(Sized(7), None)) == 7
    with pytest.raises(TypeError):
        len(DataLoader(Plain(7), 3))


def test_the_alias_has_the_same_names() -> None:
    import minitorch.utils.data as alias

    assert alias.DataLoader is DataLoader
    assert mt.utils.data.random_split is random_split
