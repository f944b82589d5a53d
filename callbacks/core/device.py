"""One device and one float width: the module, every batch, and nothing else moves."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np

import minitorch
from minitorch import Tensor, backend, dtypes
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core.nested import map_leaves
from minitorch.callbacks.core.pulling import BatchIterator
from minitorch.device import CPU, device
from minitorch.errors import DeviceError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

_HOOKS = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
_FLOATS = frozenset(dtype.numpy for dtype in dtypes.ALL if dtype.is_floating_point)


class DevicePlacement(Callback):
    """Moves the module once and each batch as it comes; arrays become tensors.

    Floating arrays and tensors are cast to the compute dtype of the precision (float32, or
    float64 for "64"), so that NumPy's float64 never slips into a step.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self.device = CPU
        self._array_type: type = np.ndarray
        self._cast: frozenset[Any] = frozenset()
        self._dtype = dtypes.float32
        self._hooks: list[Any] = [None, None, None]

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        settings = trainer.settings
        self.device = choose_device(settings.accelerator, settings.devices)
        library = backend.get(self.device.type)
        library.use(self.device.index)
        self._array_type = library.array_type
        self._dtype = trainer.precision.input_dtype
        self._cast = _FLOATS - {self._dtype.numpy}
        self._hooks = [_hook(trainer, name) for name in _HOOKS]
        module.to(self.device)
        profiler: Any = trainer.profiler
        if self.device.type != "cpu" and hasattr(profiler, "synchronize"):
            profiler.synchronize = library.synchronize

    def transform_batch(
        self, trainer: Trainer, module: TaskModule, batch: Any, dataloader_idx: int
    ) -> Any:
        if type(batch) is BatchIterator:  # it comes back with each batch that the step takes
            return batch
        before, own, after = self._hooks
        if before is not None:
            batch = before(batch, dataloader_idx)
        if own is not None:
            batch = own(batch, self.device, dataloader_idx)
        else:
            batch = self.place(batch)
        if after is not None:
            batch = after(batch, dataloader_idx)
        return batch

    def place(self, batch: Any) -> Any:
        """The batch on the device, in the compute dtype; the batch itself if it is there already.

        Args:
            batch: Tensors, arrays, or containers of them.
        """
        kind = type(batch)
        if kind is tuple or kind is list:
            for item in batch:
                if type(item) is not Tensor:
                    break
                array = item._array
                if array.dtype in self._cast or type(array) is not self._array_type:
                    break
            else:
                if self.device.type == "cpu":
                    return batch
        if hasattr(batch, "to") and not isinstance(batch, Tensor):
            return batch.to(self.device)
        return map_leaves(batch, self._place_leaf)

    def _place_leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            if leaf.dtype.kind in "OUSM":  # objects and texts stay as they are
                return leaf
            leaf = minitorch.as_tensor(leaf)
            if self.device.type == "cpu":
                leaf = leaf.clone()
        if leaf._array.dtype in self._cast:
            return leaf.to(device=self.device, dtype=self._dtype)
        return leaf.to(device=self.device)


def _hook(trainer: Trainer, name: str) -> Any:
    """The DataModule's own version of a transfer hook, else the module's, else None."""
    data = trainer.datamodule
    own = None if data is None else data.own(name)
    if own is None and trainer.overrides(name):
        return getattr(trainer.module, name)
    return own


def choose_device(accelerator: str, devices: Any) -> device:
    """The device that the Trainer's arguments name.

    Args:
        accelerator: "auto" takes a GPU if CuPy finds one.
        devices: "auto", 1, or a list with the number of one GPU.

    Raises:
        DeviceError: A GPU was asked for and there is none.
    """
    if accelerator == "cpu":
        return CPU
    if accelerator == "auto":
        try:
            if importlib.util.find_spec("cupy") is None:
                return CPU
            count = backend.get("cuda").device_count()
        except DeviceError:
            return CPU
        if count == 0:
            return CPU
    backend.get("cuda")
    index = devices[0] if isinstance(devices, list | tuple) else 0
    return device("cuda", int(index))
