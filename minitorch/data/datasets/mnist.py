"""MNIST and Fashion-MNIST."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from .download import download as get_file
from .download import has_sha256
from .idx import read_idx
from .images import ImageDataset

_NAMES = {
    True: ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    False: ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


class MNIST(ImageDataset):
    """70 000 handwritten digits: sample i is (float32 (1, 28, 28) in [0, 1], int).

    Args:
        root: folder with the IDX files, plain or .gz, in it or in its `MNIST/raw`.
        train: the 60 000 training images; False for the 10 000 test images.
        download: get files that are not there into `root/MNIST/raw` and check their SHA-256.
        transform: see ImageDataset.

    Raises:
        DataError: files are missing, damaged or do not fit together.

    Source: Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to
    document recognition, 1998.
    """

    mirrors: Sequence[str] = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    )
    sha256 = {
        "train-images-idx3-ubyte": (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
        ),
        "train-labels-idx1-ubyte": (
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
        ),
        "t10k-images-idx3-ubyte": (
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
        ),
        "t10k-labels-idx1-ubyte": (
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
        ),
    }

    def __init__(
        self,
        root: str | Path,
        train: bool = True,
        download: bool = False,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        raw = Path(root) / "MNIST" / "raw"
        data, targets = _load((Path(root), raw), train, self.mirrors, self.sha256, download)
        super().__init__(data, targets, white=255, classes=tuple("0123456789"), transform=transform)


class FashionMNIST(ImageDataset):
    """70 000 pictures of clothes: sample i is (float32 (1, 28, 28) in [0, 1], int).

    Args:
        root: folder with the IDX files, plain or .gz, in it or in its `FashionMNIST/raw`; where
            they are not there, the folder of Debian's package dataset-fashion-mnist is used.
        train: the 60 000 training images; False for the 10 000 test images.
        download: get files that are not there into `root/FashionMNIST/raw` and check their SHA-256.
        transform: see ImageDataset.

    Raises:
        DataError: files are missing, damaged or do not fit together.

    Source: H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, arXiv 1708.07747, 2017.
    """

    system_folder = Path("/usr/share/datasets/fashion-mnist")
    mirrors: Sequence[str] = (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    )
    sha256 = {
        "train-images-idx3-ubyte": (
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
        ),
        "train-labels-idx1-ubyte": (
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
        ),
        "t10k-images-idx3-ubyte": (
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
        ),
        "t10k-labels-idx1-ubyte": (
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
        ),
    }

    def __init__(
        self,
        root: str | Path = "data",
        train: bool = True,
        download: bool = False,
        transform: Callable[..., Any] | None = None,
    ) -> None:
        folders = (Path(root), Path(root) / "FashionMNIST" / "raw", self.system_folder)
        data, targets = _load(folders, train, self.mirrors, self.sha256, download)
        classes = (
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        )
        super().__init__(data, targets, white=255, classes=classes, transform=transform)


def _load(
    folders: Sequence[Path],
    train: bool,
    mirrors: Sequence[str],
    sha256: dict[str, str],
    download: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels; a download goes to the second of the folders."""
    paths = [_find(name, folders, mirrors, sha256[name], download) for name in _NAMES[bool(train)]]
    images, labels = map(read_idx, paths)
    if images.ndim != 3 or images.dtype != np.uint8 or labels.shape != images.shape[:1]:
        raise DataError(
            f"{paths[0].parent}: images must be uint8 (N, H, W) and labels (N,). Got "
            f"{images.dtype} {images.shape} in {paths[0].name} and {labels.shape} in "
            f"{paths[1].name}. Delete both and get them again (download=True)."
        )
    return images, labels


def _find(
    name: str, folders: Sequence[Path], mirrors: Sequence[str], sha256: str, download: bool
) -> Path:
    target = folders[1] / f"{name}.gz"
    if download and target.is_file() and not has_sha256(target, sha256):
        target.unlink()
    for folder in folders:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    if not download:
        places = ", ".join(str(folder) for folder in folders)
        raise DataError(
            f"{name} or {name}.gz is in none of {places}. Give the folder that has it as root, or "
            "use download=True."
        )
    get_file([f"{mirror}{name}.gz" for mirror in mirrors], target, sha256)
    return target
