"""Averages of a model's weights over training, and what belongs to them."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..autograd import no_grad
from ..autograd.mode import state
from ..errors import ArgumentError, ShapeError, describe
from ..nn.module import Module
from ..nn.normalization import _BatchNorm
from ..ops.creation import tensor
from .lr_scheduler.base import LRScheduler, check_count, check_optimizer, per_group
from .optimizer import Optimizer

Average = Callable[[Any, Any, Any], Any]
MultiAverage = Callable[[list[Any], list[Any], Any], None]


class AveragedModel(Module):
    """A copy of a model whose weights are an average of those that training goes through.

    Args:
        model: The model; its present weights are where the average starts.
        device: Where the copy lives; default where the model is.
        avg_fn: `avg_fn(average, weight, updates)` gives the new average of one tensor; default the
            mean of all.
        multi_avg_fn: `multi_avg_fn(averages, weights, updates)` writes all averages in place.
        use_buffers: Average the buffers too; otherwise they are those of the model.

    Attributes:
        module: The copy.
        n_averaged: int64[], how often `update_parameters` was called.

    Raises:
        ArgumentError: Both functions are given.

    Source: Averaging Weights Leads to Wider Optima and Better Generalization, Izmailov et al.,
    2018.

    >>> model = mt.nn.Linear(1, 1, bias=False)
    >>> average = mt.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = mt.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight.item()
    3.0
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError(
                "AveragedModel: give avg_fn or multi_avg_fn. Got both. Leave one of them out."
            )
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers
        self._updates, self._estimated = 0, -1

    n_averaged: Any

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        if state.on_stale_average is not None and not self.training and self._is_stale():
            state.on_stale_average()
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the present weights of `model` into the average.

        Args:
            model: A model with the parameters and buffers of the first one.

        Raises:
            ShapeError: It has others.
        """
        count = int(self.n_averaged.item())
        with no_grad():
            pairs = self._pairs(model)
            update_averages(pairs, self.n_averaged, count, self.avg_fn, self.multi_avg_fn)
            self._updates = count + 1
            if not self.use_buffers:
                for here, there in self._buffer_pairs(model):
                    here.detach().copy_(there.detach().to(here.device))
            self.n_averaged.add_(1)

    def _pairs(self, model: Module) -> list[tuple[Any, Any]]:
        """Each averaged tensor with the model's, on one device."""
        ours, theirs = list(self.module.parameters()), list(model.parameters())
        if self.use_buffers:
            for here, there in self._buffer_pairs(model):
                ours.append(here)
                theirs.append(there)
        if [t.shape for t in ours] != [t.shape for t in theirs]:
            raise ShapeError(
                "AveragedModel.update_parameters: the model must have the parameters that are "
                f"averaged. Got {len(theirs)} tensors for {len(ours)}, or other shapes. Make a "
                "new AveragedModel of this model."
            )
        return [(a.detach(), w.detach().to(a.device)) for a, w in zip(ours, theirs, strict=True)]

    def _buffer_pairs(self, model: Module) -> list[tuple[Any, Any]]:
        """Each buffer with the model's of that name; what only one of them keeps is passed over."""
        theirs = dict(model.named_buffers())
        return [(b, theirs[name]) for name, b in self.module.named_buffers() if name in theirs]

    def _is_stale(self) -> bool:
        """Whether normalisation would use statistics of other weights than the averages."""
        averages_more = self._updates > 1 and not self.use_buffers
        return averages_more and self._updates != self._estimated and has_statistics(self.module)


def has_statistics(model: Module) -> bool:
    """Whether a batch normalisation of the model keeps running statistics."""
    return any(isinstance(m, _BatchNorm) and m.running_mean is not None for m in model.modules())


def update_averages(
    pairs: list[tuple[Any, Any]],
    n_averaged: Any,
    count: int,
    avg_fn: Average | None,
    multi_avg_fn: MultiAverage | None,
) -> None:
    """Takes weights into their averages, in place; call it under `no_grad`.

    Args:
        pairs: Each average with the weight, on one device.
        n_averaged: int64[], how many weights are in the averages.
        count: The same as a number; at 0 the averages become the weights.
        avg_fn, multi_avg_fn: As in `AveragedModel`.
    """
    if not count:
        for average, weight in pairs:
            average.copy_(weight)
    elif multi_avg_fn is not None:
        kinds: dict[Any, list[tuple[Any, Any]]] = {}
        for average, weight in pairs:
            kinds.setdefault((str(average.device), average.dtype), []).append((average, weight))
        for group in kinds.values():
            averages, weights = (list(side) for side in zip(*group, strict=True))
            multi_avg_fn(averages, weights, n_averaged.to(averages[0].device))
    else:
        function = avg_fn or get_swa_avg_fn()
        for average, weight in pairs:
            average.copy_(function(average, weight, n_averaged.to(average.device)))


