"""Tables in CSV files."""

import csv
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import ArgumentError, DataError
from ..dataset import Dataset

_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
CATEGORY = "category"


class CSVDataset(Dataset[Any]):
    """Rows of a CSV file: sample i is (features (F,), target), or the features alone.

    Attributes:
        columns: the names of the features.
        features: (N, F).
        targets: (N,), or None.
        categories: for each column that is read as "category", its texts in alphabetical order.

    Args:
        path: the file.
        columns: names (or numbers, without a header) of the features; None for all others.
        target: name (or number) of the target's column; None for none.
        dtype: of the features; None for the default float dtype.
        dtypes: by column, a dtype, or "category": texts become the numbers of their class. A
            target without an entry is int64 where all values are whole numbers, else a float.
        header: whether the first row has the names.
        delimiter: what stands between values.
        missing: the value that takes the place of missing ones; None refuses them.

    Raises:
        DataError: a row is too short or long, a value is missing or no number (the text names row
            and column), or there are no rows.
        ArgumentError: there is no such column.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str | int] | None = None,
        target: str | int | None = None,
        *,
        dtype: Any = None,
        dtypes: Mapping[str | int, Any] | None = None,
        header: bool = True,
        delimiter: str = ",",
        missing: float | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._missing = missing
        self._first_line = 2 if header else 1
        names, rows = self._read(header, delimiter)
        self._names = names
        own = {self._place(name): kind for name, kind in (dtypes or {}).items()}
        self._target = None if target is None else self._place(target)
        if columns is None:
            places = [i for i in range(len(names)) if i != self._target]
        else:
            places = [self._place(name) for name in columns]
        self.columns = [names[i] for i in places]
        self.categories: dict[str, list[str]] = {}
        kind = _numpy_dtype(dtype)
        texts = list(zip(*rows, strict=True))
        parts = [self._column(i, texts[i], own.get(i, kind)).astype(kind) for i in places]
        self.features = np.stack(parts, 1) if parts else np.empty((len(rows), 0), kind)
        self.targets = None
        if self._target is not None:
            self.targets = self._column(self._target, texts[self._target], own.get(self._target))

    def _read(self, header: bool, delimiter: str) -> tuple[list[str], list[list[str]]]:
        with open(self.path, newline="", encoding="utf-8-sig") as file:
            try:
                rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
            except (UnicodeDecodeError, csv.Error) as error:
                raise DataError(
                    f"CSVDataset: {self.path} cannot be read ({error}). Write it as UTF-8 text."
                ) from error
        names = [name.strip() for name in rows[0]] if header and rows else []
        rows = rows[1:] if header else rows
        if not rows:
            raise DataError(f"CSVDataset: {self.path} has no rows. Check the path and `header`.")
        names = names or [str(i) for i in range(len(rows[0]))]
        if len(set(names)) < len(names):
            raise DataError(f"CSVDataset: {self.path}: column names must differ. Got {names}.")
        for i, row in enumerate(rows):
            if len(row) != len(names):
                raise DataError(
                    f"CSVDataset: {self.path}, row {i + self._first_line}: {len(names)} values are "
                    f"needed, for {', '.join(names[:6])}. Got {len(row)}. Check the delimiter "
                    f"({delimiter!r}) and quotes."
                )
        return names, rows

    def _place(self, name: str | int) -> int:
        if isinstance(name, int) and -len(self._names) <= name < len(self._names):
            return name % len(self._names)
        if name not in self._names:
            raise ArgumentError(
                f"CSVDataset: {self.path} has no column {name!r}. It has {', '.join(self._names)}."
            )
        return self._names.index(str(name))

    def _column(self, place: int, texts: Sequence[str], kind: Any) -> np.ndarray:
        name = self._names[place]
        texts = [text.strip() for text in texts]
        if kind == CATEGORY:
            for i, text in enumerate(texts):
                if not text:
                    raise self._bad(i, name, text, "is missing")
            found, codes = np.unique(np.array(texts), return_inverse=True)
            self.categories[name] = found.tolist()
            return codes.reshape(-1).astype(np.int64)
        lost = [i for i, text in enumerate(texts) if text.lower() in _MISSING]
        if lost:
            if self._missing is None:
                raise self._bad(lost[0], name, texts[lost[0]], "is missing")
            filler = repr(self._missing)
            texts = [filler if text.lower() in _MISSING else text for text in texts]
        if kind is None:
            kind = np.dtype(np.int64) if _are_whole(texts) else _numpy_dtype(None)
        kind = _numpy_dtype(kind)
        # Whole numbers beyond 2 ** 53 would change by way of floats.
        how: Any = int if kind.kind in "iu" and _are_whole(texts) else float
        try:
            values = np.array(list(map(how, texts)))
        except (ValueError, OverflowError):
            i = next(i for i, text in enumerate(texts) if not _is_number(text))
            raise self._bad(i, name, texts[i], "is no number") from None
        return self._cast(values, kind, name, texts)

    def _cast(self, values: np.ndarray, kind: Any, name: str, texts: list[str]) -> np.ndarray:
        if kind.kind in "iub":
            with np.errstate(invalid="ignore"):
                cast = values.astype(kind)
            wrong = cast != values
            if wrong.any():
                i = int(wrong.argmax())
                raise self._bad(i, name, texts[i], f"is no {kind}")
            return cast
        return values.astype(kind)

    def _bad(self, i: int, column: str, text: str, what: str) -> DataError:
        return DataError(
            f"CSVDataset: {self.path}, row {i + self._first_line}, column {column!r}: the value "
            f"{text!r} {what}. Mend it, leave the column out, or use missing= for missing values "
            'and dtypes={column: "category"} for texts.'
        )

    def __getitem__(self, index: Any) -> Any:
        if self.targets is None:
            return self.features[index]
        return self.features[index], self.targets[index]

    def __len__(self) -> int:
        return len(self.features)

    def take_batch(self, indices: Any) -> Any:
        """The rows of `indices`, copied with one NumPy call per array."""
        index = np.arange(indices.start, indices.stop) if type(indices) is range else indices
        if self.targets is None:
            return self.features[index]
        return self.features[index], self.targets[index]


def _numpy_dtype(kind: Any) -> np.dtype[Any]:
    return (dtypes.get_default_dtype() if kind is None else dtypes.of(kind)).numpy


def _are_whole(texts: Sequence[str]) -> bool:
    return all([text.removeprefix("-").removeprefix("+").isdecimal() for text in texts])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
