"""Distributions against torch: densities, moments, quantiles, divergences, and all gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from distribution_cases import CASES, made  # noqa: E402

import minitorch as mt  # noqa: E402

# torch approximates Bessel functions, and a logarithm of a factorial in float32.
TOLERANCE = {"VonMises": 1e-6, "Multinomial": 1e-6}
METHODS = ("entropy", "mean", "variance", "mode")
KNOWN_ABSENT = (NotImplementedError, AttributeError)


def same(ours: Any, theirs: Any, tolerance: float = 1e-9, what: str = "") -> None:
    expected = theirs.detach().numpy()
    got = ours.detach().numpy()
    assert got.shape == expected.shape, what
    np.testing.assert_allclose(got, expected, tolerance, tolerance, err_msg=what)


def gradients(result: Any, tensors: dict[str, Any], lib: Any) -> dict[str, Any]:
    """The gradients of a weighted sum of the result."""
    if not result.requires_grad:
        return {}
    weights = np.linspace(0.5, 1.5, max(int(np.prod(tuple(result.shape))), 1))
    weighted = result * lib.tensor(weights.reshape(tuple(result.shape)), dtype=result.dtype)
    inputs = [t for t in tensors.values() if t.requires_grad]
    names = [k for k, t in tensors.items() if t.requires_grad]
    found = lib.autograd.grad(weighted.sum(), inputs, allow_unused=True, retain_graph=True)
    return dict(zip(names, found, strict=True))


def compare(
    ours: Any, theirs: Any, mine: dict[str, Any], other: dict[str, Any], what: str,
    tolerance: float = 1e-8,
) -> None:  # fmt: skip
    same(ours, theirs, tolerance, what)
    got, expected = gradients(ours, mine, mt), gradients(theirs, other, torch)
    for name, g in expected.items():
        # torch has gradients that are not finite beside infinite moments.
        if g is not None and bool(torch.isfinite(g).all()):
            found = got.get(name)
            same(torch.zeros_like(g) if found is None else found, g, tolerance, f"{what}/{name}")


@pytest.mark.parametrize("name", CASES)
def test_random_parameters(name: str) -> None:
    """About 2 000 calls over all distributions, with batches, broadcasting and gradients."""
    case = CASES[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(12):
        batch = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
        sample = tuple(int(n) for n in rng.integers(1, 3, rng.integers(0, 2)))
        parameters = case.draw(rng, batch)
        (d, mine), (e, other) = (made(lib, name, parameters, np.float64) for lib in (mt, torch))
        assert tuple(d.batch_shape) == tuple(e.batch_shape)
        assert tuple(d.event_shape) == tuple(e.event_shape)
        assert d.has_rsample == e.has_rsample
        value = np.asarray(case.value(rng, (*sample, *batch), parameters), np.float64)
        ours, theirs = (lib.tensor(value, requires_grad=True) for lib in (mt, torch))
        compare(
            d.log_prob(ours), e.log_prob(theirs), {**mine, "value": ours},
            {**other, "value": theirs}, "log_prob", TOLERANCE.get(name, 1e-8),
        )  # fmt: skip
        for method in METHODS:
            if method in case.has:
                a, b = getattr(d, method), getattr(e, method)
                a, b = (a(), b()) if method == "entropy" else (a, b)
                if method == "mode":
                    # Weibull's is 0 for shapes up to 1; torch has NaN there.
                    same(a, torch.nan_to_num(b) if name == "Weibull" else b, 1e-9, method)
                    continue
                compare(a, b, mine, other, method, TOLERANCE.get(name, 1e-8))
        if "cdf" in case.has.split():
            # torch has no gradient of the incomplete gamma function by its shape.
            fixed = name in ("Gamma", "Chi2")
            ours, theirs = (lib.tensor(value, requires_grad=True) for lib in (mt, torch))
            if fixed:
                same(d.cdf(ours), e.cdf(theirs), 1e-9, "cdf")
            else:
                compare(
                    d.cdf(ours), e.cdf(theirs), {**mine, "value": ours},
                    {**other, "value": theirs}, "cdf",
                )  # fmt: skip
        if "icdf" in case.has.split():
            u = rng.uniform(0.05, 0.95, (*sample, *batch))
            compare(d.icdf(mt.tensor(u)), e.icdf(torch.tensor(u)), mine, other, "icdf", 1e-7)


@pytest.mark.parametrize("name", CASES)
def test_expanded(name: str) -> None:
    case = CASES[name]
    rng = np.random.default_rng(0)
    parameters = case.draw(rng, (2,))
    (d, _), (e, _) = (made(lib, name, parameters, np.float32, False) for lib in (mt, torch))
    d, e = d.expand((3, 2)), e.expand((3, 2))
    assert tuple(d.batch_shape) == tuple(e.batch_shape) == (3, 2)
    value = np.asarray(case.value(rng, (3, 2), parameters), np.float32)
    same(d.log_prob(mt.tensor(value)), e.log_prob(torch.tensor(value)), 1e-4)
    assert d.sample((4,)).shape == tuple(e.sample((4,)).shape)
    assert d.sample().dtype.name == str(e.sample().dtype).removeprefix("torch.")


@pytest.mark.parametrize("name", CASES)
def test_samples(name: str) -> None:
    """Mean, standard deviation and range of many samples, and their gradients' mean."""
    case = CASES[name]
    rng = np.random.default_rng(4)
    parameters = case.draw(rng, (2,))
    torch.manual_seed(0)
    (d, mine), (e, other) = (made(lib, name, parameters, np.float64) for lib in (mt, torch))
    n = 20000
    ours, theirs = d.sample((n,)).numpy(), e.sample((n,)).numpy()
    assert ours.shape == theirs.shape
    assert bool(d.support.check(mt.tensor(ours)).all()) if d.support is not None else True
    # By quantiles of each number: they exist where moments do not.
    ours, theirs = ours.reshape(n, -1), theirs.reshape(n, -1)
    for q in (0.1, 0.3, 0.5, 0.7, 0.9):
        a, b = np.quantile(ours, q, axis=0), np.quantile(theirs, q, axis=0)
        spread = np.quantile(theirs, 0.75, axis=0) - np.quantile(theirs, 0.25, axis=0)
        discrete = np.allclose(theirs, np.round(theirs))
        np.testing.assert_allclose(a, b, 0.08, 1.0 if discrete else float(0.12 * spread.max()))
    if np.isfinite(theirs.std(0)).all() and name not in ("Cauchy", "HalfCauchy", "Pareto"):
        tolerance = 8 * theirs.std(0) / math.sqrt(n) + 1e-12
        assert (np.abs(ours.mean(0) - theirs.mean(0)) < tolerance).all()
    if d.has_rsample:
        drawn = d.rsample((3,))
        assert drawn.requires_grad
        assert gradients(drawn, mine, mt).keys() == gradients(e.rsample((3,)), other, torch).keys()


