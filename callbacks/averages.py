"""A second set of values for the state of a module: averages, exchanged with what is trained."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from inspect import isgenerator
from typing import TYPE_CHECKING, Any

from minitorch import Parameter, Tensor, bfloat16, float16, float32, no_grad, random, tensor
from minitorch.nn import tree
from minitorch.nn.modes import evaluating
from minitorch.nn.normalization import _BatchNorm
from minitorch.optim.swa_utils import fresh_statistics, update_averages

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

POLICIES = ("average", "copy", "estimate")


class Averages:
    """Averages of the parameters, and buffers by a policy.

    Args:
        device: Where the averages live; None for where the module is.
        policy: "average" averages floating buffers too, "copy" takes those of the module, and
            "estimate" as well, but leaves running statistics to `estimate`.
        avg_fn, multi_avg_fn: As in `AveragedModel`.

    Attributes:
        values: The averages by name; those of half precision in float32.
        trained: What the module trains, while it holds the averages; else empty.
        count: How many states are in the averages.
    """

    def __init__(
        self,
        *,
        device: Any = None,
        policy: str = "average",
        avg_fn: Any = None,
        multi_avg_fn: Any = None,
    ) -> None:
        self._device = device
        self._policy = policy
        self._functions = avg_fn, multi_avg_fn
        self._places: list[tuple[str, str, Any, Any]] = []
        self.values: dict[str, Tensor] = {}
        self.trained: dict[str, Tensor] = {}
        self.count = 0

    @property
    def inside(self) -> bool:
        """Whether the module holds the averages."""
        return bool(self.trained)

    def find(self, module: TaskModule) -> None:
        """Looks where the tensors of the module's state are; again after layers were replaced."""
        places: dict[int, tuple[str, str, Any, Any]] = {}
        for path, part, held in tree.walk(module, "", True, set()):
            saved = [(n, t) for n, t in held.buffers if tree.is_saved(part, n)]
            for name, tensor_ in (*held.parameters, *saved):
                holder, key = tree.locate(part, name)
                attributes = vars(holder) if isinstance(holder, tree.TreeNode) else holder
                kind = "statistic" if isinstance(part, _BatchNorm) else "buffer"
                kind = "parameter" if isinstance(tensor_, Parameter) else kind
                full = tree.join(path, name)
                places.setdefault(id(tensor_), (full, kind, attributes, key))
        self._places = list(places.values())

    def update(self, module: TaskModule) -> None:
        """Takes the present weights into the averages."""
        if not self._places:
            self.find(module)
        pairs: list[tuple[Any, Any]] = []
        copied: list[tuple[Any, Any]] = []
        values = self.values
        for name, kind, holder, key in self._places:
            held = holder[key].detach()
            average = values.get(name)
            if average is None:
                average = values[name] = self._copy(held)
            elif kind == "statistic" and self._policy == "estimate":
                continue
            buffers = self._policy == "average" and held.dtype.is_floating_point
            averaged = kind == "parameter" or buffers
            if self._device is not None or held.dtype is not average.dtype:
                held = held.to(average.device, average.dtype)
            (pairs if averaged else copied).append((average, held))
        with no_grad():
            update_averages(pairs, tensor(self.count), self.count, *self._functions)
            for average, held in copied:
                average.copy_(held)
        self.count += 1

    def _copy(self, held: Tensor) -> Tensor:
        dtype = float32 if held.dtype in (float16, bfloat16) else held.dtype
        return held.to(self._device or held.device, dtype, copy=True)

    def enter(self, module: TaskModule) -> None:
        """Gives the module the averages; what is trained is kept aside."""
        self.find(module)
        with no_grad():
            for name, _, holder, key in self._places:
                average, held = self.values.get(name), holder[key].detach()
                if average is not None:
                    self.trained[name] = held.clone()
                    held.copy_(average.to(held.device))

    def leave(self, module: TaskModule) -> None:
        """Gives the module back what is trained; statistics that it got meanwhile are kept."""
        with no_grad():
            for name, kind, holder, key in self._places:
                held = holder[key].detach()
                if name in self.trained:
                    if kind == "statistic":
                        self.values[name].copy_(held.to(self.values[name].device))
                    held.copy_(self.trained[name])
        self.trained = {}

    def load(self, state: dict[str, Any], module: TaskModule, count: int) -> None:
        """Takes averages from a state dict of the module."""
        self.find(module)
        self.count = count
        for name, _, holder, key in self._places:
            self.values[name] = self._copy(state[name].detach().to(holder[key].device))

    def state_dict(self, module: TaskModule, names: Any) -> dict[str, Any]:
        """The values that the module does not hold, under all of its names (ties have several)."""
        first = {id(holder[key]): name for name, _, holder, key in self._places}
        held = module.state_dict(keep_vars=True)
        found = {name: first.get(id(held.get(name))) for name in names}
        kept = self.trained or self.values
        return {name: kept[own] for name, own in found.items() if own in kept}


def trained_statistics(module: TaskModule) -> list[_BatchNorm]:
    """The batch normalisations whose running statistics training moves; frozen ones rest."""
    return [
        part
        for part in module.modules()
        if isinstance(part, _BatchNorm)
        and part.running_mean is not None
        and all(p.requires_grad for p in part.parameters())
        and not vars(part).get("_frozen", False)
    ]


def estimate(
    trainer: Trainer,
    module: TaskModule,
    forward: Callable[[Any, Any], Any] | None,
    batches: int | None,
) -> None:
    """Computes running statistics anew for the weights that the module has, in a pass over the
    training data; nothing else changes: no gradient, metric, random stream or position.

    Args:
        trainer: The run.
        module: Its batch normalisations get the mean of the statistics of all batches.
        forward: Runs (module, batch); default `training_step`.
        batches: At most so many.
    """
    layers = trained_statistics(module)
    count = trainer.train_data.count
    limit = None if count == float("inf") else int(count)
    if batches is not None:
        limit = batches if limit is None else min(batches, limit)
    log = trainer.metric_log
    with random.fork_rng(), no_grad(), log.muted(), fresh_statistics(layers), evaluating(module):
        if trainer.training_randomness is not None:  # a validation draws from streams of its own
            random.load_state_dict(trainer.training_randomness)
        for layer in layers:
            layer.training = True
        reading = trainer.train_data.another_pass(trainer.current_epoch)
        try:
            for index, batch in enumerate(itertools.islice(reading, limit)):
                for call in trainer.events.transform_batch:
                    batch = call(batch, 0)
                with trainer.precision.forward_context():
                    if forward is not None:
                        forward(module, batch)
                    else:
                        output = trainer.plan.own_step(batch, index)
                        if isgenerator(output):  # the losses of several optimizers
                            collections.deque(output, maxlen=0)
        finally:
            if hasattr(reading, "close"):
                reading.close()
