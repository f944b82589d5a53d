"""Runs a replay bundle: the step that failed, again, in anomaly mode."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from minitorch.callbacks.callback import Callback
from minitorch.errors import ArgumentError, CheckpointError
from minitorch.trainer import checkpoint
from minitorch.trainer.task import TaskModule
from minitorch.trainer.trainer import Trainer


def rerun(path: str | os.PathLike[str], task: Any, **options: Any) -> Exception | None:
    """Runs the step of a bundle again, with the same numbers, and prints what happens.

    Args:
        path: A file that `ReplayBundle` wrote.
        task: The TaskModule, its class (made with the hyper-parameters in the file), or a
            function that makes it.
        options: Further arguments of the Trainer.

    Returns:
        The error that the step raised, or None if it ran to its end.

    Raises:
        CheckpointError: The file is no bundle.
    """
    tree = checkpoint.read(path)
    bundle = tree.get("replay")
    if bundle is None:
        raise CheckpointError(
            f"replay: a file of ReplayBundle is needed. Got {os.fspath(path)} without a step in "
            "it. Pass ReplayBundle() in callbacks of the run that fails."
        )
    epoch, done = (tree["loops"]["position"][name] for name in ("epoch", "batch"))
    print(f"recorded: {bundle['error']}")
    trainer = Trainer(
        **{
            "max_epochs": epoch + 1,
            "callbacks": _Report(),
            "detect_anomaly": True,
            "enable_progress_bar": False,
            "num_sanity_val_steps": 0,
            "limit_val_batches": 0,
            **bundle["settings"],
            **options,
        }
    )
    module = _make(task, path)
    try:
        trainer.fit(module, _Again(bundle["batches"], done), ckpt_path=path, hparams="old")
    except Exception as error:
        print("again:")
        traceback.print_exception(error, file=sys.stdout)
        return error
    print("again: the step ran to its end without an error.")
    return None


def _make(task: Any, path: str | os.PathLike[str]) -> TaskModule:
    if isinstance(task, type) and issubclass(task, TaskModule):
        return task.load_from_checkpoint(path, strict=False)
    module = task if isinstance(task, TaskModule) else task()
    if not isinstance(module, TaskModule):
        raise ArgumentError(
            "replay: task must be a TaskModule, its class, or a function that makes one. Got "
            f"{type(module).__name__}."
        )
    return module


class _Again:
    """The batches of a window, behind those that were done before in the epoch."""

    def __init__(self, batches: list[Any], done: int) -> None:
        self._batches = batches
        self._done = done

    def __iter__(self) -> Iterator[Any]:
        yield from [None] * self._done
        yield from self._batches


class _Report(Callback):
    """Prints the loss and the norm of the gradients of each batch."""

    def on_before_backward(self, trainer: Trainer, module: TaskModule, loss: Any) -> None:
        print(f"batch {trainer.position.batch}: loss {float(loss.detach()):.9g}")

    def on_after_backward(self, trainer: Trainer, module: TaskModule) -> None:
        norms = {
            name: float((p.grad.detach().float() ** 2).sum() ** 0.5)
            for name, p in module.named_parameters()
            if p.grad is not None
        }
        largest = sorted(norms, key=lambda name: -norms[name])[:5]
        shown = ", ".join(f"{name} {norms[name]:.4g}" for name in largest)
        print(f"batch {trainer.position.batch}: largest gradient norms: {shown}")


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m minitorch.trainer.replay`: 1 if the step fails again, else 0."""
    parser = argparse.ArgumentParser(prog="python -m minitorch.trainer.replay", description=__doc__)
    parser.add_argument("bundle", help="file that ReplayBundle wrote")
    parser.add_argument(
        "--task",
        required=True,
        metavar="PACKAGE.MODULE:NAME",
        help="the TaskModule's class, or a function that makes the task",
    )
    given = parser.parse_args(arguments)
    module, _, name = given.task.partition(":")
    if not name:
        parser.error(f"--task must be package.module:name. Got {given.task!r}.")
    sys.path.insert(0, os.getcwd())
    task = getattr(importlib.import_module(module), name)
    return int(rerun(given.bundle, task) is not None)


if __name__ == "__main__":
    sys.exit(main())
