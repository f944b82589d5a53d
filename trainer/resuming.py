"""`trainer.resume("auto", task, data)`: a fit that names first where it goes on from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.trainer.result import FitResult
    from minitorch.trainer.task import TaskModule


class Resuming:
    """The part of a `Trainer` that goes on with an earlier fit."""

    def resume(
        self: Any,
        ckpt_path: str | os.PathLike[str],
        model: TaskModule,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        **options: Any,
    ) -> FitResult:
        """Goes on exactly where a checkpoint was written: `fit(..., ckpt_path=...)`.

        Args:
            ckpt_path: A file, a folder, "last" or "auto", as for `fit`.
            model, train_dataloaders, val_dataloaders, options: As for `fit`.

        Returns:
            What `fit` returns.
        """
        result: FitResult = self.fit(
            model, train_dataloaders, val_dataloaders, ckpt_path=ckpt_path, **options
        )
        return result
