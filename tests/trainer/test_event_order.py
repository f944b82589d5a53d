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
10. The DataModule's `on_exception` comes with those of the callbacks, first, and loaders are made
    right after the set-up (Lightning: at their first use), so that schedules know their length.
11. Under manual optimisation zero_grad of the task's optimizers has its event too, and one batch
    counts one update in `global_step`, however many optimizers step.
12. New: on_setup_end, transform_batch, on_window_start, transform_loss, on_window_end,
    on_after_optimizer_step: the seams in which the core concerns work.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from event_traces import (
    STEPS,
    At,
    DataTrace,
    LoggerTrace,
    Manual,
    StepTrace,
    Trace,
    traced_here,
    traced_lightning,
    tracer,
)
from toy_tasks import Regression, arrays, loader, quiet

from minitorch.callbacks import Callback, Order
from minitorch.callbacks.callback import EVENTS


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


MANUAL_ZERO = [*both("on_before_zero_grad")]
MOVED = ["D.on_before_batch_transfer", "D.on_after_batch_transfer"]
ONE_UPDATE = [*WINDOW_START, *BACKWARD, *UPDATE, *BATCH_END]
FINISH = [*both("on_train_end"), *both("on_fit_end"), "D.teardown", *both("teardown")]


def test_where_the_datamodule_stands() -> None:
    trace: Trace = []
    trainer = quiet(callbacks=tracer("C", trace)(), max_epochs=1, num_sanity_val_steps=0)
    trainer.fit(tracer("M", trace, StepTrace)(), datamodule=DataTrace(trace))
    assert trace == [
        "D.prepare_data",
        "D.setup",
        *both("setup"),
        "D.train_dataloader",
        "D.val_dataloader",
        "C.on_setup_end",
        "M.configure_optimizers",
        *both("on_fit_start"),
        *both("on_train_start"),
        *both("on_train_epoch_start"),
        *MOVED,
        *BATCH_START,
        *ONE_UPDATE,
        *both("on_validation_start"),
        *both("on_validation_epoch_start"),
        *MOVED,
        *VALIDATION_BATCH,
        *both("on_validation_epoch_end"),
        *both("on_validation_end"),
        *both("on_train_epoch_end"),
        *FINISH,
    ]


def test_validation_in_the_middle_and_at_the_end() -> None:
    trace: Trace = []
    trainer = quiet(callbacks=tracer("C", trace)(), max_epochs=1, val_check_interval=2)
    trainer.fit(tracer("M", trace, StepTrace)(), loader(16), loader(4, shuffle=False))
    start = trace.index("C.on_train_epoch_start")
    two = [*BATCH_START, *ONE_UPDATE] * 2
    assert trace[start : trace.index("C.on_train_end")] == [
        *both("on_train_epoch_start"),
        *two,
        *validation(),
        *two,
        *validation(),
        *both("on_train_epoch_end"),
    ]


def test_a_resumed_run_goes_on_inside_of_its_epoch(tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    first = quiet(callbacks=At(2, lambda t: t.save_checkpoint(path)), max_epochs=1)
    first.fit(StepTraceOf([])(), loader(12))
    trace: Trace = []
    trainer = quiet(callbacks=tracer("C", trace)(), max_epochs=1)
    trainer.fit(tracer("M", trace, StepTrace)(), loader(12), ckpt_path=path)
    assert (
        trace
        == [
            *both("setup"),
            *both("on_load_checkpoint"),
            "C.on_setup_end",
            "M.configure_optimizers",
            *both("on_fit_start"),
            *both("on_train_start"),  # no on_train_epoch_start: the epoch has begun before
            *BATCH_START,
            *ONE_UPDATE,
            *both("on_train_epoch_end"),
            *FINISH[:4],
            *both("teardown"),
        ]
    )


def StepTraceOf(trace: Trace) -> Any:
    return type("StepTraceOf", (StepTrace,), {"trace": trace})


def test_ctrl_c_ends_after_the_batch() -> None:
    def press(trainer: Any) -> None:
        trainer.interrupt.requested = True

    trace: Trace = []
    trainer = quiet(callbacks=[tracer("C", trace)(), At(1, press)], max_epochs=1)
    result = trainer.fit(tracer("M", trace, StepTrace)(), loader(12), loader(4, shuffle=False))
    assert result.status == "interrupted"
    start = trace.index("C.on_train_epoch_start")
    assert trace[start:] == [
        *both("on_train_epoch_start"),
        *BATCH_START,
        *ONE_UPDATE,
        *FINISH[:4],
        *both("teardown"),
    ]


def test_manual_optimization() -> None:
    trace: Trace = []
    trainer = quiet(callbacks=tracer("C", trace)(), max_epochs=1)
    trainer.fit(tracer("M", trace, Manual)(), loader(4))
    one = [
        *MANUAL_ZERO,
        "C.transform_loss",
        *both("on_before_backward"),
        *both("on_after_backward"),
        "C.on_window_end",
        *both("on_before_optimizer_step"),
        "C.on_after_optimizer_step",
    ]
    start = trace.index("C.on_train_batch_start")
    assert trace[start : trace.index("C.on_train_epoch_end")] == [
        *both("on_train_batch_start"),
        "M.training_step",
        *one,
        *one,
        *BATCH_END,
    ]
    assert trainer.global_step == 1


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


# Lightning's own list, and the stated differences that it shows.


@pytest.fixture
def lightning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torch")
        return pytest.importorskip("pytorch_lightning")


def with_our_differences(theirs: Trace) -> Trace:
    """Difference 1: zero_grad before the forward pass."""
    zero, changed = both("on_before_zero_grad"), list(theirs)
    for i in range(len(changed) - 2):
        if changed[i] == "M.training_step" and changed[i + 1 : i + 3] == zero:
            changed[i : i + 3] = [*zero, "M.training_step"]
    return changed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("stage", "options"),
    [
        ("fit", {}),
        ("fit", {"accumulate_grad_batches": 2}),
        ("fit", {"val_check_interval": 1, "num_sanity_val_steps": 0}),
        ("fit", {"limit_val_batches": 0}),
        ("validate", {}),
        ("test", {}),
        ("predict", {}),
    ],
)
def test_lightnings_order_but_for_what_is_stated(
    stage: str, options: dict[str, Any], lightning: Any
) -> None:
    theirs = traced_lightning(lightning, stage, **options)
    ours = traced_here(stage, **options)
    shared = {f"M.{step}" for step in STEPS}
    shared |= {f"{who}.{e}" for e in EVENTS if hasattr(lightning.Callback, e) for who in "CM"}
    assert [event for event in ours if event in shared] == with_our_differences(theirs)
