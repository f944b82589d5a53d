"""The errors that minitorch raises, and the short names of values in their texts.

A message states the rule, what came and the fix. Each class is also a built-in error of the
kind that PyTorch raises in the same place, so that ported `except` clauses go on working.
"""

from collections.abc import Sequence
from typing import Any


class ShapeError(RuntimeError, ValueError):
    """Shapes do not fit the rule of the operation."""


class AxisError(ShapeError, IndexError):
    """An axis that does not exist; PyTorch raises IndexError for it."""


class IndexRangeError(ShapeError, IndexError):
    """A position outside of the tensor; PyTorch raises IndexError for it."""


class DtypeError(RuntimeError, TypeError):
    """A dtype is not accepted, or two dtypes must not mix."""


class DeviceError(RuntimeError):
    """Operands live on different devices, or a device is not available."""


class DivisionByZeroError(RuntimeError, ZeroDivisionError):
    """Whole numbers were divided by 0."""


class GraphError(RuntimeError):
    """The autograd graph was used in a way that cannot give right gradients."""


class SingularError(RuntimeError):
    """A matrix has no inverse or decomposition of this kind; `linalg.LinAlgError`."""


class ArgumentError(ValueError):
    """An option or argument has a value outside of its rule."""


class DataError(ValueError):
    """A dataset, loader or batch breaks a rule."""


class CheckpointError(RuntimeError):
    """A file cannot be written or read as a state tree."""


class TrainerError(RuntimeError):
    """A program under the Trainer breaks a rule."""


class DistributedError(RuntimeError):
    """The processes of a group do not do the same, or one of them has ended."""


class DivergenceError(TrainerError):
    """A loss or gradient from which training cannot go on; its update was not applied.

    Attributes:
        batch: Number of the batch in its epoch, once the Trainer has caught it.
    """

    batch: int = -1


class PitfallWarning(UserWarning):
    """A program under the Trainer does what is rarely meant; docs/pitfalls.md lists the cases."""


_SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}


def listed(names: Sequence[str]) -> str:
    """The first eight names, and how many more there are."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def describe(value: Any) -> str:
    """The dtype and shape of a tensor or array in short.

    Args:
        value: A Tensor, an array, or any other object.

    Returns:
        `"f32[8,3]"` for a tensor or array, else the name of the type.
    """
    array = getattr(value, "_array", value)
    shape = getattr(array, "shape", None)
    dtype = getattr(array, "dtype", None)
    if shape is None or dtype is None:
        return type(value).__name__
    name = str(dtype)
    return f"{_SHORT.get(name, name)}[{','.join(map(str, shape))}]"
