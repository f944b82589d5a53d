"""Loss scaling for float16: large enough to keep small gradients, small enough not to overflow."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError, CheckpointError, GraphError, describe
from ..nn.utils.clip_grad import scale_runs
from ..optim.flat import Run, gradient_runs
from ..optim.optimizer import Optimizer
from ..tensor import Tensor

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Multiplies the loss, divides the gradients, and skips updates that overflowed.

    After `growth_interval` updates in a row without overflow the scale grows; after an overflow it
    shrinks. One round: `scale(loss).backward()`, optionally `unscale_(optimizer)` and clipping,
    `step(optimizer)`, `update()`. The scale is a number on the host and serves every device.

    Args:
        device: Accepted for PyTorch's signature.
        init_scale: The first scale.
        growth_factor: The scale is multiplied by it when it grows; above 1.
        backoff_factor: The scale is multiplied by it after an overflow; below 1.
        growth_interval: Updates without overflow before the scale grows.
        enabled: False makes every method pass through.

    Attributes:
        skipped_steps: How many updates were left out because a gradient was infinite or NaN.

    Raises:
        ArgumentError: An option is out of range.

    Source: Mixed Precision Training, Micikevicius et al., 2018.

    >>> w = mt.nn.Parameter(mt.ones(1))
    >>> optimizer, scaler = mt.optim.SGD([w], lr=1.0), mt.amp.GradScaler(init_scale=8.0)
    >>> scaler.scale((w * float("inf")).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.item(), scaler.get_scale(), scaler.skipped_steps
    (1.0, 4.0, 1)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        for name, value, right, rule in (
            ("init_scale", init_scale, init_scale > 0, "above 0"),
            ("growth_factor", growth_factor, growth_factor > 1, "above 1"),
            ("backoff_factor", backoff_factor, 0 < backoff_factor < 1, "above 0 and below 1"),
            ("growth_interval", growth_interval, growth_interval >= 1, "at least 1"),
        ):
            if not right:
                raise ArgumentError(f"GradScaler: {name} must be {rule}. Got {value!r}.")
        self._enabled = enabled
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._scaled = False
        self._overflowed = False
        self._rounds: weakref.WeakKeyDictionary[Optimizer, _Round] = weakref.WeakKeyDictionary()
        self.skipped_steps = 0

    def scale(self, outputs: Any) -> Any:
        """`outputs` times the scale.

        Args:
            outputs: A tensor, or a list, tuple or other iterable of them.

        Raises:
            ArgumentError: There is something else in it.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            self._scaled = True
            return outputs * self._scale
        if not isinstance(outputs, Iterable) or isinstance(outputs, str):
            raise ArgumentError(
                "GradScaler.scale: outputs must be a tensor or an iterable of tensors. "
                f"Got {describe(outputs)}. Pass the loss."
            )
        scaled = (self.scale(output) for output in outputs)
        return type(outputs)(scaled) if isinstance(outputs, list | tuple) else list(scaled)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, before clipping.

        Raises:
            GraphError: It was called before in this round, or nothing was scaled.
            ArgumentError: A gradient is float16, in which small quotients would vanish.
        """
        if not self._enabled:
            return
        self._check_scaled("unscale_")
        stage = self._round(optimizer).stage
        if stage != _READY:
            what = "unscale_() was called" if stage == _UNSCALED else "step() was called"
            raise GraphError(
                f"GradScaler.unscale_: once per optimizer and round. {what} already since the "
                "last update(). Call update() at the end of each round."
            )
        params = [p for group in optimizer.param_groups for p in group["params"]]
        for p in params:
            if p.grad is not None and p.grad._array.dtype == np.float16:
                raise ArgumentError(
                    f"GradScaler.unscale_: gradients must not be float16. Got {describe(p.grad)}. "
                    "Keep parameters in float32 and use autocast."
                )
        host: list[Run] = []
        others: list[Run] = []
        for run in gradient_runs(params):
            (host if type(run.array) is np.ndarray else others).append(run)
        factor = 1.0 / self._scale
        found: list[Any] = [not scale_runs(host, factor)]
        for run in others:
            run.array[...] = run.array * factor
            xp = backend.namespace(run.array)
            found.append(xp.logical_not(xp.all(xp.isfinite(run.array))))
        for p in params:
            if p.grad is not None:
                p.grad._bump("GradScaler.unscale_")
        self._rounds[optimizer] = _Round(_UNSCALED, found)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscales if that was not done, then updates unless a gradient is infinite or NaN.

        Args:
            optimizer: The optimizer.
            args: For `optimizer.step`.
            kwargs: For `optimizer.step`; a closure is not possible.

        Returns:
            What `optimizer.step` returns; None if the update was skipped.

        Raises:
            GraphError: It was called before in this round, or nothing was scaled.
            ArgumentError: A closure is given.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or "closure" in kwargs:
            raise ArgumentError(
                "GradScaler.step: a closure cannot be used, since its gradients are not unscaled. "
                "Compute the loss before, or use GradScaler(enabled=False)."
            )
        self._check_scaled("step")
        if self._round(optimizer).stage == _STEPPED:
            raise GraphError(
                "GradScaler.step: once per optimizer and round. step() was called already since "
                "the last update(). Call update() at the end of each round."
            )
        if self._round(optimizer).stage == _READY:
            self.unscale_(optimizer)
        current = self._round(optimizer)
        result = None
        if current.overflowed():
            self.skipped_steps += 1
            optimizer._skipped += 1
        else:
            result = optimizer.step(*args, **kwargs)
        current.stage = _STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Ends the round and adapts the scale.

        Args:
            new_scale: A number or one-element tensor that becomes the scale.

        Raises:
            GraphError: No optimizer was unscaled in this round.
        """
        if not self._enabled:
            return
        self._check_scaled("update")
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._rounds:
            raise GraphError(
                "GradScaler.update: step() or unscale_() must come before, so that it is known "
                "whether the gradients overflowed. Call scaler.step(optimizer) first."
            )
        elif self._overflowed or any(r.overflowed() for r in self._rounds.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._grow()
        self._overflowed = False
        self._rounds.clear()

    def reopen(self, optimizer: Optimizer) -> None:
        """Lets an optimizer step again in this round, at the same scale; not in PyTorch."""
        done = self._rounds.pop(optimizer, None)
        self._overflowed = self._overflowed or (done is not None and done.overflowed())

    def _grow(self) -> None:
        self._growth_tracker += 1
        if self._growth_tracker >= self._growth_interval:
            grown = self._scale * self._growth_factor
            # The loss is float32: a scale beyond its range would make it infinite.
            if math.isfinite(np.float32(min(grown, 1e300))):
                self._scale = grown
            self._growth_tracker = 0

    def found_inf(self, optimizer: Optimizer) -> bool:
        """True if a gradient of `optimizer` was infinite or NaN in this round; after `unscale_`."""
        return self._round(optimizer).overflowed()

    def _round(self, optimizer: Optimizer) -> _Round:
        return self._rounds.get(optimizer) or _Round(_READY, [])

    def _check_scaled(self, method: str) -> None:
        if not self._scaled:
            raise GraphError(
                f"GradScaler.{method}: no loss was scaled yet. "
                "Call scaler.scale(loss).backward() first."
            )

    def get_scale(self) -> float:
        """The scale; 1 if disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """The factor of growth."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor of growth."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Updates without overflow before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of updates before the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state as plain numbers, under PyTorch's keys; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
            "skipped_steps": self.skipped_steps,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back what `state_dict` returned; does nothing if disabled.

        Raises:
            CheckpointError: The state is that of a disabled scaler.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise CheckpointError(
                "GradScaler.load_state_dict: the state is empty; it was saved by a disabled "
                "scaler. Leave it out, or make this one with enabled=False."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
        self.skipped_steps = state_dict.get("skipped_steps", 0)

    def __getstate__(self) -> dict[str, Any]:
        if len(self._rounds):
            raise GraphError(
                "GradScaler: it can be copied or pickled only between two rounds. "
                "Call update() first."
            )
        return {k: v for k, v in vars(self).items() if k != "_rounds"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._rounds = weakref.WeakKeyDictionary()


class _Round:
    """What was done with one optimizer since the last update."""

    __slots__ = ("found", "stage")

    def __init__(self, stage: str, found: list[Any]) -> None:
        self.stage = stage
        self.found = found

    def overflowed(self) -> bool:
        """True if a gradient was infinite or NaN; waits for the device once."""
        self.found = [bool(functools.reduce(operator.or_, self.found, False))]
        return bool(self.found[0])
