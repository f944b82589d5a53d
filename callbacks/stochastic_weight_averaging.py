"""StochasticWeightAveraging: the mean of the weights at the ends of the last epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from minitorch.callbacks.core.schedules import LRSchedulerConfig
from minitorch.callbacks.monitor import refuse
from minitorch.callbacks.weight_averaging import WeightAveraging
from minitorch.errors import ArgumentError, TrainerError
from minitorch.optim.swa_utils import SWALR

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class StochasticWeightAveraging(WeightAveraging):
    """Averages the weights at the end of each epoch from `swa_epoch_start` on, at a constant rate.

    The schedule of the task gives way to one that goes to `swa_lrs` and stays. Validation from the
    first average on, and the module at the end, have the averaged weights with statistics of batch
    normalisation that are estimated for them (see `WeightAveraging`; `buffers` changes that).

    Args:
        swa_lrs: The rate, or one for each parameter group.
        swa_epoch_start: First epoch that is averaged, counted from 1; a float is a share of
            max_epochs.
        annealing_epochs: Epochs on the way to `swa_lrs`.
        annealing_strategy: "cos" or "linear".
        avg_fn: As in `WeightAveraging`; default the mean.
        device: Where the averages live; None for where the module is.
        options: As in `WeightAveraging`, such as `buffers` and `estimate_batches`.

    Source: Averaging Weights Leads to Wider Optima and Better Generalization, Izmailov et al.,
    2018.
    """

    default_buffers: ClassVar[str | None] = "estimate"

    def __init__(
        self,
        swa_lrs: float | list[float],
        swa_epoch_start: int | float = 0.8,
        annealing_epochs: int = 10,
        annealing_strategy: str = "cos",
        avg_fn: Any = None,
        device: Any = "cpu",
        **options: Any,
    ) -> None:
        self.swa_lrs = swa_lrs
        self.swa_epoch_start = swa_epoch_start
        self.annealing_epochs = annealing_epochs
        self.annealing_strategy = annealing_strategy
        self._begun = False
        super().__init__(device, avg_fn=avg_fn, **options)

    def _check(self) -> None:
        who, start, rates = "StochasticWeightAveraging", self.swa_epoch_start, self.swa_lrs
        whole = type(start) is int and start >= 1
        if not whole and not (isinstance(start, float) and 0 <= start <= 1):
            refuse(who, "swa_epoch_start", start, "an integer ≥ 1 or a share from 0.0 to 1.0")
        listed = rates if isinstance(rates, list) else [rates]
        if not listed or not all(_is_rate(rate) for rate in listed):
            refuse(who, "swa_lrs", rates, "a rate > 0, or a list of one for each group")
        if type(self.annealing_epochs) is not int or self.annealing_epochs < 0:
            refuse(who, "annealing_epochs", self.annealing_epochs, "an integer ≥ 0")
        if self.annealing_strategy not in ("cos", "linear"):
            refuse(who, "annealing_strategy", self.annealing_strategy, '"cos" or "linear"')

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._check()
            self._begun = False
            self._groups: int | None = None
        super().setup(trainer, module, stage)

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        return epoch_idx is not None and self._begun

    def start_epoch(self, trainer: Trainer) -> int:
        """The first epoch that is averaged, counted from 0.

        Raises:
            ArgumentError: It is a share of an endless run.
        """
        start = self.swa_epoch_start
        if isinstance(start, float):
            if trainer.max_epochs == -1:
                raise ArgumentError(
                    "StochasticWeightAveraging: a share of the epochs needs max_epochs. Got "
                    f"swa_epoch_start={start} and no limit. Pass the number of an epoch."
                )
            start = int(trainer.max_epochs * start)
        return max(start - 1, 0)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        optimizers, schedules = len(trainer.optimizers), len(trainer.lr_scheduler_configs)
        if optimizers != 1 or schedules > 1:
            raise TrainerError(
                "StochasticWeightAveraging: it drives the rate of one optimizer with at most one "
                f"schedule. Got {optimizers} and {schedules}. Use WeightAveraging, which leaves "
                "rates alone."
            )
        self.start_epoch(trainer)
        super().on_fit_start(trainer, module)
        if self._begun:
            self._begin(trainer)

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        super().on_train_epoch_start(trainer, module)
        if not self._begun and trainer.current_epoch >= self.start_epoch(trainer):
            self._begun = True
            self._begin(trainer)
            trainer.rewire()

    def _begin(self, trainer: Trainer) -> None:
        [optimizer] = trainer.optimizers
        rates, count = self.swa_lrs, len(optimizer.param_groups)
        if isinstance(rates, list) and self._groups is not None:
            rates = rates + [rates[0]] * (count - self._groups)  # these have thawed since it began
        self._groups = count if self._groups is None else self._groups
        options = self.annealing_epochs, self.annealing_strategy
        schedule = SWALR(optimizer, rates, *options)
        trainer.lr_scheduler_configs[:] = [LRSchedulerConfig(schedule, name="SWALR")]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "begun": self._begun, "groups": self._groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._begun, self._groups = state_dict["begun"], state_dict["groups"]


def _is_rate(rate: Any) -> bool:
    return isinstance(rate, int | float) and not isinstance(rate, bool) and rate > 0
