"""The hooks of a `TaskModule`: methods without effect that a user overrides where needed.

A hook runs right after the callbacks of the same event up to `Order.MEASURE`. Events and their
order are in `minitorch.callbacks.callback`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.trainer.data_hooks import DataHooks

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.callbacks import Callback
    from minitorch.optim import Optimizer


class Hooks(DataHooks):
    """What a module may override besides its steps; all of it is optional."""

    # Building.

    def configure_model(self) -> None:
        """Builds layers lazily, before the module is moved to its device."""

    def configure_callbacks(self) -> Callback | list[Callback]:
        """Returns callbacks that belong to this task; they join those of the Trainer."""
        return []

    # Optimization.

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Optimizer, optimizer_closure: Any = None
    ) -> None:
        """Applies the update. Forward and backward are done already: the closure returns the loss,
        so that `optimizer.step(closure=optimizer_closure)` of older code works as well."""
        optimizer.step()

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Optimizer) -> None:
        """Clears the gradients, ahead of the forward pass."""
        optimizer.zero_grad()

    def backward(self, loss: Tensor, **options: Any) -> None:
        """Computes the gradients of the (weighted, scaled) loss.

        With several optimizers `options` name the parameters of the one that the loss is for."""
        loss.backward(**options)

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Replaces the Trainer's clipping; call `self.clip_gradients` in it."""

    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """Moves a learning rate schedule; `metric` is None unless it watches one."""
        scheduler.step() if metric is None else scheduler.step(metric)

    def on_before_zero_grad(self, optimizer: Optimizer) -> None:
        """Before gradients are cleared, ahead of the forward pass."""

    def on_before_backward(self, loss: Tensor) -> None:
        """Before the backward pass of each batch."""

    def on_after_backward(self) -> None:
        """After the backward pass of each batch."""

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Gradients are final except for clipping."""

    # Checkpoints.

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The tree is complete and not yet written; it may be changed."""

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The tree was read and nothing of it is applied yet."""

    # Progress of a run.

    def on_fit_start(self) -> None:
        """Optimizers exist; weights and position are restored."""

    def on_fit_end(self) -> None:
        """After `on_train_end`."""

    def on_train_start(self) -> None:
        """Training begins."""

    def on_train_end(self) -> None:
        """Training is over: completed, stopped or interrupted."""

    def on_train_epoch_start(self) -> None:
        """Once per epoch; not repeated when a run resumes inside the epoch."""

    def on_train_epoch_end(self) -> None:
        """All batches of the epoch are done; its metrics are written after this hook."""

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> int | None:
        """Before the step. Returning -1 skips the rest of the epoch."""
        return None

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """After the step. `outputs` holds the detached loss and whatever the step returned."""

    def on_validation_start(self) -> None:
        """Modules are in eval mode and no graph is recorded."""

    def on_validation_end(self) -> None:
        """Metrics are final and written; Ctrl-C inside of the validation leaves none."""

    def on_validation_epoch_start(self) -> None:
        """Right after `on_validation_start`."""

    def on_validation_epoch_end(self) -> None:
        """All batches are done; metrics are written after this hook."""

    def on_validation_batch_start(
        self, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Before `validation_step`."""

    def on_validation_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """After `validation_step`; `outputs` is what it returned."""

    def on_test_start(self) -> None:
        """Modules are in eval mode and no graph is recorded."""

    def on_test_end(self) -> None:
        """Metrics are final and written."""

    def on_test_epoch_start(self) -> None:
        """Right after `on_test_start`."""

    def on_test_epoch_end(self) -> None:
        """All batches are done; metrics are written after this hook."""

    def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before `test_step`."""

    def on_test_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """After `test_step`; `outputs` is what it returned."""

    def on_predict_start(self) -> None:
        """Modules are in eval mode and no graph is recorded."""

    def on_predict_end(self) -> None:
        """All batches of all loaders are done."""

    def on_predict_epoch_start(self) -> None:
        """Right after `on_predict_start`."""

    def on_predict_epoch_end(self) -> None:
        """Right before `on_predict_end`."""

    def on_predict_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Before `predict_step`."""

    def on_predict_batch_end(
        self, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """After `predict_step`; `outputs` is what it returned."""
