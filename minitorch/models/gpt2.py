"""GPT-2 under Hugging Face's parameter names.

Source: A. Radford, J. Wu, R. Child, D. Luan, D. Amodei and I. Sutskever, Language Models are
Unsupervised Multitask Learners, 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from ..errors import ArgumentError
from ..nn import Dropout, Embedding, LayerNorm, Linear, Module, init
from ..nn import functional as F
from ..ops.creation import arange, empty
from ..tensor import Parameter, Tensor
from .activations import activation
from .attention import attend, causal, merge_heads, split_heads
from .language import LanguageModelOutput, check_ids
from .pretrained import PretrainedModel

_SIZES = {
    "gpt2": (768, 12, 12),
    "gpt2-medium": (1024, 24, 16),
    "gpt2-large": (1280, 36, 20),
    "gpt2-xl": (1600, 48, 25),
}


@dataclass(frozen=True)
class GPT2Config:
    """Sizes and options, named as in Hugging Face's `config.json`; the defaults are GPT-2 small.

    Attributes:
        vocab_size: how many tokens there are.
        n_embd: width; a multiple of `n_head`.
        n_layer: how many blocks.
        n_inner: width inside of the MLP; None for 4 * n_embd.
        n_positions: the longest sequence.
        activation_function: name of the activation in the MLP.
        resid_pdrop, embd_pdrop, attn_pdrop: shares of zeros in training: behind each block's
            parts, behind the embeddings, in the attention weights.
        layer_norm_epsilon: added to variances.
        initializer_range: standard deviation of the first weights.
        scale_attn_weights: divide scores by the square root of the head's width.
        scale_attn_by_inverse_layer_idx: divide them by the number of the layer, too.
        tie_word_embeddings: logits use the embedding of the tokens.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        if self.n_embd % self.n_head:
            raise ArgumentError(
                f"GPT2Config: n_head must divide n_embd. Got {self.n_head} for {self.n_embd}."
            )
        if self.scale_attn_by_inverse_layer_idx:
            raise ArgumentError(
                "GPT2Config: scale_attn_by_inverse_layer_idx is not supported. Leave it False."
            )
        activation(self.activation_function)

    @classmethod
    def of_size(cls, name: str) -> Self:
        """The published sizes: gpt2, gpt2-medium, gpt2-large, gpt2-xl."""
        if name not in _SIZES:
            raise ArgumentError(f"GPT2Config: sizes are {', '.join(_SIZES)}. Got {name!r}.")
        width, layers, heads = _SIZES[name]
        return cls(n_embd=width, n_layer=layers, n_head=heads)


class Conv1D(Module):
    """`y = x W + b` with W (inputs, outputs), the transposed layout of GPT-2's published files."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.weight = Parameter(empty(inputs, outputs))
        self.bias = Parameter(empty(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.t(), self.bias)


class _Attention(Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.heads = config.n_head
        self.scaled = config.scale_attn_weights
        self.dropout = config.attn_pdrop
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        self.resid_dropout = Dropout(config.resid_pdrop)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        parts = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = [split_heads(part, self.heads) for part in parts]
        dropout = self.dropout if self.training else 0.0
        mixed = attend(q, k, v, allowed=allowed, dropout=dropout, scaled=self.scaled)
        return self.resid_dropout(self.c_proj(merge_heads(mixed)))


class _MLP(Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = Conv1D(inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, inner)
        self.act = activation(config.activation_function)
        self.dropout = Dropout(config.resid_pdrop)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


class _Block(Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = _Attention(config)
        self.ln_2 = LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = _MLP(config)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x), allowed)
        return x + self.mlp(self.ln_2(x))


class GPT2Model(PretrainedModel):
    """The transformer without a head: token ids to hidden states.

    Args:
        config: its sizes.

    Example:
        >>> config = GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
        >>> GPT2Model(config)(mt.tensor([[1, 2, 3]])).shape
        minitorch.Size([1, 3, 8])
    """

    config_class = GPT2Config
    model_type = "gpt2"
    base_prefix = "transformer"
    unused_names = (r"\.attn\.(masked_)?bias$", r"^lm_head\.")

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.wte = Embedding(config.vocab_size, config.n_embd)
        self.wpe = Embedding(config.n_positions, config.n_embd)
        self.drop = Dropout(config.embd_pdrop)
        self.h = [_Block(config) for _ in range(config.n_layer)]
        self.ln_f = LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        _initialise(self, config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Hidden states.

        Args:
            input_ids: integers (B, T), T ≤ n_positions.
            attention_mask: (B, T), nonzero where a token is there; None for everywhere.

        Returns:
            (B, T, n_embd).

        Raises:
            ShapeError: the ids are not (B, T), or too long.
        """
        check_ids("GPT2Model", input_ids, self.config.n_positions)
        length = input_ids.shape[1]
        allowed = causal(length, input_ids)
        if attention_mask is not None:
            allowed = allowed & (attention_mask != 0)[:, None, None, :]
        places = arange(length, device=input_ids.device)
        x = self.drop(self.wte(input_ids) + self.wpe(places))
        for block in self.h:
            x = block(x, allowed)
        return self.ln_f(x)


class GPT2LMHeadModel(PretrainedModel):
    """GPT-2 with its language head, whose weights are those of the token embedding.

    Args:
        config: its sizes.
    """

    config_class = GPT2Config
    model_type = "gpt2"
    base_prefix = "transformer"
    unused_names = (r"\.attn\.(masked_)?bias$",)

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.transformer = GPT2Model(config)
        self.lm_head = Linear(config.n_embd, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.transformer.wte.weight
        else:
            init.normal_(self.lm_head.weight, std=config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Logits of each next token, and their mean cross entropy.

        Args:
            input_ids: integers (B, T).
            attention_mask: (B, T), nonzero where a token is there.
            labels: integers (B, T), usually `input_ids`; they are shifted here, and -100 is left
                out.
        """
        logits = self.lm_head(self.transformer(input_ids, attention_mask))
        if labels is None:
            return LanguageModelOutput(None, logits)
        guesses = logits[:, :-1].reshape(-1, logits.shape[-1])
        return LanguageModelOutput(F.cross_entropy(guesses, labels[:, 1:].reshape(-1)), logits)


def _initialise(model: Module, config: GPT2Config) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            init.zeros_(parameter)
        elif name.endswith("c_proj.weight"):
            init.normal_(parameter, std=config.initializer_range / math.sqrt(2 * config.n_layer))
        elif ".ln_" not in f".{name}":
            init.normal_(parameter, std=config.initializer_range)
