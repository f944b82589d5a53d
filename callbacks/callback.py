"""`Callback` and `Order`: how code joins the training loop without touching it.

The events of one `fit`, in the order in which they fire (tests/trainer/test_event_order.py):

    setup · on_setup_end · on_fit_start
      on_sanity_check_start … validation events … on_sanity_check_end
      on_train_start
        on_train_epoch_start
          transform_batch · on_train_batch_start
          on_window_start (→ on_before_zero_grad)             first batch of an accumulation window
          training_step
          transform_loss · on_before_backward · on_after_backward
          on_window_end · on_before_optimizer_step · on_after_optimizer_step     last batch of it
          on_train_batch_end
          on_validation_start · on_validation_epoch_start
            transform_batch · on_validation_batch_start · on_validation_batch_end
          on_validation_epoch_end · on_validation_end         when validation is due
        on_train_epoch_end
      on_train_end · on_fit_end
    on_divergence                                             a step whose loss jumped or is nan
    teardown                                                  always, also after an exception

Inside one event callbacks run by `order`, then core callbacks before the user's, then as listed.
The module's hook of the same name runs right after the callbacks up to `Order.MEASURE`: whoever
reports, decides or persists sees what the module logged.

With several optimizers transform_loss … on_after_backward come once for each loss, and
on_window_end … on_after_optimizer_step once for each that steps before the next loss. `CancelStep`,
`CancelEpoch` and `CancelFit` (`minitorch.callbacks`) are raised in events to leave out what is
going on.

An epoch that a limit or a stop cuts short has no `on_train_epoch_end`: a resumed run continues it.
What must happen at the end of every run belongs into `on_train_end`.

What callbacks read from the trainer: `current_epoch, global_step, max_epochs, max_steps,
num_training_batches, num_val_batches, is_last_batch, training, validating, sanity_checking,
testing, predicting, should_stop, callback_metrics, logged_metrics, progress_bar_metrics,
optimizers, lr_scheduler_configs, logger, loggers, log_dir, default_root_dir, callbacks, module,
fast_dev_run`. Metrics are 0-d tensors under the names they were logged with.
What they do to it: `stop(reason)`, `save_checkpoint(path)`, and `module.log(name, value)`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar

from minitorch.ops.recording import in_recordings

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.errors import DivergenceError
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


Touched = Mapping[str, str | tuple[str, ...]]


class Order(enum.IntEnum):
    """When a callback runs inside one event, relative to the others."""

    PREPARE = 0
    """Puts things in place: devices, counters, gradients."""
    TRANSFORM = 1
    """Changes values on their way: casts, scales, averages."""
    MEASURE = 2
    """Looks and logs. The default; the module's own hook follows it."""
    REPORT = 3
    """Writes what was measured: loggers, progress bars."""
    DECIDE = 4
    """Acts on what was reported: stops, clips."""
    PERSIST = 5
    """Saves when everything else is done: checkpoints."""


