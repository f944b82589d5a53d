"""Plain safetensors files: named tensors and a few texts, as other programs write and read them."""

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import dtypes
from minitorch.errors import CheckpointError, describe
from minitorch.ops.primitive import wrap
from minitorch.tensor import Tensor

from .atomic import replacing
from .container import CODES, bytes_of, damaged, flat_bytes, read_slots

if TYPE_CHECKING:
    from minitorch.nn.module import Module

Path = str | os.PathLike[str]
_MAX_HEADER = 100_000_000
_METADATA = "__metadata__"


def save_file(
    tensors: Mapping[str, Any], filename: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write named tensors as a safetensors file, replacing it in one step.

    Args:
        tensors: Tensors or arrays by name, such as a `state_dict()`; what is not contiguous is
            written as the values that it shows.
        filename: the file; its folder has to exist.
        metadata: texts by name; "format": "pt" is what readers for PyTorch look for.

    Raises:
        CheckpointError: two names share a tensor, a dtype has no code (complex128), something is
            no tensor, or the file system refused.
    """
    arrays = {name: array_of(name, value) for name, value in tensors.items()}
    if twins := ties(arrays):
        dropped, kept = next(iter(twins.items()))
        raise CheckpointError(
            f"save_file: each tensor must have memory of its own, because the format knows no "
            f"ties. {dropped!r} and {kept!r} share theirs ({len(twins)} such names). Use "
            "save_model(model, filename), or clone() one of them."
        )
    _write(filename, arrays, dict(metadata or {}))


def load_file(filename: Path, device: Any = "cpu") -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Args:
        filename: the file.
        device: where the tensors go.

    Returns:
        The tensors by name, in the order of the file; none requires a gradient.

    Raises:
        CheckpointError: the file is of another kind or damaged, or no Tensor can have a dtype.
        FileNotFoundError: there is no such file.
    """
    where = repr(os.fspath(filename))
    with open(filename, "rb") as file:
        fields, length = _read_header(file, where)
        slots = _slots(fields, length, os.fstat(file.fileno()).st_size, where)
        tensors = {}
        for name, (dtype, shape) in slots.items():
            array = np.empty(shape, dtype)
            values = flat_bytes(array)
            if file.readinto(values) != len(values):
                raise damaged(where, f"it ends within {name!r}")
            if dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
                raise damaged(where, f"{name!r} holds bytes other than 0 and 1 as truth values")
            tensors[name] = wrap(array).to(device)
    return tensors


def load_metadata(filename: Path) -> dict[str, str]:
    """The texts in the header of a safetensors file; the tensors are not read.

    Args:
        filename: The file.

    Raises:
        CheckpointError: the file is of another kind or damaged.
        FileNotFoundError: there is no such file.
    """
    with open(filename, "rb") as file:
        return _read_header(file, repr(os.fspath(filename)))[0].get(_METADATA) or {}


def save_model(model: "Module", filename: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Write the state of a model as a safetensors file, tied tensors once.

    The header says for each name that is left out which name has its values.

    Args:
        model: a Module.
        filename: the file.
        metadata: further texts by name.
    """
    arrays = {name: array_of(name, value) for name, value in model.state_dict().items()}
    twins = ties(arrays)
    kept = {name: array for name, array in arrays.items() if name not in twins}
    _write(filename, kept, dict(metadata or {}) | twins)


def load_model(
    model: "Module", filename: Path, strict: bool = True, device: Any = "cpu"
) -> tuple[list[str], list[str]]:
    """Load a file of `save_model` into a model.

    Args:
        model: a Module; names that are tied in it may be in the file once.
        filename: the file.
        strict: raise where names are missing or unexpected.
        device: where the file's tensors go before they are copied.

    Returns:
        The missing and the unexpected names.

    Raises:
        CheckpointError: as `load_file` and `Module.load_state_dict`.
    """
    state = with_ties(model, load_file(filename, device))
    missing, unexpected = model.load_state_dict(state, strict=strict)
    return missing, unexpected


def ties(arrays: Mapping[str, Any]) -> dict[str, str]:
    """For each name whose array is that of an earlier name: the earlier name."""
    first: dict[Any, str] = {}
    found = {}
    for name, array in arrays.items():
        if array.size:
            at = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
            key = (at, array.shape, array.strides, array.dtype)
            if first.setdefault(key, name) != name:
                found[name] = first[key]
    return found


def with_ties(model: "Module", state: Mapping[str, Any]) -> dict[str, Any]:
    """`state` with the names that are missing in it, but tied in the model to one that is there."""
    groups: dict[int, list[str]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        groups.setdefault(id(tensor), []).append(name)
    full = dict(state)
    for names in groups.values():
        there = [name for name in names if name in state]
        full |= {name: state[there[0]] for name in names if there and name not in state}
    return full


def array_of(name: str, value: Any) -> Any:
    """The array of a tensor or array that a file can hold under this name."""
    array = value._array if isinstance(value, Tensor) else value
    if not hasattr(array, "dtype") or not hasattr(array, "strides"):
        raise CheckpointError(
            f"save_file: each value must be a tensor or an array. Got {type(value).__name__} for "
            f"{name!r}. Put texts into metadata, or use minitorch.save for trees."
        )
    if type(name) is not str or name == _METADATA:
        raise CheckpointError(
            f"save_file: names must be texts other than {_METADATA!r}. Got {name!r}. Use str(name)."
        )
    if CODES.get(array.dtype, "C128") == "C128":
        raise CheckpointError(
            f"save_file: safetensors has no code for the dtype of {name!r}, {describe(array)}. "
            "Use view_as_real(), another dtype, or minitorch.save."
        )
    return array


def _write(filename: Path, arrays: dict[str, Any], metadata: dict[str, str]) -> None:
    for key, text in metadata.items():
        if type(key) is not str or type(text) is not str:
            raise CheckpointError(
                f"save_file: metadata must be texts by name. Got {key!r}: {text!r}. Use str() or "
                "json.dumps()."
            )
    # Widest items first, so that each array is aligned to its items.
    ordered = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    fields: dict[str, Any] = {_METADATA: metadata} if metadata else {}
    offset = 0
    for name in ordered:
        array = arrays[name]
        end = offset + array.nbytes
        fields[name] = {
            "dtype": CODES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    header = json.dumps(fields, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    with replacing(filename) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in ordered:
            file.write(bytes_of(arrays[name]))


def _read_header(file: Any, where: str) -> tuple[dict[str, Any], int]:
    prefix = file.read(9)
    length = int.from_bytes(prefix[:8], "little")
    if prefix[8:] != b"{" or length > _MAX_HEADER:
        raise CheckpointError(
            f"load_file: {where} is no safetensors file: it starts with {prefix!r}. Use "
            "minitorch.load for files of torch.save."
        )
    raw = b"{" + file.read(length - 1)
    if len(raw) != length:
        raise damaged(where, f"it is cut short: the header alone needs {8 + length} bytes")
    try:
        fields = json.loads(raw)
        if not all([type(field) is dict for field in fields.values()]):
            raise ValueError("an entry is no object")
        if not all([type(text) is str for text in fields.get(_METADATA, {}).values()]):
            raise ValueError("the metadata are no texts")
    except (ValueError, RecursionError) as error:
        raise damaged(where, f"its header cannot be read ({error})") from error
    return fields, length


def _slots(fields: dict[str, Any], length: int, size: int, where: str) -> dict[str, Any]:
    fields = {name: field for name, field in fields.items() if name != _METADATA}
    for name, field in fields.items():
        code = field.get("dtype")
        if type(code) is str and code not in CODES.values():
            raise CheckpointError(
                f"load_file: {where} holds {name!r} as {code}, which is not an element type of "
                "tensors here. Convert it with the program that wrote it."
            )
    try:
        slots, used = read_slots(fields, set())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(where, f"its header cannot be read ({error})") from error
    if size != 8 + length + used:
        raise damaged(where, f"it has {size} bytes and its header promises {8 + length + used}")
    known = {dtype.numpy for dtype in dtypes.ALL}
    for name, (dtype, _) in slots.items():
        if dtype not in known:
            raise CheckpointError(
                f"load_file: {where} holds {name!r} as {dtype}, which is not an element type of "
                "tensors here. Convert it with the program that wrote it."
            )
    return slots
