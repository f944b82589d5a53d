"""The fast bodies of operations, found by family and loaded on first use."""

from .loader import load, load_for

__all__ = ["load", "load_for"]
