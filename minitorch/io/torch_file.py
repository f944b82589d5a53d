"""A reader for the zip archives that `torch.save` writes (PyTorch 1.6 and later).

An archive holds `NAME/data.pkl`, a pickle of the structure in which each tensor is a view of a
storage, and the bytes of the storages as `NAME/data/KEY`. The pickle is read by a machine that
runs nothing.

Source: the layout is that of `torch/serialization.py`, as documented in PyTorch's "Serialization
semantics".
"""

import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.device import device
from minitorch.errors import CheckpointError
from minitorch.ops.primitive import wrap
from minitorch.tensor import Parameter, Size, Tensor

from .container import damaged, flat_bytes
from .pickle_machine import Call, Missing, Outside, read_pickle, refused

Locate = Callable[[str], device | None]

_STORAGES = {
    "BoolStorage": dtypes.bool_,
    "ByteStorage": dtypes.uint8,
    "CharStorage": dtypes.int8,
    "ShortStorage": dtypes.int16,
    "IntStorage": dtypes.int32,
    "LongStorage": dtypes.int64,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "FloatStorage": dtypes.float32,
    "DoubleStorage": dtypes.float64,
    "ComplexFloatStorage": dtypes.complex64,
    "ComplexDoubleStorage": dtypes.complex128,
}
_BAD_ARCHIVE = (
    EOFError, NotImplementedError, OSError, OverflowError, ValueError, struct.error,
    zipfile.BadZipFile,
)  # fmt: skip
_MAX_EXPANDED_BYTES = 1 << 30


