"""What distributions refuse, what they say, the pretend GPU, and learning through samples."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import distributions as D
from minitorch.distributions import constraints

MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "parameter": (
        lambda: D.Normal(0.0, -1.0),
        mt.ArgumentError,
        r"Normal: the parameter scale must satisfy values > 0. Got f32\[\] with values from -1",
    ),
    "nan": (lambda: D.Normal(float("nan"), 1.0), mt.ArgumentError, "loc must .* with nan"),
    "beta": (lambda: D.Beta(0.0, 1.0), mt.ArgumentError, "concentration1 must satisfy values > 0"),
    "half": (lambda: D.HalfNormal(-1.0), mt.ArgumentError, "HalfNormal: the parameter scale"),
    "kind": (lambda: D.Normal("a", 1.0), mt.ArgumentError, "numbers or tensors. Got str"),
    "value": (
        lambda: D.Exponential(1.0).log_prob(mt.tensor(-1.0)),
        mt.ArgumentError,
        "a value must lie in the support, values ≥ 0. Got .*validate_args=False",
    ),
    "number": (
        lambda: D.Normal(0.0, 1.0).log_prob(1.0),
        mt.ArgumentError,
        "a value must be a tensor. Got float",
    ),
    "shape": (
        lambda: D.Normal(mt.zeros(3), 1.0).log_prob(mt.zeros(2)),
        mt.ShapeError,
        r"broadcast with batch_shape \[3\]. Got f32\[2\]",
    ),
    "event": (
        lambda: D.Dirichlet(mt.ones(3)).log_prob(mt.ones(2) / 2),
        mt.ShapeError,
        r"event_shape \[3\]",
    ),
    "both": (
        lambda: D.Bernoulli(probs=0.5, logits=0.0),
        mt.ArgumentError,
        "give exactly one of probs, logits. Got probs and logits",
    ),
    "neither": (lambda: D.Categorical(), mt.ArgumentError, "Got none"),
    "no axis": (lambda: D.Categorical(mt.tensor(1.0)), mt.ShapeError, r"\[..., classes\]"),
    "no vector": (lambda: D.Dirichlet(mt.tensor(1.0)), mt.ShapeError, r"\[..., k\]"),
    "empty": (lambda: D.Uniform(1.0, 1.0), mt.ArgumentError, "low must be below high"),
    "counts": (lambda: D.Multinomial(1.5, mt.ones(2)), mt.ArgumentError, "one whole number"),
    "several counts": (
        lambda: D.Binomial(mt.tensor([1.0, 2.0]), 0.5).enumerate_support(),
        mt.ArgumentError,
        "total_count must be one number",
    ),
    "axes": (
        lambda: D.Independent(D.Normal(mt.zeros(3), 1.0), 2),
        mt.ArgumentError,
        "at most 1, the batch axes of Normal. Got 2",
    ),
    "list": (
        lambda: D.Independent(D.Bernoulli(mt.ones(3) / 2), 1).enumerate_support(),
        NotImplementedError,
        "too many",
    ),
    "maps": (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [abs]),
        mt.ArgumentError,
        "must be a Transform or a list",
    ),
    "map axes": (
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
        mt.ShapeError,
        "the map needs 1 axes",
    ),
    "cache": (lambda: D.ExpTransform(cache_size=2), mt.ArgumentError, "cache_size must be 0 or 1"),
    "elements": (lambda: D.ReshapeTransform((3,), (4,)), mt.ShapeError, "as many elements"),
    "event axes": (
        lambda: D.ReshapeTransform((4,), (2, 2)).event_dim, mt.ArgumentError, "different numbers"
    ),
    "mixture": (
        lambda: D.MixtureSameFamily(D.Bernoulli(0.5), D.Normal(mt.zeros(2), 1.0)),
        mt.ArgumentError,
        "must be a Categorical. Got Bernoulli",
    ),
    "components": (
        lambda: D.MixtureSameFamily(D.Categorical(mt.ones(3)), D.Normal(mt.zeros(2), 1.0)),
        mt.ShapeError,
        r"an axis of its 3 classes. Got \[2\]",
    ),
    "covariance": (
        lambda: D.MultivariateNormal(mt.zeros(2), mt.eye(3)),
        mt.ShapeError,
        r"loc must be \[..., k\] and covariance_matrix \[..., k, k\]. Got f32\[2\] and f32\[3,3\]",
    ),
    "matrices": (
        lambda: D.MultivariateNormal(mt.zeros(2)), mt.ArgumentError, "exactly one of covariance"
    ),
    "no gradients": (
        lambda: D.Bernoulli(0.5).rsample(), NotImplementedError, "no reparameterised samples"
    ),
    "no closed form": (
        lambda: D.kl_divergence(D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0)),
        NotImplementedError,
        "no closed form for Normal and Cauchy. Estimate it as",
    ),
    "maps differ": (
        lambda: D.kl_divergence(
            D.LogNormal(0.0, 1.0),
            D.TransformedDistribution(D.Normal(0.0, 1.0), [D.TanhTransform()]),
        ),
        NotImplementedError,
        "the same maps",
    ),
    "register": (lambda: D.register_kl(int, D.Normal), mt.ArgumentError, "Got <class 'int'>"),
    "fewer trials": (
        lambda: D.kl_divergence(D.Binomial(2, 0.5), D.Binomial(3, 0.5)),
        NotImplementedError,
        "as many trials",
    ),
    "second gradient": (lambda: second(), mt.GraphError, "cannot be differentiated again"),
}  # fmt: skip


def second() -> None:
    a = mt.tensor(2.0, requires_grad=True)
    (g,) = mt.autograd.grad(D.Gamma(a, 1.0).rsample(), [a], create_graph=True)
    g.backward()


@pytest.mark.parametrize(("program", "error", "text"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()


def test_checks_can_be_left_out() -> None:
    d = D.Normal(0.0, -1.0, validate_args=False)
    assert np.isnan(d.log_prob(mt.tensor([0.0])).numpy()).all()
    D.Distribution.set_default_validate_args(False)
    try:
        D.Exponential(-1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_draws_depend_on_the_seed_alone() -> None:
    drawn = []
    for seed in (1, 1, 2):
        mt.manual_seed(seed)
        drawn.append(D.Gamma(mt.ones(4), 2.0).sample((3,)).tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def test_tiny_shapes_do_not_underflow() -> None:
    a = mt.full((1000, 3), 1e-3, requires_grad=True)
    x = D.Dirichlet(a).rsample()
    np.testing.assert_allclose(x.detach().sum(-1).numpy(), 1, 1e-5)
    (x**2).sum().backward()
    assert np.isfinite(a.grad.numpy()).all()


def test_printing() -> None:
    assert repr(D.Normal(mt.zeros(2), 1.0)) == (
        "Normal(loc: minitorch.Size([2]), scale: minitorch.Size([2]))"
    )
    assert "ExpTransform()" in repr(D.ExpTransform().inv)
    assert repr(constraints.interval(0, 1)) == "values ≥ 0 and ≤ 1"


def test_a_rule_of_the_users_own() -> None:
    class Odd(D.Normal):
        pass

    assert D.kl_divergence(Odd(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 0.0
    D.register_kl(Odd, D.Normal)(lambda p, q: mt.tensor(7.0))
    assert D.kl_divergence(Odd(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 7.0


def test_samples_fit_a_distribution() -> None:
    """The mean and spread of a normal variable are learned through its samples."""
    loc, rho = (mt.zeros(1, requires_grad=True) for _ in range(2))
    optimizer = mt.optim.Adam([loc, rho], lr=0.05)
    target = D.Normal(2.0, 0.5)
    for _ in range(300):
        q = D.Normal(loc, rho.exp())
        x = q.rsample((64,))
        optimizer.zero_grad()
        (q.log_prob(x) - target.log_prob(x)).mean().backward()
        optimizer.step()
    assert loc.item() == pytest.approx(2.0, abs=0.1)
    assert rho.exp().item() == pytest.approx(0.5, abs=0.1)


DEVICE: dict[str, Callable[[Any], Any]] = {
    "normal": lambda t: D.Normal(t, t + 1),
    "gamma": lambda t: D.Gamma(t + 1, 2.0),
    "beta": lambda t: D.Beta(t + 1, 2.0),
    "dirichlet": lambda t: D.Dirichlet(t + 1),
    "categorical": lambda t: D.Categorical(logits=t),
    "one-hot": lambda t: D.OneHotCategorical(logits=t),
    "bernoulli": lambda t: D.Bernoulli(logits=t),
    "student": lambda t: D.StudentT(t + 1),
    "squashed": lambda t: D.TransformedDistribution(D.Normal(t, 1.0), [D.TanhTransform()]),
    "poisson": lambda t: D.Poisson(t + 1),
    "uniform": lambda t: D.Uniform(t, t + 2),
    "multinomial": lambda t: D.Multinomial(3, logits=t),
}


@pytest.mark.parametrize("make", DEVICE.values(), ids=DEVICE.keys())
def test_the_device_gives_the_same(make: Callable[[Any], Any], pretend_gpu: ModuleType) -> None:
    values = np.array([[0.1, 0.7, 0.4], [0.3, 0.2, 0.9]], np.float32)
    here = mt.tensor(values, requires_grad=True)
    there = mt.tensor(values).to("cuda").requires_grad_()
    results = []
    for t in (here, there):
        mt.manual_seed(3)
        d = make(t)
        x = d.sample((2,))
        assert x.device == t.device
        out = d.log_prob(x).sum()
        if d.has_rsample:
            out = out + (d.rsample((2,)) ** 2).sum()
        out.backward()
        results.append((x.cpu().numpy(), t.grad.cpu().numpy()))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16])
@pytest.mark.parametrize("make", DEVICE.values(), ids=DEVICE.keys())
def test_half_types(make: Callable[[Any], Any], dtype: Any) -> None:
    t = mt.tensor([[0.1, 0.7, 0.4], [0.3, 0.2, 0.9]])
    x = make(t).sample()
    half = make(t.to(dtype))
    drawn = half.sample((50,))
    assert drawn.dtype is (dtype if drawn.is_floating_point() else mt.int64)
    assert bool(mt.isfinite(drawn.float()).all())
    inside = x.to(dtype) if x.is_floating_point() else x
    if half.event_shape and half.support is constraints.simplex:
        return  # a rounded point does not sum to 1
    close, expected = half.log_prob(inside), make(t).log_prob(x)
    np.testing.assert_allclose(close.float().numpy(), expected.numpy(), 0.1, 0.1)


@pytest.mark.parametrize("name", ["normal", "categorical", "kl"])
def test_examples(name: str) -> None:
    module = importlib.import_module(f"minitorch.distributions.{name}")
    result = doctest.testmod(module, extraglobs={"mt": mt})
    assert result.attempted
    assert not result.failed


def test_every_name_loads() -> None:
    lost = [name for name in dir(D) if getattr(D, name, None) is None]
    assert set(lost) <= {"__getattr__", "__path__", "__spec__", "__file__"}
