"""BERT's encoder under Hugging Face's parameter names; MiniLM and others share it.

Source: J. Devlin, M.-W. Chang, K. Lee and K. Toutanova, BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding, NAACL 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ArgumentError
from ..nn import Dropout, Embedding, LayerNorm, Linear, Module, init
from ..nn import functional as F
from ..ops.creation import arange, zeros, zeros_like
from ..tensor import Parameter, Tensor
from .activations import activation
from .attention import attend, merge_heads, split_heads
from .language import LanguageModelOutput, check_ids
from .pretrained import PretrainedModel


@dataclass(frozen=True)
class BertConfig:
    """Sizes and options, named as in Hugging Face's `config.json`; the defaults are BERT base.

    Attributes:
        vocab_size: how many tokens there are.
        hidden_size: width; a multiple of `num_attention_heads`.
        num_hidden_layers, num_attention_heads: layers, and heads in each.
        intermediate_size, hidden_act: width inside of the MLP, and its activation.
        hidden_dropout_prob, attention_probs_dropout_prob: shares of zeros in training.
        max_position_embeddings, position_embedding_type: the longest sequence; "absolute".
        initializer_range: standard deviation of the first weights.
        layer_norm_eps: added to variances.
        pad_token_id: token whose embedding stays 0.
        type_vocab_size: how many segments a text may have.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    position_embedding_type: str = "absolute"

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ArgumentError(
                "BertConfig: num_attention_heads must divide hidden_size. Got "
                f"{self.num_attention_heads} for {self.hidden_size}."
            )
        if self.position_embedding_type != "absolute":
            raise ArgumentError(
                "BertConfig: position_embedding_type must be 'absolute'. Got "
                f"{self.position_embedding_type!r}."
            )
        activation(self.hidden_act)


class EncoderOutput(NamedTuple):
    """`last_hidden_state` is (B, T, hidden_size); `pooler_output` (B, hidden_size) or None."""

    last_hidden_state: Tensor
    pooler_output: Tensor | None


class _Embeddings(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = Embedding(config.type_vocab_size, width)
        self.LayerNorm = LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        places = arange(input_ids.shape[1], device=input_ids.device)
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(x + self.position_embeddings(places)))


class _SelfAttention(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query = Linear(config.hidden_size, config.hidden_size)
        self.key = Linear(config.hidden_size, config.hidden_size)
        self.value = Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, allowed: Tensor | None) -> Tensor:
        parts = (self.query(x), self.key(x), self.value(x))
        q, k, v = [split_heads(part, self.heads) for part in parts]
        dropout = self.dropout if self.training else 0.0
        return merge_heads(attend(q, k, v, allowed=allowed, dropout=dropout))


