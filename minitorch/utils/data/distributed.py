"""The sampler of one process among several, where PyTorch has it."""

from minitorch.data.distributed import DistributedSampler

__all__ = ["DistributedSampler"]
