"""From a list of samples to a batch."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import backend
from ..dtypes import get_default_dtype
from ..errors import DataError, describe
from ..ops.joining import stack
from ..ops.primitive import wrap
from ..tensor import Tensor
from .arrays import fits_tensor, is_array, raw

_NUMBERS = {bool, int, float}


def default_collate(batch: Sequence[Any]) -> Any:
    """Join samples of equal structure: arrays and numbers become Tensors with a batch dimension.

    Arrays, Tensors and NumPy scalars keep their dtype; Python floats get the default float dtype,
    ints int64, bools bool. Strings and bytes stay in a list. Dicts, dataclasses and named tuples
    keep their type; other tuples and lists become lists.

    Args:
        batch: at least one sample.

    Raises:
        DataError: shapes, dtypes, lengths, keys or types differ, or a type that cannot be joined.

    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.]), 'name': ['a', 'b']}
    """
    return collate(batch, None)


def collate(batch: Sequence[Any], indices: Sequence[Any] | None) -> Any:
    """`default_collate` with the dataset's indices of the samples, for the texts of errors."""
    if not len(batch):
        raise DataError("default_collate: a batch needs at least one sample. Got an empty list.")
    return _Join(indices).join(batch, "sample")


def default_convert(data: Any) -> Any:
    """Turn arrays and NumPy scalars in nested data into Tensors; everything else stays."""
    if isinstance(data, Tensor):
        return data
    if is_array(data):
        return wrap(data.copy()) if fits_tensor(data) else data
    if isinstance(data, np.generic) and fits_tensor(data):
        return wrap(np.asarray(data))
    return _map(data, default_convert)


def wrap_arrays(data: Any) -> Any:
    """What `take_batch` returned, with Tensors in place of its new arrays; a tuple gives a list."""
    if isinstance(data, tuple):
        return [wrap(array) for array in data]
    return wrap(data)


def _map(data: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(data, Mapping):
        return _like(data, {key: function(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(function, data))
    if _is_record(data):
        return _record(data, {name: function(getattr(data, name)) for name in _fields(data)})
    if isinstance(data, list | tuple):
        return [function(value) for value in data]
    return data


class _Join:
    def __init__(self, indices: Sequence[Any] | None) -> None:
        self.indices = indices

    def join(self, samples: Sequence[Any], path: str) -> Any:
        first = samples[0]
        if is_array(first):
            return self.join_arrays(samples, path)
        if isinstance(first, np.generic):
            return self.join_arrays([np.asarray(sample) for sample in samples], path)
        if isinstance(first, bool | int | float):
            return self.join_numbers(samples, path)
        if isinstance(first, str | bytes):
            self.check_types(samples, (str, bytes), path)
            return list(samples)
        if isinstance(first, Mapping):
            return self.join_mappings(samples, path)
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            columns = self.columns(samples, path)
            pairs = zip(first._fields, columns, strict=True)
            return type(first)(*[self.join(c, f"{path}.{name}") for name, c in pairs])
        if _is_record(first):
            self.check_types(samples, (type(first),), path)
            names = _fields(first)
            return _record(
                first,
                {n: self.join([getattr(s, n) for s in samples], f"{path}.{n}") for n in names},
            )
        if isinstance(first, list | tuple):
            columns = self.columns(samples, path)
            return [self.join(column, f"{path}[{i}]") for i, column in enumerate(columns)]
        raise DataError(
            f"default_collate: {path} is a {type(first).__name__} in {self.name(0)}, which cannot "
            "be joined. Return arrays, Tensors, numbers, strings, or dicts, lists, tuples and "
            "dataclasses of them, or pass collate_fn."
        )

    def join_arrays(self, samples: Sequence[Any], path: str) -> Any:
        arrays = [raw(sample) for sample in samples]
        first = arrays[0]
        kind = type(first)
        for i, array in enumerate(arrays):
            if type(array) is not kind and not is_array(array):
                self.fail(path, "types", i, describe(first), describe(array))
            if array.shape != first.shape:
                self.fail(path, "shapes", i, describe(first), describe(array))
            if array.dtype != first.dtype:
                self.fail(path, "dtypes", i, describe(first), describe(array))
        if not fits_tensor(first):
            raise DataError(
                f"default_collate: {path} is an array of {first.dtype} in {self.name(0)}, which no "
                "Tensor can have. Convert it to a dtype of minitorch, or return a str or a list."
            )
        if any(isinstance(sample, Tensor) and sample.requires_grad for sample in samples):
            return stack(list(samples))
        if kind is np.ndarray:
            return wrap(np.array(arrays, first.dtype))  # five times as fast as np.stack
        return wrap(backend.namespace(first).stack(arrays))

    def join_numbers(self, samples: Sequence[Any], path: str) -> Tensor:
        kinds = set(map(type, samples))
        if not kinds <= _NUMBERS:
            self.check_types(samples, (bool, int, float), path)
        if any(issubclass(kind, float) for kind in kinds):
            return wrap(np.array(samples, get_default_dtype().numpy))
        if all(kind is bool for kind in kinds):
            return wrap(np.array(samples, np.bool_))
        try:
            return wrap(np.array(samples, np.int64))
        except OverflowError:
            i = next(i for i, sample in enumerate(samples) if not -(2**63) <= sample < 2**63)
            raise DataError(
                f"default_collate: {path} must fit in int64. {self.name(i)} has {samples[i]}."
            ) from None

    def join_mappings(self, samples: Sequence[Any], path: str) -> Any:
        first = samples[0]
        self.check_types(samples, (Mapping,), path)
        for i, sample in enumerate(samples):
            if sample.keys() != first.keys():
                self.fail(path, "keys", i, sorted(map(repr, first)), sorted(map(repr, sample)))
        joined = {key: self.join([s[key] for s in samples], f"{path}[{key!r}]") for key in first}
        return _like(first, joined)

    def columns(self, samples: Sequence[Any], path: str) -> list[tuple[Any, ...]]:
        self.check_types(samples, (list, tuple), path)
        for i, sample in enumerate(samples):
            if len(sample) != len(samples[0]):
                self.fail(path, "lengths", i, len(samples[0]), len(sample))
        return list(zip(*samples, strict=True))

    def check_types(self, samples: Sequence[Any], kinds: tuple[type, ...], path: str) -> None:
        for i, sample in enumerate(samples):
            if not isinstance(sample, kinds):
                self.fail(path, "types", i, type(samples[0]).__name__, type(sample).__name__)

    def fail(self, path: str, what: str, i: int, first: Any, other: Any) -> None:
        raise DataError(
            f"default_collate: the {what} of {path} must be equal in a batch. Got {first} in "
            f"{self.name(0)} and {other} in {self.name(i)}. "
            "Make them equal in the dataset (crop, pad, convert), or pass collate_fn."
        )

    def name(self, i: int) -> str:
        if self.indices is None:
            return f"sample {i} of the batch"
        return f"sample {i} of the batch (dataset index {self.indices[i]})"


def _is_record(data: Any) -> bool:
    return dataclasses.is_dataclass(data) and not isinstance(data, type)


def _fields(record: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(record) if field.init]


def _record(like: Any, values: dict[str, Any]) -> Any:
    return type(like)(**values)


def _like(mapping: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if type(mapping) is dict:
        return values
    try:
        return type(mapping)(values)  # type: ignore[call-arg]
    except TypeError:  # a mapping that cannot be made from a dict, such as defaultdict
        return values
