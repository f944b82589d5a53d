"""The golden order of events, readable, with every difference from Lightning and its reason.

C is a callback of the default order, M the module, L the logger. Where this differs from
Lightning 2.6 on purpose:

 1. zero_grad (with `on_before_zero_grad`) runs before the forward pass, not after it: gradients
    that stray code left are gone, and their memory is free during the forward pass.
 2. The module's hook runs after the callbacks up to Order.MEASURE and before those that report,
    decide or persist, in every event. Lightning does so for two callback classes by type, at the
    end of a training epoch only. EarlyStopping and ModelCheckpoint see what the module logged.
 3. Epoch metrics reach the loggers before EarlyStopping decides and ModelCheckpoint saves.
    Lightning logs training means after its checkpoint is written.
 4. Epoch schedules, plateau or not, move once the epoch's metrics are final, before a checkpoint of
    that event is written. Lightning's checkpoint holds the plateau schedule one step behind, and
    its other epoch schedules move before the last batch's end.
 5. `on_train_end` and `on_fit_end` follow every ending that is no exception; after an exception
    `on_exception` reaches every callback and module and callbacks are torn down. Lightning skips
    teardown then.
 6. `global_step` counts applied updates, once per batch. Lightning counts every optimizer.
 7. An epoch that a limit or a stop cuts short has no `on_train_epoch_end`: it is not finished, and
    a resumed run continues it. On resume `on_train_epoch_start` is not repeated.
 8. Weights, position and callback states are restored before `on_fit_start`; optimizers after it
    (as in Lightning), so that a callback can rebuild their groups there.
 9. The frequency of a schedule with interval "step" counts applied updates. Lightning counts
    batches there, so that accumulation changes what a frequency means.
10. New: on_setup_end, transform_batch, on_window_start, transform_loss, on_window_end,
    on_after_optimizer_step: the seams in which the core concerns work.
"""

from __future__ import annotations

from typing import Any

import pytest
from toy_tasks import Regression, arrays, loader, quiet

from minitorch.callbacks import Callback, Order
from minitorch.callbacks.callback import EVENTS
from minitorch.trainer.hooks import Hooks

Trace = list[str]


def tracer(label: str, trace: Trace, base: type = Callback) -> Any:
    """An object of a subclass of `base` that records every event it gets."""

    def recording(event: str) -> Any:
        def method(self: Any, *args: Any) -> Any:
            trace.append(f"{label}.{event}")
            if event in ("transform_batch", "transform_loss"):
                return args[2]
            return None

        return method

    owner = Callback if base is Callback else Hooks
    body = {event: recording(event) for event in EVENTS if hasattr(owner, event)}
    return type(label, (base,), {**body, "trace": trace})


class StepTrace(Regression):
    """Records its steps."""

    trace: Trace

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.trace.append("M.training_step")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.trace.append("M.validation_step")
        return super().validation_step(batch, batch_idx)

    def configure_optimizers(self) -> Any:
        self.trace.append("M.configure_optimizers")
        return super().configure_optimizers()


