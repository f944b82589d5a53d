"""Which process of a group this is, asked without loading `minitorch.distributed`."""

from __future__ import annotations

import sys

_GROUP = "minitorch.distributed.group"


def place() -> tuple[int, int]:
    """The number of this process and how many there are; (0, 1) without a group."""
    group = sys.modules.get(_GROUP)
    return (0, 1) if group is None else (group.get_rank(), group.get_world_size())


def in_group() -> bool:
    """Whether there are several processes."""
    return place()[1] > 1
