"""Several optimizers of one task: each gets its own loss, in the order that the step gives them.

`configure_optimizers` declares them by name. `training_step` either returns a dict of losses, which
are all taken with the same weights, or yields `(name, loss)` pairs: after each pair the optimizer
of that name has stepped when the function goes on, so that later losses see the new weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import isgenerator
from typing import TYPE_CHECKING, Any

from minitorch.errors import TrainerError, describe
from minitorch.trainer.outputs import detach, read_loss, skip_if_meant

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer.status import Status
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

_END = object()


@dataclass(frozen=True)
class Named:
    """A declared optimizer.

    Attributes:
        name: The key of its loss.
        optimizer: The optimizer.
        frequency: It takes part in the last of every so many accumulation windows.
    """

    name: str
    optimizer: Optimizer
    frequency: int = 1

    def parameters(self) -> list[Tensor]:
        """What its loss is differentiated by: all that is not frozen."""
        groups = self.optimizer.param_groups
        return [p for group in groups for p in group["params"] if p.requires_grad]

    def is_due(self, windows: int) -> bool:
        """Whether it takes part in a window; one whose parameters are all frozen rests.

        Args:
            windows: How many windows are over.
        """
        return (windows + 1) % self.frequency == 0 and bool(self.parameters())


def due(trainer: Status) -> list[Optimizer]:
    """The optimizers that take part in the current window."""
    windows = trainer.position.windows
    return [entry.optimizer for entry in trainer.named.values() if entry.is_due(windows)]


def learner(trainer: Trainer) -> Callable[[TaskModule, Any, int], dict[str, Any]]:
    """The function that runs a batch: forward and backward of every loss that is due."""

    def learn(module: TaskModule, batch: Any, batch_idx: int) -> dict[str, Any]:
        trainer.active = []
        with trainer.precision.forward_context():
            output = trainer.plan.step(batch, batch_idx)
        if isgenerator(output):
            pairs: Iterator[Any] = output
            return _in_turn(trainer, module, pairs)
        return _together(trainer, output)

    return learn


def _together(trainer: Trainer, output: Any) -> dict[str, Any]:
    """All losses of a dict are differentiated before any optimizer steps."""
    names = trainer.named
    if output is None:
        skip_if_meant(trainer)
    if not isinstance(output, Mapping):
        came = "None" if output is None else describe(output)
        raise TrainerError(
            f"training_step: with several optimizers it returns a dict of losses, {_keys(names)}, "
            f"or yields them as pairs of name and loss. Got {came}."
        )
    windows = trainer.position.windows
    _check_complete(trainer, {name for name in output if output[name] is not None})
    wanted = [entry for name, entry in names.items() if entry.is_due(windows)]
    outputs = {key: detach(value) for key, value in output.items() if key not in names}
    for entry in wanted:
        last = entry is wanted[-1]
        outputs[entry.name] = _learn(trainer, entry, output[entry.name], retain_graph=not last)
    trainer.position.learned += 1
    return outputs


def _in_turn(trainer: Trainer, module: TaskModule, pairs: Iterator[Any]) -> dict[str, Any]:
    """Each optimizer steps before the next loss is computed, unless the window has more to add."""
    at_once = trainer.accumulation.at_once
    windows, outputs, came = trainer.position.windows, {}, set()
    while True:
        with trainer.precision.forward_context():
            item = next(pairs, _END)
        if item is _END:
            break
        entry, value = _pair(trainer, item)
        if entry.name in came:
            raise TrainerError(
                f"training_step: each optimizer gets one loss in a batch. Got a second one for "
                f"{entry.name!r}. Add them, or set the frequency of the others."
            )
        came.add(entry.name)
        if not entry.is_due(windows):
            continue
        outputs[entry.name] = _learn(trainer, entry, value)
        if at_once:
            trainer.apply_update(module, outputs[entry.name])
            trainer.current_batch.differentiated = False  # what follows may be left out alone
    _check_complete(trainer, came)
    if not at_once:
        trainer.position.learned += 1
    return outputs


def _learn(trainer: Trainer, entry: Named, value: Any, **options: Any) -> Any:
    loss, outputs, trainer.current_batch.count = read_loss(value, trainer)
    trainer.active = [entry.optimizer]
    trainer.differentiate(loss, inputs=entry.parameters(), **options)
    return outputs if len(outputs) > 1 else outputs["loss"]


def _pair(trainer: Trainer, item: Any) -> tuple[Named, Any]:
    if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], str):
        raise TrainerError(
            f"training_step: it yields pairs of name and loss, {_keys(trainer.named)}. "
            f'Got {describe(item)}. Write `yield "{next(iter(trainer.named))}", loss`.'
        )
    name, value = item
    if name not in trainer.named:
        raise TrainerError(
            f"training_step: a loss is for a declared optimizer, {_keys(trainer.named)}. "
            f"Got {name!r}. Correct the name, or declare it in configure_optimizers."
        )
    return trainer.named[name], value


def _check_complete(trainer: Trainer, came: set[str]) -> None:
    windows = trainer.position.windows
    missing = [n for n, e in trainer.named.items() if e.is_due(windows) and n not in came]
    if missing:
        raise TrainerError(
            "training_step: every optimizer that is due gets a loss. Got "
            f"{', '.join(map(repr, sorted(came))) or 'none'}; missing are {_keys(missing)}. Add "
            'them, set a "frequency" in configure_optimizers and ask self.is_due(name), or raise '
            "CancelStep(reason) to leave the batch out."
        )


def _keys(names: Any) -> str:
    return " and ".join(map(repr, names))
