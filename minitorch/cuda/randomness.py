"""Random numbers: one root seed serves every device, so these are the functions of the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import random
from . import device_count


def manual_seed(seed: int) -> None:
    """The same as `minitorch.manual_seed`."""
    random.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Takes a new root seed from the operating system."""
    random.seed()


seed_all = seed


def initial_seed() -> int:
    """The root seed."""
    return random.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The same as `minitorch.get_rng_state()`."""
    return random.get_rng_state()


def get_rng_state_all() -> list[Any]:
    """The state once for each GPU."""
    return [random.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """The same as `minitorch.set_rng_state(new_state)`."""
    random.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Sets the state, which is the same for all GPUs."""
    for state in new_states:
        random.set_rng_state(state)
