"""Averaged models and statistics computed anew, against torch."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
import minitorch as mt  # noqa: E402
from minitorch import nn  # noqa: E402
from minitorch.optim import swa_utils  # noqa: E402

theirs_utils = torch.optim.swa_utils


def net(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.BatchNorm1d(3), lib.nn.Linear(3, 2))


def fill(model: Any, lib: Any, seed: int) -> None:
    """The same random parameters and buffers in both worlds."""
    rng = np.random.default_rng(seed)
    state = model.state_dict()
    new = {
        key: lib.tensor(rng.standard_normal(tuple(value.shape)).astype(np.float32))
        if value.is_floating_point()
        else lib.tensor(seed)
        for key, value in state.items()
    }
    model.load_state_dict(new)


def halfway(average: Any, weight: Any, updates: Any) -> Any:
    return (average * updates + weight * 3) / (updates + 3)


OPTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "mean": lambda u: {},
    "mean of buffers": lambda u: {"use_buffers": True},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "multi ema": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9), "use_buffers": True},
    "multi mean": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "own": lambda u: {"avg_fn": halfway},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_averages(options: Callable[[Any], dict[str, Any]]) -> None:
    ours, theirs = net(mt), net(torch)
    mine = swa_utils.AveragedModel(ours, **options(swa_utils))
    other = theirs_utils.AveragedModel(theirs, **options(theirs_utils))
    for seed in range(6):
        fill(ours, mt, seed)
        fill(theirs, torch, seed)
        mine.update_parameters(ours)
        other.update_parameters(theirs)
    expected = other.state_dict()
    state = mine.state_dict()
    assert list(state) == list(expected) or set(state) == set(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(state[key].numpy(), value.numpy(), 1e-5, 1e-6, err_msg=key)
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    np.testing.assert_allclose(
        mine(mt.tensor(x)).detach().numpy(), other(torch.tensor(x)).detach().numpy(), 1e-4, 1e-4
    )


@pytest.mark.parametrize("pairs", [False, True])
def test_statistics_anew(pairs: bool) -> None:
    rng = np.random.default_rng(1)
    batches = [rng.standard_normal((6, 4)).astype(np.float32) for _ in range(5)]
    models = []
    for lib, utils in ((mt, swa_utils), (torch, theirs_utils)):
        model = net(lib)
        fill(model, lib, 3)
        model.eval()
        inputs = [lib.tensor(b) for b in batches]
        utils.update_bn([(x, 0) for x in inputs] if pairs else inputs, model, "cpu")
        assert not model.training
        assert model[1].momentum == 0.1
        models.append(model)
    for key, value in models[1].state_dict().items():
        np.testing.assert_allclose(models[0].state_dict()[key].numpy(), value.numpy(), 1e-5, 1e-6)


def test_an_average_survives_a_round_trip() -> None:
    model = net(mt)
    average = swa_utils.AveragedModel(model)
    average.update_parameters(model)
    fill(model, mt, 1)
    average.update_parameters(model)
    other = swa_utils.AveragedModel(net(mt))
    other.load_state_dict(average.state_dict())
    assert other.n_averaged.item() == 2
    for p, q in zip(average.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_an_average_on_another_device(pretend_gpu: ModuleType) -> None:
    model = net(mt)
    average = swa_utils.AveragedModel(model, device="cuda", avg_fn=swa_utils.get_ema_avg_fn(0.5))
    for seed in range(3):
        fill(model, mt, seed)
        average.update_parameters(model)
    assert {p.device.type for p in average.parameters()} == {"cuda"}


def test_models_without_statistics_are_left_alone() -> None:
    swa_utils.update_bn(iter(()), nn.Linear(2, 2))


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "both": (
        lambda: swa_utils.AveragedModel(
            nn.Linear(1, 1), avg_fn=halfway, multi_avg_fn=swa_utils.get_swa_multi_avg_fn()
        ),
        mt.ArgumentError,
        "avg_fn or multi_avg_fn. Got both",
    ),
    "another model": (
        lambda: swa_utils.AveragedModel(nn.Linear(1, 1)).update_parameters(nn.Linear(2, 1)),
        mt.ShapeError,
        "must have the parameters that are averaged",
    ),
    "decay": (lambda: swa_utils.get_ema_avg_fn(2), mt.ArgumentError, "from 0 to 1. Got 2"),
    "multi decay": (lambda: swa_utils.get_ema_multi_avg_fn(-1), mt.ArgumentError, "Got -1"),
    "batch": (
        lambda: swa_utils.update_bn([{"x": 1}], net(mt)),
        mt.ArgumentError,
        "a batch must be a tensor, or begin with one. Got dict",
    ),
}


@pytest.mark.parametrize(("program", "error", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()
