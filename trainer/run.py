"""Set-up and tear-down around one run of a loop, whatever happens inside."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from minitorch import autograd, enable_grad
from minitorch.autograd.mode import quiet, state
from minitorch.callbacks import conflicts
from minitorch.errors import ArgumentError, TrainerError
from minitorch.trainer import (
    arguments,
    checkpoint,
    finding,
    graph,
    never_due,
    optimizers,
    phase,
    plan,
    preflight,
    processes,
    profiler,
    sources,
    taking_part,
    weights,
)
from minitorch.trainer.checks import Checks
from minitorch.trainer.data_module import DataModule, prepare
from minitorch.trainer.interrupt import Interrupt, cut_short
from minitorch.trainer.result import FitResult
from minitorch.trainer.saving import Saving
from minitorch.trainer.task import TaskModule, overrides

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer


class Run:
    """One run. `with Run(...) as run:` guarantees `on_exception`, `teardown` and closed loggers.

    Args:
        trainer: The Trainer.
        module: The task.
        stage: "fit", "validate", "test" or "predict".
    """

    def __init__(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self.trainer = trainer
        self.module = module
        self.stage = stage
        self.tree: dict[str, Any] | None = None
        self._may_be_over = False
        self._stack = contextlib.ExitStack()
        self._began = False

    def __enter__(self) -> Run:
        other = self.trainer.running
        if other is not None:
            raise TrainerError(
                f"Trainer.{self.stage}: a run is going on ({other}), and a Trainer does one thing "
                "at a time. Use another Trainer, or val_check_interval for validation inside a fit."
            )
        self.trainer.running = self.stage
        return self

    # Set-up.

    def attach(self, data: Any) -> Any:
        """Connects Trainer, module, data and callbacks; runs everything up to `configure_model`.

        Args:
            data: Loaders, a DataModule, or None.

        Returns:
            The loaders, if that is what the data was.
        """
        trainer, module = self.trainer, self.module
        if not isinstance(module, TaskModule):
            what = "a class" if isinstance(module, type) else type(module).__name__
            raise ArgumentError(
                f"Trainer.{self.stage}: the module must be an object of a subclass of "
                f"minitorch.trainer.TaskModule. Got {what}."
            )
        arguments.check(trainer.settings)
        processes.refuse(self.stage)
        trainer.attached, trainer.stage = module, self.stage
        trainer.resumed, trainer.ckpt_path = False, None
        trainer.checks = Checks(trainer.settings.checks, module)
        module._task.trainer = trainer
        trainer.datamodule = data if isinstance(data, DataModule) else None
        trainer.interrupt = Interrupt()
        trainer.profiler = profiler.make(trainer.settings.profiler)
        taking_part.complete(trainer, module, self.stage)
        for callback in trainer.callbacks:
            callback._trainer = trainer
        if trainer.datamodule is not None:
            trainer.datamodule.trainer = trainer
        trainer.rewire()
        for owner in (trainer.datamodule, module):
            if owner is not None:
                processes.first_alone(partial(prepare, owner, trainer.checks))
        self._began = True
        profiler.begin(trainer.profiler, trainer, self.stage)
        trainer.fire(trainer.events.setup, self.stage)
        module.configure_model()
        return None if trainer.datamodule is not None else data

    def read(self, path: str | os.PathLike[str], tree: dict[str, Any] | None = None) -> None:
        """Reads a checkpoint; hooks may change the module or the tree before weights are loaded."""
        self.path = self.trainer.ckpt_path = os.fspath(path)
        self.tree = checkpoint.read(self.path) if tree is None else tree
        for call in self.trainer.events.on_load_checkpoint:
            call(self.tree)

    def place(self) -> None:
        """The module is complete: devices, dtypes, and the weights of the checkpoint."""
        trainer = self.trainer
        trainer.fire(trainer.events.on_setup_end, self.stage)
        if self.tree is not None:
            checkpoint.load_weights(trainer, self.tree)

    def start_fit(
        self, train: Any, val: Any, batch_size: int, ckpt_path: Any, hparams: str | None = None
    ) -> None:
        """Everything before the first event of training."""
        trainer, module = self.trainer, self.module
        if trainer.fitted:
            kept = finding.last(trainer) is not None
            source = "result.last" if kept else "path"
            raise TrainerError(
                "Trainer.fit: a Trainer fits once. It stands at epoch "
                f"{trainer.position.epoch}, update {trainer.position.global_step}. Make a new "
                "Trainer; to train further "
                f"{'' if kept else 'save this one with trainer.save_checkpoint(path), '}"
                f"give the new one a larger max_epochs and fit(..., ckpt_path={source})."
            )
        train = self.attach(train)
        _check_task(module, trainer)
        trainer.sources = sources.FitSources(trainer, train, val, batch_size)
        trainer.sources.take()
        self._stack.callback(lambda: trainer.train_data.close())
        self._read_start(ckpt_path)
        trainer.resumed = self.tree is not None
        self.place()
        if self.tree is not None:
            checkpoint.apply_callbacks(trainer, self.tree, self.path)
        self._stack.enter_context(enable_grad())
        if trainer.checks.on:
            self._watch_memory()
        self._stack.enter_context(quiet())
        if trainer.settings.detect_anomaly:
            self._stack.enter_context(autograd.detect_anomaly())
        trainer.optimizers, trainer.lr_scheduler_configs = optimizers.configure(module)
        trainer.active = trainer.optimizers
        if trainer.checkpoint_callbacks:
            checkpoint.check_hyperparameters(module)
        if trainer.checks.on:
            preflight.check_decay(trainer)
            preflight.check_last_batch(trainer, module)
            preflight.check_splits(trainer, module)
            never_due.check(trainer)
            weights.check_loads(trainer, module)
            weights.check_ties(trainer, module)
        conflicts.check(trainer.callbacks)
        trainer.rewire()
        trainer.fitted = True
        trainer.fire(trainer.events.on_fit_start)
        self._report_hyperparameters()
        module.zero_grad()
        if self.tree is not None:
            checkpoint.compare_options(trainer, self.tree, hparams, self.path)
            self._restore_loop(self.tree, new=hparams == "new")
        trainer.plan = plan.make(trainer, trainer.learn_once)
        trainer.interrupt.install()
        self._stack.callback(trainer.interrupt.restore)
        phase.enter_training(module)
        if self.tree is None:
            from minitorch.trainer import evaluate

            evaluate.sanity_check(trainer, module)
        trainer.phase = "train"

    def _read_start(self, path: Any) -> None:
        """Reads what the fit starts from, if it does not start afresh."""
        trainer, found = self.trainer, None
        finding.check_kind(path)
        restoring = [cb for cb in trainer.callbacks if cb.restores()]
        if path == "auto" or (path is None and restoring):
            self._may_be_over = True
            found = finding.newest_of(trainer, restoring if path is None else trainer.callbacks)
        elif path is not None and os.path.isdir(path):
            found = finding.inside(trainer, os.fspath(path))
        else:
            path = finding.named(trainer, path)
            if path is not None:
                self.read(path)
        if found is not None:
            self.read(*found)

    def _watch_memory(self) -> None:
        """During the run state dicts are copies, and emptying the memory pool is noticed."""
        trainer, check = self.trainer, "empty-cache-in-loop"

        def emptied(seconds: float) -> None:
            if trainer.saving is Saving.NEVER and not trainer.checks.meant(check):
                trainer.checks.warn(
                    check,
                    "training_step: the memory pool serves the next batch. Got empty_cache() at "
                    f"{trainer.checks.line()}, which took {1000 * seconds:.2f} ms and makes the "
                    "next batch allocate anew. Remove it; if memory is short, use smaller batches "
                    "with accumulate_grad_batches.",
                )

        state.snapshots, state.on_empty_cache = True, emptied
        state.on_stale_average = lambda: weights.stale_average(trainer)
        self._stack.callback(self._unwatch_memory)

    @staticmethod
    def _unwatch_memory() -> None:
        state.snapshots, state.on_empty_cache = False, None
        state.on_stale_average = None

    def _restore_loop(self, tree: dict[str, Any], *, new: bool) -> None:
        trainer = self.trainer
        checkpoint.apply_loop(trainer, tree, new=new)
        trainer.saved_data = tree["loops"]["data"]
        if trainer.ends_at_epoch() and not self._may_be_over:
            reason = trainer.ending[1] if trainer.ending else ""
            raise TrainerError(
                f"Trainer.fit: there is nothing left to do: {reason} in {self.path}. "
                "Raise max_epochs or max_steps, which count from the start of training."
            )

    def _report_hyperparameters(self) -> None:
        values = self._hyperparameters()
        if values:
            self.trainer.logger_group.log_hyperparams(values)
        if any(getattr(logger, "wants_graph", False) for logger in self.trainer.loggers):
            example = self.trainer.placement.place(self.module._task.example)
            self.trainer.logger_group.log_graph(graph.trace(self.module, example))
        self.trainer.logger_group.save()

    def _hyperparameters(self) -> dict[str, Any]:
        """Those of the module and the DataModule that go to the loggers."""
        trainer, found = self.trainer, dict[str, Any]()
        if not trainer.settings.enable_autolog_hparams:
            return found
        for owner in (trainer.datamodule, self.module):
            if owner is None or not owner._kept.log_hparams:
                continue
            own = owner.hparams
            unequal = [k for k in own if k in found and repr(found[k]) != repr(own[k])]
            if unequal:
                raise ArgumentError(
                    "save_hyperparameters: the module and the datamodule log to one table, so a "
                    "name has one value. Got different values of "
                    f"{', '.join(unequal)}. Pass logger=False to one of them, or rename."
                )
            found.update(own)
        return found

    # Tear-down.

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        trainer, later = self.trainer, list[Exception]()
        self._call_all([self._stack.close], (), later)
        cause = error if error is not None or not later else later[0]
        trainer.metric_log.scope = None
        if trainer.saving is Saving.NEVER:
            trainer.progress.close_cut(trainer)
            trainer.batch_was_cut = True
        trainer.saving = Saving.NOW
        if isinstance(error, KeyboardInterrupt):
            error.add_note(cut_short(trainer, self.stage))
        if self._began:
            if cause is not None:
                self._call_all(trainer.events.on_exception, (cause,), later)
            self._call_all(trainer.events.teardown, (self.stage,), later)
        if isinstance(self.module, TaskModule):
            self.module.untoggle_optimizer(None)  # an exception may have come in between
        trainer.running = trainer.phase = None
        trainer.current_batch.data = None
        trainer.to_save = []
        ending = trainer.ending[0] if trainer.ending and self.stage == "fit" else ""
        failed = cause is not None or ending == "failed"
        if self._began:
            self._call_all([profiler.end], (trainer.profiler, trainer, self.stage), later)
        status = "failed" if failed else "success"
        self._call_all([trainer.logger_group.finalize], (status,), later)
        if error is None and later:
            raise later[0]
        for one in later:
            error.add_note(f"While the run was closed, also: {type(one).__name__}: {one}")  # type: ignore[union-attr]
        return False

    @staticmethod
    def _call_all(calls: list[Any], args: tuple[Any, ...], later: list[Exception]) -> None:
        for call in calls:
            try:
                call(*args)
            except Exception as error:
                later.append(error)

    def result(self) -> FitResult:
        """What `fit` returns."""
        trainer = self.trainer
        status, reason = trainer.ending or ("completed", "")
        unsaved = [text for callback in trainer.callbacks for text in callback.failures]
        history = {name: list(points) for name, points in trainer.metric_log.history.items()}
        return FitResult(
            status=cast(Any, status),
            reason=reason,
            best=self.module if trainer.fast_dev_run else finding.best(trainer),
            last=finding.last(trainer) or self.module,
            history=history,
            epochs=trainer.position.epoch,
            global_step=trainer.position.global_step,
            skipped=dict(trainer.progress.skipped),
            warnings=(*trainer.logger_group.failures, *trainer.checks.found, *unsaved),
        )


def _check_task(module: TaskModule, trainer: Trainer) -> None:
    if not overrides(module, "training_step"):
        module.training_step(None, 0)
    if not overrides(module, "configure_optimizers"):
        module.configure_optimizers()
    if module.automatic_optimization:
        return
    for name, neutral in (
        ("gradient_clip_val", None),
        ("accumulate_grad_batches", 1),
        ("on_out_of_memory", "raise"),
    ):
        value = getattr(trainer.settings, name)
        if value != neutral:
            raise ArgumentError(
                f"Trainer: {name} works with automatic optimization. Got {name}={value!r} and a "
                "module with automatic_optimization=False. Use self.clip_gradients and step when "
                "you mean to in training_step."
            )
