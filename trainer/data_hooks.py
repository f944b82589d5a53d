"""The hooks around data: a module has them, and a DataModule's own ones come first."""

from __future__ import annotations

from typing import Any


class DataHooks:
    """What a `TaskModule` or a `DataModule` may override to give data; all of it is optional.

    Attributes:
        prepare_data_per_node: Accepted for Lightning's programs: processes share one machine.
    """

    prepare_data_per_node: bool = True

    def prepare_data(self) -> None:
        """Downloads or converts data to files; runs first, on one process, and keeps no state."""

    def setup(self, stage: str) -> None:
        """Builds what depends on the data; `stage` is fit, validate, test or predict."""

    def teardown(self, stage: str) -> None:
        """Last hook of a run; always called once `setup` was."""

    def train_dataloader(self) -> Any:
        """Returns the training data when `fit` got none."""
        return None

    def val_dataloader(self) -> Any:
        """Returns the validation data when `fit` or `validate` got none."""
        return None

    def test_dataloader(self) -> Any:
        """Returns the test data when `test` got none."""
        return None

    def predict_dataloader(self) -> Any:
        """Returns the data when `predict` got none."""
        return None

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Returns the batch, changed on the host before it moves."""
        return batch

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Returns the batch, changed on its device."""
        return batch
