"""Random splits of a dataset."""

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from ..random import numpy_at
from .dataset import Dataset, Subset, checked_len
from .samplers import seed_of


def random_split(
    dataset: Dataset[Any], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[Any]]:
    """Split a dataset at random into parts that do not overlap.

    The split depends on the seed only, so that it is the same each time a program runs.

    Args:
        dataset: a dataset with a length.
        lengths: integers that sum to len(dataset), or fractions that sum to 1; of the samples
            left over by rounding down, one each goes to the first parts.
        generator: a minitorch Generator whose seed is used; None for the root seed.

    Returns:
        One Subset for each length.

    Raises:
        ArgumentError: the lengths do not sum to the dataset, or a fraction gives an empty part.

    >>> [len(part) for part in random_split(range(10), [0.8, 0.2])]
    [8, 2]
    """
    n = checked_len(dataset)
    counts = _counts(n, list(lengths))
    order = numpy_at("split", seed=seed_of(generator)).permutation(n)
    parts, first = [], 0
    for count in counts:
        parts.append(Subset(dataset, order[first : first + count].tolist()))
        first += count
    return parts


def _counts(n: int, lengths: list[Any]) -> list[int]:
    if not lengths or any(isinstance(x, bool) or not x >= 0 for x in lengths):
        raise ArgumentError(f"random_split: lengths must be numbers ≥ 0. Got {lengths}.")
    if all(isinstance(length, int) for length in lengths):
        if sum(lengths) != n:
            raise ArgumentError(
                "random_split: lengths must sum to the length of the dataset. "
                f"Got {' + '.join(map(str, lengths))} = {sum(lengths)} for {n} samples."
            )
        return lengths
    if not math.isclose(sum(lengths), 1.0):
        raise ArgumentError(
            f"random_split: fractions must sum to 1. Got {lengths}, sum {sum(lengths):g}. "
            "Use integers for absolute lengths."
        )
    counts = [math.floor(n * fraction) for fraction in lengths]
    for i in range(n - sum(counts)):
        counts[i % len(counts)] += 1
    for fraction, count in zip(lengths, counts, strict=True):
        if fraction > 0 and count == 0:
            raise ArgumentError(
                f"random_split: the fraction {fraction:g} of {n} samples is an empty part. "
                "Use a larger fraction or integers."
            )
    return counts
