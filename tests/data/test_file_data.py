"""Data sets that read files: folders of images, tables, texts, CIFAR-10."""

import hashlib
import io
import pickle
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.data import DataLoader, datasets
from minitorch.data.datasets import CIFAR10, CSVDataset, ImageFolder, TextDataset, Vocabulary
from minitorch.errors import ArgumentError, DataError

# ---- folders of images ---------------------------------------------------------------------------


def folders(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, np.ndarray):
            np.save(root / name, content)
        else:
            (root / name).write_bytes(content)
    return root


IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


def test_classes_and_files_are_sorted(tmp_path: Path) -> None:
    names = ("b/2.npy", "b/1.npy", "a/deep/x.NPY", "a/9.npy", "b/notes.txt", "top.npy")
    folders(tmp_path, dict.fromkeys(names, b""))
    np.save(tmp_path / "a/9.npy", IMAGE)
    data = ImageFolder(tmp_path)
    assert data.classes == ["a", "b"]
    assert data.class_to_idx == {"a": 0, "b": 1}
    assert data.targets == [0, 0, 1, 1]
    assert [Path(path).name for path, _ in data.imgs] == ["9.npy", "x.NPY", "1.npy", "2.npy"]
    image, target = data[0]
    np.testing.assert_array_equal(image, IMAGE)
    assert target == 0
    assert len(data) == 4


def test_pictures_are_read_by_pillow(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    (tmp_path / "a").mkdir()
    image.fromarray(IMAGE).save(tmp_path / "a/1.png")
    image.fromarray(IMAGE[:, :, 0]).save(tmp_path / "a/2.jpg")
    data = ImageFolder(tmp_path, target_transform=str)
    np.testing.assert_array_equal(data[0][0], IMAGE)
    assert data[1][0].shape == (2, 2, 3)
    assert data[1][1] == "0"
    (batch, _) = next(iter(DataLoader(data, batch_size=2)))
    assert batch.shape == (2, 2, 2, 3)


def test_without_pillow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    data = ImageFolder(folders(tmp_path, {"a/1.png": b""}))
    with pytest.raises(DataError, match=r"needs Pillow, .* Install minitorch-trainer\[images\]"):
        data[0]


def test_own_rules_for_files_and_loading(tmp_path: Path) -> None:
    folders(tmp_path, {"a/1.bin": b"x", "a/2.npy": b"", "b/3.bin": b"yz"})
    data = ImageFolder(
        tmp_path,
        loader=lambda path: len(Path(path).read_bytes()),
        is_valid_file=lambda path: path.endswith(".bin"),
    )
    assert list(data) == [(1, 0), (2, 1)]
    other = datasets.DatasetFolder(tmp_path, len, (".npy",), allow_empty=True)
    assert other.targets == [0]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({}, "needs one folder for each class, with its files in it. It holds no folder"),
        ({"1.npy": IMAGE}, "It holds no folder"),
        (
            {"a/1.npy": IMAGE, "b/2.txt": b""},
            "class 'b' has no files that count .* Files end in .jpg.*use allow_empty=True",
        ),
    ],
)
def test_wrong_folders_are_refused(files: dict[str, Any], text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=text):
        ImageFolder(folders(tmp_path, files))


def test_other_wrong_uses_of_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no folder. Check the path"):
        ImageFolder(tmp_path / "none")
    with pytest.raises(ArgumentError, match="give either extensions or is_valid_file"):
        datasets.DatasetFolder(tmp_path, len)
    data = ImageFolder(folders(tmp_path, {"a/1.npy": b"nothing", "a/2.png": b"nothing"}))
    for i in range(2):
        with pytest.raises(DataError, match=r"[12]\.(npy|png) cannot be read .*Replace or remove"):
            data[i]


# ---- tables --------------------------------------------------------------------------------------

TABLE = 'x,y,"kind, long",label\n1,2.5,red,0\n-3,4e1,"blue",1\n5, 6 ,red,1\n'


def table(tmp_path: Path, text: str = TABLE, **options: Any) -> CSVDataset:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    return CSVDataset(tmp_path / "t.csv", **options)


def test_a_table_with_a_target(tmp_path: Path) -> None:
    data = table(tmp_path, columns=["x", "y"], target="label")
    np.testing.assert_array_equal(data.features, np.float32([[1, 2.5], [-3, 40], [5, 6]]))
    assert data.features.dtype == np.float32
    assert data.targets.tolist() == [0, 1, 1]
    assert data.targets.dtype == np.int64
    batch = next(iter(DataLoader(data, batch_size=2)))
    assert [part.tolist() for part in batch] == [[[1, 2.5], [-3, 40]], [0, 1]]
    shuffled = next(iter(DataLoader(data, batch_size=3, shuffle=True)))
    assert sorted(shuffled[0][:, 0].tolist()) == [-3, 1, 5]
    assert data[1][1] == 1
    assert len(data) == 3