class Callback:
    """Base of every callback: override the events that matter, the others cost nothing."""

    order: ClassVar[Order] = Order.MEASURE
    reads: ClassVar[Touched] = {}
    """What it reads, with the events in which it does: `{"metrics": "on_train_epoch_end"}`."""
    writes: ClassVar[Touched] = {}
    """What it changes, with the events; `minitorch.callbacks.conflicts` names things and rules."""
    rolls_back: ClassVar[bool] = False
    """Its state belongs to the weights: it goes back with them after a step that diverged."""
    failures: Sequence[str] = ()
    """What went wrong in a run without ending it, one sentence each, for `FitResult.warnings`."""
    _trainer: Trainer | None = None

    @property
    def state_key(self) -> str:
        """Name of this callback's state in a checkpoint; must be unique among the callbacks."""
        return type(self).__qualname__

    def state_dict(self) -> dict[str, Any]:
        """State to save: a tree of tensors, arrays, numbers, strings, lists and dicts."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned; called before `on_fit_start`."""

    def listens(self, event: str) -> bool:
        """Whether the event is wired to this callback; asked once when a run starts."""
        method = getattr(self, event)
        return getattr(method, "__func__", method) is not getattr(Callback, event)

    @in_recordings()
    def log(self, name: str, value: Any, **options: Any) -> None:
        """Same as `module.log`, for callbacks written against Lightning."""
        self._attached().log(name, value, **options)

    @in_recordings()
    def log_dict(self, dictionary: dict[str, Any], **options: Any) -> None:
        """Same as `module.log_dict`."""
        self._attached().log_dict(dictionary, **options)

    def _attached(self) -> TaskModule:
        if self._trainer is None:
            raise RuntimeError(
                f"{type(self).__name__}.log: a callback logs during a run of its Trainer. "
                "No run is going on. Call log inside an event."
            )
        return self._trainer.module

    # What the Trainer asks outside of events; what only some answer is in `callbacks/roles.py`.

    def restores(self) -> bool:
        """Whether a fit without ckpt_path resumes from what this callback kept."""
        return False

    def search_folders(self, trainer: Trainer) -> list[str]:
        """Folders in which `fit(ckpt_path="auto")` looks for what this callback kept."""
        return []

    def rollback_state(self) -> dict[str, Any]:
        """What a snapshot keeps of a callback with `rolls_back`."""
        return self.state_dict()

    def load_rollback_state(self, state: dict[str, Any]) -> None:
        """Goes back to what `rollback_state` returned."""
        self.load_state_dict(state)

    def rest_others(self, module: TaskModule, optimized: Set[int]) -> None:
        """Freezes what no optimizer holds and this callback lets train later.

        Args:
            module: The task, whose `configure_optimizers` has just returned.
            optimized: Ids of all parameters that an optimizer holds.
        """

    # Start and end of a run. `stage` is "fit", "validate", "test" or "predict".

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        """First event of a run, before `module.setup` and `module.configure_model`."""

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        """The module is complete: it is moved and cast here, before optimizers exist."""

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        """Last event of a run; always called once `setup` was."""

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        """An exception ends the run; every callback hears of it, even if another one fails."""

    def on_divergence(
        self, trainer: Trainer, module: TaskModule, error: DivergenceError
    ) -> Callable[[], None] | None:
        """A loss or gradient is not finite or left its course; the update was not applied.

        Whoever can put the run right returns a function that restores a good state. The first one
        is called once everybody has looked, and training goes on behind the batch; without one the
        error ends the run. The state is the one before the step's window; `error.batch` is
        the number of the batch.
        """
        return None

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        """Optimizers exist; weights, position and callback states are restored."""

    def on_fit_end(self, trainer: Trainer, module: TaskModule) -> None:
        """After `on_train_end`; not called when an exception ended the run."""

    def on_sanity_check_start(self, trainer: Trainer, module: TaskModule) -> None:
        """Before the few validation batches that run ahead of training."""

    def on_sanity_check_end(self, trainer: Trainer, module: TaskModule) -> None:
        """After them; their metrics are already dropped."""

    # Training.

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        """Training begins; loaders and their lengths are known."""

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        """Training is over: completed, stopped or interrupted."""

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        """Once per epoch; not repeated when a run resumes inside the epoch."""

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        """All batches of the epoch are done. Epoch metrics are final from `Order.REPORT` on."""

    def transform_batch(
        self, trainer: Trainer, module: TaskModule, batch: Any, dataloader_idx: int
    ) -> Any:
        """Returns the batch that is used from here on; every stage."""
        return batch

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> int | None:
        """Before the step. Returning -1 skips the rest of the epoch."""
        return None

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """After the step. `outputs` holds the detached loss and whatever the step returned."""

    def on_window_start(self, trainer: Trainer, module: TaskModule) -> None:
        """First batch of an accumulation window, before the forward pass."""

    def on_before_zero_grad(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        """Before gradients are cleared, ahead of the forward pass."""

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        """Returns the loss that is differentiated: weighted, scaled."""
        return loss

    def on_before_backward(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> None:
        """Before the backward pass of each batch."""

    def on_after_backward(self, trainer: Trainer, module: TaskModule) -> None:
        """After the backward pass of each batch; gradients may still be scaled sums."""

    def on_window_end(self, trainer: Trainer, module: TaskModule) -> None:
        """Last batch of the window: gradients become unscaled means here."""

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        """Gradients are final except for clipping, which runs at `Order.DECIDE`."""

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        """An update was applied; not called when the loss scaler skipped it."""

    # Validation, testing, prediction.

    def on_validation_start(self, trainer: Trainer, module: TaskModule) -> None:
        """Modules are in eval mode and no graph is recorded."""

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        """Metrics are final and written; Ctrl-C inside of the validation leaves none."""

    def on_validation_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        """Right after `on_validation_start`."""

    def on_validation_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        """All batches are done. Metrics are final from `Order.REPORT` on."""

    def on_validation_batch_start(
        self,
        trainer: Trainer,
        module: TaskModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Before `validation_step`."""

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """After `validation_step`; `outputs` is what it returned."""

    def on_test_start(self, trainer: Trainer, module: TaskModule) -> None:
        """As `on_validation_start`."""

    def on_test_end(self, trainer: Trainer, module: TaskModule) -> None:
        """As `on_validation_end`."""

    def on_test_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        """As `on_validation_epoch_start`."""

    def on_test_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        """As `on_validation_epoch_end`."""

    def on_test_batch_start(
        self,
        trainer: Trainer,
        module: TaskModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Before `test_step`."""

    def on_test_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """After `test_step`."""

    def on_predict_start(self, trainer: Trainer, module: TaskModule) -> None:
        """As `on_validation_start`."""

    def on_predict_end(self, trainer: Trainer, module: TaskModule) -> None:
        """All batches of all loaders are done."""

    def on_predict_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        """As `on_validation_epoch_start`."""

    def on_predict_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        """Right before `on_predict_end`."""

    def on_predict_batch_start(
        self,
        trainer: Trainer,
        module: TaskModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Before `predict_step`."""

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """After `predict_step`; `outputs` is what it returned."""

    # Checkpoints.

    def on_save_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        """The tree is complete and not yet written; it may be changed."""

    def on_load_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        """The tree was read and nothing of it is applied yet."""


NOT_EVENTS = frozenset(
    "state_key state_dict load_state_dict listens log log_dict order reads writes rolls_back "
    "failures restores search_folders rollback_state load_rollback_state rest_others".split()
)
EVENTS: tuple[str, ...] = tuple(
    name for name in vars(Callback) if not name.startswith("_") and name not in NOT_EVENTS
)
"""Names of all events, in the order of this file."""
