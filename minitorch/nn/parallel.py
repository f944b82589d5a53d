"""Wrappers for several devices: one device is what there is."""

from __future__ import annotations

from typing import Any

from .module import Module


class DataParallel(Module):
    """Calls a module on the one device that it lives on; the results are those of the module.

    Args:
        module: The module; state dicts name it `module`.
        device_ids: Accepted for PyTorch's signature: the batch is not divided.
        output_device: Accepted for PyTorch's signature.
        dim: Accepted for PyTorch's signature.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns."""
        return self.module(*args, **kwargs)


class DistributedDataParallel(Module):
    """Raises when it is made: backward does not exchange gradients between processes.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "DistributedDataParallel: backward does not exchange gradients. Use the module itself, "
            "and distributed.all_reduce(p.grad, 'avg') for each parameter after backward."
        )
