"""ReplayBundle: writes all that a failing step needs to be run again."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.checkpoint_files import check_writable, free_path, release
from minitorch.callbacks.core import CORE
from minitorch.callbacks.monitor import refuse
from minitorch.callbacks.weight_averaging import CURRENT
from minitorch.errors import CheckpointError

if TYPE_CHECKING:
    from minitorch.errors import DivergenceError
    from minitorch.trainer import TaskModule, Trainer

SETTINGS = (
    "precision",
    "accumulate_grad_batches",
    "gradient_clip_val",
    "gradient_clip_algorithm",
    "checks",
)
"""Arguments of the Trainer on which a step depends."""


class ReplayBundle(Callback):
    """Writes a file from which a step that failed can be run again.

    It holds the batches of the step's accumulation window, the weights, optimizers, schedules and
    random numbers that the window began with, and the error. Run it again, in anomaly mode, with

        python -m minitorch.trainer.replay failing-step.ckpt --task package.module:Task

    Files are written when an exception leaves a training step, and when a step diverges, also if
    `Rollback` then goes on. The batches of a window are kept alive until its end.

    Args:
        dirpath: Folder; default "replay" in the logger's folder or in default_root_dir.
        max_bundles: Files per run.

    Attributes:
        paths: The files of this run.
    """

    order = Order.PREPARE

    def __init__(
        self, dirpath: str | os.PathLike[str] | None = None, *, max_bundles: int = 3
    ) -> None:
        self._given_dirpath = None if dirpath is None else os.path.abspath(os.fspath(dirpath))
        self.dirpath = self._given_dirpath
        self.max_bundles = max_bundles
        self.paths: list[str] = []
        self._batches: list[Any] = []
        self._first = -1
        self._told: BaseException | None = None

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        limit = self.max_bundles
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            refuse("ReplayBundle", "max_bundles", limit, "an integer ≥ 1")
        self.dirpath = self._given_dirpath
        if self.dirpath is None:
            self.dirpath = os.path.abspath(os.path.join(trainer.log_dir, "replay"))
        check_writable(self.dirpath, "ReplayBundle")
        self.paths, self._batches, self._told = [], [], None

    def transform_batch(
        self, trainer: Trainer, module: TaskModule, batch: Any, dataloader_idx: int
    ) -> Any:
        if trainer.training:
            if not trainer.position.window:
                self._batches, self._first = [], trainer.position.batches
            self._batches.append(batch)
        return batch

    def on_divergence(
        self, trainer: Trainer, module: TaskModule, error: DivergenceError
    ) -> Callable[[], None] | None:
        self._told = error
        self._write(trainer, error)
        return None

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        cut = trainer.stage == "fit" and trainer.batch_was_cut
        if cut and exception is not self._told and isinstance(exception, Exception):
            self._write(trainer, exception)

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._batches, self._told = [], None

    def _write(self, trainer: Trainer, error: BaseException) -> None:
        position = trainer.position
        applied = position.batches != self._first  # the weights are those after the step
        if applied or not self._batches or len(self.paths) >= self.max_bundles:
            return
        from minitorch.io import save_tree

        tree = trainer.dump_checkpoint()
        tree["state_dict"] = tree.pop(CURRENT, tree["state_dict"])  # the trained weights
        core = {cb.state_key for cb in trainer.callbacks if isinstance(cb, CORE)}
        tree["callbacks"] = {k: v for k, v in tree["callbacks"].items() if k in core}
        settings = {name: getattr(trainer.settings, name) for name in SETTINGS}
        tree["replay"] = {
            "batches": self._batches,
            "error": f"{type(error).__name__}: {error}",
            "settings": settings,
        }
        assert self.dirpath is not None
        batch = position.batch + len(self._batches) - 1
        stem = os.path.join(self.dirpath, f"failing-step-epoch={position.epoch}-batch={batch}")
        path = free_path(stem, taken=self.paths)
        try:
            os.makedirs(self.dirpath, exist_ok=True)
            save_tree(path, tree)
        except (CheckpointError, OSError) as refused:
            warnings.warn(
                f"ReplayBundle: the step that failed could not be kept: {refused}",
                UserWarning,
                stacklevel=2,
            )
            return
        finally:
            release(path)
        self.paths.append(path)
        error.add_note(f"ReplayBundle wrote {path}")
