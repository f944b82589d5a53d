"""PyTorch's place for layer, group and response normalisation."""

from ..normalization import GroupNorm, LayerNorm, RMSNorm
from ..other_norms import LocalResponseNorm

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
