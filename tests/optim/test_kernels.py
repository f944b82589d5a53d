"""The compiled updates against the NumPy rules, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optim_cases import CASES, IDS, arrays, backward, parameters, values

import minitorch as mt
from minitorch import kernels, optim
from minitorch.nn.utils import clip_grad
from minitorch.optim import flat

compiled = pytest.importorskip("minitorch.kernels.cpu.optim", reason="numba is not installed")

# The first is updated by several threads, the others by one call.
SHAPES: list[tuple[int, ...]] = [(70001,), (33, 7), (5,), (8200,)]


def run(name: str, options: dict[str, Any], dtype: Any, **state: Any) -> list[np.ndarray]:
    params = parameters(arrays(SHAPES, dtype))
    optimizer = getattr(optim, name)(params, **options)
    for step in range(4):
        optimizer.zero_grad()
        backward(params, arrays(SHAPES, dtype, seed=step))
        optimizer.step()
    moments = [t._array for p in params for t in optimizer.state[p].values() if hasattr(t, "shape")]
    return [*values(params), *moments]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_kernels_round_like_the_numpy_rules(
    name: str, options: dict[str, Any], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels.loader, "_loaded", {"optim": None})
    expected = run(name, options, dtype)
    monkeypatch.setattr(kernels.loader, "_loaded", {"optim": compiled})
    for ours, theirs in zip(run(name, options, dtype), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["sum_squares", "scale"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 17, 8192, 70001])
def test_passes_over_gradients(kind: str, dtype: Any, size: int) -> None:
    (x,) = arrays([(size,)], dtype)
    (one,) = flat.runs_of([x])
    if kind == "scale":
        y = x.copy()
        assert compiled.scale(y, dtype(0.3))
        np.testing.assert_array_equal(y, x * dtype(0.3))
        return
    out = np.empty(one.starts.size)
    compiled.sum_squares(x, one.starts, one.stops, out)
    assert out.tolist() == [clip_grad.sums_of_squares([b])[0] for b in clip_grad._blocks(one)]
    assert sorted(out.tolist()) == sorted(clip_grad.sums_of_squares(clip_grad._blocks(one)))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 40000, 70000])
def test_scale_finds_what_is_not_finite(bad: float, place: int) -> None:
    (x,) = arrays([(70001,)])
    x[place] = bad
    assert not compiled.scale(x, np.float32(0.5))


def test_nothing_depends_on_the_number_of_threads() -> None:
    results = []
    before = mt.get_num_threads()
    for threads in (1, 2):
        mt.set_num_threads(threads)
        params = run("Adam", {}, np.float32)
        (one,) = flat.runs_of([params[0]])
        results.append([*params, np.array(clip_grad._host_norm([one], 2.0))])
    mt.set_num_threads(before)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_small_models_do_not_load_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda family: pytest.fail(f"{family} was loaded"))
    params = parameters(arrays([(10, 10), (10,)]))
    optimizer = optim.Adam(params)
    backward(params, arrays([(10, 10), (10,)]))
    clip_grad.clip_grad_norm_(params, 1.0)
    optimizer.step()


def test_works_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.loader, "_loaded", {})
    monkeypatch.setenv("MINITORCH_KERNELS", "off")
    before = arrays([(70001,), (3,)])
    params = parameters(before)
    optimizer = optim.SGD(params, lr=1.0)
    backward(params, before)
    optimizer.step()
    for value in values(params):
        np.testing.assert_array_equal(value, 0)
