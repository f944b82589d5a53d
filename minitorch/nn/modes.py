"""A block in eval mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .module import Module


@contextlib.contextmanager
def evaluating(module: Module) -> Iterator[None]:
    """Eval mode for all submodules; each gets its own mode back at the end."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
