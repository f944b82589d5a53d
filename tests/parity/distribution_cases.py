"""Distributions with random parameters, made here and in torch from the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Rng = np.random.Generator
Shape = tuple[int, ...]


class Case(NamedTuple):
    """A distribution.

    Attributes:
        draw: Parameters for a batch shape, in the order of the constructor.
        value: Values in the support for parameters and a shape.
        has: Which of entropy, cdf, icdf, mode it has in torch.
    """

    draw: Callable[[Rng, Shape], dict[str, Any]]
    value: Callable[[Rng, Shape, dict[str, Any]], Any]
    has: str = "entropy cdf icdf mode mean variance"


def loc(r: Rng, s: Shape) -> Any:
    return r.normal(0, 1.5, s)


def pos(r: Rng, s: Shape) -> Any:
    return np.exp(r.normal(0, 0.8, s))


def unit(r: Rng, s: Shape) -> Any:
    return r.uniform(0.05, 0.95, s)


def loc_scale(r: Rng, s: Shape) -> dict[str, Any]:
    return {"loc": loc(r, s), "scale": pos(r, s)}


def count(n: int) -> Callable[..., Any]:
    return lambda r, s, p: r.integers(0, n, s).astype(float)


def real_value(r: Rng, s: Shape, p: Any) -> Any:
    return loc(r, s)


def pos_value(r: Rng, s: Shape, p: Any) -> Any:
    return pos(r, s)


def unit_value(r: Rng, s: Shape, p: Any) -> Any:
    return unit(r, s)


def probs_or_logits(r: Rng, s: Shape) -> dict[str, Any]:
    return {"probs": unit(r, s)} if r.random() < 0.5 else {"logits": loc(r, s)}


def classes(r: Rng, s: Shape) -> dict[str, Any]:
    s = (*s, 4)
    return {"probs": unit(r, s)} if r.random() < 0.5 else {"logits": loc(r, s)}


def one_hot(r: Rng, s: Shape, p: Any) -> Any:
    return np.eye(4)[r.integers(0, 4, s)]


def simplex(k: int) -> Callable[..., Any]:
    return lambda r, s, p: r.dirichlet(np.ones(k), s) * 0.98 + 0.02 / k


def between(r: Rng, s: Shape) -> dict[str, Any]:
    low = loc(r, s)
    return {"low": low, "high": low + pos(r, s)}


def inside(r: Rng, s: Shape, p: Any) -> Any:
    return p["low"] + unit(r, s) * (p["high"] - p["low"])


def pareto_value(r: Rng, s: Shape, p: Any) -> Any:
    return p["scale"] + pos(r, s)


def vector_normal(r: Rng, s: Shape) -> dict[str, Any]:
    factor = np.tril(r.normal(0, 0.5, (*s, 3, 3)), -1) + np.eye(3) * pos(r, (*s, 3))[..., None]
    square = factor @ np.swapaxes(factor, -1, -2)
    kinds = {"scale_tril": factor, "covariance_matrix": square, "precision_matrix": square}
    name = str(r.choice(list(kinds)))
    return {"loc": loc(r, (*s, 3)), name: kinds[name]}


NO_CDF = "entropy mode mean variance"
CASES: dict[str, Case] = {
    "Normal": Case(loc_scale, real_value),
    "Laplace": Case(loc_scale, real_value),
    "Cauchy": Case(loc_scale, real_value),
    "Gumbel": Case(loc_scale, lambda r, s, p: p["loc"] + p["scale"] * r.uniform(-1, 3, s)),
    "LogNormal": Case(loc_scale, pos_value),
    "Uniform": Case(between, inside, "entropy cdf icdf mean variance"),
    "StudentT": Case(lambda r, s: {"df": pos(r, s) * 3, **loc_scale(r, s)}, real_value, NO_CDF),
    "Exponential": Case(lambda r, s: {"rate": pos(r, s)}, pos_value),
    "Gamma": Case(
        lambda r, s: {"concentration": pos(r, s), "rate": pos(r, s)},
        pos_value,
        "entropy cdf mode mean variance",
    ),
    "InverseGamma": Case(
        lambda r, s: {"concentration": pos(r, s), "rate": pos(r, s)}, pos_value, NO_CDF
    ),
    "Chi2": Case(lambda r, s: {"df": pos(r, s) * 2}, pos_value, "entropy cdf mode mean variance"),
    "Beta": Case(
        lambda r, s: {"concentration1": pos(r, s), "concentration0": pos(r, s)},
        unit_value,
        NO_CDF,
    ),
    "Dirichlet": Case(lambda r, s: {"concentration": pos(r, (*s, 3))}, simplex(3), NO_CDF),
    "HalfNormal": Case(lambda r, s: {"scale": pos(r, s)}, pos_value),
    "HalfCauchy": Case(lambda r, s: {"scale": pos(r, s)}, pos_value),
    "Pareto": Case(lambda r, s: {"scale": pos(r, s), "alpha": pos(r, s) * 3}, pareto_value),
    "Weibull": Case(lambda r, s: {"scale": pos(r, s), "concentration": pos(r, s)}, pos_value),
    "VonMises": Case(
        lambda r, s: {"loc": loc(r, s), "concentration": pos(r, s)},
        real_value,
        "mode mean variance",
    ),
    "Bernoulli": Case(probs_or_logits, count(2), NO_CDF),
    "Geometric": Case(probs_or_logits, count(6), NO_CDF),
    "Poisson": Case(lambda r, s: {"rate": pos(r, s) * 2}, count(9), "mode mean variance"),
    "Binomial": Case(
        lambda r, s: {"total_count": np.full(s, 5.0), **probs_or_logits(r, s)}, count(6), NO_CDF
    ),
    "NegativeBinomial": Case(
        lambda r, s: {"total_count": pos(r, s) * 3, **probs_or_logits(r, s)},
        count(7),
        "mode mean variance",
    ),
    "Categorical": Case(classes, count(4), "entropy mode"),
    "OneHotCategorical": Case(classes, one_hot, NO_CDF),
    "Multinomial": Case(
        lambda r, s: {"total_count": 3, **classes(r, s)},
        lambda r, s, p: r.multinomial(3, np.ones(4) / 4, s).astype(float),
        "entropy mean variance",
    ),
    "RelaxedBernoulli": Case(
        lambda r, s: {"temperature": np.asarray(0.7), **probs_or_logits(r, s)}, unit_value, ""
    ),
    "RelaxedOneHotCategorical": Case(
        lambda r, s: {"temperature": np.asarray(0.7), **classes(r, s)}, simplex(4), ""
    ),
    "MultivariateNormal": Case(vector_normal, lambda r, s, p: loc(r, (*s, 3)), NO_CDF),
}


def made(lib: Any, name: str, parameters: dict[str, Any], dtype: Any, grad: bool = True) -> Any:
    """The distribution in a library, and the parameters that it has as tensors."""
    tensors = {
        key: value
        if isinstance(value, int)
        else lib.tensor(np.asarray(value, dtype), requires_grad=grad and key != "total_count")
        for key, value in parameters.items()
    }
    d = getattr(lib.distributions, name)(**tensors, validate_args=True)
    return d, {k: t for k, t in tensors.items() if not isinstance(t, int)}
