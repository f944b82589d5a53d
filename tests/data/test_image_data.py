"""IDX files, downloads, and the image data sets."""

import functools
import gzip
import hashlib
import http.server
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.data import DataLoader, random_split
from minitorch.data.datasets import MNIST, Digits, FashionMNIST
from minitorch.data.datasets.download import download
from minitorch.data.datasets.idx import read_idx
from minitorch.errors import DataError

SYSTEM = FashionMNIST.system_folder
CODES = {"u1": 8, "i1": 9, ">i2": 11, ">i4": 12, ">f4": 13, ">f8": 14}


def idx_bytes(array: np.ndarray, code: int = 8) -> bytes:
    head = bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return head + array.tobytes()


# ---- IDX -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_of_all_types(dtype: str, packed: bool, tmp_path: Path) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    raw = idx_bytes(array, CODES[dtype])
    (tmp_path / "file").write_bytes(gzip.compress(raw, mtime=0) if packed else raw)
    read = read_idx(tmp_path / "file")
    np.testing.assert_array_equal(read, array)
    assert read.dtype.isnative
    assert read.flags.writeable


GOOD = idx_bytes(np.arange(6, dtype=np.uint8).reshape(2, 3))
DAMAGED = [
    (b"", "it starts with , which is no IDX header"),
    (b"\x89PNG....", "it starts with 89 50 4e 47, which is no IDX header"),
    (b"\0\0\x07\x01", "it starts with 00 00 07 01, which is no IDX header"),
    (GOOD[:6], "it ends inside of the header"),
    (GOOD[:-1], "its header promises 6 bytes of data, it has 5"),
    (GOOD + b"x", "its header promises 6 bytes of data, it has 7"),
    (gzip.compress(GOOD, mtime=0)[:-4], "the gzip data is damaged"),
    (gzip.compress(GOOD, mtime=0)[:14] + b"\xff" * 9, "the gzip data is damaged"),
]


@pytest.mark.parametrize(("raw", "text"), DAMAGED)
def test_damaged_idx_files(raw: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(DataError, match=f"file cannot be read: {text}.*download=True"):
        read_idx(tmp_path / "file")


# ---- downloads -----------------------------------------------------------------------------------


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]
        if self.path.startswith("/cut/"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
        else:
            super().do_GET()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    """A web server on this machine for the files in its `folder`; `seen` are the paths asked."""
    folder = tmp_path / "www"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    ) as httpd:
        httpd.folder, httpd.seen = folder, []  # type: ignore[attr-defined]
        httpd.url = f"http://127.0.0.1:{httpd.server_port}/"  # type: ignore[attr-defined]
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def test_a_download_takes_its_place_when_it_is_right(server: Any, tmp_path: Path) -> None:
    raw = os.urandom(3 << 20)
    (server.folder / "good").write_bytes(raw)
    (server.folder / "bad").write_bytes(b"changed on the way")
    path = tmp_path / "new" / "folder" / "file"
    urls = [server.url + name for name in ("missing", "bad", "cut/good", "good", "never")]
    download(urls, path, digest(raw))
    assert path.read_bytes() == raw
    assert os.listdir(path.parent) == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert server.seen == ["/missing", "/bad", "/cut/good", "/good"]


def test_a_failed_download_leaves_the_old_file_and_no_other(server: Any, tmp_path: Path) -> None:
    (server.folder / "bad").write_bytes(b"changed on the way")
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(DataError, match="file could not be had from any of 3 places") as caught:
        download([server.url + name for name in ("missing", "bad", "cut/x")], path, digest(b""))
    for reason in ("missing: HTTP Error 404", "bad: SHA-256 is", "cut/x: "):
        assert reason in str(caught.value)
    assert path.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["file", "www"]


