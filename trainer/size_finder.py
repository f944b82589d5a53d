"""The batch size finder: trial runs with larger and larger batches, until memory ends."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.errors import ArgumentError
from minitorch.trainer.trial import pass_on_interrupt, trial, untouched

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

STAGES = ("fit", "validate", "test", "predict")


def search(
    fits: Callable[[int], tuple[bool, float]],
    mode: str,
    size: int,
    trials: int,
    margin: float,
    most: int,
) -> int:
    """The largest size that fits, within so many trials."""
    good, bad = 0, math.inf
    for _ in range(trials):
        size = int(min(size, most))
        ok, samples = fits(size)
        if ok:
            good, most = max(good, size), int(min(most, samples))
            if good >= most:
                return most
        else:
            bad = min(bad, size)
        if bad <= 1:
            raise MemoryError("scale_batch_size: not even a batch of one sample fits.")
        if good and math.isfinite(bad) and (mode == "power" or bad - good <= 1):
            break
        if math.isinf(bad):
            size = 2 * good
        else:
            size = int((good + bad) // 2) if mode == "binsearch" else int(bad // 2)
    if not good:
        raise MemoryError(f"scale_batch_size: nothing fitted within {trials} trials.")
    if mode == "binsearch" and math.isfinite(bad):
        return max(1, int(good * (1 - margin)))
    return good


def fits(
    trainer: Trainer, model: TaskModule, data: Any, *, method: str, steps: int, size: int
) -> tuple[bool, float]:
    """Runs a few batches of a size; nothing of it stays.

    Args:
        trainer: The settings of the run.
        model: The task, which has the size as an attribute.
        data: Its DataModule, or None.
        method: "fit", "validate", "test" or "predict".
        steps: Batches.
        size: Samples of a batch.

    Returns:
        Whether they fit, and the samples that there are (inf if unknown).
    """
    with untouched(model, data):
        if method == "fit":
            changed: dict[str, Any] = {"max_steps": steps}
        else:
            kind = {"validate": "val"}.get(method, method)
            changed = {f"limit_{kind}_batches": steps}
        run = trial(trainer, model, **changed)
        try:
            if method == "fit":
                pass_on_interrupt(run.fit(model, data))
            elif method == "predict":
                run.predict(model, data, return_predictions=False)
            else:
                getattr(run, method)(model, data, verbose=False)
        except MemoryError:  # CuPy's is one, too
            gc.collect()
            return False, math.inf
        loader = run.train_data.loader if method == "fit" else run.eval_data[0].loader
        used = getattr(loader, "batch_size", size)
        if used != size:
            raise ArgumentError(
                f"scale_batch_size: the loader must use the attribute. Got batches of {used} "
                f"where it was set to {size}. Build the loader in its hook, from the attribute."
            )
        samples: Any = getattr(loader, "dataset", None)
        return True, len(samples) if hasattr(samples, "__len__") else math.inf


def check(
    method: str, mode: str, steps: int, first: int, trials: int, margin: float, most: int
) -> None:
    """Refuses arguments of `scale_batch_size` that are outside of their rules."""
    where = "scale_batch_size"
    if method not in STAGES:
        raise ArgumentError(f"{where}: method must be one of {', '.join(STAGES)}. Got {method!r}.")
    if mode not in ("power", "binsearch"):
        raise ArgumentError(f'{where}: mode must be "power" or "binsearch". Got {mode!r}.')
    counts = {"steps_per_trial": steps, "init_val": first, "max_trials": trials, "max_val": most}
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise ArgumentError(f"{where}: {name} must be an integer ≥ 1. Got {value!r}.")
    if not 0 <= margin < 1:
        raise ArgumentError(f"{where}: margin must be a share in [0, 1). Got {margin!r}.")
