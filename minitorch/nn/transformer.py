"""The Transformer and its parts.

Source: Vaswani et al., Attention Is All You Need, 2017.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from ..ops.creation import full
from ..ops.shape import triu
from ..tensor import Tensor
from . import functional as F
from . import init
from .containers import ModuleList
from .linear import Dropout, Linear
from .module import Module
from .multihead import MultiheadAttention
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(name: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(name, str):
        return name
    if name not in ("relu", "gelu"):
        raise ArgumentError(f"activation must be 'relu', 'gelu' or a function. Got {name!r}.")
    return F.relu if name == "relu" else F.gelu


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """f[sz, sz] with 0 where row i may attend (to 0 … i) and -inf elsewhere."""
    return triu(full((sz, sz), float("-inf"), device=device, dtype=dtype), 1)


def _residual(part: Callable[..., Tensor], norm: Module, x: Tensor, first: bool) -> Tensor:
    """`x + part(norm(x))` or `norm(x + part(x))`."""
    return x + part(norm(x)) if first else norm(x + part(x))


class TransformerEncoderLayer(Module):
    """Self-attention and two linear maps, each with a residual and a LayerNorm.

    Args:
        d_model: Features.
        nhead: Heads of the attention.
        dim_feedforward: Features between the linear maps.
        dropout: Probability of an element to be dropped.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the norms.
        batch_first: Whether inputs are [B, L, E] instead of [L, B, E].
        norm_first: Normalise before each part instead of behind its residual.
        bias: Whether linear maps and norms have biases.
        device: Where the parameters live.
        dtype: Their dtype.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encodes f[L, B, E]; masks as in `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            y, _ = self.self_attn(
                x,
                x,
                x,
                attn_mask=src_mask,
                key_padding_mask=src_key_padding_mask,
                need_weights=False,
                is_causal=is_causal,
            )
            return self.dropout1(y)

        def feed(x: Tensor) -> Tensor:
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x = _residual(attend, self.norm1, src, self.norm_first)
        return _residual(feed, self.norm2, x, self.norm_first)


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the memory and two linear maps; see the encoder's layer."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **options
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decodes f[L, B, E] with the memory f[S, B, E]; masks as in `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            y, _ = self.self_attn(
                x,
                x,
                x,
                attn_mask=tgt_mask,
                key_padding_mask=tgt_key_padding_mask,
                need_weights=False,
                is_causal=tgt_is_causal,
            )
            return self.dropout1(y)

        def look(x: Tensor) -> Tensor:
            y, _ = self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                need_weights=False,
                is_causal=memory_is_causal,
            )
            return self.dropout2(y)

        def feed(x: Tensor) -> Tensor:
            return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))

        x = _residual(attend, self.norm1, tgt, self.norm_first)
        x = _residual(look, self.norm2, x, self.norm_first)
        return _residual(feed, self.norm3, x, self.norm_first)


class TransformerEncoder(Module):
    """Encoder layers on top of each other.

    Args:
        encoder_layer: Copied `num_layers` times.
        num_layers: Number of layers.
        norm: Applied at the end, or None.
        enable_nested_tensor: Accepted; nested tensors do not exist here.
        mask_check: Belongs to it.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Encodes f[L, B, E]; masks as in `MultiheadAttention`."""
        x = src
        for layer in self.layers:
            x = layer(
                x,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=bool(is_causal),
            )
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Decoder layers on top of each other.

    Args:
        decoder_layer: Copied `num_layers` times.
        num_layers: Number of layers.
        norm: Applied at the end, or None.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decodes f[L, B, E] with the memory f[S, B, E]; masks as in `MultiheadAttention`."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Encoder and decoder.

    Args:
        d_model: Features.
        nhead: Heads of the attention.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Features between the linear maps of a layer.
        dropout: Probability of an element to be dropped.
        activation: "relu", "gelu" or a function.
        custom_encoder: Used instead of an encoder that is made here.
        custom_decoder: Used instead of a decoder that is made here.
        layer_norm_eps: eps of the norms.
        batch_first: Whether inputs are [B, L, E] instead of [L, B, E].
        norm_first: Normalise before each part instead of behind its residual.
        bias: Whether linear maps and norms have biases.
        device: Where the parameters live.
        dtype: Their dtype.
    """

    generate_square_subsequent_mask = staticmethod(generate_square_subsequent_mask)

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        options: dict[str, Any] = {
            "d_model": d_model,
            "nhead": nhead,
            "dim_feedforward": dim_feedforward,
            "dropout": dropout,
            "activation": activation,
            "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first,
            "norm_first": norm_first,
            **where,
        }

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, **where)

        self.encoder = custom_encoder
        if custom_encoder is None:
            one = TransformerEncoderLayer(**options)
            self.encoder = TransformerEncoder(one, num_encoder_layers, norm())
        self.decoder = custom_decoder
        if custom_decoder is None:
            two = TransformerDecoderLayer(**options)
            self.decoder = TransformerDecoder(two, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.ndim > 1:
                init.xavier_uniform_(p)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes src f[S, B, E] and decodes tgt f[L, B, E]; masks as in `MultiheadAttention`.

        Returns:
            f[L, B, E].

        Raises:
            ShapeError: Batches or features differ.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ShapeError(
                f"Transformer: src and tgt must have one batch. Got {describe(src)} and "
                f"{describe(tgt)}. Is batch_first right?"
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ShapeError(
                f"Transformer: src and tgt must have d_model={self.d_model} features. "
                f"Got {describe(src)} and {describe(tgt)}."
            )
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
