"""self.log: exact aggregates, the right names, few conversions, clear refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import Callback, Order
from minitorch.errors import ArgumentError, DataError, TrainerError

VALUES = [1.0, 5.0, 3.0]
SIZES = [4, 2, 1]


class Logs(Regression):
    """Logs VALUES[batch_idx] with the given options in every batch."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def record(self, name: str, batch_idx: int) -> None:
        self.log(name, mt.tensor(VALUES[batch_idx]), **self.options)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.record("value", batch_idx)
        return self.loss(batch)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.record("val/value", batch_idx)


def data() -> list[Any]:
    x, y = arrays(7)
    ends = np.cumsum(SIZES)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, SIZES, strict=True)]


REDUCED = {
    "mean": (4 * 1 + 2 * 5 + 1 * 3) / 7,
    "sum": 9.0,
    "max": 5.0,
    "min": 1.0,
}


@pytest.mark.parametrize("reduce_fx", REDUCED)
def test_epoch_aggregates_are_exact(reduce_fx: str) -> None:
    task = Logs(reduce_fx=reduce_fx, on_step=False, on_epoch=True)
    result = fit(task, data(), data(), max_epochs=2)
    expected = REDUCED[reduce_fx]
    assert result.history == {
        "value": [(3, expected), (6, expected)],
        "val/value": [(3, expected), (6, expected)],
    }


def test_batch_size_weights_the_mean() -> None:
    result = fit(Logs(on_epoch=True, on_step=False, batch_size=1), data(), max_epochs=1)
    assert result.history["value"] == [(3, 3.0)]


def test_names_by_flags() -> None:
    result = fit(Logs(), data(), data(), max_epochs=1)
    mean = REDUCED["mean"]
    assert result.history == {
        "value": [(1, 1.0), (2, 5.0), (3, 3.0)],
        "value_epoch": [(3, mean)],
        "val/value": [(3, mean)],
    }
    trainer = quiet(max_epochs=1)
    result = trainer.fit(Logs(on_step=True, on_epoch=True), data())
    assert result.history == {
        "value_step": [(1, 1.0), (2, 5.0), (3, 3.0)],
        "value_epoch": [(3, mean)],
    }
    found = {name: float(v) for name, v in trainer.callback_metrics.items()}
    assert found == {"value_step": 3.0, "value_epoch": mean, "value": mean}


@pytest.mark.parametrize(
    ("every", "steps"),
    [(1, [1, 2, 3, 4, 5, 6]), (2, [2, 4, 6]), (4, [3, 4]), (50, [3, 6]), (0, [])],
)
def test_log_every_n_steps(every: int, steps: list[int]) -> None:
    result = fit(Logs(), data(), max_epochs=2, log_every_n_steps=every)
    assert [step for step, _ in result.history.get("value", [])] == steps


class Where(Callback):
    """Calls log in one event."""

    def __init__(self, event: str, order: Order = Order.MEASURE, **options: Any) -> None:
        self.__class__ = type("Where", (Where,), {"order": order})
        self.options = options
        setattr(self, event, self.call)

    def call(self, trainer: Any, module: Any, *args: Any) -> None:
        if not trainer.sanity_checking:
            self.log("where", 2.0, **self.options)


ALLOWED = [
    "on_train_start",
    "on_train_epoch_start",
    "on_train_batch_start",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_train_batch_end",
    "on_train_epoch_end",
    "on_validation_start",
    "on_validation_epoch_start",
    "on_validation_batch_start",
    "on_validation_batch_end",
    "on_validation_epoch_end",
]


@pytest.mark.parametrize("event", ALLOWED)
def test_log_is_allowed_in(event: str) -> None:
    result = fit(Regression(), loader(), loader(4), max_epochs=1, callbacks=Where(event))
    assert {value for _, value in result.history["where"]} == {2.0}


REFUSED = ["setup", "on_fit_start", "on_train_end", "on_fit_end", "teardown", "on_validation_end"]


@pytest.mark.parametrize("event", REFUSED)
def test_log_is_refused_in(event: str) -> None:
    with pytest.raises(TrainerError, match=r"log\('where'\): values are logged in the steps"):
        fit(Regression(), loader(), loader(4), max_epochs=1, callbacks=Where(event))


@pytest.mark.parametrize("order", list(Order))
def test_log_at_epoch_end_is_never_lost(order: Order) -> None:
    where = Where("on_train_epoch_end", order)
    result = fit(Regression(), loader(), max_epochs=2, callbacks=where)
    assert result.history["where"] == [(6, 2.0), (12, 2.0)]


