"""PyTorch's `torch.special`: special functions under the names of SciPy."""

from .ops.special_functions import *  # noqa: F403
from .ops.special_functions import __all__ as __all__
