"""Trainer: the loop, and the entry points that run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback
from minitorch.callbacks.cancel import CancelEpoch, CancelFit, CancelStep
from minitorch.callbacks.core.metric import TRAIN_EPOCH, TRAIN_STEP
from minitorch.errors import DivergenceError, TrainerError
from minitorch.trainer import cancels, checkpoint, evaluate, recovery, several
from minitorch.trainer.arguments import Settings, settle
from minitorch.trainer.data_module import join
from minitorch.trainer.environment import from_environment
from minitorch.trainer.events import order_table
from minitorch.trainer.loaders import END
from minitorch.trainer.outputs import check_finite, read_loss, read_manual
from minitorch.trainer.result import FitResult
from minitorch.trainer.run import Run
from minitorch.trainer.saving import Saving
from minitorch.trainer.status import Status
from minitorch.trainer.task import TaskModule

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.loggers import Logger
    from minitorch.optim import Optimizer
    from minitorch.trainer.verify_resume import ResumeReport

Source = str | os.PathLike[str]


class Trainer(Status):
    """Trains, validates, tests and runs a `TaskModule`.

    The Trainer owns the loop and its events; every concern is a callback: placement, precision,
    accumulation, clipping, schedules, logging (`minitorch.callbacks.core`) and those of the user.
    `print_order()` shows who takes part in which event. Constructors store; a run validates.

    Args:
        max_epochs: Epochs in total; None is 1000 if max_steps is not set, -1 is endless.
        min_epochs, min_steps: A stop by a callback waits for these.
        max_steps: Optimizer updates in total; -1 is no limit.
        max_time: "DD:HH:MM:SS", a timedelta or its keywords as a dict.
        accelerator: "auto", "cpu" or "gpu".
        devices: 1, or [index of the GPU].
        precision: "32", "64", "16-mixed" or "bf16-mixed"; "16-true" or "bf16-true" keep weights
            and activations in half precision, and float32 weights in the optimizer.
        callbacks: One or several; a subclass of a core callback replaces it.
        logger: One or several loggers; True for TensorBoard in default_root_dir; default none.
        accumulate_grad_batches: Batches per update, weighted by their true sizes.
        gradient_clip_val: Limit of the gradients' norm, or of each value.
        gradient_clip_algorithm: "norm" or "value".
        on_out_of_memory: "split" runs a batch that does not fit again in smaller parts, and all
            later ones, too; the gradients are the same. "raise" ends the run.
        limit_train_batches, limit_val_batches, limit_test_batches, limit_predict_batches: A share
            (float) or number (int) of batches per epoch.
        overfit_batches: The same few batches for training and validation; share or number.
        fast_dev_run: So many batches (True: 1) of everything in one epoch; no logger, no
            callback that decides or saves.
        val_check_interval: Time between validations: `Steps(100)`, `Minutes(5) | Epochs(1)`, or a
            share of an epoch (float), batches (int), or a span as for max_time.
        check_val_every_n_epoch: Validate in every n-th epoch; None counts batches across epochs.
        num_sanity_val_steps: Validation batches before training, without side effects; -1 is all.
        log_every_n_steps: Updates between two step values in the loggers; 0 for none.
        enable_checkpointing: True adds a ModelCheckpoint if there is none; None adds nothing.
        enable_progress_bar: Progress bar in the terminal; default on.
        enable_model_summary: Table of the model at the start; default off.
        inference_mode: validate, test and predict record nothing at all.
        detect_anomaly: Find the operation that makes a nan; slow.
        deterministic: On the CPU every kernel is deterministic anyway.
        default_root_dir: Folder for files without another place; default the current one.
        compile: Record training_step and its backward pass once, and replay them from then on; what
            cannot be recorded runs eagerly, with a warning that names the line.
        profiler: "simple" prints where the time went, "advanced" in which functions, "ops" in
            which operations; or a `minitorch.trainer.profiler.Profiler`.
        checks: "on" looks for training pitfalls (docs/pitfalls.md), "off" does not, "warn" only
            warns, "strict" raises where "on" warns.
        reload_dataloaders_every_n_epochs: Call the loader hooks again every so many epochs.
        barebones: Only train: no checks, log, bar, sanity check, checkpoint.
        enable_autolog_hparams: The loggers get the hyper-parameters when a fit starts.
        benchmark, sync_batchnorm, use_distributed_sampler: Accepted; they change nothing on one
            device without cuDNN.
        strategy, num_nodes, plugins, model_registry: Only their defaults; the error says what
            takes their place.

    Raises:
        ArgumentError: An argument does not exist, and the message names what does; or several
            devices are asked for.
    """

    @from_environment
    def __init__(
        self,
        *,
        max_epochs: int | None = None,
        min_epochs: int | None = None,
        max_steps: int = -1,
        min_steps: int | None = None,
        max_time: str | timedelta | dict[str, float] | None = None,
        accelerator: str = "auto",
        devices: str | int | list[int] = "auto",
        precision: str | int | None = None,
        callbacks: Callback | Iterable[Callback] | None = None,
        logger: Logger | Iterable[Logger] | bool | None = None,
        accumulate_grad_batches: int = 1,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
        on_out_of_memory: str = "raise",
        limit_train_batches: int | float | None = None,
        limit_val_batches: int | float | None = None,
        limit_test_batches: int | float | None = None,
        limit_predict_batches: int | float | None = None,
        overfit_batches: int | float = 0.0,
        fast_dev_run: int | bool = False,
        val_check_interval: Any = None,
        check_val_every_n_epoch: int | None = 1,
        num_sanity_val_steps: int | None = None,
        log_every_n_steps: int | None = None,
        enable_checkpointing: bool | None = None,
        enable_progress_bar: bool | None = None,
        enable_model_summary: bool | None = None,
        inference_mode: bool = True,
        detect_anomaly: bool = False,
        deterministic: bool | str | None = None,
        default_root_dir: Any = None,
        profiler: Any = None,
        compile: bool = False,
        checks: str = "on",
        reload_dataloaders_every_n_epochs: int = 0,
        barebones: bool = False,
        enable_autolog_hparams: bool = True,
        benchmark: bool | None = None,
        sync_batchnorm: bool = False,
        use_distributed_sampler: bool = True,
        strategy: str = "auto",
        num_nodes: int = 1,
        plugins: Any = None,
        model_registry: str | None = None,
        **unknown: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in Settings.names()}
        super().__init__(settle(given, unknown))

    # Entry points.

    def fit(
        self,
        model: TaskModule,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        *,
        ckpt_path: Source | None = None,
        batch_size: int = 32,
        datamodule: Any = None,
        hparams: str | None = None,
    ) -> FitResult:
        """Trains a module; a Trainer fits once.

        Args:
            model: The task.
            train_dataloaders: A DataLoader, Dataset, iterable of batches, or arrays `(X, y)`; a
                list or dict of loaders, read side by side; or a DataModule.
            val_dataloaders: The same; a list of DataLoaders is read one after the other.
            ckpt_path: Checkpoint to continue from, exactly where it was written: a file; a folder
                for the newest whole one in it; "last" for the newest "last.ckpt" of the callbacks;
                "auto" for the newest whole one of the callbacks, or a fresh start without one.
            batch_size: For data that is not batched yet; training data is shuffled then.
            datamodule: Gives the data in place of loaders.
            hparams: With ckpt_path, whose hyper-parameters hold where they differ: "old" for the
                checkpoint's (what is built from others already stays), "new" for the module's.

        Returns:
            How it ended, the best and last checkpoint, and the history of metrics.
        """
        given = train_dataloaders if val_dataloaders is None else val_dataloaders
        data = join("fit", given, datamodule) if datamodule is not None else train_dataloaders
        with Run(self, model, "fit") as run:
            run.start_fit(data, val_dataloaders, batch_size, ckpt_path, hparams)
            self._fit_epochs(model)
        return run.result()

    def validate(
        self,
        model: TaskModule | Source | None = None,
        dataloaders: Any = None,
        *,
        ckpt_path: Source | None = None,
        verbose: bool = True,
        batch_size: int = 32,
        datamodule: Any = None,
    ) -> list[dict[str, float]]:
        """Runs `validation_step` over data; see `test`."""
        dataloaders = join("validate", dataloaders, datamodule)
        return evaluate.run(self, "validate", model, dataloaders, ckpt_path, batch_size, verbose)

    def test(
        self,
        model: TaskModule | Source | None = None,
        dataloaders: Any = None,
        *,
        ckpt_path: Source | None = None,
        verbose: bool = True,
        batch_size: int = 32,
        datamodule: Any = None,
    ) -> list[dict[str, float]]:
        """Runs `test_step` over data.

        Args:
            model: The task with the weights it has, or a checkpoint such as `result.best`, whose
                weights are loaded into the module of the last run.
            dataloaders: As for `fit`.
            ckpt_path: Checkpoint to load into `model`: a path, "best" or "last".
            verbose: Print a table.
            batch_size: For data that is not batched yet.
            datamodule: Gives the data in place of loaders.

        Returns:
            For each loader the logged metrics.
        """
        dataloaders = join("test", dataloaders, datamodule)
        return evaluate.run(self, "test", model, dataloaders, ckpt_path, batch_size, verbose)

    def predict(
        self,
        model: TaskModule | Source | None = None,
        dataloaders: Any = None,
        *,
        ckpt_path: Source | None = None,
        return_predictions: bool = True,
        batch_size: int = 32,
        datamodule: Any = None,
    ) -> list[Any] | None:
        """Runs `predict_step` over data; arguments as for `test`.

        Returns:
            What it returned for each batch, on the CPU; one list per loader if there are several.
        """
        dataloaders = join("predict", dataloaders, datamodule)
        return evaluate.run_predict(
            self, model, dataloaders, ckpt_path, batch_size, return_predictions
        )

    def verify_resume(
        self,
        model: TaskModule | Callable[[], TaskModule],
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        *,
        steps: int = 8,
        after: int | None = None,
        **options: Any,
    ) -> ResumeReport:
        """Proves on this very task that a run can be resumed exactly.

        Trains `steps` batches, and in fresh objects `after` batches, a checkpoint, and the rest in
        further fresh objects, as a new process would have them; the states at the end must be
        equal. Nothing of it stays: the module, callbacks and random numbers are as before, and no
        file or log is written, for which callbacks of `Order.PERSIST` and loggers stay out.

        Args:
            model: The task, which is copied, or a function that makes it.
            train_dataloaders, val_dataloaders: As for `fit`; copied, where they can be.
            steps: Training batches to compare.
            after: Batches before the stop; default the half, inside of an accumulation window.
            options: Further arguments of `fit`.

        Returns:
            What was compared.

        Raises:
            TrainerError: Names the first difference and what usually causes it.
        """
        from minitorch.trainer.verify_resume import verify

        data = train_dataloaders, val_dataloaders
        return verify(self, model, data, steps=steps, after=after, **options)

    def save_checkpoint(self, filepath: Source, weights_only: bool = False) -> None:
        """Writes a checkpoint, from which `fit(ckpt_path=filepath)` goes on exactly.

        It can be called in every event between two batches, and after a run. Callbacks of
        `Order.PERSIST` and code outside of events find the file written on return; a module or
        another callback has it written once everybody has taken part in the event (inside of a
        validation: in its `on_validation_end`), or the file would miss what they still change.

        Args:
            filepath: The file; missing folders are made.
            weights_only: Leave out all that resuming needs; allowed inside of steps, too.

        Raises:
            TrainerError: There is nothing to save, or a batch is half done.
        """
        if self._savable("save_checkpoint", weights_only):
            checkpoint.write(self, filepath, weights_only=weights_only)
        else:
            self.to_save.append(filepath)

    def dump_checkpoint(self, weights_only: bool = False) -> dict[str, Any]:
        """Returns what `save_checkpoint` writes, as a tree that shares no memory with the run.

        Raises:
            TrainerError: As for `save_checkpoint`; and a callback that is not of `Order.PERSIST`
                calls it in an event in which others may still change the state.
        """
        if not self._savable("dump_checkpoint", weights_only):
            raise TrainerError(
                "dump_checkpoint: the state is complete once everybody has taken part in an "
                "event. Got a call by a callback that comes before others. Set its order to "
                "Order.PERSIST, or call save_checkpoint, which waits."
            )
        return checkpoint.dump(self, weights_only=weights_only)

    def take_snapshot(self) -> dict[str, Any]:
        """Returns weights, optimizers, schedules and loss scale for `restore_snapshot`."""
        return recovery.snapshot(self)

    def restore_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Goes back to a snapshot; the data, random numbers and metrics stay where they are."""
        recovery.restore(self, snapshot)

    def fits_snapshot(self, snapshot: dict[str, Any]) -> bool:
        """Whether the model, optimizers and schedules are still those of a snapshot."""
        return recovery.fits(self, snapshot)

    def _savable(self, caller: str, weights_only: bool) -> bool:
        """Whether the state is complete now; raises where it will not be in this event."""
        if self.attached is None:
            raise TrainerError(f"{caller}: there is nothing to save before a run. Call fit.")
        if self.saving is Saving.NEVER and not weights_only:
            raise TrainerError(
                f"{caller}: a run can be resumed exactly between two batches only. Got a call "
                "inside of a step. Call it in on_train_batch_end or a later event, or save with "
                "weights_only=True."
            )
        return weights_only or self.saving is Saving.NOW

    def print_order(self) -> None:
        """Prints every event in use and who takes part in it, in order."""
        print(order_table(self.callbacks, self.attached))

    # The loop.

    def _fit_epochs(self, module: TaskModule) -> None:
        self.metric_log.enter("train", TRAIN_EPOCH)
        try:
            self.fire(self.events.on_train_start)
            while not self.ends_at_epoch():
                self._train_epoch(module)
        except CancelFit as cancel:
            cancels.end_fit(self, cancel)
        self.metric_log.scope = None
        self.fire(self.events.on_train_end)
        self.fire(self.events.on_fit_end)

    def _train_epoch(self, module: TaskModule) -> None:
        position = self.position
        self.metric_log.enter("train", TRAIN_EPOCH)
        complete = True
        try:
            if not position.started:
                position.started = True
                self.fire(self.events.on_train_epoch_start)
            data = self.train_data
            batches = data.resume(position, self.saved_data)
            self._validate_if_due(module)  # a checkpoint may have been written right before it
            self.metric_log.enter("train", TRAIN_STEP)
            while not (complete := position.batch >= data.count) and not self._ends():
                batch = self.plan.next(batches, END)
                if batch is END:
                    data.check_not_empty(position)
                    complete = True
                    break
                try:
                    goes_on = self._train_batch(module, batch)
                except DivergenceError as error:
                    goes_on = recovery.recover(self, error)
                if not goes_on:
                    complete = True
                    break
                del batch  # or it would live beside the next one
                self._validate_if_due(module)
        except CancelEpoch as cancel:
            cancels.end_epoch(self, cancel)
            complete = True
        if complete:
            self._finish_epoch(module)

    def _train_batch(self, module: TaskModule, batch: Any) -> bool:
        on, position = self.events, self.position
        batch_idx, automatic = position.batch, module.automatic_optimization
        self.saving = Saving.NEVER
        self.progress.open(self, batches=1)
        try:
            for call in on.transform_batch:
                batch = call(batch, 0)
            self.see_batch(batch)
            for call in on.on_train_batch_start:
                if call(batch, batch_idx) == -1:
                    self.saving = Saving.NOW
                    return False
            if automatic and position.learned == 0:
                for call in on.on_window_start:
                    call()
            outputs = self.plan.learn(module, batch, batch_idx)
        except CancelStep as cancel:
            outputs = cancels.skip_batch(self, cancel)
        if automatic:
            if position.window + 1 >= self.accumulation.batches or self.is_last_batch:
                self._update(module, outputs)
            else:
                position.window += 1
        self.saving = Saving.LATER
        for call in on.on_train_batch_end:
            call(outputs, batch, batch_idx)
        self.saving = Saving.NOW
        if self.to_save:
            self._write_waiting()
        return True

    def learn_once(self, module: TaskModule, batch: Any, batch_idx: int) -> Any:
        """Forward and backward of a task with one loss; `several` and `micro_batches` have more."""
        with self.precision.forward_context():
            output = self.plan.step(batch, batch_idx)
        if not module.automatic_optimization:
            return read_manual(output)
        loss, outputs, self.current_batch.count = read_loss(output, self)
        self.differentiate(loss)
        self.position.learned += 1
        return outputs

    def differentiate(self, loss: Tensor, **options: Any) -> None:
        """Backward pass of one loss, with its events; `options` are those of `backward`."""
        on = self.events
        for call in on.transform_loss:
            loss = call(loss)
        for call in on.on_before_backward:
            call(loss)
        self.current_batch.differentiated = True
        self.plan.backward(loss, **options)
        for call in on.on_after_backward:
            call()

    def _update(self, module: TaskModule, outputs: Any) -> None:
        position = self.position
        if position.learned:  # or every batch of the window was left out
            self.active = several.due(self) if self.named else self.optimizers
            self.apply_update(module, outputs.get("loss"))
        position.window = position.learned = 0
        position.windows += 1

    def apply_update(self, module: TaskModule, loss: Any) -> None:
        """The update of all `active` optimizers, with its events."""
        on = self.events
        try:
            for call in on.on_window_end:
                call()
            for optimizer in self.active:
                for call in on.on_before_optimizer_step:
                    call(optimizer)
                if self.plan.update(self, module, optimizer, loss):
                    for call in on.on_after_optimizer_step:
                        call(optimizer)
        except CancelStep as cancel:
            cancels.skip_update(self, cancel)

    def _validate_if_due(self, module: TaskModule, *, ended: bool = False) -> None:
        if self.validations.due(self, ended=ended) and not self.interrupt.requested:
            evaluate.inside_fit(self, module)
            self.metric_log.enter("train", TRAIN_STEP)

    def _finish_epoch(self, module: TaskModule) -> None:
        if self.position.window:
            self.saving = Saving.NEVER
            self.progress.open(self, batches=0)
            self._update(module, {})
            self.saving = Saving.NOW
        self._validate_if_due(module, ended=True)
        if self.interrupt.requested and self.validations.due(self, ended=True):
            return  # Ctrl-C came before or in that validation: a resumed run begins with it
        self.metric_log.enter("train", TRAIN_EPOCH)
        self.position.epoch_done = True
        self.fire(self.events.on_train_epoch_end)
        self.position.next_epoch()

    # Manual optimization.

    def manual_backward(self, loss: Tensor, **options: Any) -> None:
        """Backward pass for `TaskModule.manual_backward`."""
        check_finite(loss, self)
        self.differentiate(loss, **options)

    def manual_step(self, optimizer: Optimizer, loss: Any) -> None:
        """Update for `ManualOptimizer.step`."""
        self.active = [optimizer]
        self.apply_update(self.module, loss)