WRONG_FLAGS = {
    "no step at an epoch's end": (
        Where("on_train_epoch_end", on_step=True),
        r"there are no steps. Got on_step=True",
    ),
    "neither": (
        Where("on_train_batch_end", on_step=False, on_epoch=False),
        r"Got on_step=False and on_epoch=False",
    ),
    "reduction": (
        Where("on_train_batch_end", on_epoch=True, reduce_fx="median"),
        r"reduce_fx must be one of mean, sum, max, min. Got 'median'",
    ),
}


@pytest.mark.parametrize("case", WRONG_FLAGS)
def test_flags_that_do_not_fit(case: str) -> None:
    callback, message = WRONG_FLAGS[case]
    with pytest.raises((TrainerError, ArgumentError), match=message):
        fit(Regression(), loader(), max_epochs=1, callbacks=callback)


@pytest.mark.parametrize("name", ["epoch", "step"])
def test_reserved_names(name: str) -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log(name, 1.0)

    with pytest.raises(ArgumentError, match=rf"log\('{name}'\).*for example to 'my_{name}'"):
        fit(Task(), max_epochs=1)


@pytest.mark.parametrize("stage", ["fit", "validate"])
def test_step_values_of_an_evaluation_are_refused(stage: str) -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("x", 1.0, on_step=True, on_epoch=True)

    given = (data(), data()) if stage == "fit" else (data(),)
    message = r"step values stand over updates, and an evaluation batch makes none.*self.trainer.tr"
    with pytest.raises(TrainerError, match=message):
        getattr(quiet(max_epochs=1), stage)(Task(), *given)


@pytest.mark.parametrize("size", [0, -1, 0.5])
def test_batch_sizes_below_one_are_refused(size: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"must be ≥ 1. Got {size}. Leave the value"):
        fit(Logs(on_epoch=True, on_step=False, batch_size=size), data(), max_epochs=1)


def test_logged_metrics_keep_every_name() -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(Regression(), data(), data())
    assert set(trainer.logged_metrics) == {"train/loss_step", "train/loss_epoch", "val/loss"}
    trainer.test(Regression(), data(), verbose=False)
    assert set(trainer.logged_metrics) == {"test/loss"}


WRONG_VALUES = {
    "vector": (mt.zeros(3), r"a number or a tensor with one element. Got f32\[3\]"),
    "text": ("high", r"Got str. Reduce it first"),
    "none": (None, r"Got NoneType"),
}


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_values_that_are_no_numbers(case: str) -> None:
    value, message = WRONG_VALUES[case]

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("x", value)

    with pytest.raises(ArgumentError, match=message):
        fit(Task(), max_epochs=1)


@pytest.mark.parametrize(
    "value", [1, 1.0, True, np.float32(1), np.array([1.0]), mt.tensor(1), mt.ones(1, 1)]
)
def test_values_of_all_kinds(value: Any) -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("x", value)
            return self.loss(batch)

    assert fit(Task(), max_steps=1).history["x"] == [(1, 1.0)]


@pytest.mark.parametrize("name", ["", 3])
def test_names_are_texts(name: Any) -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log(name, 1.0)

    with pytest.raises(ArgumentError, match=r"log: a name is a non-empty string. Got"):
        fit(Task(), max_epochs=1)


def test_same_value_from_two_places_of_an_epoch_with_explicit_flags() -> None:
    class Task(Regression):
        def on_train_epoch_start(self) -> None:
            self.log("x", 1.0, on_step=False, on_epoch=True)

        def on_train_epoch_end(self) -> None:
            self.log("x", 3.0, on_step=False, on_epoch=True)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch)

    assert fit(Task(), max_epochs=1).history["x"] == [(6, 2.0)]


def test_name_keeps_its_flags() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("x", 1.0)
            self.log("x", 1.0, on_epoch=True)

    with pytest.raises(TrainerError, match=r"log\('x'\): a name keeps its flags.*Use two names"):
        fit(Task(), max_epochs=1)


def test_derived_names_do_not_collide() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("x_epoch", 1.0)
            self.log("x", 1.0, on_step=True, on_epoch=True)

    with pytest.raises(TrainerError, match=r"called 'x_step' and 'x_epoch'.*Rename it"):
        fit(Task(), max_epochs=1)


def test_log_outside_of_a_run() -> None:
    with pytest.raises(TrainerError, match=r"during a run of a Trainer. Got a call outside"):
        Regression().log("x", 1.0)
    with pytest.raises(RuntimeError, match=r"Where.log: a callback logs during a run"):
        Where("setup").log("x", 1.0)


def test_unclear_batch_size_is_refused_where_it_matters() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("x", 1.0, on_epoch=True, on_step=False)

    odd = [(np.zeros((4, 3), np.float32), np.zeros((5, 1), np.float32))]
    with pytest.raises(DataError, match=r"Got f32\[4,3\], f32\[5,1\]. Pass batch_size="):
        fit(Task(), odd, max_epochs=1)
    with pytest.raises(DataError, match=r"Got a list without any"):
        fit(Task(), [["a", "b"]], max_epochs=1)