class _AddNorm(Module):
    """`LayerNorm(dropout(dense(x)) + residual)`."""

    def __init__(self, config: BertConfig, inputs: int) -> None:
        super().__init__()
        self.dense = Linear(inputs, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class _Attention(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _AddNorm(config, config.hidden_size)

    def forward(self, x: Tensor, allowed: Tensor | None) -> Tensor:
        return self.output(self.self(x, allowed), x)


class _Dense(Module):
    def __init__(self, inputs: int, outputs: int, act: str) -> None:
        super().__init__()
        self.dense = Linear(inputs, outputs)
        self.act = activation(act)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.dense(x))


class _Layer(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Dense(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.output = _AddNorm(config, config.intermediate_size)

    def forward(self, x: Tensor, allowed: Tensor | None) -> Tensor:
        x = self.attention(x, allowed)
        return self.output(self.intermediate(x), x)


class _Encoder(Module):
    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = [_Layer(config) for _ in range(config.num_hidden_layers)]

    def forward(self, x: Tensor, allowed: Tensor | None) -> Tensor:
        for layer in self.layer:
            x = layer(x, allowed)
        return x


class BertModel(PretrainedModel):
    """The encoder without a head.

    Args:
        config: its sizes.
        add_pooling_layer: whether there is a `pooler`, which turns the first token's state into
            `pooler_output`.

    Example:
        >>> config = BertConfig(11, 8, 1, 2, 16)
        >>> BertModel(config)(mt.tensor([[1, 2, 3]])).last_hidden_state.shape
        minitorch.Size([1, 3, 8])
    """

    config_class = BertConfig
    model_type = "bert"
    base_prefix = "bert"
    unused_names = (r"position_ids$", r"^cls\.", r"^classifier\.")

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = _Embeddings(config)
        self.encoder = _Encoder(config)
        width = config.hidden_size
        self.pooler = _Dense(width, width, "tanh") if add_pooling_layer else None
        _initialise(self, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> EncoderOutput:
        """Hidden states of all tokens.

        Args:
            input_ids: integers (B, T), T ≤ max_position_embeddings.
            attention_mask: (B, T), nonzero where a token is there; None for everywhere.
            token_type_ids: the segment of each token, (B, T); None for 0.

        Raises:
            ShapeError: the ids are not (B, T), or too long.
        """
        check_ids("BertModel", input_ids, self.config.max_position_embeddings)
        if token_type_ids is None:
            token_type_ids = zeros_like(input_ids)
        allowed = None if attention_mask is None else (attention_mask != 0)[:, None, None, :]
        x = self.encoder(self.embeddings(input_ids, token_type_ids), allowed)
        return EncoderOutput(x, None if self.pooler is None else self.pooler(x[:, 0]))

    def sentence_embeddings(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """The mean of the tokens that are there, scaled to length 1: (B, hidden_size).

        Source: N. Reimers and I. Gurevych, Sentence-BERT, EMNLP 2019.
        """
        states = self(input_ids, attention_mask, token_type_ids).last_hidden_state
        weights = (attention_mask != 0).to(states.dtype)[:, :, None]
        means = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return F.normalize(means, dim=1)


class _Predictions(Module):
    def __init__(self, config: BertConfig, embedding: Parameter) -> None:
        super().__init__()
        self.transform = _Dense(config.hidden_size, config.hidden_size, config.hidden_act)
        self.transform.LayerNorm = LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = Linear(config.hidden_size, config.vocab_size)
        self.decoder.weight = embedding
        self.bias = Parameter(zeros(config.vocab_size))
        self.decoder.bias = self.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.transform.LayerNorm(self.transform(x)))


class _Head(Module):
    def __init__(self, config: BertConfig, embedding: Parameter) -> None:
        super().__init__()
        self.predictions = _Predictions(config, embedding)

    def forward(self, x: Tensor) -> Tensor:
        return self.predictions(x)


class BertForMaskedLM(PretrainedModel):
    """BERT with the head that guesses masked tokens; its decoder is the token embedding.

    Args:
        config: its sizes.
    """

    config_class = BertConfig
    model_type = "bert"
    base_prefix = "bert"
    unused_names = (r"position_ids$", r"^cls\.seq_relationship\.", r"^bert\.pooler\.")

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.cls = _Head(config, self.bert.embeddings.word_embeddings.weight)
        _initialise(self.cls.predictions.transform, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Logits of each token, and their mean cross entropy.

        Args:
            input_ids: integers (B, T).
            attention_mask: (B, T), nonzero where a token is there.
            token_type_ids: the segment of each token, (B, T).
            labels: integers (B, T); -100 is left out.
        """
        logits = self.cls(self.bert(input_ids, attention_mask, token_type_ids).last_hidden_state)
        if labels is None:
            return LanguageModelOutput(None, logits)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
        return LanguageModelOutput(loss, logits)


def _initialise(model: Module, config: BertConfig) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            init.zeros_(parameter)
        elif "LayerNorm" not in name:
            init.normal_(parameter, std=config.initializer_range)
    for module in model.modules():
        if isinstance(module, Embedding) and module.padding_idx is not None:
            module.weight.data[module.padding_idx] = 0
