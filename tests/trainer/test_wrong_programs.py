"""Wrong programs: each gives an error that states the rule, what came, and the fix."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, ModelCheckpoint
from minitorch.callbacks.core import Precision
from minitorch.data import DataLoader, TensorDataset
from minitorch.errors import ArgumentError, DataError, TrainerError
from minitorch.trainer import TaskModule, Trainer


def returns(value: Any) -> type[Regression]:
    """A task whose training_step returns value(self, loss)."""

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return value(self, self.loss(batch))

    return Task


RETURNS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda m, loss: None, r"Got None. Add `return loss`"),
    "number": (lambda m, loss: loss.item(), r"Got the number [\d.]+. Return the tensor itself"),
    "tuple": (lambda m, loss: (loss, 1), r'Got tuple. Return loss, or \{"loss": loss'),
    "dict without loss": (lambda m, loss: {"los": loss}, r"Got a dict with the keys 'los'. Add"),
    "array": (lambda m, loss: loss.detach().numpy(), r"Got f32\[\]. Compute it with minitorch"),
    "vector": (lambda m, loss: loss * mt.ones(3), r"Got f32\[3\]. Reduce it.*\.mean\(\)"),
    "detached": (lambda m, loss: loss.detach(), r"no trainable parameter took part"),
    "wrapped again": (lambda m, loss: mt.tensor(loss.item()), r"requires no gradient.*tensor\("),
    "nan": (lambda m, loss: loss * float("nan"), r"must be finite. Got nan at epoch 0, batch 0"),
    "inf": (lambda m, loss: loss * float("inf"), r"Got inf.*last good update. Lower the learning"),
    "count": (lambda m, loss: {"loss": loss, "count": 0}, r'"count" is the number of items.*Got 0'),
}


@pytest.mark.parametrize("case", RETURNS)
def test_wrong_returns_of_training_step(case: str) -> None:
    value, message = RETURNS[case]
    with pytest.raises(TrainerError, match=message):
        fit(returns(value)(), max_epochs=1)


def test_recording_that_was_switched_off() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            mt.set_grad_enabled(False)
            return self.loss(batch)

    with pytest.raises(TrainerError, match=r"recording is switched off.*set_grad_enabled\(False\)"):
        fit(Task(), max_epochs=1)
    assert mt.is_grad_enabled()


def test_nan_keeps_the_last_good_weights() -> None:
    kept: list[Any] = []

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            kept.append(weights(self))
            loss = super().training_step(batch, batch_idx)
            return loss * float("nan") if batch_idx == 3 else loss

    task = Task()
    with pytest.raises(TrainerError, match=r"batch 3 \(after 3 updates\)"):
        fit(task, max_epochs=1)
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, kept[-1][name])
        assert np.isfinite(value).all()


def without(*names: str) -> type[TaskModule]:
    """Regression that lacks methods."""
    body = {k: v for k, v in vars(Regression).items() if k not in names and k[:2] != "__"}
    return type("Partial", (TaskModule,), {**body, "__init__": _init})


def _init(self: Any) -> None:
    TaskModule.__init__(self)
    self.linear, self.dropout = nn.Linear(3, 1), nn.Dropout(0.0)


MISSING = {
    "training_step": ("fit", r"Partial: Trainer.fit needs the method training_step.*Add `def tr"),
    "configure_optimizers": ("fit", r"needs the method configure_optimizers. It is not defined"),
    "validation_step": ("validate", r"Trainer.validate needs the method validation_step"),
    "test_step": ("test", r"Trainer.test needs the method test_step"),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_methods(name: str) -> None:
    run, message = MISSING[name]
    trainer = quiet(max_epochs=1)
    with pytest.raises(TrainerError, match=message):
        getattr(trainer, run)(without(name)(), loader())


def test_validation_data_without_validation_step() -> None:
    with pytest.raises(TrainerError, match="needs the method validation_step"):
        quiet(max_epochs=1).fit(without("validation_step")(), loader(), loader())


STEP_RETURNS: dict[str, tuple[str, Any, str]] = {
    "validation": ("validate", (1, 2), r"validation_step: it returns a tensor, a dict or nothing"),
    "test": ("test", "good", r"test_step: it returns .* Got str. Metrics are kept with self.log"),
    "predict": ("predict", None, r"predict_step: it must return the prediction.*Got None"),
}


@pytest.mark.parametrize("case", STEP_RETURNS)
def test_wrong_returns_of_evaluation_steps(case: str) -> None:
    run, value, message = STEP_RETURNS[case]
    task = type("Task", (Regression,), {f"{case}_step": lambda self, batch, batch_idx: value})()
    with pytest.raises(TrainerError, match=message):
        getattr(quiet(), run)(task, loader())


class Empty:
    def __iter__(self) -> Any:
        return iter(())


def used_generator() -> Any:
    yield from loader()


X, Y = arrays(8)
DATA: dict[str, tuple[Any, str]] = {
    "nothing": (None, r"training data is missing. Pass train_dataloaders"),
    "number": (3, r"train_dataloaders: data is a DataLoader.*Got int"),
    "text": ("train.csv", r"Got str"),
    "empty list": ([], r"at least one batch. Got a list of length 0"),
    "generator": (used_generator(), r"readable once per epoch. Got a generator.*starts afresh"),
    "empty iterable": (Empty(), r"at least one batch. Got none in epoch 0 from a Empty"),
    "lengths": ((X, Y[:4]), r"equal lengths. Got f32\[8,3\], f32\[4,1\]"),
    "no samples": ((X[:0], Y[:0]), r"at least one sample. Got arrays of length 0"),
    "number arrays": ((np.ones((), np.float32),), r"equal lengths. Got f32\[\]"),
}


@pytest.mark.parametrize("case", DATA)
def test_wrong_training_data(case: str) -> None:
    data, message = DATA[case]
    with pytest.raises(DataError, match=message):
        quiet(max_epochs=2).fit(Regression(), data)


LIMITS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "share of nothing": (
        {"limit_train_batches": 0.01},
        DataError,
        r"limit_train_batches=0.01 of 6 batches leaves none. Pass a share ≥ 0.167",
    ),
    "zero": ({"limit_train_batches": 0}, DataError, r"leaves no batch to train on"),
    "interval": (
        {"val_check_interval": 7},
        ArgumentError,
        r"val_check_interval=7 must be ≤ the 6 batches.*check_val_every_n_epoch=None",
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_that_do_not_fit_the_data(case: str) -> None:
    options, kind, message = LIMITS[case]
    with pytest.raises(kind, match=message):
        quiet(max_epochs=1, **options).fit(Regression(), loader(), loader())


class Unsized:
    def __iter__(self) -> Any:
        return iter(loader())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit_train_batches": 0.5}, r"limit_train_batches=0.5 is a share, but the loader has"),
        ({"val_check_interval": 0.5}, r"val_check_interval=0.5 is a share of an epoch"),
    ],
)
def test_shares_of_an_unknown_length(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        quiet(max_epochs=1, **options).fit(Regression(), Unsized(), loader())


def optimizers(fn: Any) -> type[Regression]:
    return type("Task", (Regression,), {"configure_optimizers": fn})


def sgd(module: Any) -> Any:
    return mt.optim.SGD(module.parameters(), lr=0.1)


def plateau(optimizer: Any) -> Any:
    return mt.optim.lr_scheduler.ReduceLROnPlateau(optimizer)


def plateau_without_monitor(module: Any) -> Any:
    optimizer = sgd(module)
    return [optimizer], [plateau(optimizer)]


OPTIMIZERS: dict[str, tuple[Any, str]] = {
    "nothing": (lambda m: None, r"configure_optimizers: it must return an optimizer.*Got None"),
    "text in a dict": (
        lambda m: {"optimizer": "sgd"},
        r"an optimizer was expected. Got str. Use a class of minitorch.optim",
    ),
    "class": (lambda m: mt.optim.SGD, r"Got the class SGD \(make an object of it\)"),
    "text": (lambda m: "sgd", r"Got str"),
    "empty": (lambda m: [], r"Got list of nothing"),
    "mixed": (lambda m: [sgd(m), "sgd"], r"Got list of SGD, str"),
    "two": (lambda m: [sgd(m), sgd(m)], r"have names.* Got 2 without. Return a dict"),
    "key": (lambda m: {"optimiser": sgd(m)}, r"unknown key 'optimiser'. Did you mean 'optimizer'"),
    "no optimizer": (lambda m: {"monitor": "x"}, r'needs the key "optimizer". Got \'monitor\''),
    "empty dict": (lambda m: {}, r'needs the key "optimizer". Got an empty dict\.'),
    "schedule": (
        lambda m: {"optimizer": sgd(m), "lr_scheduler": "cosine"},
        r"a schedule is an object of minitorch.optim.lr_scheduler. Got str",
    ),
    "schedule key": (
        lambda m: {"optimizer": sgd(m), "lr_scheduler": {"scheduler": 1, "intervall": "step"}},
        r"lr_scheduler has an unknown key 'intervall'. Did you mean 'interval'",
    ),
    "no monitor": (plateau_without_monitor, r"ReduceLROnPlateau watches a metric and must be told"),
    "strangers": (
        lambda m: sgd(nn.Linear(3, 1)),
        r"hold parameters of this module. Got 2 of 2 that are not in it",
    ),
    "forgotten": (
        lambda m: mt.optim.SGD([m.linear.weight], lr=0.1),
        r"every trainable parameter must be in an optimizer. Missing are linear.bias",
    ),
}


@pytest.mark.parametrize("case", OPTIMIZERS)
def test_wrong_returns_of_configure_optimizers(case: str) -> None:
    fn, message = OPTIMIZERS[case]
    with pytest.raises(TrainerError, match=message):
        fit(optimizers(fn)(), max_epochs=1)


OPTIONS = {
    "another library's": (
        lambda m: mt.optim.Adam(m.parameters(), learning_rate=1),
        "Adam has no option learning_rate. Did you mean lr[?] It takes params, lr, betas",
    ),
    "misspelt": (
        lambda m: mt.optim.SGD(m.parameters(), lr=1, momentun=0.9),
        "SGD has no option momentun. Did you mean momentum[?]",
    ),
    "of a schedule": (
        lambda m: mt.optim.lr_scheduler.StepLR(sgd(m), stepsize=3),
        "StepLR has no option stepsize. Did you mean step_size[?]",
    ),
    "like nothing": (
        lambda m: mt.optim.SGD(m.parameters(), lr=1, quux=1),
        "SGD has no option quux. It takes params, lr, momentum",
    ),
    "of an own class": (lambda m: Regression(quux=1), None),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_an_optimizer_does_not_have(case: str) -> None:
    fn, message = OPTIONS[case]
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
        fit(optimizers(fn)(), max_epochs=1)
    notes = getattr(caught.value, "__notes__", [])
    assert [bool(re.search(message, note)) for note in notes] == [True] if message else not notes


SCHEDULES = {
    "interval": ({"interval": "batch"}, r'interval of a schedule must be "epoch" or "step"'),
    "frequency": ({"frequency": 0}, r"frequency of a schedule must be an integer ≥ 1. Got 0"),
}


@pytest.mark.parametrize("case", SCHEDULES)
def test_wrong_options_of_schedules(case: str) -> None:
    options, message = SCHEDULES[case]

    def configure(module: Any) -> Any:
        optimizer = sgd(module)
        schedule = mt.optim.lr_scheduler.StepLR(optimizer, 1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **options}}

    with pytest.raises(TrainerError, match=message):
        fit(optimizers(configure)(), max_epochs=1)


def test_monitor_that_nobody_logs() -> None:
    def configure(module: Any) -> Any:
        optimizer = sgd(module)
        return {"optimizer": optimizer, "lr_scheduler": plateau(optimizer), "monitor": "val/los"}

    with pytest.raises(
        TrainerError,
        match=r"monitor='val/los' was never logged. Logged are train/loss, train/loss_epoch, "
        r"train/loss_step, val/loss. Did you mean 'val/loss'",
    ):
        quiet(max_epochs=3).fit(optimizers(configure)(), loader(), loader())


def test_monitor_when_nothing_is_logged() -> None:
    def configure(module: Any) -> Any:
        optimizer = sgd(module)
        return {"optimizer": optimizer, "lr_scheduler": plateau(optimizer), "monitor": "val/loss"}

    task = type(
        "Silent",
        (Regression,),
        {
            "configure_optimizers": configure,
            "training_step": lambda self, batch, batch_idx: self.loss(batch),
        },
    )()
    with pytest.raises(TrainerError, match=r"monitor='val/loss' was never logged; nothing was"):
        fit(task, max_epochs=2)


def test_evaluation_data_that_is_empty() -> None:
    with pytest.raises(DataError, match=r"dataloaders: there must be at least one batch. Got none"):
        quiet().validate(Regression(), Empty())


MODULES: dict[str, tuple[Any, str]] = {
    "class": (Regression, r"Trainer.fit: the module must be an object.*Got a class"),
    "plain module": (nn.Linear(3, 1), r"subclass of minitorch.trainer.TaskModule. Got Linear"),
    "nothing": (None, r"Got NoneType"),
}


@pytest.mark.parametrize("case", MODULES)
def test_wrong_modules(case: str) -> None:
    module, message = MODULES[case]
    with pytest.raises(ArgumentError, match=message):
        quiet(max_epochs=1).fit(module, loader())


def test_super_init_forgotten() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            self.x = 1

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        quiet(max_epochs=1).fit(Task(), loader())


CALLBACKS: dict[str, tuple[Any, str]] = {
    "class": (Callback, r"callbacks are objects of subclasses.*Got a class"),
    "function": (print, r"Got builtin_function_or_method"),
    "one kind twice": ([Precision(), Precision()], r"one callback of the kind Precision.*Got 2"),
}


@pytest.mark.parametrize("case", CALLBACKS)
def test_wrong_callbacks(case: str) -> None:
    callbacks, message = CALLBACKS[case]
    with pytest.raises(ArgumentError, match=message):
        Trainer(callbacks=callbacks)


def test_an_optimizer_that_needs_a_closure() -> None:
    class Task(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.LBFGS(self.parameters())

    with pytest.raises(TrainerError, match=r"Got LBFGS.*automatic_optimization = False and call"):
        fit(Task(), max_epochs=1)


def test_a_missing_checkpoint_names_its_neighbours(tmp_path: Any) -> None:
    (tmp_path / "epoch=3.ckpt").touch()
    with pytest.raises(mt.CheckpointError, match=r"no file .*nope.ckpt. .* epoch=3.ckpt"):
        quiet(max_epochs=1).fit(Regression(), loader(), ckpt_path=tmp_path / "nope.ckpt")
    with pytest.raises(mt.CheckpointError, match="holds no .ckpt files"):
        quiet(max_epochs=1).fit(Regression(), loader(), ckpt_path=tmp_path / "a" / "nope.ckpt")


def test_last_of_an_earlier_process(tmp_path: Any) -> None:
    def run(max_epochs: int, **options: Any) -> Any:
        keep = ModelCheckpoint(dirpath=tmp_path, save_last=True)
        trainer = quiet(max_epochs=max_epochs, callbacks=[keep])
        return trainer.fit(Regression(), loader(), **options)

    with pytest.raises(TrainerError, match=r'ckpt_path="last".*There is none in '):
        run(1, ckpt_path="last")
    run(1)
    assert run(3, ckpt_path="last").epochs == 3


def test_a_trainer_fits_once() -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(Regression(), loader())
    with pytest.raises(TrainerError, match=r"fits once. It stands at epoch 1, update 6.*with tra"):
        trainer.fit(Regression(), loader())


def test_a_fit_refused_by_its_arguments_may_be_tried_again() -> None:
    trainer = quiet(max_epochs=1)
    with pytest.raises(DataError):
        trainer.fit(Regression(), None)
    assert trainer.fit(Regression(), loader()).epochs == 1


def test_evaluation_must_be_told_the_weights() -> None:
    trainer = quiet(max_epochs=1)
    with pytest.raises(TrainerError, match=r"module of an earlier run, and there was none"):
        trainer.test("some.ckpt", loader())
    result = trainer.fit(Regression(), loader())
    with pytest.raises(TrainerError, match=r"say which weights are meant.*Pass result.best"):
        trainer.test(result.best, loader())
    with pytest.raises(DataError, match=r"Trainer.test: data is missing.*test_dataloader"):
        trainer.test(result.last)


def test_nothing_to_save_before_a_run(tmp_path: Any) -> None:
    with pytest.raises(TrainerError, match="nothing to save before a run"):
        quiet().save_checkpoint(tmp_path / "x")
    with pytest.raises(TrainerError, match="no module before the first run"):
        _ = quiet().module
    with pytest.raises(TrainerError, match=r"Regression.trainer: a module has a Trainer once"):
        _ = Regression().trainer


class NanGradient(Regression):
    """A finite loss with a gradient that is not, from the fourth batch on."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.before = weights(self)
        return loss + (self.linear.bias.sum() * 0.0).sqrt() if batch_idx == 3 else loss


