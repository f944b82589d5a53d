"""The names of `minitorch.data`, where PyTorch has them."""

from minitorch.data import *  # noqa: F403
from minitorch.data import __all__

from . import dataloader, dataset, distributed, sampler
