"""Switches of libraries that PyTorch uses; programs set them, and nothing here depends on them."""

from ..lazy import lazy

__getattr__, __dir__ = lazy(
    __name__, {}, ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp")
)
