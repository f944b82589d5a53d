"""Attention over heads, shared by the transformers."""

from __future__ import annotations

import math

from .. import dtypes
from ..nn import functional as F
from ..ops.creation import ones
from ..tensor import Tensor


def split_heads(x_BTC: Tensor, heads: int) -> Tensor:
    """(B, T, C) to (B, heads, T, C / heads)."""
    batch, length, width = x_BTC.shape
    return x_BTC.reshape(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x_BHTD: Tensor) -> Tensor:
    """(B, H, T, D) to (B, T, H * D)."""
    batch, heads, length, width = x_BHTD.shape
    return x_BHTD.transpose(1, 2).reshape(batch, length, heads * width)


def attend(
    q_BHTD: Tensor,
    k_BHTD: Tensor,
    v_BHTD: Tensor,
    *,
    allowed: Tensor | None,
    dropout: float,
    scaled: bool = True,
) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v over the allowed places.

    Args:
        q_BHTD: queries.
        k_BHTD: keys.
        v_BHTD: values.
        allowed: bool, broadcasts to (B, H, T, T); None for all. Where a row allows nothing, all
            places count alike.
        dropout: share of the weights that is dropped; 0 outside of training.
        scaled: whether the division by sqrt(D) is done.

    Returns:
        (B, H, T, D).
    """
    scores = q_BHTD @ k_BHTD.transpose(-2, -1)
    if scaled:
        scores = scores * (1.0 / math.sqrt(q_BHTD.shape[-1]))
    if allowed is not None:
        scores = scores.masked_fill(~allowed, dtypes.finfo(scores.dtype).min)
    weights = F.softmax(scores, dim=-1)
    if dropout:
        weights = F.dropout(weights, dropout)
    return weights @ v_BHTD


def causal(length: int, like: Tensor) -> Tensor:
    """bool (length, length): place i may look at places up to i."""
    return ones(length, length, dtype=dtypes.bool_, device=like.device).tril()
