"""Attention with several heads: projections, masks, and what is appended to key and value."""

from __future__ import annotations

import math

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import elementwise, joining, linalg
from ...ops.attention import attention_weights
from ...tensor import Tensor
from .attention import scaled_dot_product_attention
from .layer import dropout

_NAME = "multi_head_attention_forward"


def _added(name: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """A mask as floats that are added: bool masks are true where nothing may be attended to.

    Raises:
        DtypeError: The mask is neither bool nor floating.
    """
    if mask is None:
        return None
    if not mask.dtype.category:
        zeros = like.detach().new_zeros(tuple(mask.shape))
        return elementwise.masked_fill(zeros, mask, -math.inf)
    if not mask.dtype.is_floating_point:
        raise DtypeError(
            f"{_NAME}: {name} must be bool (true where nothing may be attended to) or floating. "
            f"Got {describe(mask)}."
        )
    return mask.to(like.dtype)


def _check(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int) -> None:
    shown = ", ".join(describe(x) for x in (query, key, value))
    if query.ndim not in (2, 3) or len({x.ndim for x in (query, key, value)}) > 1:
        raise ShapeError(
            f"{_NAME}: query, key and value must be [L, B, E], or [L, E] without a batch. "
            f"Got {shown}."
        )
    if query.shape[-1] != width:
        raise ShapeError(f"{_NAME}: the query must have {width} features. Got {describe(query)}.")
    if width % heads:
        raise ArgumentError(f"{_NAME}: the heads must divide the {width} features. Got {heads}.")
    if key.shape[:-1] != value.shape[:-1] or key.shape[1:-1] != query.shape[1:-1]:
        raise ShapeError(
            f"{_NAME}: key and value must have as many positions, and all three one batch. "
            f"Got {shown}."
        )


def _projected(
    given: tuple[Tensor, Tensor, Tensor],
    weights: tuple[Tensor | None, ...],
    bias: Tensor | None,
    width: int,
) -> list[Tensor]:
    """Query, key and value through their weights; one product where they are one tensor.

    Raises:
        ShapeError: A weight does not fit.
    """
    query, key, value = given
    if len(weights) == 1:
        (joined,) = weights
        assert joined is not None
        if query is key and key is value:
            return list(joining.chunk(linalg.linear(query, joined, bias), 3, -1))
        parts: list[Tensor] = list(joining.split(joined, width))
    else:
        parts = [w for w in weights if w is not None]
    if key.shape[-1] != value.shape[-1] and len(weights) == 1:
        raise ShapeError(f"{_NAME}: value must have {width} features. Got {describe(value)}.")
    biases = [None] * 3 if bias is None else joining.split(bias, width)
    return [linalg.linear(x, w, b) for x, w, b in zip(given, parts, biases, strict=True)]


def _heads(x: Tensor, heads: int) -> Tensor:
    """[S, B, E] as [B, H, S, D]."""
    steps, batch, width = x.shape
    return x.reshape(steps, batch, heads, width // heads).permute(1, 2, 0, 3)


def _merged_mask(
    attn_mask: Tensor | None, padding: Tensor | None, sizes: tuple[int, int, int, int], more: int
) -> Tensor | None:
    """Both masks as one f[B, H, L, S] or smaller; `more` positions are appended unmasked.

    Raises:
        ShapeError: A mask has another shape than its axes ask for.
    """
    batch, heads, rows, columns = sizes
    mask = attn_mask
    if mask is not None:
        wanted = (rows, columns) if mask.ndim == 2 else (batch * heads, rows, columns)
        if tuple(mask.shape) != wanted:
            raise ShapeError(
                f"{_NAME}: attn_mask must have the shape {(rows, columns)} or "
                f"{(batch * heads, rows, columns)}. Got {describe(mask)}."
            )
        mask = mask[None, None] if mask.ndim == 2 else mask.reshape(*sizes)
    if padding is not None:
        if tuple(padding.shape) != (batch, columns):
            raise ShapeError(
                f"{_NAME}: key_padding_mask must have the shape {(batch, columns)}, batch first. "
                f"Got {describe(padding)}."
            )
        padding = padding.reshape(batch, 1, 1, columns)
        mask = padding if mask is None else mask + padding
    if mask is None or not more:
        return mask
    return joining.cat([mask, mask.new_zeros((*mask.shape[:-1], more))], -1)


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Projects, attends with each head, joins the heads and projects again.

    Args:
        query: f[L, B, E] or f[L, E].
        key: f[S, B, K] or f[S, K].
        value: f[S, B, V] or f[S, V].
        embed_dim_to_check: E.
        num_heads: H, which divides E.
        in_proj_weight: f[3·E, E], if not use_separate_proj_weight.
        in_proj_bias: f[3·E].
        bias_k, bias_v: f[1, 1, E], appended to the projected key and value.
        add_zero_attn: Whether a position of zeros is appended.
        dropout_p: Probability of a weight to be dropped in training.
        out_proj_weight: f[E, E].
        out_proj_bias: f[E].
        training: Whether dropout is active.
        key_padding_mask: [B, S] or [S]: bool, true at padding, or floats that are added.
        need_weights: Whether the weights are returned.
        attn_mask: [L, S] or [B·H, L, S]: bool, true where nothing may be attended to, or added.
        use_separate_proj_weight: Use the three weights that follow.
        q_proj_weight, k_proj_weight, v_proj_weight: f[E, E], f[E, K], f[E, V].
        static_k, static_v: f[B·H, S, E/H], used in place of the projected key and value.
        average_attn_weights: Whether the weights are averaged over the heads.
        is_causal: Says that attn_mask is causal.

    Returns:
        f[L, B, E], and the weights f[B, L, S], f[B, H, L, S] or None; without B if unbatched.

    Raises:
        ShapeError, DtypeError: The operands do not belong together.
        ArgumentError: is_causal without attn_mask.
    """
    _check(query, key, value, embed_dim_to_check, num_heads)
    if is_causal and attn_mask is None:
        raise ArgumentError(
            f"{_NAME}: is_causal=True needs attn_mask. Use "
            "Transformer.generate_square_subsequent_mask(length)."
        )
    batched = query.ndim == 3
    if not batched:
        query, key, value = _with_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights = separate if use_separate_proj_weight else (in_proj_weight,)
    q, k, v = _projected((query, key, value), weights, in_proj_bias, embed_dim_to_check)
    k, v = _extended(k, v, bias_k, bias_v)
    heads = [_heads(q, num_heads)]
    heads += [_static(static_k, _heads(k, num_heads)), _static(static_v, _heads(v, num_heads))]
    more = int(bias_k is not None and bias_v is not None) + int(add_zero_attn)
    if add_zero_attn:
        heads[1:] = [_with_zeros(x) for x in heads[1:]]
    padding = _added("key_padding_mask", key_padding_mask, query)
    hint = is_causal and key_padding_mask is None and not need_weights
    mask = None if hint else _added("attn_mask", attn_mask, query)
    lengths = heads[0].shape[2], heads[1].shape[2] - more
    mask = _merged_mask(mask, padding, (heads[0].shape[0], num_heads, *lengths), more)
    p = dropout_p if training else 0.0
    out, found = _attended(heads, mask, p, need_weights, hint)
    out = out.permute(2, 0, 1, 3).reshape(*query.shape[:2], embed_dim_to_check)
    out = linalg.linear(out, out_proj_weight, out_proj_bias)
    if found is not None and average_attn_weights:
        found = found.mean(1)
    if batched:
        return out, found
    return out.squeeze(1), None if found is None else found.squeeze(0)


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All three with a batch of 1; what was one tensor stays one."""
    q = query.unsqueeze(1)
    k = q if query is key else key.unsqueeze(1)
    return q, k, k if key is value else value.unsqueeze(1)


def _extended(
    k: Tensor, v: Tensor, bias_k: Tensor | None, bias_v: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Key and value [S, B, E] with the learned position behind them."""
    if bias_k is None or bias_v is None:
        return k, v
    both = ((k, bias_k), (v, bias_v))
    k, v = (joining.cat([x, b.expand(1, x.shape[1], -1)]) for x, b in both)
    return k, v


def _with_zeros(x: Tensor) -> Tensor:
    """[B, H, S, D] with a position of zeros behind the others."""
    return joining.cat([x, x.new_zeros((*x.shape[:2], 1, x.shape[3]))], 2)


def _attended(
    heads: list[Tensor], mask: Tensor | None, p: float, need_weights: bool, causal: bool
) -> tuple[Tensor, Tensor | None]:
    """The values that each head gathers [B, H, L, D], and its weights if they are needed."""
    q, k, v = heads
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, p, causal), None
    found = attention_weights(q, k, mask, scale=1 / math.sqrt(q.shape[-1]), causal=False)
    found = dropout(found, p, True)
    return found @ v, found


def _static(given: Tensor | None, projected: Tensor) -> Tensor:
    """`given`, f[B·H, S, D], as [B, H, S, D]; what was projected if there is none."""
    if given is None:
        return projected
    batch, heads, _, width = projected.shape
    if given.ndim != 3 or given.shape[0] != batch * heads or given.shape[2] != width:
        raise ShapeError(
            f"{_NAME}: static keys and values must be [{batch * heads}, S, {width}]. "
            f"Got {describe(given)}."
        )
    return given.reshape(batch, heads, -1, width)
