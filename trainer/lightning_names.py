"""What programs written for Lightning ask a Trainer, beside what its own callbacks need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import minitorch
from minitorch.callbacks.roles import ShowsProgress

if TYPE_CHECKING:
    from minitorch.trainer.tuner import Tuner


class LightningNames:
    """Views of what a `Trainer` has under further names, and makers of its helpers.

    Attributes:
        ckpt_path: The checkpoint that the run started from, or None.
    """

    ckpt_path: Any = None

    @property
    def tuner(self: Any) -> Tuner:
        """Finds a learning rate or a batch size for this Trainer."""
        from minitorch.trainer.tuner import Tuner

        return Tuner(self)

    @property
    def device_ids(self: Any) -> list[int]:
        """Indices of the devices."""
        return [self.device.index or 0]

    @property
    def scaler(self: Any) -> Any:
        """The loss scaler of "16-mixed", or None."""
        return self.precision.scaler

    @property
    def train_dataloader(self: Any) -> Any:
        """The training data of the fit; None before."""
        data = getattr(self, "train_data", None)
        if data is None:
            return None
        return getattr(data.loader, "iterables", data.loader)

    @property
    def val_dataloaders(self: Any) -> Any:
        """The validation loader, the list of them, or None."""
        return _one_or_all(self.val_data or (self.eval_data if self.stage == "validate" else []))

    @property
    def test_dataloaders(self: Any) -> Any:
        """The test loader, the list of them, or None."""
        return _one_or_all(self.eval_data if self.stage == "test" else [])

    @property
    def predict_dataloaders(self: Any) -> Any:
        """The loader of `predict`, the list of them, or None."""
        return _one_or_all(self.eval_data if self.stage == "predict" else [])

    @property
    def enable_validation(self: Any) -> bool:
        """Whether the fit validates."""
        return bool(self.val_data)

    @property
    def progress_bar_callbacks(self: Any) -> list[Any]:
        """Callbacks that show progress."""
        return [cb for cb in self.callbacks if isinstance(cb, ShowsProgress)]

    @contextlib.contextmanager
    def init_module(self: Any, empty_init: bool | None = None) -> Iterator[None]:
        """Inside, new tensors and layers are made on the Trainer's device.

        Args:
            empty_init: Accepted: initialisation costs little, and nothing is left unset.
        """
        from minitorch.callbacks.core.device import choose_device

        with minitorch.device(choose_device(self.settings.accelerator, self.settings.devices)):
            yield


def _one_or_all(data: list[Any]) -> Any:
    loaders = [batches.loader for batches in data]
    return (loaders or [None])[0] if len(loaders) < 2 else loaders