class LoggerTrace:
    """A logger that records what reaches it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.trace.append(f"L.log_metrics {' '.join(sorted(metrics))} @{step}")

    def log_hyperparams(self, params: Any, metrics: Any = None) -> None:
        self.trace.append("L.log_hyperparams")

    def save(self) -> None: ...

    def finalize(self, status: str) -> None:
        self.trace.append(f"L.finalize {status}")


def both(event: str) -> list[str]:
    return [f"C.{event}", f"M.{event}"]


BATCH_START = ["C.transform_batch", *both("on_train_batch_start")]
WINDOW_START = [*both("on_before_zero_grad"), "C.on_window_start"]
BACKWARD = [
    "M.training_step",
    "C.transform_loss",
    *both("on_before_backward"),
    *both("on_after_backward"),
]
UPDATE = ["C.on_window_end", *both("on_before_optimizer_step"), "C.on_after_optimizer_step"]
BATCH_END = both("on_train_batch_end")
VALIDATION_BATCH = [
    "C.transform_batch",
    *both("on_validation_batch_start"),
    "M.validation_step",
    *both("on_validation_batch_end"),
]


def validation(*logged: str) -> list[str]:
    return [
        *both("on_validation_start"),
        *both("on_validation_epoch_start"),
        *VALIDATION_BATCH,
        *both("on_validation_epoch_end"),
        *logged,
        *both("on_validation_end"),
    ]


GOLDEN = [
    *both("setup"),
    "C.on_setup_end",
    "M.configure_optimizers",
    *both("on_fit_start"),
    "L.log_hyperparams",
    # sanity check
    "C.on_sanity_check_start",
    *validation(),
    "C.on_sanity_check_end",
    # training: one epoch of three batches in windows of two, validated at its end
    *both("on_train_start"),
    *both("on_train_epoch_start"),
    *BATCH_START,
    *WINDOW_START,
    *BACKWARD,
    *BATCH_END,
    *BATCH_START,
    *BACKWARD,
    *UPDATE,
    *BATCH_END,
    "L.log_metrics epoch train/loss_step @1",
    *BATCH_START,
    *WINDOW_START,
    *BACKWARD,
    *UPDATE,
    *BATCH_END,
    "L.log_metrics epoch train/loss_step @2",
    *validation("L.log_metrics epoch val/loss @2"),
    *both("on_train_epoch_end"),
    "L.log_metrics epoch train/loss_epoch @2",
    *both("on_train_end"),
    *both("on_fit_end"),
    *both("teardown"),
    "L.finalize success",
]


def run(trace: Trace, *more: Any, **options: Any) -> None:
    callback = tracer("C", trace)()
    module = tracer("M", trace, StepTrace)()
    options.setdefault("max_epochs", 1)
    trainer = quiet(
        callbacks=[callback, *more],
        logger=LoggerTrace(trace),
        accumulate_grad_batches=2,
        **options,
    )
    trainer.fit(module, loader(12), loader(4, shuffle=False))


def test_golden_order_of_a_fit() -> None:
    trace: Trace = []
    run(trace)
    assert trace == GOLDEN


def test_run_that_fails_is_closed() -> None:
    class Broken(Callback):
        def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
            raise ZeroDivisionError

    trace: Trace = []
    with pytest.raises(ZeroDivisionError):
        run(trace, Broken(), num_sanity_val_steps=0)
    end = trace[trace.index("M.training_step") + 1 :]
    # the module comes after all callbacks of order MEASURE, so it never sees the event that failed
    assert end == [
        "C.transform_loss",
        "C.on_before_backward",
        "C.on_exception",
        *both("teardown"),
        "L.finalize failed",
    ]


@pytest.mark.parametrize(("max_steps", "finished"), [(1, False), (2, True)])
def test_epoch_end_only_for_whole_epochs(max_steps: int, finished: bool) -> None:
    trace: Trace = []
    run(trace, max_steps=max_steps, max_epochs=9)
    assert ("C.on_train_epoch_end" in trace) is finished
    events = [event for event in trace if event[:2] != "L."]
    assert events[-6:] == [*both("on_train_end"), *both("on_fit_end"), *both("teardown")]
    open_epoch = trace[-6].startswith("L.log_metrics")  # right after on_train_end
    assert open_epoch is not finished


@pytest.mark.parametrize("stage", ["validate", "test", "predict"])
def test_order_of_an_evaluation(stage: str) -> None:
    trace: Trace = []
    module = tracer("M", trace, StepTrace)()
    trainer = quiet(callbacks=tracer("C", trace)())
    data = arrays(4)[0] if stage == "predict" else arrays(4)
    getattr(trainer, stage)(module, data)
    name = {"validate": "validation"}.get(stage, stage)
    step = ["M.validation_step"] if stage == "validate" else []
    assert trace == [
        *both("setup"),
        "C.on_setup_end",
        *both(f"on_{name}_start"),
        *both(f"on_{name}_epoch_start"),
        "C.transform_batch",
        *both(f"on_{name}_batch_start"),
        *step,
        *both(f"on_{name}_batch_end"),
        *both(f"on_{name}_epoch_end"),
        *both(f"on_{name}_end"),
        *both("teardown"),
    ]


def test_order_decides_then_the_list() -> None:
    trace: Trace = []

    def make(label: str, order: Order) -> Callback:
        def on_train_start(self: Any, trainer: Any, module: Any) -> None:
            trace.append(label)

        return type(label, (Callback,), {"order": order, "on_train_start": on_train_start})()

    orders = [Order.PERSIST, Order.MEASURE, Order.PREPARE, Order.MEASURE, Order.REPORT]
    callbacks = [make(f"{order.name}{i}", order) for i, order in enumerate(orders)]
    quiet(max_epochs=1, callbacks=callbacks).fit(Regression(), loader(4))
    assert trace == ["PREPARE2", "MEASURE1", "MEASURE3", "REPORT4", "PERSIST0"]


def test_print_order_shows_who_takes_part(capsys: pytest.CaptureFixture[str]) -> None:
    trainer = quiet(callbacks=tracer("Mine", [])(), max_epochs=1)
    trainer.fit(Regression(), loader(4))
    trainer.print_order()
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("on_train_batch_end"))
    assert row.split(None, 1)[1] == (
        "ProgressCounters (PREPARE) → Mine (MEASURE) → MetricLog (REPORT)"
    )
