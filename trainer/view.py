"""What users and callbacks read of a run: where it stands, its data, its metrics and loggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.core import Accumulation, DevicePlacement, MetricLog
from minitorch.callbacks.core.metric_state import as_tensors
from minitorch.errors import TrainerError
from minitorch.ops.recording import in_recordings
from minitorch.ranks import place
from minitorch.trainer.arguments import Settings
from minitorch.trainer.interrupt import Interrupt
from minitorch.trainer.intervals import Validations
from minitorch.trainer.loaders import Batches
from minitorch.trainer.logger_group import LoggerGroup
from minitorch.trainer.position import Position

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.device import device
    from minitorch.trainer.task import TaskModule


class View:
    """Read-only properties over the state that `Status` keeps."""

    node_rank = 0
    num_devices = num_nodes = 1

    accumulation: Accumulation
    default_root_dir: str
    eval_data: list[Batches]
    interrupt: Interrupt
    logger_group: LoggerGroup
    metric_log: MetricLog
    phase: str | None
    placement: DevicePlacement
    position: Position
    settings: Settings
    stage: str | None
    train_data: Batches
    val_data: list[Batches]
    attached: TaskModule | None
    validations: Validations

    # Processes.

    @property
    def global_rank(self) -> int:
        """The number of this process in its group; 0 without one."""
        return place()[0]

    local_rank = global_rank

    @property
    def world_size(self) -> int:
        """How many processes there are in the group; 1 without one."""
        return place()[1]

    @property
    def is_global_zero(self) -> bool:
        """Whether this process is the one that prints and writes."""
        return place()[0] == 0

    # Where it stands.

    @property
    @in_recordings("is another number in other steps")
    def current_epoch(self) -> int:
        """Finished epochs, which is the number of the current one."""
        return self.position.epoch

    @property
    @in_recordings("is another number in other steps")
    def global_step(self) -> int:
        """Optimizer updates so far; a batch counts once however many optimizers step."""
        return self.position.global_step

    @property
    def training(self) -> bool:
        """Training batches run, not validation."""
        return self.phase == "train"

    @property
    def validating(self) -> bool:
        """Validation runs, inside a fit or alone."""
        return self.phase == "validation"

    @property
    def sanity_checking(self) -> bool:
        """The few validation batches ahead of training run."""
        return self.phase == "sanity"

    @property
    def testing(self) -> bool:
        """`test` runs."""
        return self.phase == "test"

    @property
    def predicting(self) -> bool:
        """`predict` runs."""
        return self.phase == "predict"

    @property
    def evaluating(self) -> bool:
        """Validation or testing runs."""
        return self.phase in ("validation", "sanity", "test")

    @property
    def interrupted(self) -> bool:
        """Ctrl-C was pressed, or SIGTERM received."""
        return self.interrupt.requested

    @property
    def metrics_complete(self) -> bool:
        """Every name that the task logs has been logged once."""
        return not self.val_data or self.validations.ran

    @property
    def module(self) -> TaskModule:
        """The module of the current or last run.

        Raises:
            TrainerError: There was none.
        """
        if self.attached is None:
            raise TrainerError("Trainer.module: there is no module before the first run. Call fit.")
        return self.attached

    lightning_module = model = module

    @property
    @in_recordings()
    def device(self) -> device:
        """Device of the module and its batches."""
        return self.placement.device

    # Data.

    @property
    def num_training_batches(self) -> float:
        """Batches of an epoch; inf if unknown."""
        return self.train_data.count

    @property
    def num_val_batches(self) -> list[float]:
        """Batches of each validation loader."""
        return [batches.count for batches in self.val_data]

    @property
    def num_sanity_val_batches(self) -> list[float]:
        """Batches of each loader in the sanity check."""
        steps = self.settings.num_sanity_val_steps
        steps = 2 if steps is None else steps
        return [count if steps == -1 else min(steps, count) for count in self.num_val_batches]

    @property
    def num_test_batches(self) -> list[float]:
        """Batches of each test loader."""
        return [batches.count for batches in self.eval_data] if self.stage == "test" else []

    @property
    def num_predict_batches(self) -> list[float]:
        """Batches of each predict loader."""
        return [batches.count for batches in self.eval_data] if self.stage == "predict" else []

    # Metrics and loggers.

    @property
    def callback_metrics(self) -> dict[str, Tensor]:
        """Latest value of everything logged, as 0-d tensors."""
        return as_tensors(self.metric_log.results())

    @property
    def logged_metrics(self) -> dict[str, Tensor]:
        """What last went to the loggers."""
        return as_tensors(self.metric_log.logged)

    @property
    def progress_bar_metrics(self) -> dict[str, float]:
        """Latest value of what was logged with prog_bar=True."""
        return self.metric_log.bar()

    @property
    def loggers(self) -> list[Any]:
        """The loggers that work."""
        return self.logger_group.loggers

    @property
    def logger(self) -> Any:
        """The first logger, or None."""
        return next(iter(self.loggers), None)

    @property
    def log_dir(self) -> str:
        """Folder of the first logger that has one, or default_root_dir."""
        folders = (getattr(logger, "log_dir", None) for logger in self.loggers)
        return next((str(f) for f in folders if f is not None), self.default_root_dir)

    @property
    def log_every_n_steps(self) -> int:
        """Updates between two step values in the loggers."""
        every = self.settings.log_every_n_steps
        return 50 if every is None else every
