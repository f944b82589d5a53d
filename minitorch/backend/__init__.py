"""The boundary to the array libraries: NumPy for the CPU, CuPy for NVIDIA GPUs.

Everything else in the framework asks this package for the namespace of an array, for transfers
and for the device of an array. Only this package imports CuPy.
"""

from .registry import (
    Backend,
    device_of,
    from_host,
    get,
    is_array,
    namespace,
    of,
    register,
    to_host,
    transfer,
    unregister,
)

__all__ = [
    "Backend",
    "device_of",
    "from_host",
    "get",
    "is_array",
    "namespace",
    "of",
    "register",
    "to_host",
    "transfer",
    "unregister",
]