def test_an_interrupt_leaves_nothing(server: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (server.folder / "good").write_bytes(b"good")

    def interrupted(source: Any, target: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download([server.url + "good"], tmp_path / "file", digest(b"good"))
    assert os.listdir(tmp_path) == ["www"]


# ---- data sets -----------------------------------------------------------------------------------


def small_files(kind: str, n: int) -> dict[str, bytes]:
    rng = np.random.default_rng(n)
    images = rng.integers(256, size=(n, 28, 28), dtype=np.uint8)
    labels = (np.arange(n) % 10).astype(np.uint8)
    return {
        f"{kind}-images-idx3-ubyte": idx_bytes(images),
        f"{kind}-labels-idx1-ubyte": idx_bytes(labels),
    }


@pytest.fixture
def files() -> dict[str, bytes]:
    return {**small_files("train", 20), **small_files("t10k", 7)}


@pytest.fixture(autouse=True)
def _no_system_folder(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(FashionMNIST, "system_folder", tmp_path / "system")


@pytest.mark.parametrize("kind", [FashionMNIST, MNIST])
@pytest.mark.parametrize("place", [".", "{}/raw"])
@pytest.mark.parametrize("packed", [False, True])
def test_files_are_found_where_they_are(
    kind: Any, place: str, packed: bool, files: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / place.format(kind.__name__)
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(raw, mtime=0) if packed else raw)
    train, test = kind(tmp_path), kind(str(tmp_path), train=False)
    assert (len(train), len(test)) == (20, 7)
    image, label = train[13]
    assert (image.dtype, image.shape, label, type(label)) == (np.float32, (1, 28, 28), 3, int)
    assert 0 <= image.min() < image.max() <= 1
    images, labels = train.arrays()
    assert images.shape == (20, 1, 28, 28)
    np.testing.assert_array_equal(images[13], image)
    np.testing.assert_array_equal(labels, np.arange(20) % 10)
    assert labels.dtype == np.int64
    assert len(train.classes) == 10


def test_the_system_folder_is_used_last(files: dict[str, bytes], tmp_path: Path) -> None:
    FashionMNIST.system_folder.mkdir()
    for name, raw in files.items():
        (FashionMNIST.system_folder / f"{name}.gz").write_bytes(gzip.compress(raw, mtime=0))
    assert len(FashionMNIST(tmp_path / "none", download=True)) == 20
    assert not (tmp_path / "none").exists()


def test_a_download_is_checked_kept_and_repaired(
    server: Any, files: dict[str, bytes], tmp_path: Path, monkeypatch: Any
) -> None:
    packed = {name: gzip.compress(raw, mtime=0) for name, raw in files.items()}
    for name, raw in packed.items():
        (server.folder / f"{name}.gz").write_bytes(raw)
    monkeypatch.setattr(FashionMNIST, "mirrors", (server.url,))
    monkeypatch.setattr(FashionMNIST, "sha256", {name: digest(raw) for name, raw in packed.items()})
    root = tmp_path / "data"
    assert len(FashionMNIST(root, download=True)) == 20
    assert len(server.seen) == 2
    assert len(FashionMNIST(root, download=True)) == len(FashionMNIST(root)) == 20
    assert len(server.seen) == 2
    stored = root / "FashionMNIST" / "raw" / "train-labels-idx1-ubyte.gz"
    stored.write_bytes(stored.read_bytes()[:-3])
    with pytest.raises(DataError, match="the gzip data is damaged"):
        FashionMNIST(root)
    assert len(FashionMNIST(root, download=True)) == 20
    assert len(server.seen) == 3


def test_missing_files_are_explained(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="t10k-images-idx3-ubyte.gz is in none of .*MNIST/raw.*or use download=True"
    ):
        MNIST(tmp_path, train=False)


def test_files_that_do_not_fit_together(files: dict[str, bytes], tmp_path: Path) -> None:
    for name, raw in {**files, **small_files("train", 3)}.items():
        (tmp_path / name).write_bytes(raw)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(files["train-images-idx3-ubyte"])
    with pytest.raises(DataError, match=r"uint8 \(20, 28, 28\) in .* and \(3,\) in train-labels"):
        MNIST(tmp_path)


@pytest.mark.skipif(not SYSTEM.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_real_files() -> None:
    test = FashionMNIST(SYSTEM, train=False)
    assert test.data.shape == (10_000, 28, 28)
    assert np.bincount(test.targets).tolist() == [1000] * 10


def test_hashes_cover_all_files() -> None:
    for kind in (MNIST, FashionMNIST):
        assert {len(value) for value in kind.sha256.values()} == {64}
        assert len(set(kind.sha256.values())) == 4
        assert all(mirror.endswith("/") for mirror in kind.mirrors)


def test_digits_and_their_fast_path() -> None:
    digits = Digits()
    assert len(digits) == 1797
    images, labels = digits.arrays()
    assert images.shape == (1797, 1, 8, 8)
    assert (images.min(), images.max()) == (0.0, 1.0)
    same = Digits(transform=lambda image: image)
    for shuffle in (False, True):
        fast = DataLoader(digits, 64, shuffle=shuffle)
        slow = DataLoader(same, 64, shuffle=shuffle)
        for (x, y), (u, v) in zip(fast, slow, strict=True):
            assert (x.dtype, y.dtype, u.dtype, v.dtype) == (mt.float32, mt.int64) * 2
            np.testing.assert_array_equal(x.numpy(), u.numpy())
            np.testing.assert_array_equal(y.numpy(), v.numpy())
            y.add_(1)
    np.testing.assert_array_equal(digits.targets, labels)
    parts = random_split(digits, [0.8, 0.2])
    assert sum(len(batch[1]) for part in parts for batch in DataLoader(part, 100)) == 1797


def test_a_transform_gets_the_generator_of_the_sample() -> None:
    def jitter(image: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        return image + rng.random(dtype=np.float32)

    loader = DataLoader(Digits(transform=jitter), 500)
    first, second = (next(iter(loader))[0].numpy() for _ in range(2))
    assert not (first == second).any()
    loader.set_epoch(0)
    np.testing.assert_array_equal(next(iter(loader))[0].numpy(), first)
    assert Digits(transform=np.negative)[0][0].max() <= 0


def test_digits_without_scikit_learn(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(DataError, match=r"Install minitorch-trainer\[examples\]"):
        Digits()
