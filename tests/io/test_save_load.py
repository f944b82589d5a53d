import io as stdio
import pickle
import zipfile

import numpy as np
import pytest

import minitorch
from minitorch import io
from minitorch.errors import ArgumentError, CheckpointError, DeviceError
from minitorch.ops.primitive import wrap

TREE = {"weight": wrap(np.arange(3, dtype=np.float32)), "step": 3, "array": np.ones(2)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ckpt"


def test_save_and_load_have_the_names_and_order_of_pytorch(path, assert_identical):
    minitorch.save(TREE, path)
    for loaded in (minitorch.load(path), minitorch.load(str(path), "cpu", weights_only=False)):
        assert_identical(TREE, loaded)
    assert io.load is minitorch.load


def test_an_open_file_works_too(assert_identical):
    file = stdio.BytesIO()
    file.write(b"before")
    minitorch.save(TREE, file)
    file.seek(6)
    assert_identical(TREE, minitorch.load(file))
    file.seek(0)
    with pytest.raises(
        CheckpointError, match="the file object is not a state tree: it starts with"
    ):
        minitorch.load(file)


@pytest.mark.parametrize("target", ["cpu", minitorch.device("cpu"), None])
def test_map_location_takes_a_device_or_its_name(target, path, assert_identical):
    io.save_tree(path, TREE)
    assert_identical(TREE, io.load_tree(path, map_location=target))


@pytest.mark.parametrize(
    ("target", "kind", "text"),
    [
        ("tpu", DeviceError, "expected 'cpu', 'cuda'"),
        (
            lambda storage, place: place,
            ArgumentError,
            r"returns the storage it gets, or None. Got function. Load to the CPU and move",
        ),
        (3, ArgumentError, "must be a device, its name, a dict of such"),
    ],
)
def test_other_map_locations_are_refused(target, kind, text, path):
    io.save_tree(path, TREE)
    for read in (lambda: io.load_tree(path, map_location=target), lambda: io.load(path, target)):
        with pytest.raises(kind, match=text):
            read()


@pytest.mark.parametrize("target", [{"cuda:0": "cpu"}, lambda storage, place: storage])
def test_map_locations_of_pytorch_are_taken(target, path, assert_identical):
    io.save_tree(path, TREE)
    assert_identical(TREE, io.load(path, target))


class Payload:
    def __reduce__(self):
        return (pytest.fail, ("loading a file ran its code",))


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_are_refused_and_not_run(protocol, path):
    path.write_bytes(pickle.dumps(Payload(), protocol))
    text = "is a pickle, which can run any code" if protocol >= 2 else "is not a state tree"
    with pytest.raises(CheckpointError, match=text):
        io.load_tree(path)


def test_files_of_pytorch_are_refused_by_name(path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(2)}, path)
    with pytest.raises(CheckpointError, match="is a zip archive, as torch.save .* no state tree"):
        io.load_tree(path)
    torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    for read in (io.load_tree, io.load):
        with pytest.raises(CheckpointError, match="PyTorch's format before 1.6, a row of pickles"):
            read(path)


def test_other_kinds_of_files_are_refused_by_name(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x", "y")
    with pytest.raises(CheckpointError, match="is a zip archive"):
        io.verify(path)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="is an empty file. Use an earlier checkpoint"):
        io.verify(path)
    path.write_text("{}")
    with pytest.raises(
        CheckpointError, match="is not a state tree: it starts with b'{}'. Give a file"
    ):
        io.verify(path)


def test_a_safetensors_file_of_another_program_is_refused_with_the_way_to_read_it(path):
    pytest.importorskip("safetensors.numpy").save_file({"a": np.ones(2)}, path)
    with pytest.raises(CheckpointError, match="Read it with minitorch.io.load_file"):
        io.load_tree(path)


def test_a_header_length_that_looks_like_a_pickle_is_read(assert_identical):
    starts = set()
    for length in range(0, 1024, 8):
        tree = "x" * length
        file = stdio.BytesIO()
        io.save(tree, file)
        file.seek(0)
        assert_identical(tree, io.load(file))
        starts.add(file.getvalue()[:2])
    assert starts & {b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"}


def test_a_missing_file_is_reported_as_missing(path):
    for read in (io.load_tree, io.verify, io.load):
        with pytest.raises(FileNotFoundError):
            read(path)


def test_trees_of_thousands_of_leaves_are_kept(path, assert_identical):
    tree = {f"layer{i}.weight": wrap(np.full((3, 2), i, np.float32)) for i in range(3000)}
    io.save_tree(path, tree)
    assert_identical(tree, io.load_tree(path))


def test_writing_copies_no_contiguous_array(path, monkeypatch):
    array = np.arange(10.0)
    pieces = []
    bytes_of = io.container.bytes_of

    def spy(array):
        pieces.append(np.asarray(bytes_of(array)))
        return pieces[-1]

    monkeypatch.setattr(io.container, "bytes_of", spy)
    io.save_tree(path, {"a": array, "b": wrap(array[2:])})
    assert len(pieces) == 2
    assert all(np.shares_memory(piece, array) for piece in pieces)
