"""Closed forms of divergences.

Two of one kind have a formula of their own. For others `KL = -H(p) - E[log q(x)]`, where the
expectation needs some moments of p, and is infinite where p reaches beyond the support of q.
"""

from __future__ import annotations

import math
from typing import Any

from ..nn.functional import softplus
from ..ops.creation import full_like
from ..ops.elementwise import abs, erf, exp, log, log1p, where, zeros_like
from ..ops.shape import broadcast_shapes
from ..ops.special_functions import digamma, lgamma, xlogy
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .dirichlet import Dirichlet
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import EULER, LOG_2PI, full, sum_rightmost


def _or_infinite(beyond: Any, value: Any) -> Any:
    """`value`, or infinity where p reaches beyond the support of q."""
    return where(beyond, full_like(value.detach(), math.inf), value)


# ---- two of one kind -----------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = where(p.probs == 0, zeros_like(one.detach()), _or_infinite(q.probs == 0, one))
    other = 1 - p.probs
    zero = other * (softplus(q.logits) - softplus(p.logits))
    return one + where(p.probs == 1, zeros_like(zero.detach()), _or_infinite(q.probs == 1, zero))


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    size = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return size + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: for two binomials p must have as many trials as q. Got fewer."
        )
    one = p.probs * (p.logits - q.logits) + log1p(-p.probs) - log1p(-q.probs)
    return _or_infinite(p.total_count > q.total_count, p.total_count * one)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = _or_infinite(q.probs == 0, p.probs * (p.logits - q.logits))
    return where(p.probs == 0, zeros_like(terms.detach()), terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    apart = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return log(apart) - log(4 * p.scale * q.scale)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - log(ratio) - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    size = b * log(p.rate / q.rate) + lgamma(b) - lgamma(a)
    return size + (a - b) * digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return ratio * EULER - log(ratio) - apart + exp(apart + lgamma(1 + ratio)) - (1 + EULER)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, abs(p.loc - q.loc)
    return apart / q.scale + ratio * exp(-apart / p.scale) - log(ratio) - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    from ..linalg import solve_triangular

    left, right, apart = q._tril, p._tril, (q.loc - p.loc).unsqueeze(-1)
    sizes = (solve_triangular(left, right, upper=False) ** 2).sum(-1).sum(-1)
    distance = (solve_triangular(left, apart, upper=False) ** 2).sum(-1).sum(-1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (sizes + distance - p.event_shape[0])


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    value = q.alpha * log(p.scale / q.scale) - log(ratio) + ratio - 1
    return _or_infinite(p.scale < q.scale, value)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (log(p.rate) - log(q.rate)) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    value = log((q.high - q.low) / (p.high - p.low))
    return _or_infinite((q.low > p.low) | (q.high < p.high), value)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: both must be transformed by the same maps")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: both must have as many independent axes")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), n)


# ---- two of different kinds ----------------------------------------------------------------------


def _mean_log(p: Any) -> Any:
    """`E[log x]`."""
    if isinstance(p, Beta):
        return digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Gamma):
        return digamma(p.concentration) - log(p.rate)
    if isinstance(p, Exponential):
        return -log(p.rate) - EULER
    if isinstance(p, Pareto):
        return log(p.scale) + 1 / p.alpha
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Any, high: Any) -> Any:
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


def _mean_decay(p: Any, scale: Any) -> Any:
    """`E[exp(-x/scale)]`."""
    if isinstance(p, Normal):
        return exp(-p.loc / scale + 0.5 * (p.scale / scale) ** 2)
    if isinstance(p, Gamma):
        return (1 + 1 / (p.rate * scale)) ** (-p.concentration)
    if isinstance(p, Exponential):
        return p.rate * scale / (p.rate * scale + 1)
    return scale / (p.high - p.low) * (exp(-p.low / scale) - exp(-p.high / scale))


def _to_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - log(q.rate) + q.rate * p.mean


def _to_gamma(p: Any, q: Any) -> Any:
    a = q.concentration
    inner = a * log(q.rate) - lgamma(a) + (a - 1) * _mean_log(p) - q.rate * p.mean
    return -p.entropy() - inner


def _to_normal(p: Any, q: Any) -> Any:
    square = (p.variance + (p.mean - q.loc) ** 2) / (2 * q.scale**2)
    return -p.entropy() + 0.5 * LOG_2PI + log(q.scale) + square


def _to_gumbel(p: Any, q: Any) -> Any:
    apart = (q.loc - p.mean) / q.scale
    decay = exp(q.loc / q.scale) * _mean_decay(p, q.scale)
    return -p.entropy() - apart + decay + log(q.scale)


def _beyond(p: Any, q: Any) -> Any:
    like = p.mean
    shape = broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    return full(shape, math.inf, like.dtype, like)


_FORMS: dict[Any, list[tuple[type, type]]] = {
    _to_exponential: [(Beta, Exponential), (Gamma, Exponential), (Pareto, Exponential)],
    _to_gamma: [(Beta, Gamma), (Exponential, Gamma), (Pareto, Gamma)],
    _to_normal: [(kind, Normal) for kind in (Beta, Exponential, Gamma, Gumbel, Laplace, Pareto)],
    _to_gumbel: [(Exponential, Gumbel), (Gamma, Gumbel), (Normal, Gumbel), (Uniform, Gumbel)],
    _beyond: [
        (Beta, Pareto),
        *[(Exponential, kind) for kind in (Beta, Pareto, Uniform)],
        *[(Gamma, kind) for kind in (Beta, Pareto, Uniform)],
        *[
            (real, kind)
            for real in (Gumbel, Laplace, Normal)
            for kind in (Beta, Exponential, Gamma, Pareto, Uniform)
        ],
        *[(Pareto, kind) for kind in (Beta, Uniform)],
        *[(Poisson, kind) for kind in (Bernoulli, Binomial)],
    ],
}
for _form, _pairs in _FORMS.items():
    for _pair in _pairs:
        register_kl(*_pair)(_form)
register_kl(Uniform, Normal)(_to_normal)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    return _or_infinite(p.low < 0, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    return _or_infinite(p.low < 0, _to_gamma(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    inner = log(q.alpha) + q.alpha * log(q.scale) - (q.alpha + 1) * _mean_log(p)
    return _or_infinite(p.low < q.scale, -p.entropy() - inner)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    size = lgamma(a) + lgamma(b) - lgamma(a + b)
    upper = _mean_log_between(1 - p.high, 1 - p.low)
    value = size - p.entropy() - (a - 1) * _mean_log(p) - (b - 1) * upper
    return _or_infinite((p.high > 1) | (p.low < 0), value)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    return _or_infinite((q.low > 0) | (q.high < 1), log(q.high - q.low) - p.entropy())


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    apart = p.loc - q.loc
    z = apart / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * exp(-0.5 * z * z) + apart * erf(z / math.sqrt(2))
    return mean / q.scale + log(2 * q.scale) - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * log(q.rate) - q.rate)
