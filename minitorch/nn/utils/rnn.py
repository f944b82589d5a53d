"""Sequences of different lengths: packed rows for recurrent layers, and padded batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np

from ... import backend
from ...errors import ArgumentError, DataError, ShapeError, describe
from ...ops import joining
from ...ops.creation import tensor
from ...ops.primitive import cast, wrap
from ...tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences as rows, all first elements first, then all second ones, and so on.

    Attributes:
        data: The rows, [Σ lengths, …].
        batch_sizes: int64 on the CPU: the number of rows of each step, never growing.
        sorted_indices: Which sequence of the caller stands at each place, or None.
        unsorted_indices: Where each sequence of the caller stands, or None.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            raise ArgumentError(
                "PackedSequence: batch_sizes must be given. Use pack_sequence or "
                "pack_padded_sequence, which compute them."
            )
        if backend.device_of(batch_sizes._array).type != "cpu":
            raise ArgumentError(
                "PackedSequence: batch_sizes must be on the CPU, since it drives a Python loop. "
                f"Got {batch_sizes.device}."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The sequence with its rows converted; indices only change the device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [
            None if i is None else i.to(data.device)
            for i in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """The sequence on the GPU."""
        return self.to(*(args or ("cuda",)), **kwargs)

    def cpu(self) -> Self:
        """The sequence on the CPU."""
        return self.to("cpu")

    def double(self) -> Self:
        """The sequence as float64."""
        return self.to(self.data.double().dtype)

    def float(self) -> Self:
        """The sequence as float32."""
        return self.to(self.data.float().dtype)

    def half(self) -> Self:
        """The sequence as float16."""
        return self.to(self.data.half().dtype)

    @property
    def is_cuda(self) -> bool:
        """True if the rows are on a GPU."""
        return self.data.device.type == "cuda"


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`; None for None."""
    if permutation is None:
        return None
    return permutation.argsort()


def _on_device_of(indices: np.ndarray, like: Tensor) -> Tensor:
    return wrap(backend.from_host(indices, backend.device_of(like._array)))


def _lengths_of(name: str, lengths: Any, batch: int) -> np.ndarray:
    """The lengths as int64 on the host.

    Raises:
        ShapeError: There are more or fewer than sequences.
        DataError: One is not positive.
    """
    values = lengths.cpu().numpy() if isinstance(lengths, Tensor) else np.asarray(lengths)
    out = values.astype(np.int64).reshape(-1)
    if len(out) != batch:
        raise ShapeError(
            f"{name}: lengths must have one number for each of the {batch} sequences. "
            f"Got {len(out)}. Is batch_first right?"
        )
    if len(out) and out.min() <= 0:
        raise DataError(
            f"{name}: every sequence must have at least one element. Got the length {out.min()}."
        )
    return out


