"""PyTorch's place for Parameter."""

from ..tensor import Parameter

__all__ = ["Parameter"]