def test_kept_values_are_copies_out_of_the_graph() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            total = loss.detach().clone()
            self.log("x", total)
            total.add_(100.0)
            self.expected = float(loss)
            return loss

    task = Task()
    assert fit(task, max_steps=1).history["x"] == [(1, task.expected)]


def test_metrics_of_a_phase_are_final_before_others_decide() -> None:
    seen: list[dict[str, float]] = []

    class Look(Callback):
        order = Order.DECIDE

        def look(self, trainer: Any, module: Any) -> None:
            if not trainer.sanity_checking:
                seen.append({k: float(v) for k, v in trainer.callback_metrics.items()})

        on_validation_end = on_train_epoch_end = look

    fit(Logs(), data(), data(), max_epochs=1, callbacks=Look())
    mean = REDUCED["mean"]
    validated = {"value": 3.0, "val/value": mean}
    assert seen == [validated, {**validated, "value_epoch": mean}]


def test_aggregates_can_be_read_at_the_epochs_end() -> None:
    seen = []

    class Task(Logs):
        def on_validation_epoch_end(self) -> None:
            if not self.trainer.sanity_checking:
                seen.append(float(self.trainer.callback_metrics["val/value"]))

    fit(Task(), data(), data(), max_epochs=1)
    assert seen == [REDUCED["mean"]]


def test_progress_bar_values() -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(Logs(prog_bar=True), data())
    assert trainer.progress_bar_metrics == {"value": 3.0}
    trainer = quiet(max_epochs=1)
    trainer.fit(Logs(), data())
    assert trainer.progress_bar_metrics == {}


def test_logger_false_keeps_values_out_of_loggers() -> None:
    trainer = quiet(max_epochs=1)
    assert trainer.fit(Logs(logger=False), data()).history == {}
    assert float(trainer.callback_metrics["value"]) == 3.0


def test_log_dict() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log_dict({"a": 1.0, "b": 2.0}, on_step=False, on_epoch=True)
            return self.loss(batch)

    assert fit(Task(), max_steps=6, max_epochs=1).history == {"a": [(6, 1.0)], "b": [(6, 2.0)]}


class Stops(Callback):
    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.position.batches == 5:
            trainer.stop("enough")


ENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "max_steps, default interval": (
        {"max_steps": 2, "log_every_n_steps": None},
        {"value_step": [(2, 5.0)], "value_epoch": [(2, (4 * 1 + 2 * 5) / 6)]},
    ),
    "step value written before": (
        {"max_steps": 2},
        {"value_step": [(1, 1.0), (2, 5.0)], "value_epoch": [(2, 14 / 6)]},
    ),
    "no step values": (
        {"max_steps": 2, "log_every_n_steps": 0},
        {"value_epoch": [(2, 14 / 6)]},
    ),
    "stopped": (
        {"callbacks": Stops(), "log_every_n_steps": None},
        {"value_step": [(3, 3.0), (5, 5.0)], "value_epoch": [(3, 17 / 7), (5, 14 / 6)]},
    ),
    "whole epoch": (
        {"max_steps": 3, "log_every_n_steps": None},
        {"value_step": [(3, 3.0)], "value_epoch": [(3, 17 / 7)]},
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_run_that_ends_inside_of_an_epoch_reports_it(case: str, tmp_path: Any) -> None:
    options, expected = ENDS[case]
    interval = options.get("log_every_n_steps", 1)
    trainer = quiet(**options)
    task = Logs(on_step=True, on_epoch=True)
    result = trainer.fit(task, data())
    assert result.history == expected
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    whole = fit(Logs(on_step=True, on_epoch=True), data(), max_epochs=3, log_every_n_steps=interval)
    rest = quiet(max_epochs=3, log_every_n_steps=interval).fit(
        Logs(on_step=True, on_epoch=True), data(), ckpt_path=tmp_path / "x.ckpt"
    )
    assert rest.history == whole.history


def test_logging_on_a_gpu_reads_values_at_the_end_of_the_epoch_only(pretend_gpu: Any) -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            self.log("x", loss, on_step=False, on_epoch=True)
            return loss

    reads = []
    for n in (24, 96):
        with pretend_gpu.counters.watch() as seen:
            result = fit(Task(), loader(n), max_epochs=1, accelerator="gpu", log_every_n_steps=50)
        reads.append(seen.device_to_host.calls)
        assert len(result.history["x"]) == 1
    assert reads[0] == reads[1], seen.report("device_to_host")
    mt.manual_seed(0)
    on_gpu = fit(Task(), loader(24), max_epochs=1, accelerator="gpu").history
    mt.manual_seed(0)
    on_cpu = fit(Task(), loader(24), max_epochs=1).history
    assert on_gpu == on_cpu