def get_swa_avg_fn() -> Average:
    """The mean of all weights so far: `average + (weight - average)/(updates + 1)`."""

    def average(averaged: Any, weight: Any, updates: Any) -> Any:
        return averaged + (weight - averaged) / (updates + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential average `decay·average + (1 - decay)·weight`.

    Raises:
        ArgumentError: `decay` is not in [0, 1].
    """
    _check_decay(decay)

    def average(averaged: Any, weight: Any, updates: Any) -> Any:
        return averaged * decay + weight * (1 - decay)

    return average


def get_swa_multi_avg_fn() -> MultiAverage:
    """`get_swa_avg_fn` for lists of tensors, which are written in place."""
    return _in_place(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """`get_ema_avg_fn` for lists of tensors, which are written in place.

    Raises:
        ArgumentError: `decay` is not in [0, 1].
    """
    _check_decay(decay)

    def average(averages: list[Any], weights: list[Any], updates: Any) -> None:
        with no_grad():
            for averaged, weight in zip(averages, weights, strict=True):
                if averaged.is_floating_point():
                    averaged.lerp_(weight, 1 - decay)
                else:
                    averaged.copy_(averaged * decay + weight * (1 - decay))

    return average


def _in_place(function: Average) -> MultiAverage:
    def average(averages: list[Any], weights: list[Any], updates: Any) -> None:
        with no_grad():
            for averaged, weight in zip(averages, weights, strict=True):
                averaged.copy_(function(averaged, weight, updates))

    return average


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ArgumentError(f"ema: decay must be a number from 0 to 1. Got {decay!r}.")


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch normalisation anew, in one pass over data.

    Averaged weights have other activations than those that the statistics were taken from.

    Args:
        loader: Batches: tensors, or lists and tuples whose first entry is the input.
        model: Its `BatchNorm` layers get the mean of the statistics of all batches.
        device: Inputs are moved there.

    Raises:
        ArgumentError: A batch is no tensor.
    """
    layers = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not layers:
        return
    was_training = model.training
    model.train()
    try:
        with no_grad(), fresh_statistics(layers):
            for batch in loader:
                x = batch[0] if isinstance(batch, list | tuple) else batch
                if not hasattr(x, "to"):
                    raise ArgumentError(
                        "update_bn: a batch must be a tensor, or begin with one. "
                        f"Got {describe(x)}. Pass a loader that yields (input, …)."
                    )
                model(x if device is None else x.to(device))
    finally:
        model.train(was_training)
    if isinstance(model, AveragedModel):
        model._estimated = model._updates


@contextlib.contextmanager
def fresh_statistics(layers: Iterable[_BatchNorm]) -> Iterator[None]:
    """Inside, running statistics become the mean over the batches that the layers see."""
    momenta = [(layer, layer.momentum) for layer in layers]
    for layer, _ in momenta:
        layer.reset_running_stats()
        layer.momentum = None
    try:
        yield
    finally:
        for layer, momentum in momenta:
            layer.momentum = momentum


class SWALR(LRScheduler):
    """Goes from the present rate to `swa_lr` in `anneal_epochs` steps, then stays.

    Args:
        optimizer: Its groups get the rates.
        swa_lr: The last rate, or one for each group.
        anneal_epochs: Steps on the way.
        anneal_strategy: `"cos"` or `"linear"`.
        last_epoch: As in `LRScheduler`.

    Raises:
        ArgumentError: An option is out of range.

    Source: Averaging Weights Leads to Wider Optima and Better Generalization, Izmailov et al.,
    2018.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"SWALR: anneal_strategy must be 'cos' or 'linear'. Got {anneal_strategy!r}."
            )
        self.anneal_strategy = anneal_strategy
        self.anneal_epochs = check_count(self, "anneal_epochs", anneal_epochs, 0)
        rates = per_group(self, "swa_lr", swa_lr, optimizer)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        step = self._step_count - 1
        if not self.anneal_epochs:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            last, rate = group["swa_lr"], group["lr"]
            start = last if before == 1 else (rate - before * last) / (1 - before)
            rates.append(last * now + start * (1 - now))
        return rates
