import copy
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch import random
from minitorch.errors import ArgumentError, DeviceError

NAMES = st.text(min_size=1, max_size=8)
SEEDS = st.integers(0, 2**64 - 1)
GOLDEN_STREAM = [0.04384369254036524, 0.5540644188265537]
GOLDEN_AT = [0.8491290043656132, 0.23482216897177588]


@pytest.fixture(autouse=True)
def _restore_root():
    with random.fork_rng():
        random.manual_seed(0)
        yield


def draw(name="x", size=8):
    return random.stream(name).numpy().random(size)


def same(a, b):
    return np.array_equal(a, b)


@given(SEEDS, NAMES, st.integers(0, 2**64 - 1))
def test_a_draw_is_a_function_of_seed_stream_and_position(seed, name, position):
    random.load_state_dict({"seed": seed, "positions": {name: position}})
    first = draw(name)
    draw("another stream")
    random.manual_seed(seed + 1 if seed < 2**63 else seed - 1)
    assert not same(first, draw(name))
    random.load_state_dict({"seed": seed, "positions": {name: position}})
    assert same(first, draw(name))
    assert random.stream(name).position == position + 1


def test_draws_of_different_positions_names_and_seeds_differ():
    seen = []
    for seed in (0, 1, 2**64 - 1):
        random.manual_seed(seed)
        seen += [tuple(draw(name, 4)) for name in ("a", "b", "a b") for _ in range(20)]
    assert len(set(seen)) == len(seen)


def test_the_number_of_values_taken_does_not_move_the_next_draw():
    draw(size=1000)
    second = draw()
    random.manual_seed(0)
    random.stream("x").numpy().integers(0, 2, 3, dtype=np.int32)
    assert same(second, draw())


def test_known_values_stay_the_same_from_version_to_version():
    random.manual_seed(1234)
    assert draw("golden", 2).tolist() == GOLDEN_STREAM
    assert random.numpy_at("golden", 3, 4).random(2).tolist() == GOLDEN_AT


def test_a_draw_is_the_philox_block_of_its_position():
    draw()
    key = np.array(random.stream("x")._key, np.uint64)
    block = np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 1, 0]))
    assert same(draw(), block.random(8))


def test_draws_are_uniform_and_not_correlated_between_neighbours():
    values = np.array([draw(size=16) for _ in range(2000)])
    assert abs(values.mean() - 0.5) < 0.005
    correlation = np.corrcoef(values.T) - np.eye(16)
    lag = np.corrcoef(values[:-1, 0], values[1:, 0])[0, 1]
    assert np.abs(correlation).max() < 0.1
    assert abs(lag) < 0.1


def test_the_same_name_gives_the_same_stream_and_a_held_stream_follows_a_new_seed():
    held = random.stream("x")
    assert random.stream("x") is held
    held.numpy()
    assert held.position == 1
    random.manual_seed(7)
    assert held.position == 0
    assert same(held.numpy().random(8), random_draw_with_seed(7))
    assert repr(held) == "Stream('x', position=1)"


def random_draw_with_seed(seed):
    with random.fork_rng():
        random.manual_seed(seed)
        return draw()


@given(SEEDS, NAMES, st.lists(st.integers(0, 2**80), max_size=3))
def test_numpy_at_is_pure(seed, name, indices):
    before = random.state_dict()
    first = random.numpy_at(name, *indices, seed=seed).random(4)
    assert random.state_dict() == before
    random.manual_seed(seed)
    assert same(first, random.numpy_at(name, *indices).random(4))


def test_numpy_at_separates_names_indices_and_streams():
    calls = [("a",), ("a", 0), ("a", 0, 0), ("a", 1), ("a", 0, 1), ("a", 1, 0), ("a", 10), ("b", 0)]
    calls += [("1,0|a",), ("0|a", 1)]
    seen = [tuple(random.numpy_at(*call).random(4)) for call in calls]
    seen += [tuple(draw("a", 4))]
    assert len(set(seen)) == len(seen)


