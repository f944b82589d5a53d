"""Random numbers drawn in kernels have the bits of NumPy's generator at the same position."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import random
from minitorch.autograd import grad
from minitorch.kernels import loader
from minitorch.nn import functional as F
from minitorch.ops import dropout, sampling

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def _small_arrays_too(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(dropout, "_COMPILED_FROM", 1)
    monkeypatch.setattr(sampling, "_COMPILED_FROM", 1)
    with random.fork_rng():
        yield


def _both(f: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, position: int = 5) -> None:
    """Compares what `f` draws, and where it leaves the streams, with and without kernels."""
    found = []
    for compiled in (True, False):
        names = ("dropout", "default")
        random.load_state_dict({"seed": 2**64 - 3, "positions": dict.fromkeys(names, position)})
        with monkeypatch.context() as patch:
            if not compiled:
                patch.setattr(loader, "load", lambda family: None)
            arrays = [a.numpy() for a in f()]
        found.append((arrays, random.state_dict()))
    assert found[0][1] == found[1][1]
    for a, b in zip(found[0][0], found[1][0], strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()


SHAPES = [(1,), (17,), (3, 1365), (4096,), (64, 65), (3, 5, 4097)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize("p", [1e-6, 0.3, 1.0])
def test_dropout(p: float, dtype: Any, shape: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    values.reshape(-1)[::7] = np.inf
    values.reshape(-1)[::11] = np.nan

    def program() -> Any:
        x = mt.tensor(values, dtype=dtype).requires_grad_()
        y = F.dropout(x, p)
        return y.detach(), *grad(y, x, mt.ones_like(y)), mt.rand(3)

    _both(program, monkeypatch)


def _leaf() -> Any:
    return mt.ones(12, 70, 3, requires_grad=True)


DRAWS: dict[str, Callable[[], Any]] = {
    "of columns": lambda: [F.dropout(mt.ones(70, 90).T, 0.4)],
    "in place": lambda: [F.dropout(mt.ones(70, 90), 0.4, inplace=True)],
    "of half types": lambda: [F.dropout(mt.ones(70, 90, dtype=mt.bfloat16), 0.4).float()],
    "of channels": lambda: [F.dropout1d(_leaf(), 0.4).detach()],
    "alpha": lambda: [F.alpha_dropout(_leaf(), 0.4, True).detach()],
    "rand": lambda: [mt.rand(0), mt.rand(77, 99), mt.rand(5), mt.rand(77, 99, dtype=mt.float64)],
    "rand complex": lambda: [mt.view_as_real(mt.rand(77, 99, dtype=mt.complex64))],
    "rand_like": lambda: [mt.rand_like(_leaf()).detach()],
    "bernoulli": lambda: [mt.bernoulli(mt.full((90, 91), 0.3)), mt.empty(5000).bernoulli_(0.25)],
    "uniform_": lambda: [mt.empty(9000).uniform_(-3, 7), mt.empty(9, dtype=mt.float64).uniform_()],
    "of a generator": lambda: [
        mt.rand(5000, generator=g) for g in [mt.Generator().manual_seed(2**63)] for _ in range(2)
    ],
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("position", [0, 2**64 - 9])
def test_draws(name: str, position: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _both(DRAWS[name], monkeypatch, position)


def test_second_gradients_of_dropout_use_its_mask() -> None:
    x = mt.ones(5000, requires_grad=True)
    y = F.dropout(x, 0.5)
    (g,) = grad((y * y * y).sum(), x, create_graph=True)
    (second,) = grad(g.sum(), x)
    np.testing.assert_array_equal(second.numpy(), 6 * 8 * (y.detach() > 0).float().numpy())


def test_what_is_drawn_from_a_generator_of_numpy_moves_it_on() -> None:
    bits = np.random.Generator(np.random.Philox(3))
    first, second = (mt.rand(5000, generator=bits).numpy() for _ in range(2))
    assert (first != second).any()
    again = np.random.Generator(np.random.Philox(3))
    np.testing.assert_array_equal(first, again.random(5000, dtype=np.float32))
