"""Connectionist temporal classification: the negative log-probability of label sequences.

The labels of a sequence with blanks around each are its states; from one step to the next a path
stays, moves on by one state, or skips a blank between two different labels. With α the logarithm of
the probability of all paths to a state and β that of all paths from it, the gradient is
`exp(log_probs) - Σ exp(α + β + loss)` over the states of a class. This is PyTorch's gradient: it
takes log_probs for the output of log_softmax, of which the first term is the normalisation.

Source: Graves et al., Connectionist Temporal Classification, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import backend
from . import elementwise as el
from . import joining
from .fused import Fused
from .primitive import wrap
from .wide import wide

_NEVER = -1e30  # the logarithm of 0, finite, so that differences of it are 0


class Paths(NamedTuple):
    """What the labels allow, as arrays where the probabilities are.

    Attributes:
        states: int64[N, S]: the class of each state.
        skips: bool[N, S]: states that can be reached from two states before.
        starts: bool[N, S]: first states.
        ends: bool[N, S]: last states.
        active: bool[T, N]: steps that a sequence has.
    """

    states: Any
    skips: Any
    starts: Any
    ends: Any
    active: Any


def paths(labels: np.ndarray, lengths: np.ndarray, steps: Any, limit: int, blank: int) -> Paths:
    """The Paths of padded labels.

    Args:
        labels: int64[N, L] on the host.
        lengths: int64[N]: number of labels of each sequence.
        steps: int64[N]: number of steps of each sequence.
        limit: T, the number of steps of the probabilities.
        blank: Class of the blank.
    """
    count, width = labels.shape
    states = np.full((count, 2 * width + 1), blank, np.int64)
    states[:, 1::2] = labels
    places = np.arange(2 * width + 1)
    inside = places <= 2 * lengths[:, None]
    skips = np.zeros(states.shape, bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    starts = inside & (places < 2)
    ends = inside & (places >= 2 * lengths[:, None] - 1)
    active = np.arange(limit)[:, None] < steps
    return Paths(np.where(inside, states, blank), skips & inside, starts, ends, active)


def _shifted(xp: Any, a: Any, by: int) -> Any:
    """`a` moved by one or two states, forwards or backwards."""
    out = xp.full_like(a, _NEVER)
    if by > 0:
        out[:, by:] = a[:, :-by]
    else:
        out[:, :by] = a[:, -by:]
    return out


def _log_sum(xp: Any, *parts: Any) -> Any:
    top = parts[0]
    for p in parts[1:]:
        top = xp.maximum(top, p)
    total = xp.exp(parts[0] - top)
    for p in parts[1:]:
        total += xp.exp(p - top)
    return xp.log(total) + top


def _emissions(xp: Any, log_probs: Any, where: Paths) -> Any:
    """f[T, N, S]: the log-probability of the class of each state."""
    index = xp.broadcast_to(where.states, (len(log_probs), *where.states.shape))
    return xp.maximum(xp.take_along_axis(log_probs, index, axis=2), _NEVER)


def _empty_path(states: Any, dtype: Any) -> Any:
    out = backend.namespace(states).full(states.shape, _NEVER, dtype)
    out[:, 0] = 0
    return out


def _forward(log_probs: Any, *, where: Paths, zero_infinity: bool) -> tuple[Any, tuple[Any, ...]]:
    xp, dtype = backend.namespace(log_probs), log_probs.dtype
    emissions = _emissions(xp, wide(log_probs), where)
    alphas = xp.empty_like(emissions)
    # A sequence without steps has the empty path only: state 0, which ends it if it has no label.
    a = _empty_path(where.states, emissions.dtype)
    for t in range(len(emissions)):
        if t:
            skipped = xp.where(where.skips, _shifted(xp, a, 2), _NEVER)
            new = _log_sum(xp, a, _shifted(xp, a, 1), skipped) + emissions[t]
        else:
            new = xp.where(where.starts, emissions[0], _NEVER)
        a = xp.where(where.active[t][:, None], new, a)
        alphas[t] = a
    last = xp.where(where.ends, a, _NEVER)
    top = last.max(axis=1)
    loss = -(xp.log(xp.exp(last - top[:, None]).sum(axis=1)) + top)
    lost = loss > -_NEVER / 2
    shown = xp.where(lost, 0 if zero_infinity else math.inf, loss)
    return shown.astype(dtype, copy=False), (emissions, alphas, loss, lost)


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    log_probs: Any,
    *,
    where: Paths,
    zero_infinity: bool,
) -> list[Any]:
    emissions, alphas, loss, lost = residuals
    xp, lp = backend.namespace(log_probs), wide(log_probs)
    final = xp.where(where.ends, 0, _NEVER).astype(emissions.dtype)
    shares = xp.empty_like(alphas)
    b = final
    for t in range(len(alphas) - 1, -1, -1):
        if t + 1 < len(alphas):
            ahead = b + emissions[t + 1]
            skipped = _shifted(xp, xp.where(where.skips, ahead, _NEVER), -2)
            new = _log_sum(xp, ahead, _shifted(xp, ahead, -1), skipped)
            b = xp.where(where.active[t + 1][:, None], new, final)
        shares[t] = xp.exp(xp.minimum(alphas[t] + b + loss[:, None], 0))
    posterior = xp.zeros_like(lp)
    steps, count = xp.arange(len(lp))[:, None, None], xp.arange(lp.shape[1])[:, None]
    xp.add.at(posterior, (steps, count, where.states), shares)
    wanted = where.active & ~lost if zero_infinity else where.active
    out = xp.exp(lp) - posterior
    out = xp.where(lost[:, None], math.nan, out) * wide(g)[:, None]
    return [xp.where(wanted[:, :, None], out, 0).astype(log_probs.dtype, copy=False)]


def _moved(a: Any, by: int) -> Any:
    return joining.cat([a[:, :by] * 0 + _NEVER, a[:, :-by]], 1)


def _ctc_loss(log_probs: Any, *, where: Paths, zero_infinity: bool) -> Any:
    steps, count = log_probs.shape[:2]
    states = wrap(where.states)
    index = states.unsqueeze(0).expand(steps, *where.states.shape)
    emissions = el.clamp_min(log_probs.gather(2, index), _NEVER)
    active = wrap(where.active)
    a = emissions[0] * 0 + wrap(_empty_path(where.states, emissions._array.dtype))
    for t in range(steps):
        if t:
            skipped = el.where(wrap(where.skips), _moved(a, 2), _NEVER)
            new = el.logaddexp(el.logaddexp(a, _moved(a, 1)), skipped) + emissions[t]
        else:
            new = el.where(wrap(where.starts), emissions[0], _NEVER)
        a = el.where(active[t].unsqueeze(1), new, a)
    ends = el.where(wrap(where.ends), a, _NEVER)
    loss = -ends.logsumexp(1)
    p = el.exp(log_probs) * active.unsqueeze(2)
    loss = loss + (p - p.detach()).sum((0, 2))
    lost = loss.detach() > -_NEVER / 2
    return el.where(lost, 0.0 if zero_infinity else math.inf, loss)


ctc_op = Fused(_ctc_loss, _forward, _backward)
"""`ctc(log_probs_TNC, *, where, zero_infinity)`, the loss of each sequence."""

__all__ = ["Paths", "ctc_op", "paths"]
