"""Files in one folder for each class."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, DataError
from ..dataset import Dataset
from ..transforms.base import takes_rng, transformed

IMAGE_EXTENSIONS = (
    ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".npy",
)  # fmt: skip


class DatasetFolder(Dataset[tuple[Any, Any]]):
    """Files `root/CLASS/…/name.ext`: sample i is (loader(path), number of the class).

    Classes are the sub-folders in alphabetical order; files are sorted, too.

    Attributes:
        classes: the names of the classes.
        class_to_idx: the number of each.
        samples: (path, number of the class) of each sample.
        targets: the numbers alone.

    Args:
        root: the folder.
        loader: from a path to a sample.
        extensions: endings of the files that count; None with `is_valid_file`.
        transform: called with each sample, and with `rng=` where it takes that keyword.
        target_transform: called with each number.
        is_valid_file: says of a path whether it counts.
        allow_empty: let classes without files be.

    Raises:
        DataError: there are no classes, or a class has no files.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any],
        extensions: Sequence[str] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        if (extensions is None) == (is_valid_file is None):
            raise ArgumentError(
                f"{type(self).__name__}: give either extensions or is_valid_file, not both or none."
            )
        self.root = os.fspath(root)
        self.loader = loader
        self.transform = transform
        self.target_transform = target_transform
        self.wants_rng = any(
            change is not None and takes_rng(change) for change in (transform, target_transform)
        )
        self.classes, self.class_to_idx = self.find_classes(self.root)
        endings = tuple(ending.lower() for ending in extensions or ())
        counts = is_valid_file or (lambda path: path.lower().endswith(endings))
        self.samples = [
            (path, number)
            for name, number in self.class_to_idx.items()
            for path in self._files(name, counts, endings, allow_empty)
        ]
        self.targets = [number for _, number in self.samples]

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """The same as `samples`."""
        return self.samples

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        """Names and numbers of the classes; subclasses may choose others."""
        folder = Path(directory)
        if not folder.is_dir():
            raise DataError(f"{type(self).__name__}: {folder} is no folder. Check the path.")
        classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
        if not classes:
            raise DataError(
                f"{type(self).__name__}: {folder} needs one folder for each class, with its files "
                "in it. It holds no folder."
            )
        return classes, {name: number for number, name in enumerate(classes)}

    def _files(
        self,
        name: str,
        counts: Callable[[str], bool],
        endings: tuple[str, ...],
        allow_empty: bool,
    ) -> Iterator[str]:
        found = 0
        for folder, folders, names in os.walk(os.path.join(self.root, name), followlinks=True):
            folders.sort()
            for file in sorted(names):
                path = os.path.join(folder, file)
                if counts(path):
                    found += 1
                    yield path
        if not found and not allow_empty:
            raise DataError(
                f"{type(self).__name__}: class {name!r} has no files that count in "
                f"{os.path.join(self.root, name)}. "
                + (f"Files end in {', '.join(endings)}. " if endings else "See is_valid_file. ")
                + "Remove the folder, or use allow_empty=True."
            )

    def __getitem__(self, index: Any, *, rng: np.random.Generator | None = None) -> tuple[Any, Any]:
        path, target = self.samples[index]
        sample = transformed(self.transform, self.loader(path), rng)
        return sample, transformed(self.target_transform, target, rng)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images `root/CLASS/…/name.png`: sample i is (image, number of the class).

    Without a transform an image is a uint8 array (H, W, 3); `.npy` files give the array that they
    hold. Other formats are read by Pillow: `pip install "minitorch-trainer[images]"`.

    Args:
        root: the folder.
        transform: called with each image, and with `rng=` where it takes that keyword.
        target_transform: called with each number.
        loader: from a path to an image.
        is_valid_file: says of a path whether it counts, in place of the known endings.
        allow_empty: let classes without images be.

    Raises:
        DataError: see DatasetFolder; an image that cannot be read is named.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        loader: Callable[[str], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(
            root,
            loader or load_image,
            IMAGE_EXTENSIONS if is_valid_file is None else None,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
        )


def load_image(path: str) -> np.ndarray:
    """The image of a file: uint8 (H, W, 3), or the array of a `.npy` file.

    Raises:
        DataError: it cannot be read, or Pillow is not installed.
    """
    try:
        if path.lower().endswith(".npy"):
            return np.load(path, allow_pickle=False)
        try:
            from PIL import Image
        except ImportError as error:
            raise DataError(
                f"load_image: {path} needs Pillow, which cannot be imported ({error}). Install "
                "minitorch-trainer[images], or store .npy files."
            ) from error
        with Image.open(path) as image:
            return np.array(image.convert("RGB"))
    except DataError:
        raise
    except (EOFError, OSError, SyntaxError, ValueError) as error:
        raise DataError(
            f"load_image: {path} cannot be read ({error}). Replace or remove it."
        ) from error
