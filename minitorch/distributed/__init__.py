"""Processes on one machine that work together, under PyTorch's names; see the README here."""

from __future__ import annotations

from typing import Any, NoReturn

from ..lazy import lazy

_HOLDERS = {
    "collectives": (
        "ReduceOp Work all_gather all_gather_into_tensor all_gather_object all_reduce barrier "
        "broadcast broadcast_object_list gather gather_object reduce reduce_scatter scatter"
    ),
    "group": (
        "destroy_process_group get_backend get_rank get_world_size init_process_group "
        "is_available is_gloo_available is_initialized is_nccl_available"
    ),
    "launch": "spawn",
}

__getattr__, __dir__ = lazy(__name__, _HOLDERS)


def new_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is one group, of all processes.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        "distributed.new_group: there is one group, of all processes. Let every rank take part in "
        "every collective."
    )
