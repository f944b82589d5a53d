"""The version of minitorch, in the places where programs look for PyTorch's."""

from importlib.metadata import version as _version

__version__ = _version("minitorch-trainer")
cuda: str | None = None  # arrays on GPUs come from CuPy, which has its own CUDA
hip: str | None = None
git_version = "unknown"
debug = False
