"""Weights from the network, kept in a folder of the user."""

import os
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn
from urllib.parse import unquote, urlparse

from .errors import ArgumentError, DataError
from .io import load as load_file_or_tree
from .io.fetch import fetch
from .io.tensor_file import load_file

_HASH = re.compile(r"-([a-f0-9]{8,64})\.")
_chosen: str | None = None


def get_dir() -> str:
    """The folder of downloads: that of `set_dir`, `$TORCH_HOME/hub`, or `~/.cache/minitorch/hub`
    (under `$XDG_CACHE_HOME` where it is set).
    """
    if _chosen is not None:
        return _chosen
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    home = os.environ.get("TORCH_HOME") or os.path.join(cache, "minitorch")
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Let downloads go to another folder."""
    global _chosen
    _chosen = os.path.expanduser(os.fspath(d))


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: it would run code from the network."""
    raise NotImplementedError(
        "hub.load: no code from elsewhere is run. Take the model from minitorch.models or its own "
        "source, and its weights with hub.load_state_dict_from_url(url)."
    )


def download_url_to_file(
    url: str,
    dst: str | os.PathLike[str],
    hash_prefix: str | None = None,
    progress: bool = True,
) -> None:
    """Get a file; it takes its name only when it is whole and right.

    Args:
        url: http, https or file.
        dst: where it goes; its folder has to exist.
        hash_prefix: hex digits with which its SHA-256 must begin.
        progress: show how far it is, in a terminal.

    Raises:
        DataError: it cannot be had, or is another file than promised.
        ArgumentError: the URL is of another kind.
    """
    if urlparse(url).scheme not in ("http", "https", "file"):
        raise ArgumentError(
            f"download_url_to_file: url must begin with http, https or file. Got {url!r}."
        )
    path = Path(dst)
    shown = progress and sys.stderr.isatty()
    try:
        fetch(url, path, hash_prefix, _Line(path.name) if shown else None)
    except (OSError, ValueError) as error:
        raise DataError(
            f"download: {url} could not be had: {error}. Check the network, or put the file at "
            f"{path}."
        ) from error


class _Line:
    """One line that says how far a download is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._read = 0

    def __call__(self, chunk_bytes: int, total_bytes: int | None) -> None:
        self._read += chunk_bytes
        whole = "" if total_bytes is None else f" of {total_bytes / 1e6:.1f}"
        end = "\n" if self._read == total_bytes else ""
        text = f"\r{self._name}: {self._read / 1e6:.1f}{whole} MB"
        print(text, end=end, file=sys.stderr, flush=True)


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike[str] | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load weights from a URL; the file is kept, and not got again.

    Args:
        url: a file of `torch.save`, a safetensors file (`….safetensors`), or one of
            `minitorch.save`.
        model_dir: the folder where it is kept; None for `checkpoints` in `get_dir()`.
        map_location: as for `load`.
        progress: show how far it is, in a terminal.
        check_hash: the file's name ends in the first digits of its SHA-256, as in
            `resnet18-f37072fd.pth`: check it.
        file_name: under which it is kept; None for that of the URL.
        weights_only: as for `load`: nothing is ever executed.

    Raises:
        DataError: the file cannot be had, or is another one than its name says.
        CheckpointError: it is of another kind, or damaged.
    """
    name = file_name or PurePosixPath(unquote(urlparse(url).path)).name
    if not name or Path(name).name != name:
        raise ArgumentError(
            f"load_state_dict_from_url: a file name is needed. Got {name!r}. Give file_name."
        )
    folder = Path(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    if not path.is_file():
        found = _HASH.search(name) if check_hash else None
        if check_hash and found is None:
            raise ArgumentError(
                f"load_state_dict_from_url: check_hash needs a name such as net-f37072fd.pth. Got "
                f"{name!r}. Use check_hash=False, or give file_name."
            )
        download_url_to_file(url, path, found[1] if found else None, progress)
    if name.endswith(".safetensors"):
        return load_file(path, "cpu" if map_location is None else map_location)
    return load_file_or_tree(path, map_location, weights_only=weights_only)
