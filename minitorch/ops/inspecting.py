"""Questions about tensors, and the constructors of PyTorch's older programs."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..errors import ArgumentError, DtypeError, describe
from . import creation, layout, primitive

storage_offset = layout.storage_offset


def is_same_size(input: Any, other: Any) -> bool:
    """True if both shapes are equal."""
    return bool(input._array.shape == other._array.shape)


def is_nonzero(input: Any) -> bool:
    """True if the one element is not 0.

    Raises:
        ArgumentError: There is not exactly one element.
    """
    if input.numel() != 1:
        raise ArgumentError(
            f"is_nonzero: exactly one element is needed. Got {describe(input)}. Use .any()."
        )
    return bool(input.item())


def is_signed(input: Any) -> bool:
    """True if the dtype holds negative numbers."""
    return bool(input.dtype.is_signed)


def is_inference(input: Any) -> bool:
    """False: tensors made under inference_mode are ordinary ones."""
    return False


def is_pinned(input: Any) -> bool:
    """False: host memory is not page-locked here."""
    return False


def share_memory_(t: Any) -> Any:
    """The tensor itself; workers get copies."""
    return t


def ndimension(input: Any) -> int:
    """The number of axes."""
    return int(input.ndim)


def get_device(input: Any) -> int:
    """The number of the GPU, -1 on the CPU."""
    return int(input.get_device())


def detach(input: Any) -> Any:
    """The same memory outside of the graph."""
    return input.detach()


def detach_(input: Any) -> Any:
    """Cuts the tensor off the graph that made it."""
    return input.detach_()


def can_cast(from_: Any, to: Any) -> bool:
    """True if an in-place result of the one dtype may be written into the other."""
    return dtypes.can_cast(dtypes.of(from_), dtypes.of(to))


def typename(obj: Any) -> str:
    """The name of the type of a tensor or any object."""
    if isinstance(obj, primitive.Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def is_storage(obj: Any) -> bool:
    """False: there are no storage objects here."""
    return False


def new(self: Any, *data: Any, device: Any = None) -> Any:
    """An older constructor: like this tensor, of the given sizes or with the given values."""
    options = {"dtype": self.dtype, "device": self.device if device is None else device}
    if len(data) == 1 and not isinstance(data[0], int | tuple):
        return creation.tensor(data[0], **options)
    if len(data) == 1 and isinstance(data[0], tuple) and not hasattr(data[0], "numel"):
        return creation.tensor(data[0], **options)
    return creation.empty(*(data or (0,)), **options)


def new_empty_strided(self: Any, size: Any, stride: Any, **options: Any) -> Any:
    """`empty_strided` with the dtype and device of this tensor."""
    from .making import empty_strided

    return empty_strided(size, stride, **{"dtype": self.dtype, "device": self.device} | options)


class _TypedTensor(type):
    """`isinstance(x, FloatTensor)` asks for the dtype and for the CPU."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, value: Any) -> bool:
        return (
            isinstance(value, primitive.Tensor)
            and value.dtype is cls.dtype
            and value.device.type == "cpu"
        )

    def __call__(cls, *data: Any) -> Any:
        """A tensor of the dtype with the given sizes (arbitrary values), or of given values."""
        if len(data) == 1 and not isinstance(data[0], int):
            return creation.tensor(data[0]).to(cls.dtype)
        return creation.empty(*(data or (0,)), dtype=cls.dtype)


def _typed(name: str, d: dtypes.dtype) -> Any:
    return _TypedTensor(name, (), {"dtype": d, "__doc__": f"Tensors of {d.name} on the CPU."})


FloatTensor = _typed("FloatTensor", dtypes.float32)
DoubleTensor = _typed("DoubleTensor", dtypes.float64)
HalfTensor = _typed("HalfTensor", dtypes.float16)
BFloat16Tensor = _typed("BFloat16Tensor", dtypes.bfloat16)
ByteTensor = _typed("ByteTensor", dtypes.uint8)
CharTensor = _typed("CharTensor", dtypes.int8)
ShortTensor = _typed("ShortTensor", dtypes.int16)
IntTensor = _typed("IntTensor", dtypes.int32)
LongTensor = _typed("LongTensor", dtypes.int64)
BoolTensor = _typed("BoolTensor", dtypes.bool_)
TYPED: dict[str, dtypes.dtype] = {
    kind.__name__: kind.dtype
    for kind in (
        FloatTensor,
        DoubleTensor,
        HalfTensor,
        BFloat16Tensor,
        ByteTensor,
        CharTensor,
        ShortTensor,
        IntTensor,
        LongTensor,
        BoolTensor,
    )
}


def type_of(input: Any, dtype: Any = None) -> Any:
    """The tensor in another dtype; without one, PyTorch's name of the type of the tensor.

    Args:
        input: Tensor.
        dtype: A dtype, a tensor type such as `LongTensor`, or its name.

    Raises:
        DtypeError: There is no such type.
    """
    if dtype is None:
        kind = next((name for name, d in TYPED.items() if d is input.dtype), "Tensor")
        return f"torch.{'cuda.' if input.is_cuda else ''}{kind}"
    if isinstance(dtype, _TypedTensor):
        return input.to(dtype.dtype, device="cpu")
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        if name not in TYPED:
            raise DtypeError(
                f"type: the name must be one of {', '.join(TYPED)}. Got {dtype!r}. Use a dtype."
            )
        return input.to(TYPED[name], device="cuda" if ".cuda." in dtype else "cpu")
    return input.to(dtype)
