import collections
import enum
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import minitorch as mt
from minitorch import io
from minitorch.errors import CheckpointError
from minitorch.io.tree import MAX_DEPTH, decode, encode
from minitorch.ops.primitive import wrap
from minitorch.tensor import Parameter, Tensor

TENSOR_DTYPES = (
    *("float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "bool"),
)
DTYPES = (*TENSOR_DTYPES, "uint16", "uint32", "uint64", ">f4", ">i8", ">c16")
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def array_of(dtype, shape, seed=0):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(seed).bytes(size)
    if np.dtype(dtype) == bool:
        return np.asarray(np.frombuffer(raw, np.uint8).reshape(shape) > 127)
    return np.frombuffer(raw, dtype).reshape(shape).copy()


arrays = st.builds(array_of, st.sampled_from(DTYPES), SHAPES, st.integers(0, 9))
tensors = st.builds(wrap, st.builds(array_of, st.sampled_from(TENSOR_DTYPES), SHAPES))
scalars = st.builds(
    lambda dtype, seed: array_of(dtype, (1,), seed)[0],
    st.sampled_from(DTYPES[:-3]),
    st.integers(0, 9),
)
floats = st.floats() | st.binary(min_size=8, max_size=8).map(lambda b: struct.unpack("<d", b)[0])
text = st.text(st.characters(), max_size=6) | st.sampled_from(
    ["", ".", "a.b", "a/b", "#2", "\ud800"]
)
leaves = st.one_of(
    *(st.none(), st.booleans(), st.integers(), floats, text, arrays, tensors, scalars),
    st.integers(2**62, 2**20000),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(text | st.integers(), inner, max_size=4),
    ),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees)
def test_a_tree_comes_back_as_it_was(tree, tmp_path, assert_identical):
    io.save_tree(tmp_path / "t", tree)
    assert_identical(tree, io.load_tree(tmp_path / "t"))
    assert io.verify(tmp_path / "t") is True


@settings(deadline=None)
@given(tree=trees)
def test_a_snapshot_is_an_equal_tree(tree, assert_identical):
    for array in encode(io.snapshot(tree))[1].values():
        assert array.flags.owndata
    assert_identical(decode(*encode(tree)), io.snapshot(tree))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)])
@pytest.mark.parametrize("form", ["contiguous", "transposed", "strided", "read-only", "broadcast"])
def test_every_array_comes_back(dtype, shape, form, tmp_path, assert_identical):
    array = array_of(dtype, shape)
    if form == "transposed":
        array = array.T
    elif form == "strided":
        array = np.repeat(array[..., None], 2, axis=-1)[..., ::-1][..., 0]
    elif form == "broadcast":
        array = np.broadcast_to(array, (2, *shape))
    elif form == "read-only":
        array.flags.writeable = False
    before = array.tobytes()
    tree = {"array": array}
    if dtype in TENSOR_DTYPES:
        tree["tensor"] = wrap(array)
    io.save_tree(tmp_path / "t", tree)
    loaded = io.load_tree(tmp_path / "t")
    assert_identical(tree, loaded)
    assert loaded["array"].flags.writeable
    assert loaded["array"].flags.c_contiguous
    assert array.tobytes() == before


