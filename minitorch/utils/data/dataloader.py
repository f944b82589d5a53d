"""The loader and what goes with it, where PyTorch has them."""

from minitorch.data.collate import default_collate, default_convert
from minitorch.data.loader import DataLoader
from minitorch.data.worker_info import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
