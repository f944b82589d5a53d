"""State trees and tensors in files: atomic, verified, without pickle."""

from ..lazy import lazy
from .state import load, load_tree, save, save_tree, verify
from .tree import snapshot

__all__ = [
    "load",
    "load_config",
    "load_file",
    "load_folder",
    "load_metadata",
    "load_model",
    "load_tree",
    "save",
    "save_file",
    "save_folder",
    "save_model",
    "save_tree",
    "snapshot",
    "verify",
]

_HOLDERS = {
    "tensor_file": "load_file load_metadata load_model save_file save_model",
    "folder": "load_config load_folder save_folder",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)