def _check_sorted(name: str, lengths: np.ndarray) -> None:
    if (np.diff(lengths) > 0).any():
        raise DataError(
            f"{name}: with enforce_sorted=True lengths must not grow. "
            f"Got {lengths.tolist()}. Use enforce_sorted=False."
        )


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The elements of padded sequences that count, as a PackedSequence.

    Args:
        input: [T, B, …], or [B, T, …] with `batch_first`.
        lengths: Length of each sequence, a list or an integer tensor.
        batch_first: Which axis is the batch.
        enforce_sorted: The lengths do not grow; False sorts the sequences here.

    Raises:
        ShapeError: lengths is not one number per sequence, or the input has one axis.
        DataError: A length is below 1 or above T, or they grow.
    """
    name = "pack_padded_sequence"
    if input.ndim < 2:
        raise ShapeError(f"{name}: the input must be [T, B, …]. Got {describe(input)}.")
    batch, longest = (input.shape[0], input.shape[1]) if batch_first else input.shape[1::-1]
    sizes = _lengths_of(name, lengths, batch)
    if not len(sizes):
        raise DataError(f"{name}: at least one sequence is needed. Got an empty batch.")
    if sizes.max() > longest:
        raise DataError(
            f"{name}: lengths must be at most {longest}, the number of steps of "
            f"{describe(input)}. Got {sizes.max()}. Is batch_first right?"
        )
    order = np.argsort(-sizes, kind="stable")
    if enforce_sorted:
        _check_sorted(name, sizes)
    steps = np.arange(sizes.max())[:, None]
    present = steps < sizes[order]
    strides = (1, longest) if batch_first else (batch, 1)
    rows = (steps * strides[0] + order * strides[1])[present]
    flat = input.reshape(batch * longest, *input.shape[2:])
    chosen = None if enforce_sorted else _on_device_of(order, input)
    data = flat[_on_device_of(rows, input)]
    return PackedSequence(data, tensor(present.sum(1).astype(np.int64)), chosen)


def _rows_of(packed: PackedSequence) -> tuple[np.ndarray, np.ndarray]:
    """The row of each step and sequence (the number of rows where there is none); the lengths."""
    counts = packed.batch_sizes.numpy()
    present = np.arange(counts[0]) < counts[:, None]
    starts = np.cumsum(counts) - counts
    rows = np.where(present, starts[:, None] + np.arange(counts[0]), counts.sum())
    lengths = present.sum(0)
    if packed.unsorted_indices is not None:
        back = packed.unsorted_indices.cpu().numpy()
        rows, lengths = rows[:, back], lengths[back]
    return rows, lengths


def _gathered(data: Tensor, rows: np.ndarray, padding: Any) -> Tensor:
    """`data[rows]`, and `padding` where the row is the number of rows."""
    if (rows == len(data)).any():
        data = joining.cat([data, data.new_full((1, *data.shape[1:]), padding)])
    return data[_on_device_of(rows, data)]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`.

    Args:
        sequence: The packed sequences.
        batch_first: Whether the result is [B, T, …] instead of [T, B, …].
        padding_value: Stands behind the ends of the sequences.
        total_length: Number of steps of the result; the longest sequence's if None.

    Returns:
        The padded sequences in the caller's order, and their lengths (int64 on the CPU).

    Raises:
        ArgumentError: total_length is below the longest sequence.
    """
    rows, lengths = _rows_of(sequence)
    if total_length is not None:
        if total_length < len(rows):
            raise ArgumentError(
                f"pad_packed_sequence: total_length must be at least {len(rows)}, the longest "
                f"sequence. Got {total_length}."
            )
        more = np.full((total_length - len(rows), rows.shape[1]), len(sequence.data))
        rows = np.concatenate([rows, more])
    rows = rows.T if batch_first else rows
    return _gathered(sequence.data, rows, padding_value), tensor(lengths)


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Joins sequences [T_i, …] to [T, B, …], T being the longest.

    Args:
        sequences: The sequences; all axes but the first are equal.
        batch_first: Whether the result is [B, T, …].
        padding_value: Fills the rest.
        padding_side: "right" or "left".

    Raises:
        ArgumentError: `padding_side` is neither.
        ShapeError: There are none, or the other axes differ.
    """
    name = "pad_sequence"
    if padding_side not in ("right", "left"):
        raise ArgumentError(
            f"{name}: padding_side must be 'right' or 'left'. Got {padding_side!r}."
        )
    given = list(sequences)
    if not given or any(not s.ndim for s in given):
        raise ShapeError(f"{name}: sequences of at least one axis are needed. Got {len(given)}.")
    for s in given:
        if s.shape[1:] != given[0].shape[1:]:
            raise ShapeError(
                f"{name}: all axes but the first must be equal. "
                f"Got {describe(given[0])} and {describe(s)}."
            )
    data = joining.cat([cast(s, given[0]._array.dtype) for s in given])
    lengths = np.array([len(s) for s in given])
    places = np.arange(lengths.max())[None] + np.zeros((len(given), 1), np.int64)
    if padding_side == "left":
        places = places - (lengths.max() - lengths)[:, None]
    present = (places >= 0) & (places < lengths[:, None])
    starts = (np.cumsum(lengths) - lengths)[:, None]
    rows = np.where(present, starts + places, lengths.sum())
    return _gathered(data, rows if batch_first else rows.T, padding_value)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch without the padding; inverse of `pad_sequence`.

    Args:
        padded_sequences: [T, N, …], or [N, T, …] with batch_first.
        lengths: Steps of each sequence.
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[i, :n] for i, n in enumerate(_lengths_of("unpad_sequence", lengths, len(x)))]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences [T_i, …]; see `pack_padded_sequence`."""
    given = list(sequences)
    lengths = [len(s) for s in given]
    return pack_padded_sequence(pad_sequence(given), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a PackedSequence; inverse of `pack_sequence`.

    Args:
        packed_sequences: The rows of all steps.
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
