"""CIFAR-10."""

import os
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CheckpointError, DataError
from ...io.pickle_machine import Built, Call, read_pickle
from .download import download as get_file
from .download import has_sha256
from .images import ImageDataset

_PYTHON, _BINARY = "cifar-10-batches-py", "cifar-10-batches-bin"
_ARCHIVE = "cifar-10-python.tar.gz"
_NAMES = {True: [f"data_batch_{i}" for i in range(1, 6)], False: ["test_batch"]}
_PIXELS = 3 * 32 * 32


class CIFAR10(ImageDataset):
    """60 000 small colour pictures: sample i is (float32 (3, 32, 32) in [0, 1], int).

    Args:
        root: folder with the files of the Python or the binary version, in it or in its
            `cifar-10-batches-py` or `cifar-10-batches-bin`.
        train: the 50 000 training images; False for the 10 000 test images.
        transform: see ImageDataset.
        download: get the archive if files are not there, and check its SHA-256.

    Raises:
        DataError: files are missing or damaged. The pickles of the Python version are read
            without running anything.

    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """

    mirrors: Sequence[str] = ("https://www.cs.toronto.edu/~kriz/",)
    sha256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        parts = [self._part(Path(root), name, download) for name in _NAMES[bool(train)]]
        data = np.concatenate([pixels for pixels, _ in parts])
        classes = "airplane automobile bird cat deer dog frog horse ship truck"
        super().__init__(
            np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)),
            np.concatenate([labels for _, labels in parts]),
            white=255,
            classes=tuple(classes.split()),
            transform=transform,
        )

    def _part(self, root: Path, name: str, download: bool) -> tuple[np.ndarray, np.ndarray]:
        for folder in (root, root / _PYTHON, root / _BINARY):
            for path, read in ((folder / name, _read_pickle), (folder / f"{name}.bin", _read_bin)):
                if path.is_file():
                    return _checked(path, *read(path))
        if not download:
            raise DataError(
                f"CIFAR10: neither {name} nor {name}.bin is in {root}, its {_PYTHON} or {_BINARY}. "
                "Give the folder that has it as root, or use download=True."
            )
        archive = root / _ARCHIVE
        if not has_sha256(archive, self.sha256):
            get_file([mirror + _ARCHIVE for mirror in self.mirrors], archive, self.sha256)
        _unpack(archive, root / _PYTHON)
        return self._part(root, name, False)


class _Array(Built):
    """An array in a pickle."""

    def __init__(self, *_: Any) -> None:
        self.values: Any = None

    def build(self, state: Any) -> None:
        _, shape, dtype, fortran, values = state
        order: Any = "F" if fortran is True else "C"
        values = values.encode("latin1") if type(values) is str else values
        self.values = np.frombuffer(values, dtype.values).reshape(shape, order=order)


class _Dtype(Built):
    """The dtype of an array in a pickle: bytes only."""

    def __init__(self, name: Any, *_: Any) -> None:
        if name != "u1":
            raise ValueError(f"pixels are of the dtype {name!r}")
        self.values = np.dtype(np.uint8)

    def build(self, state: Any) -> None:
        """Nothing: a byte has no order."""


_TABLE = {
    "numpy.ndarray": None,
    "numpy.dtype": Call("numpy.dtype", _Dtype),
    "numpy.core.multiarray._reconstruct": Call("numpy.core.multiarray._reconstruct", _Array),
    "numpy._core.multiarray._reconstruct": Call("numpy._core.multiarray._reconstruct", _Array),
    "_codecs.encode": Call("_codecs.encode", lambda text, encoding: str.encode(text, "latin1")),
}


def _no_storage(description: Any) -> Any:
    raise ValueError("the pickle refers to something outside of it")


def _read_pickle(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        fields = read_pickle(path.read_bytes(), _TABLE, _no_storage, str(path))
        fields = {k.decode() if type(k) is bytes else k: v for k, v in fields.items()}
        return fields["data"].values, np.array(fields["labels"], np.int64)
    except (CheckpointError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _read_bin(path: Path) -> tuple[np.ndarray, np.ndarray]:
    raw = np.fromfile(path, np.uint8)
    if len(raw) % (1 + _PIXELS):
        raise _damaged(path, f"it has {len(raw)} bytes, not a multiple of {1 + _PIXELS}")
    rows = raw.reshape(-1, 1 + _PIXELS)
    return rows[:, 1:], rows[:, 0].astype(np.int64)


def _checked(path: Path, data: Any, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shapes_fit = getattr(data, "shape", None) == (len(labels), _PIXELS) and labels.ndim == 1
    if not shapes_fit or not len(labels) or not 0 <= labels.min() <= labels.max() <= 9:
        raise _damaged(path, "it does not hold images of 32 by 32 pixels with labels from 0 to 9")
    return data, labels


def _unpack(archive: Path, folder: Path) -> None:
    """Writes the files of the archive that are needed, under their own names only."""
    folder.mkdir(exist_ok=True)
    wanted = {name for names in _NAMES.values() for name in names}
    with tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name).name
            file = packed.extractfile(member) if name in wanted and member.isfile() else None
            if file is not None:
                (folder / name).write_bytes(file.read())


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        f"CIFAR10: {path} cannot be read: {reason}. Delete it and get it again (download=True)."
    )
