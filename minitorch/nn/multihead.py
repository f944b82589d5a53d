"""Attention with several heads as a layer."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..ops.creation import empty
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .linear import Linear
from .module import Module


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch shows for the output projection."""


class MultiheadAttention(Module):
    """Attention with several heads; see `functional.multi_head_attention_forward`.

    Parameters are `in_proj_weight` (or `q_proj_weight`, `k_proj_weight`, `v_proj_weight` where
    kdim or vdim differ), `in_proj_bias`, `bias_k`, `bias_v` and `out_proj`.

    Args:
        embed_dim: Features of query and result.
        num_heads: Heads, which divide embed_dim.
        dropout: Probability of a weight to be dropped in training.
        bias: Whether the projections have biases.
        add_bias_kv: Whether a learned position is appended to key and value.
        add_zero_attn: Whether a position of zeros is appended.
        kdim: Features of the key; embed_dim if None.
        vdim: Features of the value; embed_dim if None.
        batch_first: Whether inputs are [B, L, E] instead of [L, B, E].
        device: Where the parameters live.
        dtype: Their dtype.

    Raises:
        ArgumentError: The heads do not divide embed_dim.

    Source: Vaswani et al., Attention Is All You Need, 2017.
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ArgumentError(
                "MultiheadAttention: num_heads must divide embed_dim, and both be at least 1. "
                f"Got {embed_dim} and {num_heads}."
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim = embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim

        def made(*sizes: int) -> Parameter:
            return Parameter(empty(*sizes, device=device, dtype=dtype))

        same = self._qkv_same_embed_dim
        self.q_proj_weight = None if same else made(embed_dim, embed_dim)
        self.k_proj_weight = None if same else made(embed_dim, self.kdim)
        self.v_proj_weight = None if same else made(embed_dim, self.vdim)
        self.in_proj_weight = made(3 * embed_dim, embed_dim) if same else None
        self.in_proj_bias = made(3 * embed_dim) if bias else None
        self.bias_k = made(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = made(1, 1, embed_dim) if add_bias_kv else None
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends; masks and results are as in `functional.multi_head_attention_forward`.

        Returns:
            f[L, B, E] (with `batch_first` f[B, L, E]), and the weights or None.
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            alike = query is key, key is value
            query = query.transpose(0, 1)
            key = query if alike[0] else key.transpose(0, 1)
            value = key if alike[1] else value.transpose(0, 1)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if turned else out), weights
