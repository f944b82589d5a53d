"""`Trainer.verify_resume`: a run with a stop in it against one without, on the user's own task."""

from __future__ import annotations

import copy
import hashlib
import os
import random as python_random
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import Tensor, random
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.roles import ShowsProgress
from minitorch.errors import ArgumentError, TrainerError
from minitorch.trainer.blame import differences, explain, plain_state
from minitorch.trainer.seeding import isolate_rng
from minitorch.trainer.task import TaskModule

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer


@dataclass(frozen=True)
class ResumeReport:
    """What `Trainer.verify_resume` found to be equal.

    Attributes:
        steps: Training batches of the run without a stop.
        after: Batches before the stop.
        values: Tensors and numbers in the state that were compared.
        left_out: Callbacks that did not take part, because they write files.
    """

    steps: int
    after: int
    values: int
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        without = f" Without {', '.join(self.left_out)}." if self.left_out else ""
        return (
            f"resume verified: {self.steps} batches equal {self.after}, a checkpoint, and "
            f"{self.steps - self.after} more in fresh objects, bit for bit in {self.values} "
            f"values.{without}"
        )


@dataclass
class Trace:
    """What one run did.

    Attributes:
        batches: For each batch by its number: hashes of its data and of the random numbers before
            it, and its loss.
        start: State and plain attributes as training began.
        cut: The same at the stop.
        end: The state at the end.
    """

    batches: dict[int, tuple[str, str, float]] = field(default_factory=dict)
    start: tuple[Any, Any] = (None, None)
    cut: tuple[Any, Any] = (None, None)
    end: Any = None


class Probe(Callback):
    """Records a run and ends it."""

    order = Order.PERSIST

    def __init__(self, trace: Trace, until: int, cut: int, path: str | None = None) -> None:
        self.trace, self.until, self.cut, self.path = trace, until, cut, path
        self._hashes = ("", "")

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self.trace.start = trainer.dump_checkpoint(), plain_state(trainer)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        self._hashes = fingerprint(batch), fingerprint(random.state_dict())

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        done = trainer.position.batches
        loss = outputs.get("loss") if isinstance(outputs, dict) else None
        value = float(loss) if isinstance(loss, Tensor) else float("nan")
        self.trace.batches[done - 1] = (*self._hashes, value)
        if done == self.cut:
            self.trace.cut = trainer.dump_checkpoint(), plain_state(trainer)
        if done == self.until:
            self.trace.end = trainer.dump_checkpoint()
            if self.path is not None:
                trainer.save_checkpoint(self.path)
            trainer.ending = ("stopped", "verify_resume has seen enough")


