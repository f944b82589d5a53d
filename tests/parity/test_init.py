"""Start values against torch: exact where nothing is drawn, by their statistics elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
import minitorch as mt  # noqa: E402
from minitorch.nn import init  # noqa: E402

SHAPE = (120, 60, 3)
EXACT: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("constant_", (3, 4), {"val": 0.25}),
    ("ones_", (3,), {}),
    ("zeros_", (2, 2), {}),
    ("eye_", (3, 5), {}),
    ("eye_", (4, 2), {}),
    ("dirac_", (4, 2, 3), {}),
    ("dirac_", (4, 2, 3, 3), {"groups": 2}),
    ("dirac_", (2, 4, 3, 2, 5), {}),
]
# Name, options: mean, standard deviation and extremes of many numbers are compared.
DRAWN: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("uniform_", SHAPE, {"a": -0.5, "b": 2.0}),
    ("normal_", SHAPE, {"mean": 1.0, "std": 0.5}),
    ("trunc_normal_", SHAPE, {}),
    ("trunc_normal_", SHAPE, {"mean": 1.0, "std": 2.0, "a": 0.0, "b": 1.5}),
    ("xavier_uniform_", SHAPE, {"gain": 2.0}),
    ("xavier_normal_", SHAPE, {"gain": 2.0}),
    ("kaiming_uniform_", SHAPE, {}),
    ("kaiming_uniform_", SHAPE, {"a": 1.0, "mode": "fan_out"}),
    ("kaiming_normal_", SHAPE, {"nonlinearity": "relu"}),
    ("kaiming_normal_", SHAPE, {"mode": "fan_out", "nonlinearity": "tanh"}),
    ("orthogonal_", (120, 180), {"gain": 3.0}),
    ("sparse_", (300, 70), {"sparsity": 0.35, "std": 2.0}),
]


@pytest.mark.parametrize(("name", "shape", "options"), EXACT)
def test_values_without_chance(name: str, shape: tuple[int, ...], options: Any) -> None:
    ours = getattr(init, name)(mt.full(shape, 7.0), **options)
    theirs = getattr(torch.nn.init, name)(torch.full(shape, 7.0), **options)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(("name", "shape", "options"), DRAWN)
def test_statistics(name: str, shape: tuple[int, ...], options: Any) -> None:
    torch.manual_seed(0)
    ours = getattr(init, name)(mt.empty(shape), **options).numpy()
    theirs = getattr(torch.nn.init, name)(torch.empty(shape), **options).numpy()
    spread = float(theirs.std())
    assert ours.mean() == pytest.approx(float(theirs.mean()), abs=6 * spread / math.sqrt(ours.size))
    assert ours.std() == pytest.approx(spread, rel=0.03)
    assert (ours == 0).mean() == pytest.approx((theirs == 0).mean(), abs=1e-6)
    if "uniform" in name or "trunc" in name:
        assert ours.min() == pytest.approx(float(theirs.min()), abs=0.01 * spread)
        assert ours.max() == pytest.approx(float(theirs.max()), abs=0.01 * spread)


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (4, 2, 3)])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...]) -> None:
    flat = init.orthogonal_(mt.empty(shape, dtype=mt.float64), gain=2.0).numpy()
    flat = flat.reshape(shape[0], -1)
    gram = flat @ flat.T if flat.shape[0] <= flat.shape[1] else flat.T @ flat
    np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-12)


GAINS = ["linear", "conv1d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]


@pytest.mark.parametrize("name", GAINS)
def test_gains_and_fans(name: str) -> None:
    assert init.calculate_gain(name) == pytest.approx(torch.nn.init.calculate_gain(name))
    assert init.calculate_gain(name, 0.3) == pytest.approx(torch.nn.init.calculate_gain(name, 0.3))
    shape = (4, 6, 3, 5)
    ours = init._calculate_fan_in_and_fan_out(mt.empty(shape))
    assert ours == torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape))


@pytest.mark.parametrize(("name", "shape", "options"), DRAWN)
def test_a_generator_decides(name: str, shape: tuple[int, ...], options: Any) -> None:
    drawn = [
        getattr(init, name)(
            mt.empty(shape), generator=mt.Generator().manual_seed(seed), **options
        ).numpy()
        for seed in (5, 5, 6)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


OLD = "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform".split()


@pytest.mark.parametrize("name", [*OLD, "kaiming_normal", "orthogonal", "sparse"])
def test_old_names_warn_and_work(name: str) -> None:
    options = {"constant": {"val": 1.0}, "sparse": {"sparsity": 0.5}}.get(name, {})
    t = mt.zeros((2, 2, 1) if name == "dirac" else (2, 2))
    with pytest.warns(FutureWarning, match=rf"nn\.init\.{name} is deprecated.*nn\.init\.{name}_"):
        assert getattr(init, name)(t, **options) is t
    assert t.abs().sum().item() > 0
