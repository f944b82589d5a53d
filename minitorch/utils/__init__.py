"""PyTorch's place for the data tools: `minitorch.utils.data`."""

from . import data

__all__ = ["data"]
