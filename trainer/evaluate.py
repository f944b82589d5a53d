"""Validation, testing and prediction: one loop, in eval mode, without side effects on training."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from minitorch import inference_mode, no_grad, random
from minitorch.callbacks.cancel import CancelEpoch
from minitorch.callbacks.core.metric import EVAL_EPOCH, EVAL_STEP
from minitorch.callbacks.core.nested import map_leaves
from minitorch.callbacks.core.pulling import ARGUMENT
from minitorch.errors import DataError, TrainerError
from minitorch.nn.modes import evaluating
from minitorch.trainer import finding
from minitorch.trainer.interrupt import Interrupt
from minitorch.trainer.loaders import END, Batches
from minitorch.trainer.outputs import detach, read_evaluation
from minitorch.trainer.run import Run
from minitorch.trainer.saving import Saving
from minitorch.trainer.sources import EvalSources
from minitorch.trainer.task import TaskModule, overrides, positional_count

if TYPE_CHECKING:
    from minitorch.trainer.events import Events
    from minitorch.trainer.trainer import Trainer


class Loop(NamedTuple):
    """Names of one kind of evaluation."""

    event: str
    step: str
    loader: str
    limit: str


LOOPS = {
    "validate": Loop("validation", "validation_step", "val_dataloader", "limit_val_batches"),
    "test": Loop("test", "test_step", "test_dataloader", "limit_test_batches"),
    "predict": Loop("predict", "predict_step", "predict_dataloader", "limit_predict_batches"),
}


def inside_fit(trainer: Trainer, module: TaskModule) -> None:
    """The validation of a fit."""
    with no_grad():
        _loop(trainer, module, "validate", trainer.val_data, phase_name="validation")
    trainer.phase = "train"


def sanity_check(trainer: Trainer, module: TaskModule) -> None:
    """A few validation batches before training; metrics, logs and random streams stay put."""
    if not trainer.val_data or trainer.fast_dev_run or not any(trainer.num_sanity_val_batches):
        return
    trainer.phase = "sanity"
    trainer.fire(trainer.events.on_sanity_check_start)
    with no_grad():
        _loop(trainer, module, "validate", trainer.val_data, phase_name="sanity")
    trainer.metric_log.drop("sanity")
    trainer.fire(trainer.events.on_sanity_check_end)


def run(
    trainer: Trainer,
    stage: str,
    module: Any,
    data: Any,
    ckpt_path: Any,
    batch_size: int,
    verbose: bool,
) -> list[dict[str, float]]:
    """Body of `Trainer.validate` and `Trainer.test`."""
    loop = LOOPS[stage]
    _run(trainer, stage, module, data, ckpt_path, batch_size)
    values = trainer.metric_log.epoch_results(loop.event)
    count = len(trainer.eval_data)
    results = [_of_loader(values, index, count) for index in range(count)]
    if verbose:
        trainer.print(table(stage, results))
    return results


def run_predict(
    trainer: Trainer, module: Any, data: Any, ckpt_path: Any, batch_size: int, keep: bool
) -> list[Any] | None:
    """Body of `Trainer.predict`."""
    outputs = _run(trainer, "predict", module, data, ckpt_path, batch_size, keep=keep)
    if not keep:
        return None
    return outputs[0] if len(outputs) == 1 else outputs


def _run(
    trainer: Trainer,
    stage: str,
    given: Any,
    data: Any,
    ckpt_path: Any,
    batch_size: int,
    *,
    keep: bool = False,
) -> list[list[Any]]:
    module, ckpt_path = _choose(trainer, stage, given, ckpt_path)
    loop, ckpt_path = LOOPS[stage], finding.named(trainer, ckpt_path)
    trainer.interrupt = Interrupt()
    with Run(trainer, module, stage) as run:
        data = run.attach(data)
        if not overrides(module, loop.step) and stage != "predict":
            getattr(module, loop.step)(None, 0)
        trainer.sources = EvalSources(trainer, loop.loader, data, loop.limit, batch_size)
        trainer.sources.take()
        if ckpt_path is not None:
            run.read(ckpt_path)
        run.place()
        trainer.rewire()
        with inference_mode() if trainer.settings.inference_mode else no_grad():
            return _loop(
                trainer, module, stage, trainer.eval_data, phase_name=loop.event, keep=keep
            )


def _choose(trainer: Trainer, stage: str, given: Any, ckpt_path: Any) -> tuple[TaskModule, Any]:
    if isinstance(given, TaskModule) or (given is not None and not hasattr(given, "__fspath__")):
        if not isinstance(given, str):
            return given, ckpt_path
    if given is not None:
        ckpt_path = given
    if trainer.attached is None:
        raise TrainerError(
            f"Trainer.{stage}: a checkpoint's weights go into the module of an earlier run, and "
            f"there was none. Pass the module: {stage}(module, dataloaders, ckpt_path=...)."
        )
    if ckpt_path is None:
        raise TrainerError(
            f"Trainer.{stage}: say which weights are meant. Got neither a module nor a checkpoint. "
            f"Pass result.best, result.last, or the module for the weights it has now."
        )
    return trainer.attached, ckpt_path


@contextlib.contextmanager
def _own_randomness(trainer: Trainer) -> Iterator[None]:
    """Draws by (root seed, global_step); those of training go on as if nothing had happened."""
    with random.fork_rng():
        trainer.training_randomness = random.state_dict()
        own = random.numpy_at("evaluation", trainer.global_step)
        random.manual_seed(int(own.integers(2**63)))
        try:
            yield
        finally:
            trainer.training_randomness = None


def _loop(
    trainer: Trainer,
    module: TaskModule,
    stage: str,
    data: list[Batches],
    *,
    phase_name: str,
    keep: bool = False,
) -> list[list[Any]]:
    loop, log, on = LOOPS[stage], trainer.metric_log, trainer.events
    is_predict = stage == "predict"
    trainer.phase = phase_name
    outputs: list[list[Any]] = []
    with evaluating(module), _own_randomness(trainer):
        log.enter(phase_name, None if is_predict else EVAL_EPOCH)
        log.begin_epoch()
        trainer.saving = Saving.LATER
        in_fit = phase_name == "validation" and trainer.stage == "fit"
        try:
            _call(on, f"on_{loop.event}_start")
            _call(on, f"on_{loop.event}_epoch_start")
            log.scope = None if is_predict else EVAL_STEP
            for index, batches in enumerate(data):
                count = batches.count
                if phase_name == "sanity":
                    count = trainer.num_sanity_val_batches[index]
                log.suffix = f"/dataloader_idx_{index}" if len(data) > 1 else ""
                outputs.append(_one_loader(trainer, module, loop, batches, index, count, keep=keep))
                log.end_loader()
            complete = not trainer.interrupt.requested
        except CancelEpoch as cancel:
            trainer.progress.count_skipped(cancel.reason)
            trainer.position.validated = trainer.position.validated or in_fit
            complete = False
        log.suffix = ""
        if not complete:
            log.begin_epoch()
            log.scope = None
            trainer.fire(getattr(on, f"on_{loop.event}_end"))
            return outputs
        log.scope = None if is_predict else EVAL_EPOCH
        _call(on, f"on_{loop.event}_epoch_end")
        if in_fit:
            trainer.position.validated = True
            trainer.validations.ran = True
        log.scope = None
        trainer.fire(getattr(on, f"on_{loop.event}_end"))
    return outputs


def _call(on: Events, event: str) -> None:
    for call in getattr(on, event):
        call()


def _one_loader(
    trainer: Trainer,
    module: TaskModule,
    loop: Loop,
    data: Batches,
    index: int,
    count: float,
    *,
    keep: bool,
) -> list[Any]:
    on, kept = trainer.events, []
    starts = getattr(on, f"on_{loop.event}_batch_start")
    ends = getattr(on, f"on_{loop.event}_batch_end")
    step = getattr(module, loop.step)
    arguments = positional_count(step, 3)
    if ARGUMENT in inspect.signature(step).parameters:
        raise TrainerError(
            f"{loop.step}: {ARGUMENT} is for training_step alone; an evaluation hands over one "
            f"batch at a time. Got it in {type(module).__name__}.{loop.step}. Define "
            f"`def {loop.step}(self, batch, batch_idx):`."
        )
    if len(trainer.eval_data if trainer.stage != "fit" else trainer.val_data) > 1 and arguments < 3:
        raise TrainerError(
            f"{loop.step}: with several loaders it is told which one a batch comes from. "
            f"It takes no dataloader_idx. Define `def {loop.step}(self, batch, batch_idx, "
            "dataloader_idx=0):`."
        )
    batches = data.start(trainer.current_epoch)
    batch_idx = 0
    while batch_idx < count and not trainer.interrupt.requested:
        batch = next(batches, END)
        if batch is END:
            break
        for call in on.transform_batch:
            batch = call(batch, index)
        trainer.current_batch.data, trainer.current_batch.size = batch, None
        for call in starts:
            call(batch, batch_idx, index)
        with trainer.precision.forward_context():
            output = step(*(batch, batch_idx, index)[:arguments])
        output = _read(loop, output)
        for call in ends:
            call(output, batch, batch_idx, index)
        if keep:
            kept.append(map_leaves(output, _to_cpu))
        batch_idx += 1
    if batch_idx == 0 and count and not trainer.interrupt.requested:
        raise DataError(f"{data.name}: there must be at least one batch. Got none.")
    return kept


def _read(loop: Loop, output: Any) -> Any:
    if loop.event != "predict":
        return read_evaluation(loop.step, output)
    if output is None:
        raise TrainerError(
            "predict_step: it must return the prediction for the batch. Got None. "
            "Add the return statement."
        )
    return detach(output)


def _to_cpu(leaf: Any) -> Any:
    return leaf.cpu() if hasattr(leaf, "cpu") else leaf


def _of_loader(values: dict[str, float], index: int, count: int) -> dict[str, float]:
    if count == 1:
        return values
    marks = [f"/dataloader_idx_{other}" for other in range(count) if other != index]
    return {name: v for name, v in values.items() if not name.endswith(tuple(marks))}


def table(stage: str, results: list[dict[str, float]]) -> str:
    """The metrics of an evaluation as text."""
    lines = []
    for index, result in enumerate(results):
        where = f" (loader {index})" if len(results) > 1 else ""
        width = max([len(name) for name in result], default=6)
        lines.append(f"{stage}{where}")
        lines += [f"  {name:<{width}}  {value:.6g}" for name, value in result.items()]
        if not result:
            lines.append("  nothing was logged")
    return "\n".join(lines)
