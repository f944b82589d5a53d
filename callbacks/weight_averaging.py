"""WeightAveraging and EMAWeightAveraging: validated, saved and finished with averaged weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from minitorch.callbacks.averages import POLICIES, Averages, estimate, trained_statistics
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core.pulling import ARGUMENT
from minitorch.callbacks.monitor import refuse
from minitorch.errors import ArgumentError
from minitorch.optim.swa_utils import get_ema_multi_avg_fn

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

CURRENT = "current_model_state"


class WeightAveraging(Callback):
    """Averages the weights that training goes through; the default is the mean of all of them.

    Validation runs with the averages, once there are some. The module has them until training goes
    on, so that who keeps the best weights keeps those that were measured, and when training ends.
    A checkpoint holds the averages as "state_dict", so that it is evaluated and deployed with them,
    and the trained weights as "current_model_state", from which a run resumes exactly.

    Running statistics of batch normalisation belong to weights. `buffers` says how the averages get
    theirs: "average" takes the average of buffers too, "estimate" computes them anew in a pass over
    the training data before each validation and at the end, "copy" takes those of the trained
    weights. `use_buffers=False` alone is "copy" with a warning where it matters.

    Args:
        device: Where the averages live; default where the module is.
        use_buffers: Average buffers as well, unless `buffers` says otherwise.
        buffers: "average", "estimate" or "copy".
        estimate_batches: At most so many batches for an estimate; default an epoch.
        forward: For an estimate, runs (module, batch); default `training_step`.
        avg_fn: `avg_fn(average, weight, count)` gives the new average of one tensor.
        multi_avg_fn: `multi_avg_fn(averages, weights, count)` writes all averages in place.

    Source: Averaging Weights Leads to Wider Optima and Better Generalization, Izmailov et al.,
    2018.
    """

    order = Order.TRANSFORM
    writes = {"weights": ("on_validation_start", "on_train_batch_start", "on_train_end")}
    rolls_back = True
    default_buffers: ClassVar[str | None] = None

    def __init__(
        self,
        device: Any = None,
        use_buffers: bool = True,
        *,
        buffers: str | None = None,
        estimate_batches: int | None = None,
        forward: Callable[[Any, Any], Any] | None = None,
        avg_fn: Any = None,
        multi_avg_fn: Any = None,
    ) -> None:
        self.device = device
        self.use_buffers = use_buffers
        self.buffers = buffers
        self.estimate_batches = estimate_batches
        self.forward = forward
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self._reset()

    def _reset(self) -> None:
        self._averages = Averages(
            device=self.device,
            policy=self.policy,
            avg_fn=self.avg_fn,
            multi_avg_fn=self.multi_avg_fn,
        )
        self._latest_step = 0
        self._latest_epoch = -1
        self._estimated = -1
        self._finished = False
        self._fitting = False
        self._saved: tuple[Any, int] = (None, 0)

    @property
    def policy(self) -> str:
        """How buffers are treated: "average", "estimate" or "copy"."""
        chosen = self.buffers or self.default_buffers
        return chosen or ("average" if self.use_buffers else "copy")

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """Whether the present weights go into the averages; override it for another rhythm.

        Args:
            step_idx: Number of the update that was just applied, from 0; or None.
            epoch_idx: Number of the epoch whose batches are done; or None.
        """
        return step_idx is not None

    # Start and end.

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            self._fitting = False
            return
        who = type(self).__name__
        if self.policy not in POLICIES:
            refuse(who, "buffers", self.buffers, '"average", "estimate" or "copy"')
        if self.avg_fn is not None and self.multi_avg_fn is not None:
            raise ArgumentError(
                f"{who}: give avg_fn or multi_avg_fn. Got both. Leave one of them out."
            )
        limit = self.estimate_batches
        if limit is not None and (type(limit) is not int or limit < 1):
            refuse(who, "estimate_batches", limit, "an integer ≥ 1 or None")
        others = [cb for cb in trainer.callbacks if isinstance(cb, WeightAveraging)]
        if len(others) > 1:
            raise ArgumentError(
                "WeightAveraging: one average is validated and saved. Got "
                f"{', '.join(type(cb).__name__ for cb in others)}. Keep one."
            )
        self._reset()
        self._fitting = True

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        state, count = self._saved
        if state is not None and count:
            self._averages.load(state, module, count)
            self._saved = (None, 0)
        layers = trained_statistics(module)
        if layers and self.policy == "estimate" and self.forward is None:
            takes = "manual optimization, where training_step updates"
            if module.automatic_optimization:
                pulls = ARGUMENT in inspect.signature(module.training_step).parameters
                takes = f"a training_step that takes {ARGUMENT}" if pulls else ""
            if takes:
                raise ArgumentError(
                    f'{type(self).__name__}: buffers="estimate" runs batches without updates. Got '
                    f"{takes}. Pass forward=lambda module, batch: module(batch[0])."
                )
        if layers and self.policy == "copy" and self.buffers is None:
            trainer.checks.warn(
                "ema-swa-buffers",
                f"{type(self).__name__}: averaged weights need running statistics of their own. "
                f"Got use_buffers=False and {len(layers)} batch normalisations, whose statistics "
                'belong to the trained weights. Pass buffers="estimate" or "average", or '
                'buffers="copy" if it is meant.',
            )

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self._averages.count:
            self._swap_in(trainer, module)
            self._finished = True

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        self._swap_out(module)

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._swap_out(module)

    # Averaging.

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        if self._averages.count:
            self._averages.find(module)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        if self._averages.inside:
            self._swap_out(module)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._end_step(trainer, module)
        if trainer.is_last_batch:  # before the validation of the epoch's end
            self._end_epoch(trainer.current_epoch, module)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._swap_out(module)
        self._end_epoch(trainer.current_epoch, module)

    def _end_step(self, trainer: Trainer, module: TaskModule) -> None:
        step = trainer.position.global_step
        if step > self._latest_step and self.should_update(step_idx=step - 1):
            self._averages.update(module)
            self._latest_step = step

    def _end_epoch(self, epoch: int, module: TaskModule) -> None:
        if epoch > self._latest_epoch:
            self._latest_epoch = epoch
            if self.should_update(epoch_idx=epoch):
                self._averages.update(module)

    # Validation with the averages.

    def on_validation_start(self, trainer: Trainer, module: TaskModule) -> None:
        if self._fitting and self._averages.count:
            self._swap_in(trainer, module)

    def _swap_in(self, trainer: Trainer, module: TaskModule) -> None:
        averages = self._averages
        if not averages.inside:
            averages.enter(module)
        if self.policy == "estimate" and self._estimated != averages.count:
            if trained_statistics(module):
                estimate(trainer, module, self.forward, self.estimate_batches)
            self._estimated = averages.count

    def _swap_out(self, module: TaskModule) -> None:
        if self._averages.inside and not self._finished:
            self._averages.leave(module)

    # State.

    def on_save_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        averages = self._averages
        if not averages.count or trainer.stage != "fit" and not averages.inside:
            return
        held = checkpoint["state_dict"]
        other = {**held, **averages.state_dict(module, held)}
        current, averaged = (other, held) if averages.inside else (held, other)
        checkpoint["state_dict"] = averaged
        if "loops" in checkpoint:
            checkpoint[CURRENT] = current

    def on_load_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        if self._fitting and CURRENT in checkpoint:
            self._saved = (checkpoint["state_dict"], 0)
            checkpoint["state_dict"] = checkpoint[CURRENT]

    def state_dict(self) -> dict[str, Any]:
        return {
            "count": self._averages.count,
            "latest_step": self._latest_step,
            "latest_epoch": self._latest_epoch,
            "estimated": self._estimated,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._saved = (self._saved[0], state_dict["count"])
        self._latest_step = state_dict["latest_step"]
        self._latest_epoch = state_dict["latest_epoch"]
        self._estimated = state_dict["estimated"]

    def rollback_state(self) -> dict[str, Any]:
        """What a rollback goes back to: also the averages, which a checkpoint has as weights."""
        trainer = self._trainer
        assert trainer is not None
        ended = trainer.current_epoch if trainer.is_last_batch else -1
        return {**self.state_dict(), "values": dict(self._averages.values), "ended": ended}

    def load_rollback_state(self, state: dict[str, Any]) -> None:
        """Goes back; the copy may have been made just before its weights were averaged."""
        trainer, averages = self._trainer, self._averages
        assert trainer is not None
        module = trainer.module
        averages.values, averages.count = {}, 0
        if state["count"]:
            averages.load(state["values"], module, state["count"])
        self._latest_step, self._latest_epoch = state["latest_step"], state["latest_epoch"]
        self._estimated = -1
        self._end_step(trainer, module)
        if state["ended"] >= 0:
            self._end_epoch(state["ended"], module)


class EMAWeightAveraging(WeightAveraging):
    """Keeps an exponential average of the weights: `decay·average + (1 - decay)·weight`.

    Args:
        device: Where the average lives; default where the module is.
        use_buffers: Average buffers as well, unless `buffers` says otherwise.
        decay: Share of the old average, from 0 to 1.
        update_every_n_steps: Updates of the optimizer between two of the average; 0 for none.
        update_starting_at_step: First update, from 0, that is averaged.
        update_starting_at_epoch: First epoch, from 0, at whose end the weights are averaged.
        options: As in `WeightAveraging`, such as `buffers`.
    """

    def __init__(
        self,
        device: Any = None,
        use_buffers: bool = True,
        decay: float = 0.999,
        update_every_n_steps: int = 1,
        update_starting_at_step: int | None = None,
        update_starting_at_epoch: int | None = None,
        **options: Any,
    ) -> None:
        self.decay = decay
        self.update_every_n_steps = update_every_n_steps
        self.update_starting_at_step = update_starting_at_step
        self.update_starting_at_epoch = update_starting_at_epoch
        super().__init__(device, use_buffers, **options)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        decay, every = self.decay, self.update_every_n_steps
        if not isinstance(decay, int | float) or not 0 <= decay <= 1:
            refuse("EMAWeightAveraging", "decay", decay, "a number from 0 to 1")
        if type(every) is not int or every < 0:
            refuse("EMAWeightAveraging", "update_every_n_steps", every, "an integer ≥ 0")
        if self.avg_fn is None and self.multi_avg_fn is None:
            self.multi_avg_fn = get_ema_multi_avg_fn(decay)
        super().setup(trainer, module, stage)

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        if step_idx is not None:
            every, start = self.update_every_n_steps, self.update_starting_at_step
            return every > 0 and step_idx % every == 0 and (start is None or step_idx >= start)
        start = self.update_starting_at_epoch
        return epoch_idx is not None and start is not None and epoch_idx >= start