def read_torch(file: Any, where: str, locate: Locate) -> Any:
    """What `torch.save` wrote: tensors and plain values in dicts, lists, tuples and sets.

    Tensors that are the same view of one storage come back as one object; other views of a storage
    get memory of their own.

    Args:
        file: a seekable binary file.
        where: its name for error texts.
        locate: from the place that the file names, such as "cuda:0", to the device; None for the
            CPU.

    Raises:
        CheckpointError: the file holds anything else (named), is of another kind, or damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return _Archive(archive, where, locate).read()
    except _BAD_ARCHIVE as error:
        raise damaged(where, f"the zip archive cannot be read ({error})") from error


_NO_DTYPES = (
    "uint16 uint32 uint64 complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float4_e2m1fn_x2"
).split()


def _no_dtype(name: str) -> Missing:
    wider = "torch.int64" if name.startswith("uint") else "torch.float32"
    wider = "torch.complex64" if name.startswith("complex") else wider
    fix = f"In PyTorch, convert the tensor before saving: tensor.to({wider})."
    return Missing(f"the element type torch.{name}", fix)


class _Storage(Outside):
    """Memory that tensors are views of."""

    name = "a storage without its tensor"

    def __init__(self, key: str, dtype: dtypes.dtype | None, memory: np.ndarray, place: str):
        self.key = key
        self.dtype = dtype
        self.memory = memory
        self.place = place


class _Archive:
    def __init__(self, archive: zipfile.ZipFile, where: str, locate: Locate) -> None:
        self._archive = archive
        self._where = where
        self._locate = locate
        self._infos = {info.filename: info for info in archive.infolist()}
        self._root = self._find_root()
        self._swap = self._is_swapped()
        self._bytes: dict[str, np.ndarray] = {}
        self._given_away: set[str] = set()
        self._tensors: dict[Any, Tensor] = {}

    def read(self) -> Any:
        data = self._record("data.pkl").tobytes()
        return read_pickle(data, self._table(), self._storage, self._where)

    def _find_root(self) -> str:
        ends = [name for name in self._infos if name.endswith("/data.pkl")]
        roots = [name.removesuffix("data.pkl") for name in ends]
        if len(roots) != 1:
            raise CheckpointError(
                f"load: {self._where} is a zip archive that torch.save did not write (it has "
                f"{len(roots)} entries data.pkl). Read numpy.savez files with numpy.load."
            )
        if f"{roots[0]}constants.pkl" in self._infos:
            raise refused(self._where, "a TorchScript program")
        return roots[0]

    def _is_swapped(self) -> bool:
        if f"{self._root}byteorder" not in self._infos:
            return sys.byteorder != "little"
        order = self._record("byteorder").tobytes().decode("ascii", "replace")
        if order not in ("little", "big"):
            raise damaged(self._where, f"its byte order is {order!r}")
        return order != sys.byteorder

    def _record(self, name: str, expected_bytes: int | None = None) -> np.ndarray:
        info = self._infos.get(self._root + name)
        if info is None:
            raise damaged(self._where, f"it has no entry {self._root + name!r}")
        if info.compress_type != zipfile.ZIP_STORED:
            raise CheckpointError(
                f"load: entries must be stored as they are, as torch.save does. {self._where} has "
                f"{info.filename!r} compressed. Pack it again without compression (zip -0)."
            )
        if expected_bytes is not None and info.file_size != expected_bytes:
            raise damaged(
                self._where,
                f"{info.filename!r} has {info.file_size} bytes and needs {expected_bytes}",
            )
        if info.flag_bits & 1:
            raise damaged(self._where, f"{info.filename!r} is encrypted")
        memory = np.empty(info.file_size, np.uint8)
        with self._archive.open(info) as entry:
            if entry.readinto(flat_bytes(memory)) != info.file_size:  # type: ignore[attr-defined]
                raise damaged(self._where, f"it ends within {info.filename!r}")
            entry.read(1)  # the checksum is compared at the end of an entry
        return memory

    def _table(self) -> dict[str, Any]:
        functions: dict[str, Callable[..., Any]] = {
            "collections.OrderedDict": _ordered_dict,
            "torch.Size": lambda sizes: Size(_integers(sizes)),
            "torch.device": device,
            "torch._utils._rebuild_tensor": self._rebuild_old_tensor,
            "torch._utils._rebuild_tensor_v2": self._rebuild_tensor,
            "torch._utils._rebuild_tensor_v3": self._rebuild_untyped_tensor,
            "torch._utils._rebuild_parameter": self._rebuild_parameter,
            "_codecs.encode": _encode,
        }
        for module in ("builtins", "__builtin__"):
            kinds = (("set", set), ("frozenset", frozenset), ("complex", complex))
            functions |= {f"{module}.{name}": _one_of(kind) for name, kind in kinds}
        constants: dict[str, Any] = {f"torch.{name}": dtype for name, dtype in _STORAGES.items()}
        constants |= {f"torch.{dtype.name}": dtype for dtype in dtypes.ALL}
        constants["torch.storage.UntypedStorage"] = None
        constants |= {f"torch.{name}": _no_dtype(name) for name in _NO_DTYPES}
        constants["torch._utils._rebuild_qtensor"] = Missing(
            "a quantized tensor", "In PyTorch, save tensor.dequantize()."
        )
        return {name: Call(name, function) for name, function in functions.items()} | constants

    def _storage(self, description: Any) -> _Storage:
        kind, dtype, key, place, count = description
        ours = dtype is None or isinstance(dtype, dtypes.dtype)
        texts = type(key) is str and type(place) is str
        if kind != "storage" or not ours or not texts or type(count) is not int or count < 0:
            raise ValueError(f"no storage is described by {description!r}")
        size = 1 if dtype is None else dtype.itemsize
        if key not in self._bytes:
            self._bytes[key] = self._record(f"data/{key}", count * size)
        memory = self._bytes[key]
        if memory.nbytes != count * size:
            raise ValueError(f"the storage {key!r} has two lengths")
        return _Storage(key, dtype, memory, place)

    def _rebuild_old_tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
        return self._view(storage, storage.dtype, offset, size, stride, False)

    def _rebuild_tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        metadata: Any = None,
    ) -> Tensor:
        self._check_hooks(hooks)
        tensor = self._view(storage, storage.dtype, offset, size, stride, requires_grad)
        return self._with_metadata(tensor, metadata)

    def _rebuild_untyped_tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Tensor:
        self._check_hooks(hooks)
        tensor = self._view(storage, dtype, offset, size, stride, requires_grad)
        return self._with_metadata(tensor, metadata)

    def _rebuild_parameter(self, data: Any, requires_grad: Any, hooks: Any) -> Parameter:
        self._check_hooks(hooks)
        if type(data) is not Tensor or type(requires_grad) is not bool:
            raise TypeError("a Parameter is made of a tensor and a bool")
        return Parameter(data.detach(), requires_grad)

    def _check_hooks(self, hooks: Any) -> None:
        if hooks:
            raise refused(self._where, "a tensor with backward hooks")

    def _with_metadata(self, tensor: Tensor, metadata: Any) -> Tensor:
        if not metadata:
            return tensor
        if type(metadata) is not dict or metadata.keys() - {"conj", "neg"}:
            raise refused(self._where, f"a tensor with the metadata {metadata!r}")
        array = tensor._array
        array = array.conj() if metadata.get("conj") else array
        return wrap(-array if metadata.get("neg") else array)

    def _view(
        self, storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any
    ) -> Tensor:
        if not isinstance(storage, _Storage) or not isinstance(dtype, dtypes.dtype):
            raise TypeError("a tensor is made of a storage and a dtype")
        size, stride = _integers(size), _integers(stride)
        (offset,) = _integers((offset,))
        key = (storage.key, dtype, offset, size, stride, requires_grad is True)
        if key not in self._tensors:
            array = self._take(storage, dtype.numpy, offset, size, stride)
            tensor = wrap(array)
            target = self._locate(storage.place)
            tensor = tensor if target is None else tensor.to(target)
            self._tensors[key] = tensor.requires_grad_() if requires_grad is True else tensor
        return self._tensors[key]

    def _take(
        self,
        storage: _Storage,
        dtype: Any,
        offset: int,
        size: tuple[int, ...],
        stride: tuple[int, ...],
    ) -> np.ndarray:
        """The values of a view as a contiguous array that nothing else shares."""
        if len(size) != len(stride):
            raise ValueError(f"the sizes {size} do not fit the strides {stride}")
        values = storage.memory.view(dtype)
        if 0 in size:
            return np.empty(size, dtype)
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if last >= len(values):
            raise ValueError(f"a tensor ends at {last} in a storage of {len(values)}")
        count = int(np.prod([float(n) for n in size]))
        if count > len(values) and count * dtype.itemsize > _MAX_EXPANDED_BYTES:
            raise CheckpointError(
                f"load: {self._where} has {len(values)} values expanded to the shape {size}, which "
                "would need more than 1 GiB. Save the tensor before expand()."
            )
        steps = tuple([step * dtype.itemsize for step in stride])
        view = np.lib.stride_tricks.as_strided(values[offset:], size, steps)
        if dtype == np.bool_ and storage.memory.max(initial=0) > 1:
            raise ValueError("a truth value is neither 0 nor 1")
        if count == len(values) and view.flags.c_contiguous and storage.key not in self._given_away:
            self._given_away.add(storage.key)
            array = values.reshape(size)
        else:
            array = np.array(view, order="C")
        return _swapped(array) if self._swap else array


def _swapped(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "V":  # bfloat16 knows no byte order
        return array.view(np.uint16).byteswap().view(array.dtype)
    return array.byteswap()


def _integers(values: Any) -> tuple[int, ...]:
    values = tuple(values)
    if not all([type(value) is int and value >= 0 for value in values]):
        raise ValueError(f"{values} are no sizes")
    return values


def _ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict([(key, value) for key, value in items])


def _encode(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise ValueError("bytes are written as latin1 text")
    return text.encode("latin1")


def _one_of(kind: type) -> Callable[..., Any]:
    allowed: tuple[type, ...] = (list, tuple, set, float, int)

    def make(*arguments: Any) -> Any:
        if not all([type(argument) in allowed for argument in arguments]):
            raise TypeError(f"{kind.__name__} of {arguments!r}")
        return kind(*arguments)

    return make
