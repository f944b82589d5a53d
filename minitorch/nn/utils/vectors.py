"""Parameters as one vector, and modules put together or taken apart for use without training."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ... import random
from ...errors import ArgumentError, ShapeError, describe
from ...ops.creation import ones_like, zeros_like
from ...ops.joining import cat
from ...tensor import Parameter, Tensor
from ..module import Module


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters, one after another, in one 1-d tensor; differentiable."""
    vector: Tensor = cat([p.reshape(-1) for p in parameters])
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Sets the values of the parameters to consecutive parts of `vec`.

    Args:
        vec: 1-d tensor with as many elements as the parameters have together.
        parameters: The parameters.

    Raises:
        ArgumentError: `vec` is no tensor.
        ShapeError: The number of elements differs; nothing was changed.
    """
    if not isinstance(vec, Tensor):
        raise ArgumentError(f"vector_to_parameters: expected a tensor. Got {type(vec).__name__}.")
    params = list(parameters)
    total = sum(p.numel() for p in params)
    if vec.numel() != total:
        raise ShapeError(
            f"vector_to_parameters: the vector must have one element for each of the {total} of "
            f"the parameters. Got {describe(vec)}."
        )
    start = 0
    for p in params:
        part = vec.detach()[start : start + p.numel()]
        p.data = part.reshape(p.shape).to(dtype=p.dtype, copy=True)
        start += p.numel()


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose values are arbitrary; its initialisation takes no random number.

    Args:
        module_cls: The class.
        args: Its arguments.
        kwargs: Its keyword arguments.
    """
    with random.fork_rng():
        return module_cls(*args, **kwargs)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does the work of the batch normalisation behind it as well.

    Args:
        conv: The convolution, in evaluation mode.
        bn: The normalisation, in evaluation mode.
        transpose: The convolution is a transposed one.

    Returns:
        A convolution with the same results as both.
    """
    return _fused("fuse_conv_bn_eval", conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that does the work of the batch normalisation behind it as well."""
    return _fused("fuse_linear_bn_eval", linear, bn, 0)


def _fused(name: str, layer: Any, bn: Any, axis: int) -> Any:
    if layer.training or bn.training or bn.running_mean is None:
        raise ArgumentError(
            f"{name}: both modules must be in evaluation mode, and the normalisation must have "
            "running statistics. Call eval() on them first."
        )
    fused = copy.deepcopy(layer)
    mean = bn.running_mean
    weight = ones_like(mean) if bn.weight is None else bn.weight.detach()
    shift = zeros_like(mean) if bn.bias is None else bn.bias.detach()
    scale = weight / (bn.running_var + bn.eps).sqrt()
    shape = [-1 if i == axis else 1 for i in range(layer.weight.ndim)]
    before = zeros_like(mean) if layer.bias is None else layer.bias.detach()
    old = layer.weight
    fused.weight = Parameter((old.detach() * scale.reshape(shape)).to(old.dtype), old.requires_grad)
    fused.bias = Parameter(((before - mean) * scale + shift).to(old.dtype), old.requires_grad)
    return fused
