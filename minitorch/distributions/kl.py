"""The Kullback-Leibler divergence, looked up by the kinds of both distributions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from .distribution import Distribution

Rule = Callable[[Any, Any], Any]
_RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """A decorator that makes a function the divergence of two kinds, and of their subclasses.

    Args:
        type_p: Subclass of Distribution.
        type_q: Subclass of Distribution.

    Raises:
        ArgumentError: One of them is no such class.
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise ArgumentError(
                f"register_kl: both kinds must be subclasses of Distribution. Got {kind!r}."
            )

    def decorator(function: Rule) -> Rule:
        _RULES[type_p, type_q] = function
        _rule_for.cache_clear()
        return function

    return decorator


@functools.cache
def _rule_for(kind_p: type, kind_q: type) -> Rule | None:
    """The rule of the nearest base classes; those of p count more."""
    importlib.import_module(f"{__package__}.kl_rules")
    fits = [
        (kind_p.__mro__.index(p), kind_q.__mro__.index(q), rule)
        for (p, q), rule in _RULES.items()
        if issubclass(kind_p, p) and issubclass(kind_q, q)
    ]
    return min(fits, key=lambda fit: fit[:2])[2] if fits else None


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """`KL(p‖q) = ∫ p(x)·log(p(x)/q(x)) dx`, in nats.

    Args:
        p: A distribution.
        q: A distribution of the same or another kind.

    Returns:
        The divergence, of the shape of the batch.

    Raises:
        NotImplementedError: There is no closed form for these kinds here.

    >>> from minitorch.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
    0.5
    """
    kinds: Any = type(p), type(q)
    rule = _rule_for(*kinds)
    if rule is None:
        raise NotImplementedError(
            f"kl_divergence: there is no closed form for {type(p).__name__} and "
            f"{type(q).__name__}. Estimate it as (p.log_prob(x) - q.log_prob(x)).mean() over "
            "samples x of p, or write one with register_kl."
        )
    return rule(p, q)
