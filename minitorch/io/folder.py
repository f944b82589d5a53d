"""Folders as Hugging Face writes them: `config.json` and the weights in one or several files.

The weights are `model.safetensors`, or `model-00001-of-00003.safetensors` … with
`model.safetensors.index.json`, which says for each name in which file it is. For reading, the older
`pytorch_model.bin`, alone or in shards, counts too.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minitorch.errors import ArgumentError, CheckpointError
from minitorch.tensor import Tensor

from .atomic import replacing
from .state import load
from .tensor_file import array_of, load_file, save_file, ties

_CONFIG = "config.json"
_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_OURS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json")
_READERS = {
    _SINGLE: (_INDEX, lambda path, device: load_file(path, device)),
    "pytorch_model.bin": (
        "pytorch_model.bin.index.json",
        lambda path, device: load(path, map_location=device),
    ),
}
Folder = str | os.PathLike[str]


def load_config(folder: Folder) -> dict[str, Any]:
    """The `config.json` of a folder.

    Raises:
        CheckpointError: there is none, or it is no JSON object.
    """
    path = Path(folder) / _CONFIG
    if not path.is_file():
        raise CheckpointError(f"load_config: {path} does not exist. {_listing(Path(folder))}")
    config = _read_json(path)
    if type(config) is not dict:
        raise CheckpointError(f"load_config: {path} must hold an object. Got {config!r}.")
    return config


def load_folder(folder: Folder, device: Any = "cpu") -> dict[str, Tensor]:
    """The weights of a folder: `model.safetensors` or `pytorch_model.bin`, whole or in shards.

    Args:
        folder: the folder.
        device: where the tensors go.

    Returns:
        The tensors by name.

    Raises:
        CheckpointError: there are no weights, a shard or a name in it is missing, or a file is
            damaged.
    """
    path = Path(folder)
    for single, (index, read) in _READERS.items():
        if (path / single).is_file():
            return read(path / single, device)
        if (path / index).is_file():
            return _read_shards(path, index, read, device)
    raise CheckpointError(
        f"load_folder: {path} must hold one of {', '.join(_READERS)}, or their index.json. "
        f"{_listing(path)}"
    )


def save_folder(
    folder: Folder,
    state: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    *,
    max_shard_bytes: int = 5_000_000_000,
) -> None:
    """Write weights and configuration as a folder that Hugging Face's readers take.

    Of names that share one tensor the first is written; models tie the others again.

    Args:
        folder: made where it is not there; weights that lie in it are replaced.
        state: tensors by name, such as a `state_dict()`.
        config: what goes to `config.json`.
        max_shard_bytes: the most that one file holds, if no single tensor is larger.
    """
    if max_shard_bytes < 1:
        raise ArgumentError(f"max_shard_bytes must be at least 1. Got {max_shard_bytes}.")
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    arrays = {name: array_of(name, value) for name, value in state.items()}
    twins = ties(arrays)
    shards = _shards({n: a for n, a in arrays.items() if n not in twins}, max_shard_bytes)
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    if len(shards) == 1:
        names = [_SINGLE]
    for name, shard in zip(names, shards, strict=True):
        save_file(shard, path / name, {"format": "pt"})
    written = {*names}
    if len(shards) > 1:
        written.add(_INDEX)
        places = {key: name for name, shard in zip(names, shards, strict=True) for key in shard}
        total = sum(array.nbytes for shard in shards for array in shard.values())
        _write_json(path / _INDEX, {"metadata": {"total_size": total}, "weight_map": places})
    if config is not None:
        _write_json(path / _CONFIG, dict(config))
    for old in path.iterdir():
        if _OURS.fullmatch(old.name) and old.name not in written:
            old.unlink()


def _shards(arrays: dict[str, Any], most: int) -> list[dict[str, Any]]:
    shards: list[dict[str, Any]] = [{}]
    size = 0
    for name, array in arrays.items():
        if shards[-1] and size + array.nbytes > most:
            shards.append({})
            size = 0
        shards[-1][name] = array
        size += array.nbytes
    return shards


def _read_shards(path: Path, index: str, read: Any, device: Any) -> dict[str, Tensor]:
    places = _read_json(path / index)
    places = places.get("weight_map") if type(places) is dict else None
    if type(places) is not dict or not all([type(name) is str for name in places.values()]):
        raise CheckpointError(f"load_folder: {path / index} has no weight_map of file names.")
    state: dict[str, Tensor] = {}
    for name in dict.fromkeys(places.values()):
        if Path(name).name != name or not (path / name).is_file():
            raise CheckpointError(
                f"load_folder: {index} names {name!r}, which is no file of {path}. {_listing(path)}"
            )
        state |= read(path / name, device)
    if lost := [name for name in places if name not in state]:
        raise CheckpointError(
            f"load_folder: {index} promises {len(lost)} tensors that its files do not hold: "
            f"{', '.join(lost[:5])}. Get the folder again."
        )
    return state


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"load: {path} cannot be read as JSON ({error}). Get it again."
        ) from error


def _write_json(path: Path, value: Any) -> None:
    with replacing(path) as file:
        file.write((json.dumps(value, indent=2) + "\n").encode())


def _listing(path: Path) -> str:
    if not path.is_dir():
        return "There is no such folder."
    names = sorted(entry.name for entry in path.iterdir())
    return f"The folder holds {', '.join(names[:8]) or 'nothing'}."