def verify(
    trainer: Trainer,
    model: Any,
    data: tuple[Any, Any],
    *,
    steps: int,
    after: int | None,
    **options: Any,
) -> ResumeReport:
    """Body of `Trainer.verify_resume`, which explains the arguments."""
    window = trainer.settings.accumulate_grad_batches
    if after is None:
        after = steps // 2 + (window > 1 and steps // 2 % window == 0)
    if not 0 < after < steps:
        raise ArgumentError(
            "verify_resume: the stop must lie between two batches of the run. Got "
            f"after={after} and steps={steps}. Pass 0 < after < steps."
        )
    runs = _Runs(trainer, model, data, options)
    with tempfile.TemporaryDirectory() as folder, isolate_rng():
        start = random.state_dict(), np.random.get_state(), python_random.getstate()
        path = os.path.join(folder, "verify.ckpt")
        whole = runs.run(folder, Probe(Trace(), steps, after))
        drew = not _same_global(start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the first run has told
            _set(*start)
            runs.run(folder, Probe(Trace(), after, after, path))
            _set_otherwise()  # as a new process would have them
            rest = runs.run(folder, Probe(Trace(), steps, after), path)
    found = explain(whole, rest, after, drew)
    if found:
        raise TrainerError(
            "verify_resume: a resumed run must equal the one that never stopped, bit for bit. Got "
            f"a difference after a stop at batch {after} of {steps}: {found}"
        )
    count = sum(1 for _ in differences(whole.end, whole.end, every=True))
    report = ResumeReport(steps, after, count, tuple(runs.left_out))
    trainer.print(f"Trainer: {report}")
    return report


class _Runs:
    """Makes fresh objects for each run."""

    def __init__(self, trainer: Trainer, model: Any, data: Any, options: dict[str, Any]) -> None:
        self.trainer = trainer
        self.model = model
        self.data = data
        self.options = options
        quiet = [cb for cb in trainer.user_callbacks if isinstance(cb, ShowsProgress)]
        files = [cb for cb in trainer.user_callbacks if cb.order is Order.PERSIST]
        self.callbacks = [cb for cb in trainer.user_callbacks if cb not in [*quiet, *files]]
        self.left_out = [type(cb).__name__ for cb in files]

    def run(self, folder: str, probe: Probe, ckpt_path: str | None = None) -> Trace:
        """One fit, recorded."""
        settings = self.trainer.settings
        arguments = {f.name: getattr(settings, f.name) for f in fields(settings)}
        callbacks = [*copy.deepcopy(self.callbacks), probe]
        arguments |= {"callbacks": callbacks, "logger": False, "enable_checkpointing": None}
        arguments |= {"enable_progress_bar": False, "default_root_dir": folder, "profiler": None}
        arguments |= {"enable_model_summary": False, "fast_dev_run": False, "max_time": None}
        trainer = type(self.trainer)(**arguments)
        train, val = (_copied(part) for part in self.data)
        options = {name: _copied(value) for name, value in self.options.items()}
        trainer.fit(self._module(), train, val, ckpt_path=ckpt_path, **options)
        if probe.trace.end is None:
            raise ArgumentError(
                f"verify_resume: the run must have as many batches as it compares. Got "
                f"steps={probe.until}, and it ended after {trainer.position.batches}: "
                f"{trainer.ending[1] if trainer.ending else ''}. Pass fewer steps."
            )
        return probe.trace

    def _module(self) -> TaskModule:
        fresh = not isinstance(self.model, TaskModule) and callable(self.model)
        module = self.model() if fresh else copy.deepcopy(self.model)
        if isinstance(module, TaskModule):
            configure = module.configure_callbacks

            def without_files() -> list[Callback]:
                own = configure() or []
                own = list(own) if isinstance(own, list | tuple) else [own]
                return [cb for cb in own if cb.order is not Order.PERSIST]

            object.__setattr__(module, "configure_callbacks", without_files)
        return module


def _copied(value: Any) -> Any:
    """A copy, or the thing itself where that cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def fingerprint(value: Any) -> str:
    """A hash of all numbers and texts in nested containers."""
    digest = hashlib.sha256()
    for name, leaf in _leaves(value, ""):
        if isinstance(leaf, Tensor):
            leaf = leaf.detach().cpu().numpy()
        if isinstance(leaf, np.ndarray) and leaf.dtype != object:
            digest.update(f"{name}{leaf.dtype}{leaf.shape}".encode())
            digest.update(np.ascontiguousarray(leaf).tobytes())
        elif isinstance(leaf, str | bytes | int | float | bool | None):
            digest.update(f"{name}{leaf!r}".encode())
    return digest.hexdigest()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(child, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield from _leaves(child, f"{path}.{index}")
    else:
        yield path, value


def _set(ours: Any, numpys: Any, pythons: Any) -> None:
    random.load_state_dict(ours)
    np.random.set_state(numpys)
    python_random.setstate(pythons)


def _set_otherwise() -> None:
    random.manual_seed(0x5EED)
    np.random.seed(0x5EED)
    python_random.seed(0x5EED)


def _same_global(start: Any) -> bool:
    now = np.random.get_state()
    return fingerprint(now) == fingerprint(start[1]) and python_random.getstate() == start[2]
