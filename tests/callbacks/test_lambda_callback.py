"""LambdaCallback: any event as a function."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_tasks import Linear, fit

from minitorch.callbacks import LambdaCallback, Order
from minitorch.callbacks.callback import EVENTS, Callback
from minitorch.errors import ArgumentError

CHANGING = {"transform_batch": 2, "transform_loss": 2}


def test_every_event_is_called_like_a_method() -> None:
    called: dict[str, int] = {}

    def function(event: str) -> Any:
        def call(*args: Any) -> Any:
            called[event] = len(args)
            return args[CHANGING[event]] if event in CHANGING else None

        return call

    fit(Linear(), LambdaCallback(**{event: function(event) for event in EVENTS}), max_epochs=1)
    assert {"setup", "on_train_start", "on_train_batch_end", "teardown"} <= called.keys()
    for event, count in called.items():
        assert count == getattr(Callback, event).__code__.co_argcount - 1, event


def test_order() -> None:
    seen: list[Any] = []

    def look(trainer: Any, module: Any) -> None:
        seen.append((trainer.callback_metrics.get("late"), "late" in trainer.logged_metrics))

    class Task(Linear):
        def on_train_epoch_end(self) -> None:
            self.log("late", 1.0)

    early = LambdaCallback(on_train_epoch_end=look)
    late = LambdaCallback(order=Order.PERSIST, on_train_epoch_end=look)
    fit(Task(), late, early, max_epochs=1)
    assert seen[0] == (None, False)
    assert (float(seen[1][0]), seen[1][1]) == (1.0, True)


def test_none_is_left_out() -> None:
    assert not LambdaCallback(on_train_start=None).listens("on_train_start")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_train_epoch_ends": print}, "no event 'on_train_epoch_ends'. Did you mean on_train_e"),
        ({"zzz": print}, "there is no event 'zzz'. Known are setup, on_setup_end"),
        ({"state_dict": print}, "there is no event 'state_dict'"),
        ({"on_fit_start": 3}, "on_fit_start must be a function. Got 3. Pass for example"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=f"LambdaCallback: .*{message}"):
        LambdaCallback(**arguments)
