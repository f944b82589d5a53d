"""Interrupted and resumed equals uninterrupted, from any position, with any workers."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loader_samples import GloballyNoisy, Noisy, NoisyStream, Plain, Sharded, Squares, plain

import minitorch as mt
from minitorch.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from minitorch.errors import DataError

EPOCHS = 2


def batched(n: int) -> dict[str, Any]:
    return {"batch_sampler": BatchSampler(RandomSampler(range(n)), 3, drop_last=True)}


CASES = {
    "shuffled": (lambda: Squares(11), {"batch_size": 3, "shuffle": True}),
    "fast path": (lambda: TensorDataset(np.arange(11)), {"batch_size": 3, "shuffle": True}),
    "with rng": (lambda: Noisy(11), {"batch_size": 4, "shuffle": True, "drop_last": True}),
    "spread": (lambda: Noisy(11), {"batch_size": 4, "spread_last": True}),
    "unbatched": (lambda: Noisy(5), {"batch_size": None, "shuffle": True}),
    "repeats": (lambda: Noisy(4), {"batch_size": 3, "sampler": RandomSampler(range(4), True, 9)}),
    "batch sampler": (lambda: Noisy(11), batched(11)),
    "own batches": (lambda: Noisy(6), {"batch_sampler": [[0, 1], [5], [2, 3, 4]]}),
    "own order": (lambda: Squares(6), {"sampler": [5, 3, 1], "batch_size": 2}),
    "stream": (lambda: Plain(11), {"batch_size": 3}),
    "sharded stream": (lambda: NoisyStream(13, num_shards=3), {"batch_size": 2}),
    "sharded, dropping": (lambda: Sharded(13, num_shards=3), {"batch_size": 2, "drop_last": True}),
    "unbatched stream": (lambda: NoisyStream(5, num_shards=2), {"batch_size": None}),
}  # fmt: skip


def epochs(loader: DataLoader[Any], number: int = EPOCHS) -> list[list[Any]]:
    return [[plain(batch) for batch in loader] for _ in range(number)]


@pytest.mark.filterwarnings("ignore:DataLoader. num_workers=., but Plain")
@pytest.mark.parametrize("case", CASES)
def test_any_position_with_any_number_of_threads(case: str) -> None:
    make, options = CASES[case]
    whole = epochs(DataLoader(make(), **options))
    for workers in (0, 1, 3):
        assert epochs(DataLoader(make(), num_workers=workers, **options)) == whole
        for epoch in range(EPOCHS):
            for k in range(len(whole[epoch]) + 1):
                loader = DataLoader(make(), num_workers=workers, **options)
                epochs(loader, epoch)
                taken = list(itertools.islice(loader, k)) if k else []
                if not k:
                    iter(loader)
                state = json.loads(json.dumps(loader.state_dict()))
                assert (state["epoch"], state["batch"]) == (epoch, k)
                mt.manual_seed(99)  # the seed is part of the state
                other = DataLoader(make(), num_workers=3 - workers, **options)
                other.load_state_dict(state)
                rest = epochs(other, EPOCHS - epoch)
                mt.manual_seed(0)
                assert [plain(batch) for batch in taken] + rest[0] == whole[epoch]
                assert rest[1:] == whole[epoch + 1 :]


@pytest.mark.parametrize("case", ["with rng", "sharded stream"])
def test_any_position_with_processes(case: str) -> None:
    make, options = CASES[case]
    whole = epochs(DataLoader(make(), **options))
    loader = DataLoader(make(), num_workers=2, worker_type="process", **options)
    assert epochs(loader) == whole
    for k in range(len(whole[0]) + 1):
        loader.set_epoch(0)
        run = iter(loader)
        taken = [plain(next(run)) for _ in range(k)]
        state = loader.state_dict()
        del run
        loader.load_state_dict(state)
        assert taken + epochs(loader, 1)[0] == whole[0]


def test_global_generators_in_processes_depend_on_the_batch_only() -> None:
    loaders = [
        DataLoader(GloballyNoisy(8), 2, num_workers=n, worker_type="process") for n in (1, 2)
    ]
    one, two = (epochs(loader) for loader in loaders)
    assert one == two
    assert len({str(batch) for epoch in one for batch in epoch}) == 8
    loaders[0].load_state_dict({**loaders[0].state_dict(), "epoch": 0, "batch": 1})
    assert epochs(loaders[0], 1)[0] == two[0][1:]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 60), st.booleans())
def test_any_position_of_any_length(n: int, size: int, steps: int, shuffle: bool) -> None:
    def endless(loader: DataLoader[Any]) -> Any:
        while True:
            yield from map(plain, loader)

    def make() -> DataLoader[Any]:
        return DataLoader(np.arange(n), size, shuffle=shuffle)

    whole = list(itertools.islice(endless(make()), steps + 5))
    loader = make()
    stream = endless(loader)
    list(itertools.islice(stream, steps))
    state = loader.state_dict()
    resumed = make()
    resumed.load_state_dict(state)
    assert list(itertools.islice(endless(resumed), 5)) == whole[steps:]


# ---- what the position is at each moment ------------------------------------------------------


def where(loader: DataLoader[Any]) -> tuple[int, int]:
    state = loader.state_dict()
    return state["epoch"], state["batch"]


def test_the_position_is_the_consumers() -> None:
    loader = DataLoader(Squares(8), 2, num_workers=2, prefetch_factor=4)
    assert where(loader) == (0, 0)
    seen = []
    for _ in loader:
        seen.append(where(loader))
    assert seen == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert where(loader) == (1, 0)
    for _ in loader:
        break
    assert where(loader) == (1, 1)
    run = iter(loader)
    assert where(loader) == (2, 0)
    next(run)
    assert where(loader) == (2, 1)
    run.close()  # type: ignore[attr-defined]


def test_set_epoch_keeps_a_loaded_position_of_the_same_epoch_only() -> None:
    loader = DataLoader(Squares(8), 2)
    state = {**loader.state_dict(), "epoch": 3, "batch": 2}
    loader.load_state_dict(state)
    loader.set_epoch(3)
    assert where(loader) == (3, 2)
    assert len(list(loader)) == 2
    loader.load_state_dict(state)
    loader.set_epoch(4)
    assert where(loader) == (4, 0)
    assert len(list(loader)) == 4
    for _ in loader:
        break
    loader.set_epoch(5)
    assert where(loader) == (5, 0)
    assert len(list(loader)) == 4


def test_two_loops_over_one_loader_do_not_disturb_each_other() -> None:
    loader = DataLoader(Squares(6), 2, shuffle=True)
    alone = epochs(loader)
    loader.set_epoch(0)
    both = [(plain(a), plain(b)) for a, b in zip(loader, loader, strict=True)]
    assert [[a for a, _ in both], [b for _, b in both]] == alone


def test_a_loaded_seed_stays() -> None:
    loader = DataLoader(Squares(9), 3, shuffle=True)
    whole = epochs(loader, 3)
    mt.manual_seed(4)
    other = DataLoader(Squares(9), 3, shuffle=True)
    other.load_state_dict({**other.state_dict(), "seed": 0})
    assert epochs(other, 3) == whole
    assert other.state_dict()["seed"] == 0


def test_numpy_integers_become_plain_ones() -> None:
    loader = DataLoader(Squares(9), 3)
    loader.set_epoch(np.int64(2))  # type: ignore[arg-type]
    loader.load_state_dict({**loader.state_dict(), "batch": np.int64(1)})
    state = loader.state_dict()
    assert json.loads(json.dumps(state)) == state
    assert (state["epoch"], state["batch"]) == (2, 1)


def test_shards_of_a_stream_are_part_of_the_state() -> None:
    loader = DataLoader(Sharded(20), 2, num_workers=3)
    whole = epochs(loader, 1)[0]
    loader.set_epoch(0)
    taken = [plain(b) for b in itertools.islice(loader, 4)]
    other = DataLoader(Sharded(20), 2, num_workers=1)
    other.load_state_dict(loader.state_dict())
    assert taken + epochs(other, 1)[0] == whole


WRONG = [
    (lambda s: None, "must have the keys epoch, batch, .* Got NoneType"),
    (lambda s: {"epoch": 1}, r"Got \['epoch'\]"),
    (lambda s: {**s, "batch": -1}, "batch must be an integer ≥ 0. Got -1"),
    (lambda s: {**s, "epoch": 1.5}, "epoch must be an integer ≥ 0. Got 1.5"),
    (lambda s: {**s, "batch": 2, "batch_size": 4}, "saved with batch_size=4, .* batch_size=2"),
    (lambda s: {**s, "batch": 2, "length": 9}, "saved with length=9, but this loader has length=8"),
    (lambda s: {**s, "batch": 5}, "batch 5 of epoch 0, but an epoch of this loader has 4"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), WRONG)
def test_a_state_that_does_not_fit_is_refused(change: Any, text: str) -> None:
    loader = DataLoader(Squares(8), 2)
    with pytest.raises((DataError, ValueError), match=text):
        loader.load_state_dict(change(loader.state_dict()))
    assert where(loader) == (0, 0)


def test_another_batch_size_is_fine_at_the_start_of_an_epoch() -> None:
    loader = DataLoader(Squares(8), 2)
    loader.load_state_dict({**loader.state_dict(), "epoch": 2, "batch_size": 4, "length": 9})
    assert where(loader) == (2, 0)


def test_iterators_of_one_loader_keep_their_own_positions() -> None:
    loader = DataLoader(TensorDataset(np.arange(8)), 2, shuffle=True)
    first = iter(loader)
    next(first)
    loader.set_epoch(0)
    second = iter(loader)
    for _ in range(3):
        next(second)
    assert (first.state_dict()["batch"], second.state_dict()["batch"]) == (1, 3)
    saved, rest = first.state_dict(), [batch[0].tolist() for batch in first]
    loader.load_state_dict(saved)
    assert [batch[0].tolist() for batch in loader] == rest
    second.close()
    assert second.state_dict()["batch"] == 3
