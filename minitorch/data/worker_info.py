"""What code inside a dataset can learn about the worker that it runs in."""

import threading
from typing import Any, NamedTuple

_local = threading.local()


class WorkerInfo(NamedTuple):
    """The worker that is reading: `id` in [0, num_workers).

    For an IterableDataset `id` and `num_workers` are the shard and the number of shards, so that
    a stream that splits itself by them yields each sample once.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    epoch: int


def get_worker_info() -> WorkerInfo | None:
    """The worker that this code runs in; None outside of workers."""
    return getattr(_local, "info", None)


def set_worker_info(info: WorkerInfo | None) -> None:
    """Set what `get_worker_info` returns in this thread."""
    _local.info = info
