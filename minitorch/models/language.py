"""What language models share: their output, and the check of their input."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import ShapeError, describe
from ..tensor import Tensor


class LanguageModelOutput(NamedTuple):
    """`loss` is None without labels; `logits` are (B, T, vocab_size)."""

    loss: Tensor | None
    logits: Tensor


def check_ids(owner: str, input_ids: Tensor, most: int) -> None:
    """Raises ShapeError unless `input_ids` are (B, T) with T ≤ most."""
    if input_ids.ndim != 2 or input_ids.shape[1] > most:
        raise ShapeError(
            f"{owner}: input_ids must be (batch, length) with a length of at most {most}. Got "
            f"{describe(input_ids)}. Cut longer texts, or make the model with more positions."
        )
