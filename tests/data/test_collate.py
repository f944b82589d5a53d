"""default_collate and default_convert."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minitorch as mt
from minitorch.data import default_collate, default_convert
from minitorch.errors import DataError

Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass
class Record:
    x: Any
    y: Any


VALUES = [
    # samples, values of the batch, dtype
    ([1, 2], [1, 2], mt.int64),
    ([1.5, 2.0], [1.5, 2.0], mt.float32),
    ([1, 2.5], [1.0, 2.5], mt.float32),
    ([True, False], [True, False], mt.bool),
    ([True, 2], [1, 2], mt.int64),
    ([np.float64(1), np.float64(2)], [1.0, 2.0], mt.float64),
    ([np.int32(1), np.int32(2)], [1, 2], mt.int32),
    ([np.bool_(True)], [True], mt.bool),
    ([np.zeros(2, np.uint8)] * 2, [[0, 0], [0, 0]], mt.uint8),
    ([np.ones((), np.float16)] * 2, [1.0, 1.0], mt.float16),
    ([mt.tensor([1.0]), mt.tensor([2.0])], [[1.0], [2.0]], mt.float32),
    ([mt.tensor(1, dtype=mt.int8)], [1], mt.int8),
    ([np.zeros((0, 3), np.float32)] * 2, [[], []], mt.float32),
]


@pytest.mark.parametrize(("samples", "values", "dtype"), VALUES)
def test_numbers_and_arrays_become_tensors(samples: Any, values: Any, dtype: Any) -> None:
    batch = default_collate(samples)
    assert isinstance(batch, mt.Tensor)
    assert batch.dtype is dtype
    assert batch.tolist() == values


def test_structures_keep_their_kind() -> None:
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]
    pair = default_collate([Pair(1, "a"), Pair(2, "b")])
    assert isinstance(pair, Pair)
    assert pair.x.tolist() == [1, 2]
    assert pair.y == ["a", "b"]
    record = default_collate([Record(1, [2.0]), Record(3, [4.0])])
    assert isinstance(record, Record)
    assert record.x.tolist() == [1, 3]
    assert record.y[0].tolist() == [2.0, 4.0]
    ordered = default_collate([OrderedDict(b=1, a=2)] * 2)
    assert isinstance(ordered, OrderedDict)
    assert list(ordered) == ["b", "a"]
    assert default_collate([defaultdict(int, a=1)] * 2)["a"].tolist() == [1, 1]
    nested = default_collate([((1, 2), {"k": [3]}), ((4, 5), {"k": [6]})])
    assert [part.tolist() for part in nested[0]] == [[1, 4], [2, 5]]
    assert nested[1]["k"][0].tolist() == [3, 6]


def test_gradients_flow_through_a_batch_of_tensors_that_require_them() -> None:
    weights = [mt.tensor([1.0], requires_grad=True) for _ in range(3)]
    default_collate(weights).sum().backward()
    assert [w.grad.tolist() for w in weights] == [[1.0]] * 3


@given(st.integers(1, 5), st.lists(st.integers(0, 4), max_size=3), st.sampled_from("bhilfd?"))
def test_a_batch_of_arrays_is_a_copy_of_their_stack(n: int, shape: list[int], code: str) -> None:
    arrays = [np.full(shape, i, np.dtype(code)) for i in range(n)]
    wanted = np.stack(arrays)
    batch = default_collate(arrays)
    for array in arrays:
        array[...] = 0
    assert batch._array.dtype == wanted.dtype
    np.testing.assert_array_equal(batch.numpy(), wanted)


WRONG = [
    ([], "a batch needs at least one sample"),
    ([np.zeros(3), np.zeros(3), np.zeros(4)], r"f64\[3\] in sample 0 .* f64\[4\] in sample 2"),
    ([{"x": [np.zeros(2)]}, {"x": [np.zeros((2, 1))]}], r"shapes of sample\['x'\]\[0\]"),
    ([np.zeros(1, np.float32), np.zeros(1)], r"dtypes .* f32\[1\] .* f64\[1\] in sample 1"),
    ([np.float32(1), np.float64(2)], r"dtypes of sample"),
    ([np.zeros(1), 3], r"types of sample .* f64\[1\] in sample 0 .* int in sample 1"),
    ([1, None], r"types of sample must be equal .* int in sample 0 .* NoneType in sample 1"),
    ([1, "a"], "types of sample"),
    (["a", 1], "types of sample"),
    ([(1, 2), (1,)], r"lengths of sample .* 2 in sample 0 .* 1 in sample 1"),
    ([(1, 2), 3], "types of sample"),
    ([Pair(1, 2), 3], "types of sample"),
    ([Pair(1, None), Pair(1, 2)], r"sample\.y is a NoneType"),
    ([Record(1, object()), Record(1, 2)], r"sample\.y is a object"),
    ([Record(1, 2), 3], "types of sample"),
    ([{"a": 1}, {"b": 1}], r"keys of sample .*'a'.*'b'"),
    ([{"a": 1}, 1], "types of sample"),
    ([None], "sample is a NoneType in sample 0 of the batch, which cannot be joined"),
    ([np.array(["a"])], "array of <U1"),
    ([np.array([None])], "array of object"),
    ([np.zeros(1, np.uint16)], "array of uint16"),
    ([1, 2**63], r"sample must fit in int64. sample 1 of the batch has 9223372036854775808"),
]  # fmt: skip


@pytest.mark.parametrize(("samples", "text"), WRONG)
def test_samples_that_do_not_fit_are_named(samples: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        default_collate(samples)


def test_convert_makes_tensors_of_arrays_only() -> None:
    source = np.arange(3)
    out = default_convert({"a": source, "b": (1, "x"), "c": Pair(np.float32(2), [source])})
    source[:] = 0
    assert out["a"].tolist() == [0, 1, 2]
    assert out["b"] == [1, "x"]
    assert out["c"].x.dtype is mt.float32
    assert out["c"].y[0].tolist() == [0, 1, 2]
    same = mt.tensor([1.0])
    assert default_convert(same) is same
    assert default_convert(Record(source, 1)).x.tolist() == [0, 0, 0]
    text = np.array(["a"])
    assert default_convert(text) is text
