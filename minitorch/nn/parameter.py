"""PyTorch's place for Parameter and its relatives without a shape."""

from ..tensor import Parameter
from .uninitialized import UninitializedBuffer, UninitializedParameter

__all__ = ["Parameter", "UninitializedBuffer", "UninitializedParameter"]
