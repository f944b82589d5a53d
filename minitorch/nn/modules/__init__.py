"""PyTorch's place for the layers: `from minitorch.nn.modules import Linear` is `nn.Linear`."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("module", "batchnorm", "instancenorm", "normalization", "conv"):
        return importlib.import_module(f"{__name__}.{name}")
    value = None if name.startswith("_") else getattr(importlib.import_module("..", __name__), name)
    if not isinstance(value, type):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value