def test_gamma_variables_move_with_their_shape_as_in_torch() -> None:
    from minitorch.distributions.incomplete import _SHAPE_SLOPE

    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(np.log(0.02), np.log(2000), 3000))
    x = np.maximum(rng.standard_gamma(a), 1e-280)
    ours = _SHAPE_SLOPE(a, np.log(x)) * x
    theirs = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    np.testing.assert_allclose(ours, theirs, 3e-3, 1e-9)


@pytest.mark.parametrize("a", [0.3, 1.0, 7.0, 99.0, 101.0, 5000.0])
def test_gamma_variables_keep_their_quantile(a: float) -> None:
    """The slope against a difference quotient of the quantile function."""
    special = pytest.importorskip("scipy.special")
    from minitorch.distributions.incomplete import _SHAPE_SLOPE, gammainc

    p = np.linspace(0.02, 0.98, 25)
    x, h = special.gammaincinv(a, p), 1e-5 * a
    quotient = (special.gammaincinv(a + h, p) - special.gammaincinv(a - h, p)) / (2 * h)
    np.testing.assert_allclose(_SHAPE_SLOPE(np.full(25, a), np.log(x)) * x, quotient, 2e-5)
    np.testing.assert_allclose(gammainc(np.full(25, a), x), p, 1e-10)


@pytest.mark.parametrize("name", ["Gamma", "Beta", "Dirichlet", "StudentT", "Chi2"])
def test_gradients_of_samples_have_the_right_mean(name: str) -> None:
    """`d E[f(x)]/d parameter`, by samples here and by the known expectation."""
    rng = np.random.default_rng(1)
    parameters = CASES[name].draw(rng, ())
    if name == "StudentT":
        parameters["df"] = np.asarray(9.0)
    d, mine = made(mt, name, parameters, np.float64)
    e, other = made(torch, name, parameters, np.float64)
    n = 40000
    drawn = (d.rsample((n,)) - d.mean.detach()) ** 2
    got = gradients(drawn.mean(0) * 1.0, mine, mt)
    torch.manual_seed(1)
    reference = (e.rsample((n,)) - e.mean.detach()) ** 2
    expected = gradients(reference.mean(0) * 1.0, other, torch)
    size = max(float(g.abs().max()) for g in expected.values())
    for key, g in expected.items():
        np.testing.assert_allclose(got[key].numpy(), g.numpy(), atol=0.12 * size)


