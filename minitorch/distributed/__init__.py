"""One process: this one. Programs that ask first run as they are; the others are told."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "is_nccl_available",
    "new_group",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def is_available() -> bool:
    """False: there is no communication between processes."""
    return False


is_nccl_available = is_available


def is_initialized() -> bool:
    """False: there is no group of processes."""
    return False


def get_rank(group: Any = None) -> int:
    """0: the number of the only process."""
    return 0


def get_world_size(group: Any = None) -> int:
    """1: the number of processes."""
    return 1


def barrier(*args: Any, **kwargs: Any) -> None:
    """Nothing to do: the only process has arrived."""


def destroy_process_group(group: Any = None) -> None:
    """Nothing to do: there is no group."""


def _missing(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"distributed.{name}: programs run in one process here. Guard the call with "
            "distributed.is_available() and distributed.is_initialized(), which are False."
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Raises: programs run in one process."
    return call


init_process_group = _missing("init_process_group")
all_reduce = _missing("all_reduce")
all_gather = _missing("all_gather")
all_gather_object = _missing("all_gather_object")
broadcast = _missing("broadcast")
broadcast_object_list = _missing("broadcast_object_list")
gather = _missing("gather")
scatter = _missing("scatter")
reduce = _missing("reduce")
reduce_scatter = _missing("reduce_scatter")
new_group = _missing("new_group")
get_backend = _missing("get_backend")
