import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minitorch import io
from minitorch.errors import CheckpointError
from minitorch.io import container
from minitorch.ops.primitive import wrap

TREE = {
    "net": {"weight": wrap(np.arange(6, dtype=np.float32).reshape(2, 3)), "on": np.array([True])},
    "step": 7,
    "pair": (0.5, 2**70),
    3: [None, "text", np.float16(2)],
    "z": np.array([1 + 2j]),
}
QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path):
    io.save_tree(tmp_path / "t.ckpt", TREE)
    return tmp_path / "t.ckpt"


def refused(path, match="t.ckpt"):
    with pytest.raises(CheckpointError, match=match):
        io.load_tree(path)
    with pytest.raises(CheckpointError, match=match):
        io.verify(path)


def forge(path, change):
    """Rewrite the header as `change` leaves it, with a digest that fits."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    fields = json.loads(raw[8 : 8 + length])
    payload = change(fields)
    payload = payload if isinstance(payload, bytes) else raw[8 + length :]
    fields["__metadata__"]["minitorch.sha256"] = "0" * 64
    text = json.dumps(fields, separators=(",", ":")).encode()
    raw = len(text).to_bytes(8, "little") + text + payload
    digest = hashlib.sha256(raw).hexdigest().encode()
    path.write_bytes(raw.replace(b'"' + b"0" * 64 + b'"', b'"' + digest + b'"', 1))


def test_other_programs_can_read_the_arrays(path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = safetensors.load_file(path)
    assert set(arrays) == {"net.weight", "net.on", "z"}
    assert np.array_equal(arrays["net.weight"], TREE["net"]["weight"]._array)
    assert arrays["z"].tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", [d for d in container.DTYPES.values() if d.kind in "fiubV"])
def test_other_programs_know_the_dtypes(dtype, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    array = np.ones((2, 2)).astype(dtype)
    io.save_tree(
        tmp_path / "t", {"a": array, "scalar": array[0, :1].reshape(()), "empty": array[:0]}
    )
    arrays = safetensors.load_file(tmp_path / "t")
    assert arrays["a"].dtype == dtype
    assert arrays["a"].tobytes() == array.tobytes()
    assert arrays["scalar"].shape == ()
    assert arrays["empty"].shape == (0, 2)


def test_names_with_the_same_dotted_path_stay_apart(tmp_path, assert_identical):
    a, b, c, d = (np.full(2, i) for i in range(4))
    tree = {"a.b": a, "a": {"b": b, "b#2": c}, "": d}
    io.save_tree(tmp_path / "t", tree)
    assert_identical(tree, io.load_tree(tmp_path / "t"))
    names = pytest.importorskip("safetensors.numpy").load_file(tmp_path / "t")
    assert set(names) == {"a.b", "a.b#2", "a.b#2#2", "value"}


def test_the_same_tree_gives_the_same_bytes(path):
    before = path.read_bytes()
    io.save_tree(path, TREE)
    assert path.read_bytes() == before


def test_arrays_are_aligned_to_their_items(tmp_path):
    io.save_tree(tmp_path / "t", [np.ones(3, dtype) for dtype in ("i1", "f8", "f2", "f4", "?")])
    raw = (tmp_path / "t").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    fields = json.loads(raw[8 : 8 + length])
    del fields["__metadata__"]
    for field in fields.values():
        size = container.DTYPES[field["dtype"]].itemsize
        assert (8 + length + field["data_offsets"][0]) % size == 0


@QUIET
@given(data=st.data())
def test_any_changed_byte_is_noticed(data, path):
    raw = bytearray(path.read_bytes())
    io.save_tree(path, TREE)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] ^= data.draw(st.integers(1, 255))
    if bytes(raw) != path.read_bytes():
        path.write_bytes(raw)
        refused(path)


def test_every_flipped_bit_of_a_small_file_is_noticed(tmp_path):
    path = tmp_path / "t.ckpt"
    io.save_tree(path, {"a": np.arange(3, dtype=np.int8)})
    raw = path.read_bytes()
    for at in range(len(raw)):
        for bit in (0, 5):
            path.write_bytes(raw[:at] + bytes([raw[at] ^ (1 << bit)]) + raw[at + 1 :])
            refused(path)


def test_every_truncation_and_any_extension_is_noticed(path):
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        refused(path)
    path.write_bytes(raw + b"\0")
    refused(path, "is damaged: it has .* bytes and its header promises")


@QUIET
@given(raw=st.binary(max_size=200), lead=st.sampled_from([b"", container._START, b"{}"]))
def test_random_bytes_are_refused(raw, lead, tmp_path):
    path = tmp_path / "t.ckpt"
    path.write_bytes(raw)
    refused(path)
    path.write_bytes((len(raw) + len(lead)).to_bytes(8, "little") + lead + raw)
    refused(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**66) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3)
            | st.sampled_from(
                ["dict", "items", "tuple", "tensor", "array", "scalar", "int", "float"]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


@QUIET
@given(structure=JSON)
def test_a_forged_tree_loads_or_is_refused(structure, path):
    forge(
        path,
        lambda fields: fields["__metadata__"].update({"minitorch.tree": json.dumps(structure)}),
    )
    try:
        io.load_tree(path)
    except CheckpointError:
        refused(path)
    else:
        assert io.verify(path)


@QUIET
@given(field=JSON, key=st.sampled_from(["dtype", "shape", "data_offsets", None]), value=JSON)
def test_a_forged_array_field_is_refused(field, key, value, path):
    io.save_tree(path, TREE)
    before = path.read_bytes()

    def change(fields):
        if key is None:
            fields["net.weight"] = field
        else:
            fields["net.weight"][key] = value

    forge(path, change)
    try:
        io.load_tree(path)
    except CheckpointError:
        return
    assert path.read_bytes() == before


def metadata(**values):
    return lambda f: f["__metadata__"].update({f"minitorch.{k}": v for k, v in values.items()})


def field(name, **values):
    return lambda f: f[name].update(values)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (metadata(version="2"), "has version '2' of the format; this minitorch reads version '1'"),
        (
            metadata(tree='{"pickle": 1}'),
            r"is damaged: its tree cannot be read \(KeyError\('pickle'\)\)",
        ),
        (metadata(tree='{"tensor": "other"}'), "its tree cannot be read"),
        (metadata(tree='{"int": 1, "float": 2}'), "its tree cannot be read"),
        (metadata(tree="{"), "its tree cannot be read"),
        (metadata(tree="[" * 10**5 + "]" * 10**5), "its tree cannot be read"),
        (metadata(tree="9" * 5000), "its tree cannot be read"),
        (metadata(tree="[NaN]"), "its tree cannot be read"),
        (metadata(tree=3), "its header cannot be read"),
        (metadata(complex128='["net.weight"]'), "'net.weight' does not hold complex numbers"),
        (field("net.weight", shape=[2, -3]), r"the shape of 'net.weight' is \[2, -3\]"),
        (field("net.weight", shape=[2, 4]), "'net.weight' does not lie at bytes 16 to 48"),
        (field("net.weight", shape=[2, 3.0]), "the shape of"),
        (field("net.weight", data_offsets=[0, 24]), "does not lie at bytes"),
        (field("net.weight", dtype="Q4"), "its header cannot be read"),
        (lambda f: f["net.weight"].pop("dtype"), "its header cannot be read"),
        (lambda f: f.update(extra=3), "its header cannot be read"),
        (
            lambda f: f.update(x={"dtype": "F32", "shape": [0, 2**70], "data_offsets": [41, 41]}),
            "'x' cannot have the shape",
        ),
        (
            lambda f: f.update(x={"dtype": "F32", "shape": [0] * 65, "data_offsets": [41, 41]}),
            "'x' cannot have the shape",
        ),
        (
            lambda f: f.update(
                x={"dtype": "F32", "shape": [2**40], "data_offsets": [41, 41 + 2**42]}
            ),
            "has .* bytes and its header promises",
        ),
        (
            lambda f: struct.pack("<2d", 1, 2) + bytes(24) + b"\2",
            "'net.on' holds bytes other than 0 and 1",
        ),
    ],
)
def test_a_forged_file_is_refused_with_the_reason(change, text, path):
    forge(path, change)
    refused(path, text)


def test_a_structure_that_is_too_big_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(container, "_MAX_HEADER", 1000)
    with pytest.raises(CheckpointError, match=r"structure of a tree must fit into 1000 bytes. Got"):
        io.save_tree(tmp_path / "t", list(range(500)))
    assert not list(tmp_path.iterdir())