CLIPPING: dict[str, dict[str, Any]] = {
    "none": {},
    "norm": {"gradient_clip_val": 1.0},
    "value": {"gradient_clip_val": 1.0, "gradient_clip_algorithm": "value"},
}


@pytest.mark.parametrize("case", CLIPPING)
def test_gradients_that_are_not_finite(case: str) -> None:
    task = NanGradient()
    with pytest.raises(TrainerError, match=r"inf or nan in the gradients of linear.bias \(epoch 0"):
        fit(task, max_epochs=1, **CLIPPING[case])
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, task.before[name])


def test_gradients_of_a_gpu_are_checked_now_and_then(pretend_gpu: Any) -> None:
    with pytest.raises(TrainerError, match=r"inf or nan in the gradients of linear.bias"):
        fit(NanGradient(), max_epochs=1, accelerator="gpu", log_every_n_steps=3)


def test_large_gradients_are_finite() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return (self.linear.bias.sum() + self.linear.weight.sum()) * 1e30

    with pytest.raises(TrainerError, match="the loss must be finite"):
        fit(Task(lr=1e9), max_epochs=1)
    with mt.intended("update-had-no-effect"):
        fit(Task(lr=0.0), max_epochs=1)


def test_anomaly_mode_names_the_operation() -> None:
    with pytest.raises(Exception, match="sqrt"):
        fit(NanGradient(), max_epochs=1, detect_anomaly=True)


def test_loader_that_drops_its_only_batch() -> None:
    dataset = TensorDataset(mt.zeros(3, 3), mt.zeros(3, 1))
    with pytest.raises(DataError, match=r"batch"):
        fit(Regression(), DataLoader(dataset, 4, drop_last=True), max_epochs=1)
