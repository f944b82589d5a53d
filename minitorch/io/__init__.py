"""State trees on safetensors and JSON: atomic, verified, without pickle."""

from .state import load, load_tree, save, save_tree, verify
from .tree import snapshot

__all__ = ["load", "load_tree", "save", "save_tree", "snapshot", "verify"]
