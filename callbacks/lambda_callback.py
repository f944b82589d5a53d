"""LambdaCallback: a callback from functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from minitorch.callbacks.callback import EVENTS, Callback, Order
from minitorch.errors import ArgumentError


class LambdaCallback(Callback):
    """Calls functions at events: `LambdaCallback(on_train_epoch_end=lambda trainer, module: ...)`.

    Args:
        order: When the functions run inside of an event, relative to other callbacks; from
            `Order.REPORT` on they see the final metrics of an epoch.
        events: For each event a function with the arguments that `Callback` documents.

    Raises:
        ArgumentError: There is no such event, or a value is no function.
    """

    def __init__(
        self, *, order: Order = Order.MEASURE, **events: Callable[..., Any] | None
    ) -> None:
        self.order = order  # type: ignore[misc]
        for name, function in events.items():
            if name not in EVENTS:
                close = difflib.get_close_matches(name, EVENTS, n=1)
                hint = f"Did you mean {close[0]}?" if close else f"Known are {', '.join(EVENTS)}."
                raise ArgumentError(f"LambdaCallback: there is no event {name!r}. {hint}")
            if function is None:
                continue
            if not callable(function):
                raise ArgumentError(
                    f"LambdaCallback: {name} must be a function. Got {function!r}. "
                    f"Pass for example {name}=lambda trainer, module: ..."
                )
            setattr(self, name, function)
