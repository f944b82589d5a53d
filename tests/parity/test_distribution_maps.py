"""Maps between random variables, and constraints, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
import minitorch as mt  # noqa: E402

Make = Callable[[Any, Any], Any]
VECTOR = np.array([0.3, 1.2, 0.7])
# Each makes a map of a library's `distributions` d.
MAPS: dict[str, Make] = {
    "exp": lambda lib, d: d.ExpTransform(),
    "power": lambda lib, d: d.PowerTransform(lib.tensor(2.5, dtype=lib.float64)),
    "power of each": lambda lib, d: d.PowerTransform(lib.tensor(VECTOR)),
    "sigmoid": lambda lib, d: d.SigmoidTransform(),
    "tanh": lambda lib, d: d.TanhTransform(),
    "softplus": lambda lib, d: d.SoftplusTransform(),
    "affine": lambda lib, d: d.AffineTransform(0.5, -2.0),
    "affine of tensors": lambda lib, d: d.AffineTransform(lib.tensor(VECTOR), lib.tensor(VECTOR)),
    "affine of vectors": lambda lib, d: d.AffineTransform(
        lib.tensor(VECTOR), lib.tensor(VECTOR), event_dim=1
    ),
    "stick": lambda lib, d: d.StickBreakingTransform(),
    "reshape": lambda lib, d: d.ReshapeTransform((3,), (3, 1)),
    "independent": lambda lib, d: d.IndependentTransform(d.ExpTransform(), 1),
    "composed": lambda lib, d: d.ComposeTransform(
        [d.AffineTransform(0.1, 0.5), d.SigmoidTransform(), d.AffineTransform(-1.0, 2.0)]
    ),
    "composed of vectors": lambda lib, d: d.ComposeTransform(
        [d.ExpTransform(), d.AffineTransform(lib.tensor(VECTOR), 2.0, event_dim=1)]
    ),
    "inverse": lambda lib, d: d.ExpTransform().inv,
}


def values(name: str) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(4, 3))
    return np.abs(x) + 0.1 if name.startswith("power") or name == "inverse" else x


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("cache", [0, 1])
def test_there_and_back(name: str, cache: int) -> None:
    results = []
    for lib in (mt, torch):
        t = MAPS[name](lib, lib.distributions)
        t = t.with_cache(1) if cache and name != "inverse" else t
        x = lib.tensor(values(name), requires_grad=True)
        y = t(x)
        if cache and name not in ("inverse", "composed", "composed of vectors"):
            assert t.inv(y) is x
        change = t.log_abs_det_jacobian(x, y)
        (grad,) = lib.autograd.grad((y * y).sum() + change.sum(), [x], retain_graph=True)
        back = t.inv(lib.tensor(y.detach().numpy()))
        results.append((y, change, grad, back, t.forward_shape((7, 3)), t.domain.event_dim))
    for ours, theirs in zip(*results, strict=True):
        if hasattr(ours, "detach"):
            a, b = ours.detach().numpy(), theirs.detach().numpy()
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, 1e-9, 1e-12)
        else:
            assert ours == theirs or tuple(ours) == tuple(theirs)


def test_maps_without_a_volume_change() -> None:
    x = np.random.default_rng(0).normal(size=(4, 3))
    for lib in (mt, torch):
        d = lib.distributions
        t = lib.tensor(x)
        np.testing.assert_allclose(d.AbsTransform()(t).numpy(), np.abs(x))
        soft = d.transforms.SoftmaxTransform()(t).numpy()
        np.testing.assert_allclose(soft.sum(-1), 1)
    with pytest.raises(NotImplementedError, match="has no log_abs_det_jacobian"):
        mt.distributions.AbsTransform().log_abs_det_jacobian(mt.tensor(1.0), mt.tensor(1.0))


BASES: dict[str, Make] = {
    "numbers": lambda lib, d: d.TransformedDistribution(
        d.Normal(lib.tensor(VECTOR), 1.0), [d.AffineTransform(0.0, -2.0), d.ExpTransform()]
    ),
    "vectors": lambda lib, d: d.TransformedDistribution(
        d.Normal(lib.tensor(VECTOR), 1.0), d.AffineTransform(lib.tensor(VECTOR), 2.0, event_dim=1)
    ),
    "independent base": lambda lib, d: d.TransformedDistribution(
        d.Independent(d.Normal(lib.tensor(np.ones((2, 3))), 1.0), 1), [d.ExpTransform()]
    ),
    "batch of maps": lambda lib, d: d.TransformedDistribution(
        d.Normal(lib.tensor(0.5, dtype=lib.float64), 1.0),
        d.AffineTransform(lib.tensor(VECTOR), 2.0),
    ),
    "squashed": lambda lib, d: d.TransformedDistribution(
        d.Normal(lib.tensor(VECTOR), 1.0), [d.TanhTransform(cache_size=1)]
    ),
    "simplex": lambda lib, d: d.TransformedDistribution(
        d.Normal(lib.tensor(VECTOR), 1.0), d.StickBreakingTransform()
    ),
}


@pytest.mark.parametrize("name", BASES)
def test_transformed_distributions(name: str) -> None:
    ours, theirs = (BASES[name](lib, lib.distributions) for lib in (mt, torch))
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    torch.manual_seed(0)
    sample = theirs.sample((5,)).numpy()
    assert ours.sample((5,)).shape == sample.shape
    a, b = ours.log_prob(mt.tensor(sample)), theirs.log_prob(torch.tensor(sample))
    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-7)
    wide = (4, *ours.batch_shape)
    c, d = ours.expand(wide), theirs.expand(wide)
    shape = (4, *sample.shape[1:]) if len(wide) > 1 else (4, *ours.event_shape)
    value = np.broadcast_to(sample[0], shape).copy()
    np.testing.assert_allclose(
        c.log_prob(mt.tensor(value)).numpy(), d.log_prob(torch.tensor(value)).numpy(), 1e-7
    )
    if not ours.event_shape and name != "squashed":
        u = np.full(3, 0.3)
        np.testing.assert_allclose(
            ours.icdf(mt.tensor(u)).numpy(), theirs.icdf(torch.tensor(u)).numpy(), 1e-7
        )
        np.testing.assert_allclose(
            ours.cdf(mt.tensor(sample)).numpy(), theirs.cdf(torch.tensor(sample)).numpy(), 1e-7
        )


def test_a_cached_sample_at_the_edge_has_a_finite_density() -> None:
    d = mt.distributions
    base = d.Normal(mt.full((3,), 30.0), 1.0)
    squashed = d.TransformedDistribution(base, [d.TanhTransform(cache_size=1)])
    sample = squashed.rsample()
    assert sample.max().item() == 1.0
    assert bool(mt.isfinite(squashed.log_prob(sample)).all())


CONSTRAINTS = (
    "boolean real positive nonnegative unit_interval nonnegative_integer positive_integer simplex "
    "one_hot lower_triangular lower_cholesky square symmetric positive_definite real_vector"
).split()
CANDIDATES = [
    np.array(v)
    for v in (
        [[1.0, 0.0], [0.0, 1.0]],
        [[2.0, 0.5], [0.5, 1.0]],
        [[0.5, 0.5], [0.25, 0.75]],
        [[1.0, 3.0], [0.0, -1.0]],
        [[np.nan, 2.0], [1.5, 0.0]],
        [[2.0, 0.0], [-3.0, 4.0]],
    )
]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name: str) -> None:
    ours = getattr(mt.distributions.constraints, name)
    theirs = getattr(torch.distributions.constraints, name)
    assert ours.event_dim == theirs.event_dim
    assert ours.is_discrete == theirs.is_discrete
    for value in CANDIDATES:
        if name == "positive_definite" and np.isnan(value).any():
            continue
        a, b = ours.check(mt.tensor(value)), theirs.check(torch.tensor(value))
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize(
    ("name", "bounds"),
    [("interval", (0, 1)), ("half_open_interval", (0, 1)), ("greater_than", (0,)),
     ("greater_than_eq", (1,)), ("less_than", (1,)), ("integer_interval", (0, 2)),
     ("multinomial", (2,))],
)  # fmt: skip
def test_constraints_with_bounds(name: str, bounds: tuple[int, ...]) -> None:
    ours, theirs = (getattr(lib.distributions.constraints, name)(*bounds) for lib in (mt, torch))
    for value in CANDIDATES:
        a, b = ours.check(mt.tensor(value)), theirs.check(torch.tensor(value))
        np.testing.assert_array_equal(a.numpy(), b.numpy())
