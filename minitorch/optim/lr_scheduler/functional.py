"""Schedules that a user's function defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError, CheckpointError
from ..optimizer import Optimizer
from .base import LRScheduler, per_group

Function = Callable[[int], float]


class _OfFunctions(LRScheduler):
    """Keeps the functions out of the state, and notices when another one is there on loading."""

    _not_saved = ("optimizer", "lr_lambdas")

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1
    ) -> None:
        self.lr_lambdas = per_group(self, "lr_lambda", lr_lambda, optimizer)
        for function in self.lr_lambdas:
            if not callable(function):
                raise ArgumentError(
                    f"{type(self).__name__}: lr_lambda must be a function of the step. "
                    f"Got {type(function).__name__}."
                )
        super().__init__(optimizer, last_epoch)

    def _factors(self) -> list[float]:
        return [float(function(self.last_epoch)) for function in self.lr_lambdas]

    def state_dict(self) -> dict[str, Any]:
        """The state; of the functions only their values at the present step."""
        return {**super().state_dict(), "factors": self._factors()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back the state, and checks that the functions still give what they gave.

        Raises:
            CheckpointError: As the base; or a function gives another value at the saved step.
        """
        state = dict(state_dict)
        saved = state.pop("factors", None)
        super().load_state_dict(state)
        if saved is not None and saved != (now := self._factors()):
            raise CheckpointError(
                f"{type(self).__name__}.load_state_dict: the functions must be those of the saved "
                f"run. At step {self.last_epoch} they give {now}, and gave {list(saved)}. Pass the "
                "same lr_lambda."
            )


class LambdaLR(_OfFunctions):
    """The base rate times a function of the step: `lr = base_lr·f(step)`.

    Args:
        optimizer: Its groups get the rates.
        lr_lambda: The function, or one for each group.
        last_epoch: As in `LRScheduler`.
    """

    def get_lr(self) -> list[float]:
        return [b * f for b, f in zip(self.base_lrs, self._factors(), strict=True)]


class MultiplicativeLR(_OfFunctions):
    """The present rate times a function of the step: `lr *= f(step)`.

    Args:
        optimizer: Its groups get the rates.
        lr_lambda: The function, or one for each group.
        last_epoch: As in `LRScheduler`.
    """

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates()
        return [r * f for r, f in zip(self._rates(), self._factors(), strict=True)]

    def _factors(self) -> list[float]:
        return super()._factors() if self.last_epoch > 0 else [1.0] * len(self.lr_lambdas)
