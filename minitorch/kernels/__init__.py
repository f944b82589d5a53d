"""The fast bodies of operations, found by family and loaded on first use."""

from .loader import load

__all__ = ["load"]