def test_numpy_at_gives_independent_objects():
    a, b = random.numpy_at("a", 0), random.numpy_at("a", 0)
    assert same(a.random(3), b.random(3))


@pytest.mark.parametrize(
    ("given_seed", "kept"),
    [
        (0, 0),
        (2**64 - 1, 2**64 - 1),
        (-1, 2**64 - 1),
        (-(2**63), 2**63),
        (np.int64(5), 5),
    ],
)
def test_seeds_are_taken_as_pytorch_takes_them(given_seed, kept):
    generator = random.manual_seed(given_seed)
    assert generator is random.default_generator
    assert random.initial_seed() == kept == generator.initial_seed()
    assert random.Generator().manual_seed(given_seed).initial_seed() == kept
    torch = pytest.importorskip("torch")
    assert torch.Generator().manual_seed(int(given_seed)).initial_seed() == kept


def test_an_unseeded_process_has_a_fresh_visible_seed():
    code = (
        "from minitorch import random as r; print(r.initial_seed(), r.stream('x').numpy().random())"
    )
    runs = {subprocess.run([sys.executable, "-c", code], capture_output=True).stdout for _ in "ab"}
    assert len(runs) == 2
    seed, value = sorted(runs)[0].split()
    random.manual_seed(int(seed))
    assert random.stream("x").numpy().random() == float(value)


def test_seed_takes_new_entropy():
    assert random.seed() == random.initial_seed() != random.seed()
    generator = random.Generator()
    assert generator.seed() == generator.initial_seed() != generator.seed()


def test_state_dict_round_trips_through_json():
    draw("x"), draw("x"), draw("ü")
    state = json.loads(json.dumps(random.state_dict()))
    assert state == {"seed": 0, "positions": {"x": 2, "ü": 1}}
    expected = draw("x"), draw("ü"), draw("new")
    random.manual_seed(99)
    draw("new")
    random.load_state_dict(state)
    assert all(map(same, expected, (draw("x"), draw("ü"), draw("new"))))


def test_rng_state_round_trips():
    draw()
    state = random.get_rng_state()
    expected = draw()
    random.manual_seed(5)
    random.set_rng_state(state)
    assert same(expected, draw())
    random.set_rng_state(state.numpy())
    assert same(expected, draw())


@pytest.mark.parametrize("raises", [False, True])
def test_fork_rng_restores_everything(raises):
    draw()
    before = random.state_dict()
    try:
        with random.fork_rng():
            random.manual_seed(9)
            draw("x"), draw("y")
            if raises:
                raise KeyError
    except KeyError:
        pass
    assert random.state_dict() == before


def test_fork_rng_not_enabled_leaves_the_draws_taken():
    with random.fork_rng(enabled=False):
        draw()
    assert random.stream("x").position == 1


def test_a_generator_is_apart_from_the_root_seed():
    generator = random.Generator().manual_seed(3)
    first = generator.numpy().random(4)
    random.manual_seed(1)
    second = generator.numpy().random(4)
    assert not same(first, second)
    assert random.state_dict() == {"seed": 1, "positions": {}}
    assert same(generator.manual_seed(3).numpy().random(4), first)
    assert "initial_seed=3" in repr(generator)


def test_a_new_generator_has_the_initial_seed_of_pytorch():
    torch = pytest.importorskip("torch")
    assert random.Generator().initial_seed() == torch.Generator().initial_seed()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copied_generator_goes_on_alone_from_the_same_state(copied):
    generator = random.Generator().manual_seed(3)
    generator.numpy()
    twin = copied(generator)
    assert same(twin.numpy().random(4), generator.numpy().random(4))
    twin.numpy()
    assert not same(twin.numpy().random(4), generator.numpy().random(4))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copied_stream_stays_the_stream_of_its_name(copied):
    assert copied(random.stream("x")) is random.stream("x")
    copied(random.default_generator).numpy()
    assert random.stream("default").position == 1


