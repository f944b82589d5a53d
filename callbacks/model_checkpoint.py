"""ModelCheckpoint: keeps the best, the last and regular checkpoints of a run."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from minitorch.callbacks import reservations
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.checkpoint_arguments import TRIGGERS, check
from minitorch.callbacks.checkpoint_files import check_writable, release
from minitorch.callbacks.checkpoint_name import CheckpointName
from minitorch.callbacks.kept_files import KeptFiles
from minitorch.callbacks.monitor import Mode, Watched, direction, key
from minitorch.callbacks.rhythm import Rhythm
from minitorch.errors import CheckpointError

if TYPE_CHECKING:
    from minitorch.callbacks.core.metric import Final
    from minitorch.trainer import TaskModule, Trainer


class ModelCheckpoint(Callback):
    """Writes checkpoints from which `fit(ckpt_path=...)` goes on exactly.

    *When.* With a monitor: whenever the metric has a new value for a whole epoch. Without: at the
    end of each epoch. `every_n_epochs` thins this out; `every`, `every_n_train_steps`
    and `train_time_interval` replace it. A metric always belongs to the weights in the file: a
    checkpoint that is due waits until the monitor, and metrics in `filename`, have a value for the
    weights of this moment.

    *Which stay.* The best `save_top_k` by the monitor, or the newest without one. A value that is
    not finite is never ranked; among equal ones the older stays. A file is removed only after the
    one that takes its place is complete.

    *Last.* When training ends, also by Ctrl-C or SIGTERM, the final state is kept in "last.ckpt"
    unless a file holds it already. `save_last=True` or "link" brings it up to date at every save,
    as a second name of the newest file where the file system knows them; `False` leaves it.

    *What the file system refuses* (a full disk) is a warning, older files stay, and training goes
    on; if the final state cannot be saved either, `fit` raises.

    Args:
        dirpath: Folder; default "checkpoints" in the logger's folder or in default_root_dir.
        filename: Template of the names, as in "{epoch}-{val/loss:.3f}"; default "{epoch}-{step}".
        monitor: Name of a logged metric.
        mode: "min" if lower is better, "max" if higher is; needed with a monitor.
        verbose: Print what is saved.
        save_last: See above.
        save_top_k: Number of files that stay; -1 keeps all, 0 none.
        save_on_exception: Save when an exception ends the run, as "exception-epoch=3-step=70.ckpt".
        save_weights_only: Leave out what resuming needs.
        auto_insert_metric_name: Write "epoch=3" instead of "3" into names.
        every_n_train_steps: Save after every so many updates.
        train_time_interval: Save when so much time has passed.
        every_n_epochs: Save in every n-th epoch; 0 for never.
        save_on_train_epoch_end: True saves at the end of training epochs only, False after
            validations only.
        every: A trigger that says when to save, such as `Steps(100) | Minutes(5)`.
        enable_version_counter: Append "-v1" rather than replace a file of another run, also of one
            that writes into the folder at the same time.
        save_async: Write on a thread; training waits for a copy of the state only. What went wrong
            is told at the next save, at the end of the run at the latest.

    Attributes:
        best_model_path: File with the best score, "" without one.
        best_model_score: Its score, or None.
        best_k_models: Scores by file, best first.
        last_model_path: File with the newest state, "" before it is written.
        failures: One sentence for each file that could not be written.

    Raises:
        ArgumentError: There is a monitor and no mode.
    """

    order = Order.PERSIST

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        *,
        monitor: str | None = None,
        mode: str | None = None,
        verbose: bool = False,
        save_last: bool | Literal["link"] | None = None,
        save_top_k: int = 1,
        save_on_exception: bool = False,
        save_weights_only: bool = False,
        auto_insert_metric_name: bool = True,
        every_n_train_steps: int | None = None,
        train_time_interval: timedelta | None = None,
        every_n_epochs: int | None = None,
        save_on_train_epoch_end: bool | None = None,
        enable_version_counter: bool = True,
        every: Any = None,
        save_async: bool = False,
    ) -> None:
        self.dirpath = None if dirpath is None else os.path.abspath(os.fspath(dirpath))
        self.filename = filename
        self.monitor = monitor
        self.mode: Mode | None = None
        if monitor is not None:
            self.mode = direction("ModelCheckpoint", monitor, mode)
        self.verbose = verbose
        self.save_last = save_last
        self.save_top_k = save_top_k
        self.save_on_exception = save_on_exception
        self.save_weights_only = save_weights_only
        self.auto_insert_metric_name = auto_insert_metric_name
        self.every_n_train_steps = every_n_train_steps
        self.train_time_interval = train_time_interval
        self.every_n_epochs = every_n_epochs
        self.save_on_train_epoch_end = save_on_train_epoch_end
        self.enable_version_counter = enable_version_counter
        self.every = every
        self._rhythm = Rhythm("ModelCheckpoint: every", every)
        self.save_async = save_async
        self._given_dirpath = self.dirpath
        self._reset()

    def _reset(self) -> None:
        self._kept = KeptFiles(
            self.dirpath,
            monitor=self.monitor,
            mode=self.mode,
            most=self.save_top_k,
            renews_last=bool(self.save_last),
            tracks_last=self.save_last is not False,
            weights_only=self.save_weights_only,
            versions=self.enable_version_counter,
            asynchronous=self.save_async,
            verbose=self.verbose,
        )
        self.failures = self._kept.writer.failures
        self._seen = -1
        self._due = self._was_due = False
        self._step = 0
        self._began = time.monotonic()
        self._training = False
        self._first_batch = True
        self._warned = False

    @property
    def best_model_path(self) -> str:
        """File with the best score; "" if there is none, or no monitor."""
        best = self._kept.ranking.best
        return "" if best is None or self.monitor is None else best[0]

    @property
    def best_model_score(self) -> float | None:
        """Best score so far; None if there is none, or no monitor."""
        best = self._kept.ranking.best
        return None if best is None or self.monitor is None else best[1]

    @property
    def best_k_models(self) -> dict[str, float]:
        """Scores by file, best first; empty without a monitor."""
        return {} if self.monitor is None else dict(self._kept.ranking.entries)

    @property
    def last_model_path(self) -> str:
        """File with the newest state; "" before it is written."""
        return self._kept.last_path

    def to_yaml(self, filepath: str | os.PathLike[str] | None = None) -> None:
        """Writes `best_k_models` as YAML; default "best_k_models.yaml" in the folder."""
        path = os.path.join(self._folder, "best_k_models.yaml") if filepath is None else filepath
        lines = [f"{json.dumps(file)}: {score!r}" for file, score in self.best_k_models.items()]
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines or ["{}"]) + "\n")

    def search_folders(self, trainer: Trainer) -> list[str]:
        """Where `fit(ckpt_path="auto")` looks: also in folders of the logger's earlier versions."""
        if self._given_dirpath is not None or not any(
            getattr(logger, "log_dir", None) is not None for logger in trainer.loggers
        ):
            return [self._folder]
        root, leaf = os.path.split(os.path.dirname(self._folder))
        versions = os.listdir(root) if os.path.isdir(root) else [leaf]
        return [os.path.join(root, version, "checkpoints") for version in sorted(versions)]

    # Start of a run.

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        from minitorch.io.atomic import clear_folder

        check(self)
        default = self.filename or "{epoch}-{step}"
        self._name = CheckpointName(default, insert_names=self.auto_insert_metric_name)
        self.dirpath = self._given_dirpath
        if self.dirpath is None:
            self.dirpath = os.path.abspath(os.path.join(trainer.log_dir, "checkpoints"))
        self._rhythm.reset()
        check_writable(self.dirpath, "ModelCheckpoint")
        clear_folder(self.dirpath)
        reservations.clear(self.dirpath)
        self._reset()
        who = "ModelCheckpoint"
        self._watched = [
            Watched(f"{who}: {{{name}}} in filename", name) for name in self._name.metrics
        ]
        if self.monitor is not None:
            self._watched.insert(0, Watched(f"{who}: monitor={self.monitor!r}", self.monitor))

    @property
    def _by_batches(self) -> bool:
        given = self.every_n_train_steps, self.train_time_interval, self.every
        return any(value is not None for value in given)

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_end":
            return self._by_batches or self._first_batch
        return super().listens(event)

    # Events.

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._training = True
        self._rhythm.start(trainer)
        self._began = time.monotonic()
        self._step = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._first_batch:
            self._first_batch = False
            self._look(trainer)
            if not self._by_batches:
                trainer.rewire()
                return
        by_trigger = self.every is not None and self._rhythm.came(trainer)
        if by_trigger or self._comes_due(trainer.global_step):
            self._due = True
            self._save_if_ready(trainer, at_least_last=True)

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        if trainer.stage != "fit":
            return
        self._look(trainer)
        if trainer.sanity_checking or self.save_on_train_epoch_end is True:
            return
        waits_for_epoch = not self._watched and self.save_on_train_epoch_end is None
        if not self._by_batches and not waits_for_epoch:
            self._due = self._due or self._epoch_counts(trainer)
        if self._due:
            self._save_if_ready(trainer, at_least_last=self.save_on_train_epoch_end is False)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._look(trainer)
        came = self._rhythm.came(trainer, epoch_over=True)
        if self.save_on_train_epoch_end is False:
            return
        self._due = self._due or came
        if not self._by_batches:
            self._due = self._due or self._epoch_counts(trainer)
        if self._due:
            self._save_if_ready(trainer, at_least_last=True)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._training = False
        if self.save_last is not False:
            holder = self._holder(trainer)
            if holder is None:
                self._kept.save_last(trainer)
            else:
                self._kept.note_last(trainer, holder.last_model_path)
        self._kept.writer.collect(trainer)
        if self._kept.writer.failed:
            raise CheckpointError(
                f"ModelCheckpoint: the final state could not be saved. {self.failures[-1]} The "
                "module holds it: free space and call trainer.save_checkpoint(path)."
            )
        ranks = self.monitor is not None and self.save_top_k
        whole = trainer.ending is None or trainer.ending[0] == "completed"
        if ranks and (whole or self._was_due) and not self._kept.ranking.entries:
            self._warn_once(
                "had no finite value for whole epochs when a checkpoint was due, so that none is "
                "the best one. Check when it is logged."
            )

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._kept.writer.collect(trainer)

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        self._kept.writer.collect(trainer)
        if not self.save_on_exception or not self._training:
            return
        self._training = False
        name = f"exception-epoch={trainer.current_epoch}-step={trainer.global_step}"
        path = self._kept.free(name)
        try:
            trainer.save_checkpoint(path, weights_only=self.save_weights_only)
        finally:
            release(path)
        exception.add_note(f"ModelCheckpoint saved {path}")

    def _look(self, trainer: Trainer) -> None:
        for watched in self._watched:
            watched.look(trainer)

    def _comes_due(self, step: int) -> bool:
        if self.train_time_interval is not None:
            now = time.monotonic()
            if now - self._began < self.train_time_interval.total_seconds():
                return False
            self._began = now
            return True
        before, self._step = self._step, step
        every = self.every_n_train_steps
        return every is not None and step != before and step % every == 0

    def _epoch_counts(self, trainer: Trainer) -> bool:
        every = 1 if self.every_n_epochs is None else self.every_n_epochs
        return every > 0 and (trainer.current_epoch + 1) % every == 0

    # Saving.

    def _finals(self, trainer: Trainer) -> dict[str, Final] | None:
        """What a checkpoint needs to know, or None while something is missing or outdated."""
        finals: dict[str, Final] = {}
        for watched in self._watched:
            final = watched.read(trainer)
            if final is None or final.step != trainer.global_step:
                return None
            finals[watched.name] = final
        return finals

    def _save_if_ready(self, trainer: Trainer, *, at_least_last: bool) -> None:
        self._was_due = True
        finals = self._finals(trainer)
        if finals is not None:
            self._due = False
            newest = max((final.stamp for final in finals.values()), default=self._seen + 1)
            if newest <= self._seen:
                return
            self._seen = newest
            values = {name: final.value for name, final in finals.items()}
            counters = {"epoch": trainer.current_epoch, "step": trainer.global_step}
            self._save(trainer, {**values, **counters})
        if self.save_last and (finals is not None or at_least_last):
            if not self._kept.holds(trainer):
                self._kept.save_last(trainer)

    def _save(self, trainer: Trainer, values: dict[str, float]) -> None:
        score = None if self.monitor is None else values[self.monitor]
        if score is not None and not math.isfinite(score):
            self._warn_once(
                f"is {score} after update {trainer.global_step}. A value that is not finite is "
                "never ranked, so that this checkpoint cannot become the best one."
            )
        self._kept.save(trainer, self._name.render(values), score)

    def _holder(self, trainer: Trainer) -> ModelCheckpoint | None:
        """Who has the state of this moment in its newest file, where that is good enough."""
        keepers = [cb for cb in trainer.checkpoint_callbacks if isinstance(cb, ModelCheckpoint)]
        for keeper in keepers:
            keeper._kept.writer.collect(trainer)
        holders = [keeper for keeper in keepers if keeper._kept.holds(trainer)]
        if self in holders:
            return self
        return holders[0] if holders and not self.save_last else None

    @property
    def _folder(self) -> str:
        assert self.dirpath is not None
        return self.dirpath

    def _warn_once(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            text = f"ModelCheckpoint: monitor={self.monitor!r} {what}"
            warnings.warn(text, UserWarning, stacklevel=2)

    # State.

    def key_arguments(self) -> dict[str, Any]:
        """What tells two of them apart in a checkpoint."""
        names = ("monitor", "mode", *TRIGGERS)
        values = {name: getattr(self, name) for name in names}
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def state_key(self) -> str:
        return key(self, **self.key_arguments())

    def state_dict(self) -> dict[str, Any]:
        return {
            **self._kept.state_dict(),
            "seen": self._seen,
            "due": self._due,
            "every": self._rhythm.state_dict(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._kept.load_state_dict(state_dict)
        self._seen = state_dict["seen"]
        self._due = state_dict["due"]
        self._rhythm.load_state_dict(state_dict.get("every", {}))
