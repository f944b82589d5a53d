"""The part of a data set that one of several processes reads."""

from collections.abc import Sized
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..random import numpy_at
from .samplers import EpochSampler, checked_count, checked_flag


class DistributedSampler(EpochSampler):
    """Every `num_replicas`-th index from `rank` on, of an order that all processes share.

    The order of an epoch is a permutation that depends on (seed, epoch), repeated from its start
    (or cut, with `drop_last`) so that all processes get the same number of indices.

    Args:
        dataset: what is sampled; only its length is used.
        num_replicas: how many processes there are; None for one.
        rank: the number of this one; None for 0.
        shuffle: False keeps the order of the data set.
        seed: of the order, the same in all processes; the run's own seed does not matter.
        drop_last: leave out the remainder.

    Raises:
        ArgumentError: the rank is not below the number of processes.

    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        super().__init__()
        self.dataset = dataset
        replicas = 1 if num_replicas is None else num_replicas
        self.num_replicas = checked_count("DistributedSampler: num_replicas", replicas)
        self.rank = checked_count("DistributedSampler: rank", rank or 0, minimum=0)
        if self.rank >= self.num_replicas:
            raise ArgumentError(
                f"DistributedSampler: rank must be below num_replicas={self.num_replicas}. Got "
                f"{self.rank}. Ranks count from 0."
            )
        self.shuffle = checked_flag("DistributedSampler: shuffle", shuffle)
        self.seed = checked_count("DistributedSampler: seed", seed, minimum=0)
        self.drop_last = checked_flag("DistributedSampler: drop_last", drop_last)

    @property
    def num_samples(self) -> int:
        """How many indices each process gets in an epoch."""
        n = len(self.dataset)
        return n // self.num_replicas if self.drop_last else -(-n // self.num_replicas)

    @property
    def total_size(self) -> int:
        """How many indices all processes get in an epoch."""
        return self.num_samples * self.num_replicas

    def order(self, epoch: int, seed: int | None = None) -> np.ndarray:
        """The indices of this process in an epoch, int64 (num_samples,)."""
        n = len(self.dataset)
        rng: Any = numpy_at("shuffle", epoch, seed=self.seed)
        whole = rng.permutation(n) if self.shuffle else np.arange(n)
        return np.resize(whole, self.total_size)[self.rank :: self.num_replicas]

    def __len__(self) -> int:
        return self.num_samples
