"""The activations that Hugging Face's configurations name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..errors import ArgumentError
from ..nn import functional as F
from ..ops.elementwise import relu, tanh
from ..tensor import Tensor

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": relu,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": tanh,
}


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """The function that a configuration calls `name`; "gelu" is exact, "gelu_new" the tanh form.

    Raises:
        ArgumentError: there is none.
    """
    if name not in _ACTIVATIONS:
        raise ArgumentError(f"activation: one of {', '.join(_ACTIVATIONS)}. Got {name!r}.")
    return _ACTIVATIONS[name]
