"""Start values of parameters: PyTorch's distributions, drawn from the random stream "init".

Each function fills a tensor in place, without recording, and returns it.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backend, dtypes, random
from ..autograd import no_grad
from ..errors import ArgumentError, ShapeError, describe
from ..ops.primitive import wrap
from ..tensor import Tensor

_GAINS: dict[str, float] = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which a nonlinearity asks for larger weights.

    Args:
        nonlinearity: "linear", "relu", "leaky_relu", "tanh", "sigmoid", "selu" or "conv1d" ….
        param: Negative slope of "leaky_relu"; default 0.01.

    Raises:
        ArgumentError: Unknown nonlinearity.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ArgumentError(
            f"calculate_gain: unknown nonlinearity {nonlinearity!r}. "
            f"Use one of {sorted([*_GAINS, 'leaky_relu'])}."
        )
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output sees, and how many outputs each input reaches."""
    if tensor.ndim < 2:
        raise ShapeError(
            f"init: fan in and fan out need at least 2 axes [out, in, …]. Got {describe(tensor)}. "
            "Use uniform_, normal_ or zeros_ for vectors."
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ArgumentError(f"init: mode must be 'fan_in' or 'fan_out'. Got {mode!r}.")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def _fill(
    tensor: Tensor, generator: Any, draw: Callable[[np.random.Generator, Any], np.ndarray]
) -> Tensor:
    """Writes `draw(generator, dtype)` into the tensor; half types are drawn in float32."""
    bits = (random.stream("init") if generator is None else generator).numpy()
    kind = np.float64 if tensor.dtype is dtypes.float64 else np.float32
    values = np.asarray(draw(bits, kind), dtype=tensor.dtype.numpy).reshape(tuple(tensor.shape))
    with no_grad():
        return tensor.copy_(wrap(backend.from_host(values, tensor.device)))


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers from [a, b)."""
    shape = tuple(tensor.shape)

    def draw(bits: np.random.Generator, kind: Any) -> np.ndarray:
        values = bits.random(shape, dtype=kind)
        values *= kind(b - a)
        values += kind(a)
        return values

    return _fill(tensor, generator, draw)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normally distributed numbers.

    Raises:
        ArgumentError: std is negative.
    """
    if std < 0:
        raise ArgumentError(f"normal_: std must not be negative. Got {std}.")
    shape = tuple(tensor.shape)

    def draw(bits: np.random.Generator, kind: Any) -> np.ndarray:
        values = bits.standard_normal(shape, dtype=kind)
        values *= kind(std)
        values += kind(mean)
        return values

    return _fill(tensor, generator, draw)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normally distributed numbers, drawn again until they lie in [a, b].

    Raises:
        ArgumentError: [a, b] is empty, or lies so far from the mean that nothing is hit.
    """
    if not a < b or b < mean - 6 * std or a > mean + 6 * std:
        raise ArgumentError(
            f"trunc_normal_: [a, b] must be an interval within 6 std of the mean. Got [{a}, {b}] "
            f"for mean {mean} and std {std}. a and b are absolute values, not multiples of std."
        )
    size = tensor.numel()

    def draw(bits: np.random.Generator, kind: Any) -> np.ndarray:
        kept = np.empty(0)
        while kept.size < size:
            values = mean + std * bits.standard_normal(size + 16)
            kept = np.concatenate([kept, values[(values >= a) & (values <= b)]])
        return kept[:size]

    return _fill(tensor, generator, draw)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """The number `val` everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor, generator: Any = None) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Raises:
        ShapeError: The tensor is no matrix.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: a matrix is needed. Got {describe(tensor)}.")
    return _put(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that hands its input through, as far as there are channels.

    Raises:
        ShapeError: The tensor does not have 3 to 5 axes, or the groups do not divide axis 0.
    """
    shape = tuple(tensor.shape)
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        raise ShapeError(
            "dirac_: the weight of a convolution is needed, and groups must divide axis 0. "
            f"Got {describe(tensor)} with groups={groups}."
        )
    values, per_group = np.zeros(shape), shape[0] // groups
    centre = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for d in range(min(per_group, shape[1])):
            values[(group * per_group + d, d, *centre)] = 1
    return _put(tensor, values)


def _put(tensor: Tensor, values: np.ndarray) -> Tensor:
    values = values.astype(tensor.dtype.numpy)
    with no_grad():
        return tensor.copy_(wrap(backend.from_host(values, tensor.device)))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in ±`gain · sqrt(6 / (fan_in + fan_out))`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep networks, 2010.
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with std `gain · sqrt(2 / (fan_in + fan_out))`.

    Source: Glorot and Bengio, Understanding the difficulty of training deep networks, 2010.
    """
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform in ±`gain · sqrt(3 / fan)`.

    Args:
        tensor: The weight, [out, in, …].
        a: Negative slope, for "leaky_relu".
        mode: "fan_in" keeps the variance in the forward pass, "fan_out" in the backward pass.
        nonlinearity: What follows the layer.
        generator: Draw from it instead of the stream "init".

    Source: He et al., Delving Deep into Rectifiers, 2015.
    """
    if tensor.numel() == 0:
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / fan)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal with std `gain / sqrt(fan)`; arguments as in `kaiming_uniform_`.

    Source: He et al., Delving Deep into Rectifiers, 2015.
    """
    if tensor.numel() == 0:
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """A random matrix with orthogonal rows or columns; later axes count as columns.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning, 2013.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_: at least 2 axes are needed. Got {describe(tensor)}.")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if not rows * columns:
        return tensor

    def draw(bits: np.random.Generator, kind: Any) -> np.ndarray:
        flat = bits.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(flat)
        q *= np.sign(np.diag(r))
        return gain * (q if rows >= columns else q.T)

    return _fill(tensor, generator, draw)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, with a share `sparsity` of each column set to 0.

    Source: Martens, Deep learning via Hessian-free optimization, 2010.
    """
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: a matrix is needed. Got {describe(tensor)}.")
    rows, columns = tensor.shape

    def draw(bits: np.random.Generator, kind: Any) -> np.ndarray:
        values = bits.normal(0, std, (rows, columns))
        zeros = math.ceil(sparsity * rows)
        for column in range(columns):
            values[bits.permutation(rows)[:zeros], column] = 0
        return values

    return _fill(tensor, generator, draw)


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function under its old name, with a warning."""
    name = function.__name__

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"nn.init.{name[:-1]} is deprecated: it writes in place. Use nn.init.{name}.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name[:-1]
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