@pytest.mark.parametrize(
    "value",
    [
        *(float("inf"), -float("inf"), float("nan"), -0.0, 5e-324, 1.7976931348623157e308, 0.1),
        *(-(2**63), 2**63, -(2**63) - 1, 2**64, 10**5000, True, 1, 1.0, "", "ü\0\n\ud800", None),
        *((), [], {}, ((),), [()], {"": {}}, {1: 1, "1": 2, -1: 3, 2**70: 4}, {"tensor": "x"}),
        *({"a.b": 1, "a": {"b": 2}}, {"dict": {"items": []}}, {"__metadata__": np.ones(2)}),
        *(
            np.float64("nan"),
            np.bool_(True),
            np.float16(1),
            ml_dtypes.bfloat16(2),
            np.uint64(2**63),
        ),
        *(np.complex64(1j), np.complex128(complex("nan+1j")), np.ones((1,) * 64)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back(value, tmp_path, assert_identical):
    for tree in (value, [value], {"key": (value,)}):
        io.save_tree(tmp_path / "t", tree)
        assert_identical(tree, io.load_tree(tmp_path / "t"))


def test_the_bits_of_a_nan_are_kept(tmp_path):
    for bits in (b"\1\0\0\0\0\0\xf8\x7f", b"\0\0\0\0\0\0\xf8\xff"):
        io.save_tree(tmp_path / "t", struct.unpack("<d", bits)[0])
        assert struct.pack("<d", io.load_tree(tmp_path / "t")) == bits


def test_an_ordered_dict_comes_back_as_a_dict_in_its_order(tmp_path, assert_identical):
    io.save_tree(tmp_path / "t", collections.OrderedDict(b=1, a=2))
    assert_identical({"b": 1, "a": 2}, io.load_tree(tmp_path / "t"))


def test_a_parameter_comes_back_as_a_plain_tensor(tmp_path):
    io.save_tree(tmp_path / "t", [Parameter(wrap(np.ones(2, np.float32)))])
    (loaded,) = io.load_tree(tmp_path / "t")
    assert type(loaded) is Tensor
    assert not loaded.requires_grad


def test_a_memmap_comes_back_as_an_array(tmp_path, assert_identical):
    mapped = np.memmap(tmp_path / "m", np.float32, "w+", shape=(3,))
    io.save_tree(tmp_path / "t", mapped)
    assert_identical(mapped, io.load_tree(tmp_path / "t"))


TIED = np.arange(1000, dtype=np.float32)


@pytest.mark.parametrize("copied", ["file", "snapshot"])
def test_ties_stay_ties_and_are_written_once(copied, tmp_path):
    tensor, array = wrap(TIED), TIED + 1
    tree = {"enc": tensor, "dec": [tensor, tensor.detach()], "a": (array, array), "t": TIED}
    io.save_tree(tmp_path / "t", tree)
    out = io.load_tree(tmp_path / "t") if copied == "file" else io.snapshot(tree)
    assert out["enc"] is out["dec"][0] is out["dec"][1]
    assert out["a"][0] is out["a"][1]
    assert out["enc"] is not tensor
    assert out["a"][0] is not array
    assert (tmp_path / "t").stat().st_size < 2 * TIED.nbytes + 2000


def test_equal_arrays_that_are_not_tied_stay_apart(tmp_path):
    io.save_tree(tmp_path / "t", [np.ones(2), np.ones(2)])
    a, b = io.load_tree(tmp_path / "t")
    assert not np.shares_memory(a, b)


def test_a_slice_of_a_big_tensor_writes_only_its_values(tmp_path):
    big = np.zeros(1_000_000, np.float32)
    io.save_tree(tmp_path / "t", {"a": big[:10], "b": wrap(big)[5:9]})
    assert (tmp_path / "t").stat().st_size < 1000


def test_a_snapshot_does_not_follow_later_changes():
    array = np.zeros(3)
    tree = {"best": wrap(array), "list": [1], "view": array[:2]}
    taken = io.snapshot(tree)
    array += 1
    tree["list"].append(2)
    assert taken["list"] == [1]
    assert not taken["best"].numpy().any()
    assert not taken["view"].any()


class Colour(enum.IntEnum):
    RED = 1


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (object(), r"Got builtins.object at 'model.0.bad'. Convert it to one of these"),
        (bytearray(b"x"), r"Got builtins.bytearray at 'model.0.bad'. Use bytes\(value\)"),
        ({object()}, r"Got builtins.object at 'model.0.bad.0'"),
        (Colour.RED, r"Colour at 'model.0.bad'"),
        (Point(1, 2), r"Point at 'model.0.bad'"),
        (
            collections.defaultdict(int),
            r"collections.defaultdict at 'model.0.bad'. Use dict\(value\)",
        ),
        (len, r"builtin_function_or_method at 'model.0.bad'"),
        (np.random.default_rng(), r"Generator at 'model.0.bad'"),
        (np.float32, r"Got builtins.type at 'model.0.bad'"),
        (np.str_("x"), r"numpy.str_ at 'model.0.bad'"),
        (np.datetime64("2020"), r"numpy.datetime64 at 'model.0.bad'"),
        (np.longdouble(1), r"numpy.longdouble at 'model.0.bad'"),
        (np.ma.array([1], mask=[True]), r"MaskedArray at 'model.0.bad'"),
        (
            np.array([object()]),
            r"one of bool, int8, .* Got object\[1\] at 'model.0.bad'. Convert it",
        ),
        (np.array(["x"]), r"dtype of an array must be one of .* at 'model.0.bad'"),
        (np.zeros(2, "i4,f4"), r"dtype of an array must be one of .* at 'model.0.bad'"),
        ({np.int64(1): 0}, r"keys must be str, .* Got int64 .* 'model.0.bad'. Use str\(key\)"),
        ({(1, len): 0}, r"keys must be str, .* or a tuple of these. Got tuple"),
    ],
)
def test_what_has_no_form_is_refused_with_its_place(value, text, tmp_path):
    tree = {"good": 1, "model": [{"bad": value}]}
    (tmp_path / "t").write_bytes(b"previous")
    for call in (lambda: io.save_tree(tmp_path / "t", tree), lambda: io.snapshot(tree)):
        with pytest.raises(CheckpointError, match=text):
            call()
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
    assert (tmp_path / "t").read_bytes() == b"previous"


PLAIN = {
    "set": {3, 1, 2},
    "frozenset": frozenset({"a", (1, None)}),
    "empty set": set(),
    "bytes": b"\x00\xff\n",
    "complex": complex(-0.0, float("inf")),
    "size": mt.Size([2, 3]),
    "dtype": mt.bfloat16,
    "device": mt.device("cpu"),
    "path": Path("runs") / "of today",
    "keys": {(1, "a"): 0, 1.5: 1, None: 2, True: 3, b"k": 4, frozenset({1}): 5, 7: 6, "t": 7},
    "hidden tensor": {(0,): [np.arange(3), {1, 2}]},
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_of_any_kind_come_back(name, tmp_path, assert_identical):
    io.save_tree(tmp_path / "t", {"x": PLAIN[name]})
    assert_identical({"x": PLAIN[name]}, io.load_tree(tmp_path / "t"))
    assert_identical(PLAIN[name], io.snapshot(PLAIN[name]))


def test_equal_sets_give_equal_files(tmp_path):
    for name, order in (("a", range(100)), ("b", reversed(range(100)))):
        io.save_tree(tmp_path / name, set(map(str, order)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("value", [object(), {np.int8(5): 1}])
def test_a_bad_root_is_named_as_the_root(value):
    with pytest.raises(CheckpointError, match="at the root"):
        io.snapshot(value)


def test_cycles_are_refused():
    tree = {"a": [1, {}]}
    tree["a"][1]["up"] = tree["a"]
    with pytest.raises(CheckpointError, match=r"must not hold itself. Got a cycle at 'a.1.up'"):
        io.snapshot(tree)


def test_a_container_in_two_places_is_no_cycle(assert_identical):
    shared = [1]
    assert_identical({"a": [1], "b": ([1], [1])}, io.snapshot({"a": shared, "b": (shared, shared)}))


@pytest.mark.parametrize(
    "wrap", [lambda x: [x], lambda x: {"k": x}, lambda x: (x,), lambda x: {0: x}]
)
def test_nesting_is_limited_and_what_is_within_the_limit_loads(wrap, tmp_path, assert_identical):
    tree = None
    for _ in range(MAX_DEPTH):
        tree = wrap(tree)
    io.save_tree(tmp_path / "t", tree)
    assert_identical(tree, io.load_tree(tmp_path / "t"))
    with pytest.raises(CheckpointError, match=f"at most {MAX_DEPTH} levels can be nested"):
        io.save_tree(tmp_path / "t", wrap(tree))