def test_categories_dtypes_and_all_columns(tmp_path: Path) -> None:
    data = table(tmp_path, target="kind, long", dtypes={"kind, long": "category"}, dtype="float64")
    assert data.columns == ["x", "y", "label"]
    assert data.categories == {"kind, long": ["blue", "red"]}
    assert data.targets.tolist() == [1, 0, 1]
    assert data.features.dtype == np.float64
    data = table(tmp_path, columns=["kind, long", "x"], dtypes={"kind, long": "category"})
    assert data.features.tolist() == [[1, 1], [0, -3], [1, 5]]
    assert data.targets is None
    assert data[0].tolist() == [1, 1]
    assert next(iter(DataLoader(data, batch_size=2))).tolist() == [[1, 1], [0, -3]]
    assert table(tmp_path, columns=["x"], target="y").targets.dtype == np.float32


def test_numbers_without_a_header(tmp_path: Path) -> None:
    data = table(tmp_path, "1;2\n3;4\n", target=-1, header=False, delimiter=";", dtype=mt.int64)
    assert data.features.tolist() == [[1], [3]]
    assert data.targets.tolist() == [2, 4]
    big = table(tmp_path, f"a\n{2**53 + 1}\n", dtype=mt.int64)
    assert big.features.tolist() == [[2**53 + 1]]


def test_missing_values_are_refused_or_filled(tmp_path: Path) -> None:
    text = "a,b\n1,2\n3,\nNA,4\n"
    with pytest.raises(DataError, match="row 4, column 'a': the value 'NA' is missing. Mend it"):
        table(tmp_path, text)
    with pytest.raises(DataError, match="row 3, column 'b': the value '' is missing"):
        table(tmp_path, text, columns=["b"])
    assert table(tmp_path, text, missing=-1.5).features.tolist() == [[1, 2], [3, -1.5], [-1.5, 4]]
    assert np.isnan(table(tmp_path, text, missing=float("nan")).features[1, 1])


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        ("a,b\n1,2\n3\n", {}, "row 3: 2 values are needed, for a, b. Got 1. Check the delimiter"),
        ("a\n1\nx\n", {}, "row 3, column 'a': the value 'x' is no number"),
        ("a\n1\n2.5\n", {"dtype": "int64"}, "row 3, column 'a': the value '2.5' is no int64"),
        ("a\n300\n", {"dtype": "uint8"}, "row 2, column 'a': the value '300' is no uint8"),
        ("a\n", {}, "has no rows"),
        ("", {}, "has no rows"),
        ("a,a\n1,2\n", {}, "column names must differ"),
        ("a\n1\n", {"target": "z"}, "has no column 'z'. It has a"),
        ("a\n1\n", {"columns": [3]}, "has no column 3. It has a"),
        ("a,b\n,2\n", {"dtypes": {"a": "category"}}, "row 2, column 'a': the value '' is missing"),
    ],
)
def test_wrong_tables_are_refused(
    text: str, options: dict[str, Any], wanted: str, tmp_path: Path
) -> None:
    with pytest.raises((DataError, ArgumentError), match=wanted):
        table(tmp_path, text, **options)


def test_a_table_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match="cannot be read .* Write it as UTF-8 text"):
        CSVDataset(tmp_path / "t.csv")


# ---- texts ---------------------------------------------------------------------------------------


def test_windows_of_characters(tmp_path: Path) -> None:
    data = TextDataset("hello world", 4)
    assert len(data) == 2
    inputs, targets = data[1]
    assert data.vocabulary.decode(inputs) == "o wo"
    assert data.vocabulary.decode(targets) == " wor"
    np.testing.assert_array_equal(data[-1][0], inputs)
    batch = next(iter(DataLoader(data, batch_size=2)))
    assert [data.vocabulary.decode(row) for row in batch[0]] == ["hell", "o wo"]
    assert batch[1].dtype is mt.int64
    (tmp_path / "t").write_text("hello world", encoding="utf-8")
    dense = TextDataset.from_file(tmp_path / "t", 4, stride=1)
    assert len(dense) == 7
    assert dense.vocabulary.decode(dense[6][1]) == "orld"


def test_windows_of_words_with_the_vocabulary_of_other_texts() -> None:
    train = TextDataset("the cat, the dog.\nthe end", 3, level="word")
    assert train.vocabulary.tokens == ["\n", ",", ".", "cat", "dog", "end", "the"]
    assert train.vocabulary.decode(train[0][0], " ") == "the cat ,"
    with pytest.raises(DataError, match="'cow' is not among the 7 tokens. Build the vocabulary"):
        TextDataset("the cow the cat", 2, level="word", vocabulary=train.vocabulary)
    known = Vocabulary.of("a b a c".split(), least_count=2, unknown="<unk>")
    assert known.tokens == ["<unk>", "a"]
    assert known.encode(["a", "b"]).tolist() == [1, 0]


