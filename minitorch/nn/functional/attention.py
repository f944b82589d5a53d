"""Attention under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import dropout as dropout_ops
from ...ops import shape
from ...ops.attention import attention_op
from ...ops.linalg import autocast_operands
from ...tensor import Tensor
from .checks import need_tensor

_NAME = "scaled_dot_product_attention"


def _check_operands(query: Tensor, key: Tensor, value: Tensor) -> None:
    q, k, v = query._array, key._array, value._array
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise ShapeError(
            f"{_NAME}: all three must be [..., length, features]. Got {_shown(query, key, value)}."
        )
    if not q.dtype == k.dtype == v.dtype or not query.dtype.is_floating_point:
        raise DtypeError(
            f"{_NAME}: all three must have one floating dtype. Got {_shown(query, key, value)}."
        )
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{_NAME}: query and key must have as many features, key and value as many positions. "
            f"Got {_shown(query, key, value)}."
        )


def _shown(*given: Tensor) -> str:
    return ", ".join(map(describe, given))


def _check_mask(mask: Tensor, query: Tensor, key: Tensor) -> None:
    if mask.dtype.category and mask.dtype is not query.dtype and not _float32(mask):
        raise DtypeError(
            f"{_NAME}: attn_mask must be bool (true where a row may attend), or have the dtype of "
            f"the query. Got {describe(mask)} for {describe(query)}."
        )
    wanted = (*query.shape[:-1], key.shape[-2])
    found = tuple(mask.shape)
    fits = 2 <= len(found) <= len(wanted) and all(
        n in (1, m) for n, m in zip(found[::-1], wanted[::-1], strict=False)
    )
    if not fits:
        raise ShapeError(
            f"{_NAME}: attn_mask must have the shape {wanted}, or 1 where it is repeated. "
            f"Got {describe(mask)}."
        )


def _float32(mask: Tensor) -> bool:
    return mask.dtype.name == "float32"


def _repeated_heads(query: Tensor, x: Tensor) -> Tensor:
    """Each head of `x` as often as the query has heads for it."""
    if query.ndim < 3 or x.ndim < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise ShapeError(
            f"{_NAME}: the heads (axis -3) of key and value must divide those of the query. "
            f"Got {describe(query)} and {describe(x)}."
        )
    times = query.shape[-3] // x.shape[-3]
    if times == 1:
        return x
    sizes = (*x.shape[:-2], times, *x.shape[-2:])
    return x.unsqueeze(-3).expand(*sizes).reshape(*x.shape[:-3], query.shape[-3], *x.shape[-2:])


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query keyᵀ · scale + mask) value`; a row that may attend nowhere gives 0.

    Args:
        query: f[…, L, E].
        key: f[…, S, E].
        value: f[…, S, D].
        attn_mask: bool[…, L, S], true where a row may attend, or floats that are added.
        dropout_p: Probability of a weight to be dropped; 0 in evaluation.
        is_causal: Row i attends to positions 0 to i.
        scale: `1/sqrt(E)` if None.
        enable_gqa: Each head of key and value serves several heads (axis -3) of the query.

    Returns:
        f[…, L, D].

    Raises:
        ShapeError, DtypeError: The operands do not belong together.
        ArgumentError: A mask and is_causal are given, or dropout_p is no probability.

    Source: Vaswani et al., Attention Is All You Need, 2017.
    """
    for what, x in (("query", query), ("key", key), ("value", value)):
        need_tensor(_NAME, what, x)
    query, key, value = autocast_operands(query, key, value)
    _check_operands(query, key, value)
    if is_causal and attn_mask is not None:
        raise ArgumentError(f"{_NAME}: give attn_mask or is_causal=True. Got both.")
    if not 0 <= dropout_p <= 1:
        raise ArgumentError(f"{_NAME}: dropout_p must be from 0 to 1. Got {dropout_p}.")
    if enable_gqa:
        key, value = _repeated_heads(query, key), _repeated_heads(query, value)
    leads = [x._array.shape[:-2] for x in (query, key, value)]
    alike = leads[0] == leads[1] == leads[2]
    lead = leads[0] if alike else shape.broadcast_shapes(*leads)
    if attn_mask is not None:
        need_tensor(_NAME, "attn_mask", attn_mask)
        _check_mask(attn_mask, query.expand(*lead, *query.shape[-2:]), key)
    options: dict[str, Any] = {"causal": is_causal}
    options["scale"] = 1 / math.sqrt(query._array.shape[-1]) if scale is None else float(scale)
    if dropout_p and math.prod(lead) * query.shape[-2] * key.shape[-2]:
        sizes = (*lead, query.shape[-2], key.shape[-2])
        kept = dropout_ops.draw_mask(sizes, dropout_p, query._array)
        options |= {"keep": kept[0], "keep_scale": kept[1]}
    return attention_op(query, key, value, attn_mask, **options)
