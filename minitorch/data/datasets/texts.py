"""Texts as windows of tokens, for language models."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, DataError
from ..dataset import Dataset
from ..samplers import checked_count

_WORDS = re.compile(r"\w+|[^\w\s]|\n")
LEVELS = ("char", "word")


class Vocabulary:
    """Tokens and their numbers.

    Args:
        tokens: the tokens in the order of their numbers.
        unknown: a token that stands for those that are not there; None refuses them.

    >>> Vocabulary("ab").encode("abba")
    array([0, 1, 1, 0])
    """

    def __init__(self, tokens: Iterable[str], unknown: str | None = None) -> None:
        self.tokens = list(tokens)
        self.unknown = unknown
        if unknown is not None and unknown not in self.tokens:
            self.tokens.insert(0, unknown)
        self.numbers = {token: number for number, token in enumerate(self.tokens)}
        if len(self.numbers) < len(self.tokens):
            raise ArgumentError("Vocabulary: tokens must differ. Some came twice.")

    @classmethod
    def of(
        cls, tokens: Iterable[str], *, least_count: int = 1, unknown: str | None = None
    ) -> "Vocabulary":
        """All tokens that occur at least `least_count` times, in alphabetical order."""
        counts = Counter(tokens)
        kept = sorted(token for token, count in counts.items() if count >= least_count)
        return cls(kept, unknown)

    def encode(self, tokens: Iterable[str]) -> np.ndarray:
        """The numbers of tokens, int64.

        Raises:
            DataError: a token is not there, and there is no `unknown`.
        """
        other = None if self.unknown is None else self.numbers[self.unknown]
        numbers = [self.numbers.get(token, other) for token in tokens]
        if None in numbers:
            known = set(self.numbers)
            lost = next(token for token in tokens if token not in known)
            raise DataError(
                f"Vocabulary: {lost!r} is not among the {len(self)} tokens. Build the vocabulary "
                "from all texts, or give it an unknown token."
            )
        return np.array(numbers, np.int64)

    def decode(self, numbers: Any, separator: str = "") -> str:
        """The text of numbers; words need the separator " "."""
        return separator.join(self.tokens[int(number)] for number in np.asarray(numbers).ravel())

    def __len__(self) -> int:
        return len(self.tokens)


class TextDataset(Dataset[tuple[np.ndarray, np.ndarray]]):
    """Windows of a text: sample i is (tokens t … t+length-1, the same moved on by one), int64.

    Attributes:
        ids: the whole text as numbers.
        vocabulary: the tokens.

    Args:
        text: the text.
        length: tokens in a window.
        level: "char", or "word" (words, marks and line ends).
        vocabulary: that of the training text, for other texts; None makes one of this text.
        stride: tokens between the starts of two windows; None for `length`.

    Raises:
        DataError: the text is shorter than a window and one token, or has unknown tokens.

    >>> data = TextDataset("abab", 2, stride=1)
    >>> len(data), data[0]
    (2, (array([0, 1]), array([1, 0])))
    """

    def __init__(
        self,
        text: str,
        length: int,
        *,
        level: str = "char",
        vocabulary: Vocabulary | None = None,
        stride: int | None = None,
    ) -> None:
        tokens = split_text(text, level)
        self.length = checked_count("TextDataset: length", length)
        self.stride = length if stride is None else checked_count("TextDataset: stride", stride)
        self.level = level
        self.vocabulary = Vocabulary.of(tokens) if vocabulary is None else vocabulary
        self.ids = self.vocabulary.encode(tokens)
        if len(self.ids) <= length:
            raise DataError(
                f"TextDataset: a text needs more than length={length} tokens. Got {len(self.ids)}. "
                "Use shorter windows."
            )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], length: int, **options: Any) -> "TextDataset":
        """The text of a file in UTF-8; `options` as for the class."""
        try:
            return cls(Path(path).read_text(encoding="utf-8"), length, **options)
        except UnicodeDecodeError as error:
            raise DataError(f"TextDataset: {path} is no UTF-8 text ({error}).") from error

    def __getitem__(self, index: Any) -> tuple[np.ndarray, np.ndarray]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"TextDataset: index {index} is outside of {len(self)} windows.")
        start = index % len(self) * self.stride
        return self.ids[start : start + self.length], self.ids[start + 1 : start + self.length + 1]

    def __len__(self) -> int:
        return (len(self.ids) - 1 - self.length) // self.stride + 1

    def take_batch(self, indices: Any) -> tuple[np.ndarray, np.ndarray]:
        """The windows of `indices`, with one NumPy call for each of the two arrays."""
        starts = np.asarray(indices)[:, None] * self.stride + np.arange(self.length)
        return self.ids[starts], self.ids[starts + 1]


def split_text(text: str, level: str) -> Sequence[str]:
    """The tokens of a text."""
    if level not in LEVELS:
        raise ArgumentError(f"TextDataset: level must be 'char' or 'word'. Got {level!r}.")
    return text if level == "char" else _WORDS.findall(text)