def test_wrong_texts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs more than length=4 tokens. Got 4"):
        TextDataset("abcd", 4)
    with pytest.raises(ArgumentError, match="level must be 'char' or 'word'. Got 'line'"):
        TextDataset("abcd", 2, level="line")
    with pytest.raises(ArgumentError, match="length must be an integer ≥ 1"):
        TextDataset("abcd", 0)
    with pytest.raises(ArgumentError, match="tokens must differ"):
        Vocabulary("aa")
    with pytest.raises(IndexError, match="index 1 is outside of 1 windows"):
        TextDataset("abc", 2)[1]
    (tmp_path / "t").write_bytes(b"\xff")
    with pytest.raises(DataError, match="is no UTF-8 text"):
        TextDataset.from_file(tmp_path / "t", 2)


# ---- CIFAR-10 ------------------------------------------------------------------------------------

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 3072), dtype=np.uint8)
LABELS = [3, 1, 4, 1, 5, 9]


def python_files(folder: Path, protocol: int) -> None:
    folder.mkdir()
    for i in range(5):
        part = {b"data": PIXELS[i : i + 1], b"labels": LABELS[i : i + 1], b"batch_label": b"x"}
        (folder / f"data_batch_{i + 1}").write_bytes(pickle.dumps(part, protocol))
    part = {"data": PIXELS[5:], "labels": LABELS[5:]}
    (folder / "test_batch").write_bytes(pickle.dumps(part, protocol))


def binary_files(folder: Path) -> None:
    folder.mkdir()
    rows = np.concatenate([np.uint8(LABELS)[:, None], PIXELS], 1)
    for i in range(5):
        (folder / f"data_batch_{i + 1}.bin").write_bytes(rows[i].tobytes())
    (folder / "test_batch.bin").write_bytes(rows[5].tobytes())


@pytest.mark.parametrize("version", ["py2", "py4", "bin"])
def test_cifar_files_of_each_version(version: str, tmp_path: Path) -> None:
    if version == "bin":
        binary_files(tmp_path / "cifar-10-batches-bin")
    else:
        python_files(tmp_path / "cifar-10-batches-py", int(version[-1]))
    train, test = CIFAR10(tmp_path), CIFAR10(tmp_path, train=False)
    assert len(train) == 5
    assert train.data.shape == (5, 32, 32, 3)
    image, label = train[2]
    np.testing.assert_array_equal(image, PIXELS[2].reshape(3, 32, 32) / np.float32(255))
    assert (label, train.classes[label]) == (4, "deer")
    assert test.targets.tolist() == [9]
    batch = next(iter(DataLoader(train, batch_size=5)))
    np.testing.assert_array_equal(batch[0][2].numpy(), image)
    np.testing.assert_array_equal(train.arrays()[0][2], image)


def test_cifar_pickles_run_nothing(tmp_path: Path) -> None:
    python_files(tmp_path / "cifar-10-batches-py", 2)
    bad = b"cposix\nsystem\n(S'true'\ntR."
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(bad)
    with pytest.raises(DataError, match="test_batch cannot be read: .*holds posix.system, which"):
        CIFAR10(tmp_path, train=False)


@pytest.mark.parametrize(
    "part", [{"data": PIXELS[:2], "labels": [1]}, {"data": PIXELS[:1], "labels": [10]}, {"x": 1}, 3]
)
def test_damaged_cifar_pickles(part: Any, tmp_path: Path) -> None:
    (tmp_path / "test_batch").write_bytes(pickle.dumps(part, 2))
    with pytest.raises(DataError, match="test_batch cannot be read"):
        CIFAR10(tmp_path, train=False)


def test_damaged_or_missing_cifar_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="neither data_batch_1 nor data_batch_1.bin is in"):
        CIFAR10(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"123")
    with pytest.raises(DataError, match="it has 3 bytes, not a multiple of 3073"):
        CIFAR10(tmp_path, train=False)


def test_the_archive_is_downloaded_and_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_files(tmp_path / "files", 2)
    (tmp_path / "mirror").mkdir()
    packed = tmp_path / "mirror" / "cifar-10-python.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        for path in (tmp_path / "files").iterdir():
            archive.add(path, f"cifar-10-batches-py/{path.name}")
        evil = tarfile.TarInfo("../evil")
        archive.addfile(evil, io.BytesIO())
    monkeypatch.setattr(CIFAR10, "mirrors", [packed.parent.as_uri() + "/"])
    monkeypatch.setattr(CIFAR10, "sha256", hashlib.sha256(packed.read_bytes()).hexdigest())
    root = tmp_path / "root"
    assert len(CIFAR10(root, download=True)) == 5
    assert len(CIFAR10(root, train=False)) == 1
    assert not (tmp_path / "evil").exists()
    monkeypatch.setattr(CIFAR10, "sha256", "0" * 64)
    with pytest.raises(DataError, match="SHA-256 is"):
        CIFAR10(tmp_path / "other", download=True)
