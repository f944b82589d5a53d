"""Embeddings of bags as a layer."""

from __future__ import annotations

from typing import Any

from ..ops.creation import empty
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .functional.layer import table_row
from .linear import changed_options, positive
from .module import Module


class EmbeddingBag(Module):
    """Rows of a table, reduced over each bag; see `functional.embedding_bag`.

    Args:
        num_embeddings: Number of rows.
        embedding_dim: Length of a row.
        max_norm: Rows that are used and longer are scaled down to this norm, in place.
        norm_type: Order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by how often it occurs in the batch.
        mode: "sum", "mean" or "max".
        sparse: Gradients are dense here; accepted and ignored.
        _weight: Start values.
        include_last_offset: The last offset is the end of the last bag.
        padding_idx: Number of a row that starts at 0, does not count and gets no gradient.
        device: Where the table lives.
        dtype: Its dtype.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        positive("EmbeddingBag", num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = table_row("EmbeddingBag", padding_idx, num_embeddings)
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        if _weight is None:
            table = empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
            self.weight = Parameter(table)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draws new start values from the standard normal distribution."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """One with the given table f[rows, width], frozen unless told otherwise."""
        rows, width = embeddings.shape
        made = cls(
            rows,
            width,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        text += changed_options(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return text + f", mode={self.mode!r}" + changed_options(self, padding_idx=None)
