"""Plain safetensors files and folders; other programs read and write them in tests/parity."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import minitorch as mt
from minitorch import io, nn
from minitorch.errors import ArgumentError, CheckpointError


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight


def header(fields: object) -> bytes:
    text = json.dumps(fields).encode()
    return len(text).to_bytes(8, "little") + text


def test_every_dtype_and_shape_comes_back(tmp_path: Path) -> None:
    tensors = {d.name: mt.ones(2, 3).to(d) for d in mt.dtypes.ALL if d is not mt.complex128}
    tensors |= {"0-d": mt.tensor(3), "empty": mt.empty(0, 2), "t": mt.arange(6).reshape(2, 3).t()}
    io.save_file(tensors, tmp_path / "a", {"format": "pt"})
    loaded = io.load_file(tmp_path / "a")
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype is tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert loaded[name].tolist() == tensor.tolist()
    assert io.load_metadata(tmp_path / "a") == {"format": "pt"}


def test_arrays_of_numpy_are_written(tmp_path: Path) -> None:
    io.save_file({"b": np.ones(2, ">f4"), "h": np.ones(2, ml_dtypes.bfloat16)}, tmp_path / "a")
    assert io.load_file(tmp_path / "a")["b"].tolist() == [1, 1]


def test_state_trees_are_read_as_named_tensors(tmp_path: Path) -> None:
    mt.save({"a": {"b": mt.ones(2)}, "n": 3}, tmp_path / "a")
    assert io.load_file(tmp_path / "a")["a.b"].tolist() == [1, 1]


def test_a_device_is_followed(tmp_path: Path, pretend_gpu) -> None:
    x = mt.ones(2, device="cuda:0")
    io.save_file({"a": x}, tmp_path / "a")
    assert str(io.load_file(tmp_path / "a", "cuda:0")["a"].device) == "cuda:0"


def test_ties_are_refused_or_written_once(tmp_path: Path) -> None:
    model = Tied()
    with pytest.raises(
        CheckpointError, match="'head.weight' and 'embed.weight' share theirs .*Use save_model"
    ):
        io.save_file(model.state_dict(), tmp_path / "a")
    io.save_model(model, tmp_path / "a")
    assert io.load_metadata(tmp_path / "a") == {"head.weight": "embed.weight"}
    assert list(io.load_file(tmp_path / "a")) == ["embed.weight"]
    other = Tied()
    assert io.load_model(other, tmp_path / "a") == ([], [])
    assert other.head.weight.tolist() == model.embed.weight.tolist()
    assert other.head.weight is other.embed.weight
    wrong = nn.Linear(3, 5)
    with pytest.raises(CheckpointError, match="names, shapes and kinds of number must match"):
        io.load_model(wrong, tmp_path / "a")


@pytest.mark.parametrize(
    ("tensors", "metadata", "text"),
    [
        ({"a": mt.ones(1).to(mt.complex128)}, None, "no code for the dtype of 'a', c128"),
        ({"a": np.array(["x"])}, None, "no code for the dtype of 'a'"),
        ({"a": 3}, None, "each value must be a tensor or an array. Got int for 'a'"),
        ({"__metadata__": mt.ones(1)}, None, "names must be texts other than '__metadata__'"),
        ({3: mt.ones(1)}, None, "names must be texts .* Got 3"),
        ({}, {"n": 3}, "metadata must be texts by name. Got 'n': 3"),
    ],
)
def test_what_has_no_form_is_refused(tensors, metadata, text, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=text):
        io.save_file(tensors, tmp_path / "a", metadata)
    assert not list(tmp_path.iterdir())


F8 = {"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}
U16 = {"a": {"dtype": "U16", "shape": [1], "data_offsets": [0, 2]}}
BOOL = {"a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"PK\3\4", "is no safetensors file: it starts with b'PK.*Use minitorch.load"),
        (b"", "is no safetensors file"),
        (header({})[:-1], "is damaged: it is cut short"),
        (b"\2" + b"\0" * 7 + b"{[", "is damaged: its header cannot be read"),
        (header({"a": 3}), "an entry is no object"),
        (header({"__metadata__": {"a": 3}}), "the metadata are no texts"),
        (header(F8) + b"\0", "holds 'a' as F8_E4M3, which is not an element type"),
        (header(U16) + b"\0\0", "holds 'a' as uint16, which is not an element type"),
        (header(BOOL), "has .* bytes and its header promises"),
        (header(BOOL) + b"\2", "bytes other than 0 and 1"),
        (header({"a": BOOL["a"] | {"shape": [-1]}}), "the shape of 'a' is"),
        (header({"a": BOOL["a"] | {"data_offsets": [1, 2]}}), "does not lie at bytes 0 to 1"),
        (header({"a": {"dtype": ["F32"]}}), "is damaged"),
    ],
)
def test_damaged_files_are_refused(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CheckpointError, match=text):
        io.load_file(tmp_path / "a")


STATE = {f"w{i}": mt.full((4,), float(i)) for i in range(5)}


def test_folders_come_back_whole_and_in_shards(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    for most, files in ((1 << 20, 1), (32, 3), (1, 5), (1 << 20, 1)):
        io.save_folder(folder, STATE, {"size": 4}, max_shard_bytes=most)
        assert len(list(folder.glob("*.safetensors"))) == files
        assert (folder / "model.safetensors.index.json").exists() == (files > 1)
        loaded = io.load_folder(folder)
        assert {name: tensor.tolist() for name, tensor in loaded.items()} == {
            name: tensor.tolist() for name, tensor in STATE.items()
        }
        assert io.load_config(folder) == {"size": 4}


def test_folders_write_tied_names_once(tmp_path: Path) -> None:
    io.save_folder(tmp_path, Tied().state_dict())
    assert list(io.load_folder(tmp_path)) == ["embed.weight"]


def test_wrong_folders_say_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="There is no such folder"):
        io.load_config(tmp_path / "none")
    (tmp_path / "readme").write_text("")
    with pytest.raises(CheckpointError, match="must hold one of model.safetensors.* holds readme"):
        io.load_folder(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(CheckpointError, match="must hold an object"):
        io.load_config(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="cannot be read as JSON"):
        io.load_config(tmp_path)
    with pytest.raises(ArgumentError, match="max_shard_bytes must be at least 1"):
        io.save_folder(tmp_path, {}, max_shard_bytes=0)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ("[]", "has no weight_map"),
        ('{"weight_map": {"a": 3}}', "has no weight_map"),
        ('{"weight_map": {"a": "../secret"}}', "names '../secret', which is no file"),
        ('{"weight_map": {"a": "lost"}}', "names 'lost', which is no file"),
        ('{"weight_map": {"a": "part", "b": "part"}}', "promises 1 tensors .*: b. Get the folder"),
    ],
)
def test_wrong_indices_are_refused(index: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"")
    folder = tmp_path / "model"
    folder.mkdir()
    io.save_file({"a": mt.ones(1)}, folder / "part")
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(CheckpointError, match=text):
        io.load_folder(folder)
