"""TaskModule: a model together with how it is trained."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from minitorch import Tensor, as_tensor, dtypes, nn, stack
from minitorch.callbacks.core.nested import map_leaves
from minitorch.device import CPU, device
from minitorch.errors import TrainerError
from minitorch.ops import primitive
from minitorch.ops.recording import in_recordings
from minitorch.ranks import place
from minitorch.trainer import checkpoint, optimizers, phase
from minitorch.trainer import hparams as hyper
from minitorch.trainer.hooks import Hooks

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer


class _Task(hyper.Kept):
    """What a TaskModule keeps outside of the tree of parameters and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.trainer: Trainer | None = None
        self.example: Any = None
        self.toggled: list[tuple[Tensor, bool]] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> _Task:
        return self._without_trainer()

    def __reduce__(self) -> Any:
        return _rebuild, (self._without_trainer().__dict__,)

    def _without_trainer(self) -> _Task:
        copy = _Task()
        copy.__dict__.update(self.__dict__, trainer=None, toggled=[])
        return copy


def _rebuild(values: dict[str, Any]) -> _Task:
    task = _Task()
    task.__dict__.update(values)
    return task


class TaskModule(hyper.HyperParameters, Hooks, nn.Module):
    """A module with its steps: write `training_step` and `configure_optimizers`, then `fit`.

    Names and signatures are Lightning's. Steps get (batch, batch_idx); evaluation steps also
    dataloader_idx if they take it, and arguments at the end may be left out of the signature.

    Attributes:
        automatic_optimization: False hands `zero_grad`, `manual_backward` and `step` to
            training_step.
        strict_loading: Whether a checkpoint's names of weights must match exactly.
    """

    automatic_optimization: bool = True
    strict_loading: bool = True

    def __init__(self) -> None:
        super().__init__()
        self._task = _Task()

    @property
    def _kept(self) -> hyper.Kept:  # type: ignore[override]
        return self._task

    # Steps.

    @in_recordings()
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """Returns the loss of a batch: a scalar tensor, or a dict with "loss" and, if the loss is a
        mean over something else than the batch, "count".

        With several optimizers it returns a dict with one of these for each name, or yields them:
        `yield "discriminator", loss` updates the discriminator before the function goes on."""
        raise TrainerError(_missing(self, "training_step", "(self, batch, batch_idx)", "fit"))

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        """Looks at a batch of validation data; `self.log` keeps its metrics."""
        raise TrainerError(
            _missing(self, "validation_step", "(self, batch, batch_idx)", "validate")
        )

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        """Looks at a batch of test data."""
        raise TrainerError(_missing(self, "test_step", "(self, batch, batch_idx)", "test"))

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        """Returns the prediction for a batch; by default `self(batch)`."""
        return self(batch)

    def configure_optimizers(self) -> Any:
        """Returns an optimizer; also two lists (optimizers, schedules), or a dict with "optimizer",
        "lr_scheduler" and "monitor". For several optimizers a dict of names with any of these; with
        "frequency": n one takes part in every n-th update."""
        raise TrainerError(_missing(self, "configure_optimizers", "(self)", "fit"))

    # Logging.

    @in_recordings()
    def log(
        self,
        name: str,
        value: Any,
        *,
        prog_bar: bool = False,
        logger: bool = True,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: Any = "mean",
        batch_size: int | None = None,
        add_dataloader_idx: bool = True,
        sync_dist: bool = False,
        rank_zero_only: bool = False,
    ) -> None:
        """Keeps a value under a name; it is detached and costs no wait for the device.

        Args:
            name: Name of the metric. With on_step and on_epoch both set, the values are called
                `name_step` and `name_epoch`.
            value: A number, a tensor with one element, or an object of `minitorch.metrics`, which
                is computed and reset at the end of the epoch.
            prog_bar: Show it in the progress bar.
            logger: Send it to the loggers.
            on_step: Keep the value of this batch. Default: in training batches.
            on_epoch: Aggregate over the epoch. Default: everywhere but in training batches.
            reduce_fx: "mean" (weighted by batch size), "sum", "max" or "min".
            batch_size: Weight of this value in the mean. Default: the first axis of the batch.
            add_dataloader_idx: Append `/dataloader_idx_N` if there are several loaders.
            sync_dist: Accepted: values of epochs are always those of all processes.
            rank_zero_only: Accepted for Lightning's signature.

        Raises:
            TrainerError: The flags do not fit the place, or changed between calls.
        """
        trainer = self._task.trainer
        if trainer is None:
            raise TrainerError(
                f"log({name!r}): values are logged during a run of a Trainer. Got a call outside "
                "of one. Call Trainer.fit, or leave the value out."
            )
        if primitive.tape is not None:
            options = {"on_step": on_step, "on_epoch": on_epoch, "reduce_fx": reduce_fx}
            options |= {"prog_bar": prog_bar, "logger": logger, "batch_size": batch_size}
            options |= {"add_dataloader_idx": add_dataloader_idx}
            primitive.tape.told(TaskModule.log, (self, name, value), options)
            return
        log = trainer.metric_log
        flags = (prog_bar, logger, on_step, on_epoch, reduce_fx)
        if add_dataloader_idx or not log.suffix:
            log.put(name, value, flags, batch_size)
        else:
            suffix, log.suffix = log.suffix, ""
            try:
                log.put(name, value, flags, batch_size)
            finally:
                log.suffix = suffix

    @in_recordings()
    def log_dict(self, dictionary: Mapping[str, Any], **options: Any) -> None:
        """Calls `log` for each entry, with the same options."""
        for name, value in dictionary.items():
            self.log(name, value, **options)

    def print(self, *values: Any, **options: Any) -> None:
        """Prints without tearing the progress bar."""
        if self._task.trainer is None:
            print(*values, **options)
        else:
            self._task.trainer.print(*values, **options)

    def is_due(self, name: str) -> bool:
        """Whether the optimizer of this name takes part in the update of the current batch.

        Raises:
            TrainerError: No optimizer was declared under this name.
        """
        entry = self.trainer.named.get(name)
        if entry is None:
            raise TrainerError(
                f"is_due: it asks for an optimizer by its name in configure_optimizers. Got "
                f"{name!r}. Declared are {', '.join(map(repr, self.trainer.named)) or 'none'}."
            )
        return entry.is_due(self.trainer.position.windows)

    # Manual optimization.

    def optimizers(self, use_pl_optimizer: bool = True) -> Any:
        """The optimizer, or the list of them, for manual optimization.

        Args:
            use_pl_optimizer: False gives the optimizers themselves, whose steps run no events.
        """
        if not use_pl_optimizer:
            plain = self.trainer.optimizers
            return plain[0] if len(plain) == 1 else plain
        manual = [optimizers.ManualOptimizer(o, self.trainer) for o in self.trainer.optimizers]
        return manual[0] if len(manual) == 1 else manual

    def lr_schedulers(self) -> Any:
        """The learning rate schedule, the list of them, or None."""
        found = [config.scheduler for config in self.trainer.lr_scheduler_configs]
        return (found or [None])[0] if len(found) < 2 else found

    def manual_backward(self, loss: Tensor, **options: Any) -> None:
        """Computes gradients, scaled as the precision needs, and runs the events around it."""
        self.trainer.manual_backward(loss, **options)

    def clip_gradients(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clips the gradients of an optimizer's parameters in place.

        Args:
            optimizer: The optimizer.
            gradient_clip_val: Limit; None means that of the Trainer, if it has one.
            gradient_clip_algorithm: "norm" or "value"; None means that of the Trainer.

        Raises:
            ArgumentError: The Trainer has another limit or algorithm.
        """
        trainer = self.trainer
        limit, algorithm = trainer.clipping.chosen(
            trainer, gradient_clip_val, gradient_clip_algorithm
        )
        if limit is not None:
            trainer.clipping.clip(trainer, self, optimizer, limit, algorithm)

    def toggle_optimizer(self, optimizer: Any) -> None:
        """Lets only the parameters of this optimizer require gradients, until untoggled."""
        self.untoggle_optimizer(optimizer)
        self._task.toggled = optimizers.toggle(self, optimizer)

    def untoggle_optimizer(self, optimizer: Any) -> None:
        """Undoes `toggle_optimizer`."""
        for parameter, required in self._task.toggled:
            parameter.requires_grad_(required)
        self._task.toggled = []

    @contextlib.contextmanager
    def toggled_optimizer(self, optimizer: Any) -> Iterator[None]:
        """`toggle_optimizer` for a block."""
        self.toggle_optimizer(optimizer)
        try:
            yield
        finally:
            self.untoggle_optimizer(optimizer)

    def transfer_batch_to_device(self, batch: Any, device: device, dataloader_idx: int) -> Any:
        """Moves a batch; override it for batches of own classes and call super() for the rest."""
        return self.trainer.placement.place(batch)

    def all_gather(self, data: Any, group: Any = None, sync_grads: bool = False) -> Any:
        """`data` of every process: its tensors get a first axis for them; itself without a group.

        Args:
            data: Tensors, or containers of them.
            group: Accepted: there is one group.
            sync_grads: Must be False in a group: what is gathered has no gradient.

        Raises:
            TrainerError: Gradients were asked for.
        """
        ranks = place()[1]
        if ranks == 1:
            return data
        if sync_grads:
            raise TrainerError(
                "all_gather: what comes from other processes has no gradient here. Got "
                "sync_grads=True. Gather detached values."
            )

        def gather(leaf: Any) -> Any:
            from minitorch.distributed import all_gather_object

            everyone: list[Any] = [None] * ranks
            all_gather_object(everyone, as_tensor(leaf).detach().cpu())
            return stack(everyone).to(self.device)

        return map_leaves(data, gather)

    # Hyper-parameters and files.

    @classmethod
    def load_from_checkpoint(
        cls,
        checkpoint_path: str | os.PathLike[str],
        map_location: Any = None,
        hparams_file: str | os.PathLike[str] | None = None,
        strict: bool | None = None,
        **overrides: Any,
    ) -> Self:
        """Builds the module from a checkpoint's hyper-parameters and loads its weights.

        Args:
            checkpoint_path: A file that a Trainer wrote.
            map_location: Device of the tensors.
            hparams_file: YAML, JSON or CSV file with hyper-parameters in place of the saved ones.
            strict: Whether names of weights must match exactly; None asks `strict_loading`.
            overrides: Constructor arguments in place of the saved ones.

        Raises:
            CheckpointError: The file is damaged or was not written by a Trainer, or the
                constructor misses arguments.
        """
        tree = checkpoint.read(checkpoint_path, map_location=map_location)
        saved, holder = tree.get("hyper_parameters", {}), tree.get("hparams_name")
        module = hyper.rebuilt(cls, saved, holder, hparams_file, overrides)
        module.configure_model()
        module.on_load_checkpoint(tree)
        strict = module.strict_loading if strict is None else strict
        module.load_state_dict(tree["state_dict"], strict=strict)
        return module

    # State.

    @property
    def global_rank(self) -> int:
        """The number of this process in its group; 0 without one."""
        return place()[0]

    local_rank = global_rank

    def freeze(self) -> None:
        """Freezes parameters, running statistics and dropout."""
        phase.freeze(self)

    def unfreeze(self) -> None:
        """Undoes `freeze`."""
        phase.unfreeze(self)

    @property
    def trainer(self) -> Trainer:
        """The Trainer that runs this module.

        Raises:
            TrainerError: None does.
        """
        if self._task.trainer is None:
            raise TrainerError(
                f"{type(self).__name__}.trainer: a module has a Trainer once a run has started. "
                "Got access before. Use it in hooks and steps."
            )
        return self._task.trainer

    @property
    def example_input_array(self) -> Any:
        """An input of `forward`, for the graph and the summary; it is no part of the state."""
        return self._task.example

    @example_input_array.setter
    def example_input_array(self, value: Any) -> None:
        self._task.example = value

    @property
    @in_recordings()
    def device(self) -> device:
        """Device of the parameters."""
        return next((p.device for p in self.parameters()), CPU)

    @property
    @in_recordings()
    def dtype(self) -> dtypes.dtype:
        """Dtype of the parameters."""
        return next((p.dtype for p in self.parameters()), dtypes.get_default_dtype())

    @property
    @in_recordings("is another number in other steps")
    def current_epoch(self) -> int:
        """Finished epochs, which is the number of the current one."""
        return 0 if self._task.trainer is None else self._task.trainer.current_epoch

    @property
    @in_recordings("is another number in other steps")
    def global_step(self) -> int:
        """Optimizer updates so far."""
        return 0 if self._task.trainer is None else self._task.trainer.global_step

    @property
    def logger(self) -> Any:
        """The first logger, or None."""
        return None if self._task.trainer is None else self._task.trainer.logger

    @property
    def loggers(self) -> list[Any]:
        """All loggers."""
        return [] if self._task.trainer is None else self._task.trainer.loggers


def overrides(module: TaskModule, name: str) -> bool:
    """Whether the user wrote this method."""
    method = getattr(module, name)
    return getattr(method, "__func__", method) is not getattr(TaskModule, name)


def positional_count(method: Callable[..., Any], most: int) -> int:
    """How many of up to `most` positional arguments a method takes."""
    parameters = list(inspect.signature(method).parameters.values())
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return most
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(most, sum(p.kind in kinds for p in parameters))


def _missing(module: TaskModule, name: str, signature: str, run: str) -> str:
    return (
        f"{type(module).__name__}: Trainer.{run} needs the method {name}. It is not defined. "
        f"Add `def {name}{signature}:` to the class."
    )
