"""Activation functions under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes, random
from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import activation as ops
from ...ops import elementwise, inplace, joining, primitive
from ...ops import softmax as softmax_ops
from ...ops.linalg import autocast_operands
from ...tensor import Tensor


def _apply(
    name: str, op: Callable[..., Any], x: Tensor, in_place: bool = False, **options: Any
) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name}: expected a Tensor. Got {type(x).__name__}. Use minitorch.tensor(...)."
        )
    if not x.dtype.is_floating_point:
        if name != "relu":
            raise DtypeError(
                f"{name}: the input must be floating. Got {describe(x)}. Convert it with .float()."
            )
    if in_place:
        return inplace.apply_(x, f"{name}_", op, **options)
    return op(x, **options)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(0, x)`."""
    return _apply("relu", elementwise.relu, input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`x` for x > 0, else `negative_slope · x`."""
    return _apply("leaky_relu", ops.leaky_relu, input, inplace, slope=negative_slope)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`x` for x > 0, else `weight · x`, with one weight or one for each channel (axis 1).

    Raises:
        ShapeError: The number of weights is neither 1 nor the number of channels.
    """
    input, weight = autocast_operands(input, weight)
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ShapeError(
            f"prelu: weight must have 1 element or one for each of the {channels} channels. "
            f"Got {describe(weight)} for the input {describe(input)}."
        )
    if weight.numel() > 1:
        weight = weight.reshape(-1, *[1] * (input.ndim - 2))
    return elementwise.where(input > 0, input, input * weight)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` for x > 0, else `alpha · (exp x - 1)`."""
    return _apply("elu", ops.elu, input, inplace, alpha=alpha, scale=1.0)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`x` for x > 0, else `alpha · (exp(x / alpha) - 1)`."""
    return _apply("celu", lambda x: ops.elu(x / alpha, alpha=1.0, scale=alpha), input, inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled ELU whose activations keep mean 0 and variance 1.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    return _apply("selu", ops.elu, input, inplace, alpha=ops.SELU_ALPHA, scale=ops.SELU_SCALE)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """`x · Φ(x)`, Φ being the normal distribution; "tanh" is its usual approximation.

    Raises:
        ArgumentError: `approximate` is neither "none" nor "tanh".

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate must be 'none' or 'tanh'. Got {approximate!r}.")
    return _apply("gelu", ops.gelu if approximate == "none" else ops.gelu_tanh, input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`x · sigmoid(x)`, also called swish."""
    return _apply("silu", ops.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x · tanh(softplus(x))`."""
    return _apply("mish", ops.mish, input, inplace)


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return elementwise.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return elementwise.tanh(input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """`log(1 + exp(beta·x)) / beta`; x itself where `beta·x > threshold`."""
    return _apply("softplus", ops.softplus, input, beta=beta, threshold=threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """`log sigmoid(x)`, finite for every x."""
    return _apply("logsigmoid", ops.logsigmoid, input)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Limits x to `[min_val, max_val]`.

    Raises:
        ArgumentError: `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ArgumentError(
            f"hardtanh: min_val must not be above max_val. Got {min_val} and {max_val}."
        )
    return _apply("hardtanh", ops.hardtanh, input, inplace, low=min_val, high=max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Limits x to [0, 6]."""
    return _apply("relu6", ops.hardtanh, input, inplace, low=0.0, high=6.0)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x · relu6(x + 3) / 6`."""
    return _apply("hardswish", ops.hardswish, input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`relu6(x + 3) / 6`."""
    return _apply("hardsigmoid", ops.hardsigmoid, input, inplace)


def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`."""
    return _apply("softsign", ops.softsign, input)


def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`."""
    return input - elementwise.tanh(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`x` for x > threshold, else `value`."""
    return _apply("threshold", ops.threshold, input, inplace, threshold=threshold, value=value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """`a · sigmoid(b)`, a and b being the halves of x along `dim`.

    Raises:
        ShapeError: The axis has an odd length.
    """
    if not input.ndim or input.shape[dim] % 2:
        raise ShapeError(
            f"glu: axis {dim} must have an even length to be halved. Got {describe(input)}."
        )
    a, b = joining.chunk(input, 2, dim)
    return a * elementwise.sigmoid(b)


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`exp(x) / Σ exp(x)` along `dim`, which must be named."""
    return softmax_ops.softmax(input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`x - log Σ exp(x)` along `dim`, which must be named."""
    return softmax_ops.log_softmax(input, dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """softmax of -x.

    Args:
        input: f[…].
        dim: The axis of a distribution.
        dtype: Dtype to compute in; default that of the input.
    """
    return softmax_ops.softmax(-input, dim, dtype=dtype)


def masked_softmax(input: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """softmax over the elements where `mask` is true; the others are 0, and all if none is true.

    Args:
        input: f[…].
        mask: bool, broadcast to the input.
        dim: The axis of a distribution.

    Raises:
        DtypeError: The mask is not bool.
    """
    return softmax_ops.masked_softmax(input, mask, dim)


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample from the Gumbel-softmax distribution; `hard` makes it one-hot with soft gradients.

    Args:
        logits: f[…], unnormalised log-probabilities.
        tau: Temperature, > 0; towards 0 samples come close to one-hot.
        dim: The axis of a distribution.

    `eps` has no effect, as in PyTorch.

    Source: Jang et al., Categorical Reparameterization with Gumbel-Softmax, 2016.
    """
    noise = random.stream("default").numpy().gumbel(size=tuple(logits.shape))
    gumbels = primitive.wrap(noise.astype(dtypes.float32.numpy)).to(logits.device, logits.dtype)
    soft = softmax_ops.softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    top = soft.detach() == soft.detach().amax(dim, keepdim=True)
    return top.to(soft.dtype) - soft.detach() + soft