def pairs() -> list[tuple[str, str]]:
    from torch.distributions.kl import _KL_REGISTRY

    names = [(p.__name__, q.__name__) for p, q in _KL_REGISTRY]
    return [(p, q) for p, q in names if p in CASES and q in CASES]


@pytest.mark.parametrize(("left", "right"), pairs())
def test_divergences(left: str, right: str) -> None:
    rng = np.random.default_rng(2)
    for trial in range(6):
        first, second = CASES[left].draw(rng, (3,)), CASES[right].draw(rng, (3,))
        if {left, right} == {"Uniform", "Beta"}:
            for drawn in (first, second):
                if "low" in drawn:
                    bounds = (0.1, 0.7) if left == "Uniform" else (-0.5, 1.5)
                    drawn["low"], drawn["high"] = (np.full(3, b) for b in bounds)
        if left == "Uniform" and right in ("Exponential", "Gamma", "Pareto") and trial % 2:
            first = {"low": np.full(3, 3.0), "high": np.array([3.5, 5.0, 9.0])}
        (p, mine), (e, other) = (made(lib, left, first, np.float64) for lib in (mt, torch))
        (q, mine_q), (f, other_q) = (made(lib, right, second, np.float64) for lib in (mt, torch))
        ours = mt.distributions.kl_divergence(p, q)
        theirs = torch.distributions.kl_divergence(e, f)
        same(ours, theirs, 1e-8)
        if bool(torch.isfinite(theirs).all()) and theirs.requires_grad:
            got = gradients(ours, {**mine, **{f"q{k}": t for k, t in mine_q.items()}}, mt)
            others = {**other, **{f"q{k}": t for k, t in other_q.items()}}
            for key, g in gradients(theirs, others, torch).items():
                if g is not None and bool(torch.isfinite(g).all()):
                    same(got[key], g, 1e-7, key)


def test_divergences_of_composed_distributions() -> None:
    rng = np.random.default_rng(3)
    results = []
    locs, scales = rng.normal(size=(2, 4, 3)), np.exp(rng.normal(size=(2, 4, 3)))
    for lib in (mt, torch):
        d = lib.distributions
        p, q = (
            d.Independent(d.Normal(lib.tensor(m), lib.tensor(s)), 1)
            for m, s in zip(locs, scales, strict=True)
        )
        maps = [d.ExpTransform(), d.AffineTransform(1.0, 2.0)]
        one, two = (d.TransformedDistribution(x.base_dist, maps) for x in (p, q))
        results.append((d.kl_divergence(p, q), d.kl_divergence(one, two)))
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs)


def test_mixtures() -> None:
    rng = np.random.default_rng(5)
    weights, locs, scales = rng.random((2, 3)), rng.normal(size=(2, 3)), rng.random((2, 3)) + 0.3
    results = []
    for lib in (mt, torch):
        d = lib.distributions
        mix = d.MixtureSameFamily(
            d.Categorical(lib.tensor(weights)), d.Normal(lib.tensor(locs), lib.tensor(scales))
        )
        x = lib.tensor(np.array([[0.1, -1.0], [2.0, 0.5]]))
        wide = mix.expand((4, 2))
        vectors = d.MixtureSameFamily(
            d.Categorical(lib.tensor(weights)),
            d.Independent(d.Normal(lib.tensor(np.stack([locs, locs], -1)), 1.0), 1),
        )
        y = lib.tensor(np.ones((2, 2)))
        assert tuple(mix.sample((5,)).shape) == (5, 2)
        assert tuple(vectors.sample((5,)).shape) == (5, 2, 2)
        results.append(
            (mix.log_prob(x), mix.cdf(x), mix.mean, mix.variance, wide.mean,
             vectors.log_prob(y), vectors.mean, vectors.variance)
        )  # fmt: skip
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs)


def test_values_are_listed() -> None:
    for name, parameters in {
        "Bernoulli": {"probs": np.full((2, 3), 0.4)},
        "Binomial": {"total_count": np.full((2,), 3.0), "probs": np.full((2,), 0.4)},
        "Categorical": {"probs": np.full((2, 4), 0.25)},
        "OneHotCategorical": {"probs": np.full((2, 4), 0.25)},
    }.items():
        (d, _), (e, _) = (made(lib, name, parameters, np.float64, False) for lib in (mt, torch))
        for expand in (True, False):
            same(d.enumerate_support(expand), e.enumerate_support(expand))
