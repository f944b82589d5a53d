"""One seed for everything that draws numbers in a program."""

from __future__ import annotations

import contextlib
import os
import random as python_random
from collections.abc import Iterator

import numpy as np

from minitorch import random
from minitorch.errors import ArgumentError

VARIABLE = "PL_GLOBAL_SEED"
MOST = 2**32 - 1


def seed_everything(seed: int | None = None, workers: bool = False, verbose: bool = True) -> int:
    """Seeds minitorch, NumPy's global generator and Python's `random`.

    Args:
        seed: From 0 to 2**32 - 1; None takes the environment variable PL_GLOBAL_SEED, or 0.
        workers: Accepted: workers of a DataLoader are always seeded by (seed, epoch, batch).
        verbose: Print the seed.

    Returns:
        The seed.

    Raises:
        ArgumentError: It is not in this range.
    """
    given = os.environ.get(VARIABLE, "0") if seed is None else seed
    try:
        value = int(given)
    except (TypeError, ValueError):
        value = -1
    if not 0 <= value <= MOST or isinstance(given, bool | float):
        raise ArgumentError(
            f"seed_everything: a seed is an integer from 0 to {MOST}. Got {given!r}. "
            f"Pass one, or set {VARIABLE}."
        )
    if verbose:
        print(f"Seed set to {value}")
    random.manual_seed(value)
    np.random.seed(value)
    python_random.seed(value)
    return value


@contextlib.contextmanager
def isolate_rng(include_cuda: bool = True) -> Iterator[None]:
    """Inside, draws leave no trace: all generators stand afterwards where they stood before.

    Args:
        include_cuda: Accepted: the streams are the same on every device.
    """
    own, numpy_state, python_state = (
        random.state_dict(),
        np.random.get_state(),
        python_random.getstate(),
    )
    try:
        yield
    finally:
        random.load_state_dict(own)
        np.random.set_state(numpy_state)
        python_random.setstate(python_state)
