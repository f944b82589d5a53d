"""Files of torch.save: what is refused, and that nothing in them runs. Values: tests/parity."""

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import ArgumentError, CheckpointError

GLOBALS = {
    "v2": b"ctorch._utils\n_rebuild_tensor_v2\n",
    "float": b"ctorch\nFloatStorage\n",
    "ordered": b"ccollections\nOrderedDict\n",
}


def archive(data: bytes, **records: bytes) -> io.BytesIO:
    """A zip archive as torch.save lays it out, with this data.pkl."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("x/data.pkl", data)
        for name, value in ({"byteorder": b"little", "version": b"3\n"} | records).items():
            zipped.writestr(f"x/{name}", value)
    file.seek(0)
    return file


def tensor_pickle(offset: int = 0, size=(2,), stride=(1,), count: int = 2) -> bytes:
    """A pickle of one float32 tensor over storage "0"."""
    storage = b"(X\7\0\0\0storage" + GLOBALS["float"] + b"X\1\0\0\0" + b"0" + b"X\3\0\0\0cpu"
    storage += b"J" + struct.pack("<i", count) + b"tQ"
    numbers = b"".join(
        b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", n) for n in part) + b"t"
        for part in (size, stride)
    )
    head = b"\x80\2" + GLOBALS["v2"] + b"(" + storage + b"J" + struct.pack("<i", offset)
    return head + numbers + b"\x89" + GLOBALS["ordered"] + b")RtR."


VALUES = {"data/0": np.float32([1, 2]).tobytes()}


def test_a_file_made_by_hand_is_read() -> None:
    assert mt.load(archive(tensor_pickle(), **VALUES)).tolist() == [1, 2]


class Payload:
    def __init__(self, call) -> None:
        self.call = call

    def __reduce__(self):
        return self.call


def run() -> None:
    """What a payload calls."""
    pytest.fail("loading a file ran its code")


CALLS = {
    "posix.system": (os.system, ("true",)),
    "builtins.eval": (eval, ("1",)),
    "builtins.getattr": (getattr, ("a", "upper")),
    "builtins.list": (list, ()),
    f"{__name__}.run": (run, ()),
    "numpy._core.multiarray.scalar": np.float32(1).__reduce__(),
}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uint16", r"the element type torch.uint16, which tensors here do not have. .*torch.int64"),
        ("float8_e5m2", r"torch.float8_e5m2, .*convert the tensor before saving: .*torch.float32"),
        ("complex32", r"torch.complex32, .*torch.complex64"),
    ],
)
def test_element_types_without_a_counterpart_are_named(name: str, text: str) -> None:
    data = b"\x80\2ctorch\n" + name.encode() + b"\n."
    with pytest.raises(CheckpointError, match=text):
        mt.load(archive(data))


def test_quantized_tensors_are_named() -> None:
    data = b"\x80\2ctorch._utils\n_rebuild_qtensor\n."
    with pytest.raises(CheckpointError, match=r"a quantized tensor, .* save tensor.dequantize\(\)"):
        mt.load(archive(data))


def test_what_was_read_can_be_saved(tmp_path: Path, assert_identical) -> None:
    value = {"s": {1, 2}, (1, 2): b"x", "f": frozenset([1]), "c": 1j, None: 1.5, 2.5: True}
    tree = mt.load(archive(pickle.dumps(value, 2)))
    mt.save(tree, tmp_path / "t")
    assert_identical(value, mt.load(tmp_path / "t"))


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("weights_only", [None, True, False])
def test_functions_are_refused_by_name_and_do_not_run(name, protocol, weights_only) -> None:
    data = pickle.dumps({"state": [Payload(CALLS[name])]}, protocol)
    name = name.replace("builtins", "builtins" if protocol > 2 else "__builtin__")
    with pytest.raises(CheckpointError, match=f"holds {name}, which is refused: only tensors"):
        mt.load(archive(data), weights_only=weights_only)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"ios\nsystem\n.", "os.system|INST|damaged"),
        (b"(S'true'\nios\nsystem\n.", "holds the pickle instruction INST, which is refused"),
        (b"(cos\nsystem\nS'true'\no.", "holds os.system, which is refused"),
        (b"\x82\1.", "damaged|EXT1"),
        (GLOBALS["v2"] + b".", "holds torch._utils._rebuild_tensor_v2, which is refused"),
        (b"(" + GLOBALS["v2"] + b"lp0\n.", "holds torch._utils._rebuild_tensor_v2"),
        (GLOBALS["v2"] + b"}b.", "is damaged: its pickle cannot be read .TypeError"),
        (GLOBALS["v2"] + b")\x81.", "holds the pickle instruction NEWOBJ"),
        (GLOBALS["ordered"] + b")R}S'__class__'\nN" + b"sb.", "attributes of an OrderedDict"),
        (b"g7\n.", "is damaged: its pickle cannot be read .KeyError"),
        (b"u.", "is damaged"),
        (b"N", "is damaged"),
        (b"NN.", "is damaged"),
        (b"\x80\2]K\1u.", "is damaged"),
        (b"\x80\2}]N" + b"s.", "is damaged: its pickle cannot be read .TypeError"),
        (b"Pabc\n.", "holds the pickle instruction PERSID"),
        (b"\x80\2(K\1tQ.", "is damaged"),
        (b"\xff.", "is damaged"),
    ],
)
def test_malformed_pickles_are_refused(data, text) -> None:
    with pytest.raises(CheckpointError, match=text):
        mt.load(archive(data))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"offset": 1}, "a tensor ends at 2 in a storage of 2"),
        ({"offset": -1}, "are no sizes"),
        ({"size": (3,)}, "a tensor ends at 2 in a storage of 2"),
        ({"size": (2,), "stride": (-1,)}, "are no sizes"),
        ({"size": (2,), "stride": (1, 1)}, "do not fit the strides"),
        ({"size": (2**40,), "stride": (0,)}, "would need more than 1 GiB. Save the tensor before"),
        ({"count": 3}, "'x/data/0' has 8 bytes and needs 12"),
    ],
)
def test_views_outside_of_their_storage_are_refused(options, text) -> None:
    with pytest.raises(CheckpointError, match=text):
        mt.load(archive(tensor_pickle(**options), **VALUES))


def test_what_is_missing_in_an_archive_is_named() -> None:
    with pytest.raises(CheckpointError, match="is damaged: it has no entry 'x/data/0'"):
        mt.load(archive(tensor_pickle()))
    with pytest.raises(CheckpointError, match="its byte order is 'middle'"):
        mt.load(archive(tensor_pickle(), byteorder=b"middle"))
    with pytest.raises(CheckpointError, match="holds a TorchScript program, which is refused"):
        mt.load(archive(tensor_pickle(), **{"constants.pkl": b""}))


def test_other_archives_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.ones(2))
    with pytest.raises(CheckpointError, match="torch.save did not write .*numpy.load"):
        mt.load(tmp_path / "a.npz")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("x/data.pkl", tensor_pickle())
    with pytest.raises(CheckpointError, match="has 'x/data.pkl' compressed. Pack it again without"):
        mt.load(file if file.seek(0) else file)


def test_big_endian_files_are_read() -> None:
    records = {"data/0": np.array([1, 2], ">f4").tobytes(), "byteorder": b"big"}
    assert mt.load(archive(tensor_pickle(), **records)).tolist() == [1, 2]


def test_every_changed_byte_is_found_or_harmless() -> None:
    whole = archive(tensor_pickle(), **VALUES).getvalue()
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 0x41
        try:
            value = mt.load(io.BytesIO(bytes(data)))
        except CheckpointError:
            continue
        assert value.tolist() == [1, 2], place


def test_cut_files_are_refused() -> None:
    whole = archive(tensor_pickle(), **VALUES).getvalue()
    for length in range(4, len(whole), 7):
        with pytest.raises(CheckpointError):
            mt.load(io.BytesIO(whole[:length]))


def test_a_machine_of_plain_values() -> None:
    tree = {1: [None, True, 2.5, "a", b"b", (1, 2, 3, 4), -(2**70)], "s": {1, 2}, "c": 1j, "f": ()}
    tree["o"] = OrderedDict(a=frozenset([3]))
    for protocol in range(2, 6):
        assert mt.load(archive(pickle.dumps(tree, protocol))) == tree


def test_locations_are_checked() -> None:
    def load(**options):
        return mt.load(archive(tensor_pickle(), **VALUES), **options)

    assert load(map_location=lambda storage, place: storage).device == mt.device("cpu")
    assert load(map_location={"cuda:0": "cpu"}).device == mt.device("cpu")
    assert load(map_location=mt.device("cpu"), mmap=True, weights_only=True).tolist() == [1, 2]
    for wrong in (3, lambda storage, place: "cpu"):
        with pytest.raises(ArgumentError, match="map_location must be a device, its name, a dict"):
            load(map_location=wrong)
    with pytest.raises(ArgumentError, match="pickle_module must be None: nothing is unpickled"):
        load(pickle_module=pickle)


def test_tensors_go_to_the_device(pretend_gpu) -> None:
    for target in ("cuda:0", {"cpu": "cuda:0"}):
        tensor = mt.load(archive(tensor_pickle(), **VALUES), map_location=target)
        assert str(tensor.device) == "cuda:0"
