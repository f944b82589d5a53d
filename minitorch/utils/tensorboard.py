"""`SummaryWriter` under PyTorch's path; it is tensorboardX's, which must be installed."""

from __future__ import annotations

import functools
from typing import Any

from ..pytree import mapped
from ..tensor import Tensor


def _plain(value: Any) -> Any:
    """Tensors as NumPy arrays, which tensorboardX knows."""
    return mapped(lambda x: x.detach().numpy(force=True) if isinstance(x, Tensor) else x, value)


def _made() -> type:
    from tensorboardX import SummaryWriter as Writer  # type: ignore[import-untyped, unused-ignore]

    def accepting(method: Any) -> Any:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return method(self, *map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})

        return call

    added = {
        name: accepting(method)
        for name, method in vars(Writer).items()
        if name.startswith("add_") and callable(method)
    }
    added["__doc__"] = "tensorboardX's writer; tensors of minitorch can be logged."
    return type("SummaryWriter", (Writer,), added)


def __getattr__(name: str) -> Any:
    if name != "SummaryWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["SummaryWriter"] = found = _made()
    return found
