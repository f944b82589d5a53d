"""Saving and loading of state trees: the one way in which state reaches a file."""

import json
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.device import device
from minitorch.errors import ArgumentError

from . import container
from .atomic import replacing
from .tree import decode, encode

_NOT_A_TREE = (AttributeError, KeyError, TypeError, ValueError, struct.error, RecursionError)
Path = str | os.PathLike[str]


def save_tree(path: Path, tree: Any) -> None:
    """Write a state tree to a file, replacing it in one step.

    At every moment, also after a crash or a full disk, the path holds either its previous content
    or the new content in full; what was written is read back and its hash compared before the
    previous content goes. A tensor that stands in several places is written once; of a slice
    only its own values are written. What another thread goes on changing has to be given as a
    `snapshot`.

    Args:
        path: the file; its folder has to exist.
        tree: nested dict, list, tuple and set of Tensor, ndarray, NumPy scalar, int, float,
            complex, str, bytes, bool, None, Path, Size, dtype and device; keys are plain values or
            tuples of them.

    Raises:
        CheckpointError: the tree holds something else (the text says where), or the file system
            refused.
    """
    structure, entries = encode(tree)
    text = _to_text(structure)
    with replacing(path, check=container.check_digest) as file:
        container.write(file, text, entries)


def load_tree(path: Path, *, map_location: Any = None) -> Any:
    """Read a file that `save_tree` wrote; nothing in it is executed.

    Args:
        path: the file.
        map_location: the device for the tensors, such as "cuda:0"; None means the CPU.

    Returns:
        The tree that was saved: the same types, values bit by bit, keys and their order.
        Tensors do not require a gradient; one that was saved in several places is one object.

    Raises:
        CheckpointError: the file is of another kind, cut short or damaged.
        FileNotFoundError: there is no such file.
    """
    target = _locator(map_location)("cpu")
    with open(path, "rb") as file:
        return _read(file, repr(os.fspath(path)), target)


def verify(path: Path) -> bool:
    """Return True if the file is a whole and undamaged state tree.

    Args:
        path: The file.

    Raises:
        CheckpointError: it is not; the text says why.
        FileNotFoundError: there is no such file.
    """
    where = repr(os.fspath(path))
    with open(path, "rb") as file:
        header = container.read_header(file, where)
        empty = {
            name: np.empty(0, array.dtype)
            for name, array in container.read_arrays(file, header, where)
        }
    _build(header.tree, empty, where, None)
    return True


def save(obj: Any, f: Any) -> None:
    """Write a state tree, as `save_tree` does, under PyTorch's name and argument order.

    Args:
        obj: a state tree, such as `model.state_dict()`.
        f: a path, or a seekable binary file, which is not replaced in one step.

    Raises:
        CheckpointError: as for `save_tree`.
    """
    if not hasattr(f, "write"):
        save_tree(f, obj)
        return
    structure, entries = encode(obj)
    container.write(f, _to_text(structure), entries)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """Read a state tree, as `load_tree` does, or a file of `torch.save`, under PyTorch's name.

    Of PyTorch's files (the zip archives of 1.6 and later) tensors, Parameters, numbers, texts,
    None, dtypes, sizes, and dicts, lists, tuples and sets of them are read; anything else is
    refused by its name, because nothing in a file is executed.

    Args:
        f: a path, or a seekable binary file that holds nothing else from its position on.
        map_location: the device for the tensors; None means the CPU. For PyTorch's files also a
            dict from places in the file to devices, or `lambda storage, place: storage` (the CPU).
        pickle_module: None; no pickle module is ever used.
        weights_only: accepted for PyTorch's signature: False permits nothing more.
        mmap: accepted for PyTorch's signature; files are read.

    Raises:
        CheckpointError: the file holds anything else, is of another kind, cut short or damaged.
        FileNotFoundError: there is no such file.
    """
    if pickle_module is not None:
        raise ArgumentError(
            f"load: pickle_module must be None: nothing is unpickled. Got {pickle_module!r}. "
            "Leave it out."
        )
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return _read_any(file, repr(os.fspath(f)), map_location)
    return _read_any(f, "the file object", map_location)


def _read_any(file: Any, where: str, map_location: Any) -> Any:
    start = file.tell()
    is_archive = file.read(4) == b"PK\x03\x04"
    file.seek(start)
    if is_archive:
        from .torch_file import read_torch

        return read_torch(file, where, _locator(map_location))
    return _read(file, where, _locator(map_location)("cpu"))


def _read(file: Any, where: str, target: device | None) -> Any:
    header = container.read_header(file, where)
    arrays = dict(container.read_arrays(file, header, where))
    return _build(header.tree, arrays, where, target)


def _build(tree: str, arrays: dict[str, Any], where: str, target: device | None) -> Any:
    try:
        return decode(json.loads(tree, parse_constant=_no_constant), arrays, target)
    except _NOT_A_TREE as error:
        raise container.damaged(where, f"its tree cannot be read ({error!r})") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _to_text(structure: Any) -> str:
    return json.dumps(structure, separators=(",", ":"), allow_nan=False)


def _target(map_location: Any) -> device | None:
    if map_location is None or isinstance(map_location, device):
        return map_location
    if not isinstance(map_location, str):
        raise _bad_location(map_location)
    return device(map_location)


def _locator(map_location: Any) -> Callable[[str], device | None]:
    """From the place of a tensor in a file to its device."""
    if isinstance(map_location, dict):
        places = {str(place): _target(target) for place, target in map_location.items()}
        return places.get
    if callable(map_location):
        if map_location(stand_in := object(), "cpu") is not stand_in:
            raise _bad_location(map_location)
        return lambda place: None
    target = _target(map_location)
    return lambda place: target


def _bad_location(map_location: Any) -> ArgumentError:
    return ArgumentError(
        "load: map_location must be a device, its name, a dict of such, a function that returns "
        f"the storage it gets, or None. Got {type(map_location).__name__}. Load to the CPU and "
        "move tensors with to()."
    )