def test_generator_state_round_trips():
    generator = random.Generator().manual_seed(11)
    generator.numpy()
    state = generator.get_state()
    assert str(state.dtype) == "minitorch.uint8"
    expected = generator.numpy().random(4)
    other = random.Generator()
    other.set_state(state)
    assert other.initial_seed() == 11
    assert same(other.numpy().random(4), expected)


def test_the_default_generator_is_the_root():
    assert random.default_generator.manual_seed(8) is random.default_generator
    assert random.initial_seed() == 8
    assert same(random.default_generator.numpy().random(8), random_draw_default(8))


def random_draw_default(seed):
    with random.fork_rng():
        random.manual_seed(seed)
        return draw("default")


def test_threads_lose_no_position_and_share_no_draw():
    results = []

    def work():
        results.extend([random.stream("x").numpy().random() for _ in range(500)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    random.manual_seed(0)
    assert sorted(results) == sorted(random.stream("x").numpy().random() for _ in range(4000))


def test_two_threads_may_hold_generators_of_one_stream():
    mine = random.stream("x").numpy()
    thread = threading.Thread(target=lambda: random.stream("x").numpy().random(3))
    thread.start()
    thread.join()
    taken = mine.random(8)
    random.manual_seed(0)
    assert same(taken, draw())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_goes_on_as_its_parent_would():
    draw()
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=lambda: send.send(draw()))
    child.start()
    value = receive.recv()
    child.join()
    assert same(value, draw())


BAD = [
    (lambda: random.manual_seed(1.5), r"a seed must be an integer. Got float 1.5. Convert it with"),
    (lambda: random.manual_seed(True), "a seed must be an integer. Got bool True"),
    (lambda: random.manual_seed("3"), "a seed must be an integer. Got str '3'"),
    (
        lambda: random.manual_seed(2**64),
        r"must lie in \[-2\*\*63, 2\*\*64\). Got 18446744073709551616",
    ),
    (lambda: random.manual_seed(-(2**63) - 1), r"Use seed % 2\*\*64"),
    (lambda: random.Generator().manual_seed(None), "manual_seed: a seed must be an integer"),
    (lambda: random.numpy_at("x", 0, seed=1.0), "numpy_at: a seed must be an integer. Got float"),
    (lambda: random.stream(""), "the name must be a non-empty string .* Got str ''"),
    (lambda: random.stream(3), "the name must be a non-empty string .* Got int 3"),
    (lambda: random.numpy_at(None), "the name must be a non-empty string .* Got NoneType None"),
    (lambda: random.numpy_at("x", -1), "indices must be integers ≥ 0. Got int -1. Put what is not"),
    (lambda: random.numpy_at("x", 1.0), "indices must be integers ≥ 0. Got float 1.0"),
    (lambda: random.numpy_at("x", False), "indices must be integers ≥ 0. Got bool False"),
    (lambda: random.load_state_dict([1]), "a dict with the keys 'seed' and 'positions'"),
    (lambda: random.load_state_dict({"seed": 1}), "a dict with the keys 'seed' and 'positions'"),
    (lambda: random.load_state_dict({"seed": 1, "positions": 2}), "'positions' must be a dict"),
    (
        lambda: random.load_state_dict({"seed": 1, "positions": {"x": -1}}),
        r"position of stream 'x' must be an integer in \[0, 2\*\*64\). Got int -1",
    ),
    (
        lambda: random.load_state_dict({"seed": "1", "positions": {}}),
        "load_state_dict: a seed must be an integer. Got str '1'",
    ),
    (lambda: random.set_rng_state([1, 2]), "the uint8 value that get_state"),
    (lambda: random.set_rng_state(np.zeros(5056, np.uint8)), "the uint8 value that get_state"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_refused_and_changes_nothing(call, message):
    before = random.state_dict()
    with pytest.raises(ArgumentError, match=message):
        call()
    assert random.state_dict() == before


def test_a_generator_keeps_its_device():
    assert random.Generator("cuda:1").device.index == 1
    assert random.Generator().device.type == "cpu"
    with pytest.raises(DeviceError, match="expected 'cpu'"):
        random.Generator("tpu")
