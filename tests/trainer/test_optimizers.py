"""What configure_optimizers may return, schedules, clipping, and manual optimization."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.errors import ArgumentError, TrainerError
from minitorch.optim import lr_scheduler
from minitorch.trainer import TaskModule


def sgd(module: Any) -> Any:
    return mt.optim.SGD(module.parameters(), lr=1.0)


def step_lr(optimizer: Any) -> Any:
    return lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)


def pair(module: Any, wrap: Any) -> Any:
    optimizer = sgd(module)
    return wrap(optimizer, step_lr(optimizer))


# one optimizer, 2 epochs of 6 updates: the rate after the fit
FORMS: dict[str, tuple[Any, float]] = {
    "optimizer": (sgd, 1.0),
    "list": (lambda m: [sgd(m)], 1.0),
    "tuple": (lambda m: (sgd(m),), 1.0),
    "two lists": (lambda m: pair(m, lambda o, s: ([o], [s])), 0.25),
    "two lists with config": (
        lambda m: pair(m, lambda o, s: ([o], [{"scheduler": s, "interval": "step"}])),
        0.5**12,
    ),
    "dict": (lambda m: {"optimizer": sgd(m)}, 1.0),
    "dict with schedule": (
        lambda m: pair(m, lambda o, s: {"optimizer": o, "lr_scheduler": s}),
        0.25,
    ),
    "dict with config": (
        lambda m: pair(
            m,
            lambda o, s: {
                "optimizer": o,
                "lr_scheduler": {"scheduler": s, "interval": "step", "frequency": 4, "name": "x"},
            },
        ),
        0.125,
    ),
    "list of dicts": (
        lambda m: pair(m, lambda o, s: [{"optimizer": o, "lr_scheduler": s}]),
        0.25,
    ),
    "every second epoch": (
        lambda m: pair(
            m, lambda o, s: {"optimizer": o, "lr_scheduler": {"scheduler": s, "frequency": 2}}
        ),
        0.5,
    ),
}


class Tiny(Regression):
    """A loss so small that the rate does not matter."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch) * 1e-6


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_configure_optimizers(form: str) -> None:
    configure, rate = FORMS[form]
    trainer = quiet(max_epochs=2)
    trainer.fit(type("Task", (Tiny,), {"configure_optimizers": configure})(), loader())
    assert trainer.optimizers[0].param_groups[0]["lr"] == rate


@pytest.mark.parametrize(("every", "rates"), [(1, [1.0, 0.5, 0.25]), (2, [1.0, 1.0, 1.0, 0.5])])
def test_plateau_moves_by_fresh_values_only(every: int, rates: list[float]) -> None:
    """A metric that gets worse; a stale value is no sign of a plateau."""
    seen: list[float] = []

    class Task(Tiny):
        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("val/loss", float(self.current_epoch))

        def on_train_epoch_start(self) -> None:
            seen.append(self.trainer.optimizers[0].param_groups[0]["lr"])

        def configure_optimizers(self) -> Any:
            optimizer = sgd(self)
            plateau = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
            return {"optimizer": optimizer, "lr_scheduler": plateau, "monitor": "val/loss"}

    quiet(max_epochs=len(rates) + 1, check_val_every_n_epoch=every).fit(
        Task(), loader(8), loader(4)
    )
    expected = {1: [1.0, 1.0, 0.5, 0.25], 2: [1.0, 1.0, 1.0, 1.0, 0.5]}[every]
    assert seen == expected


class Watching(Tiny):
    """A training value that falls within each epoch, and a validation value that does not."""

    def __init__(self, monitor: str, **config: Any) -> None:
        super().__init__()
        self.monitor, self.config = monitor, config
        self.rates: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("loss", float(batch_idx), on_step=True, on_epoch=True)
        self.log("step only", 1.0, on_epoch=False)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("loss", -10.0 * self.current_epoch)

    def on_train_epoch_start(self) -> None:
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

    def configure_optimizers(self) -> Any:
        optimizer = sgd(self)
        plateau = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
        config = {"scheduler": plateau, "monitor": self.monitor, **self.config}
        return {"optimizer": optimizer, "lr_scheduler": config}


@pytest.mark.parametrize("interval", ["epoch", "step"])
@pytest.mark.parametrize(
    ("monitor", "rates"),
    [
        ("loss", [1.0, 1.0, 1.0]),  # validation's, which falls
        ("loss_epoch", [1.0, 1.0, 0.5]),  # training's, the same in each epoch
    ],
)
def test_plateau_reads_values_of_epochs(monitor: str, rates: list[float], interval: str) -> None:
    task = Watching(monitor, interval=interval)
    fit(task, loader(8), loader(4), max_epochs=3)
    assert task.rates == rates


@pytest.mark.parametrize("interval", ["epoch", "step"])
@pytest.mark.parametrize(
    ("monitor", "message"),
    [("step only", "exists only as the value of single batches"), ("other", "was never logged")],
)
def test_plateau_without_such_a_value(monitor: str, message: str, interval: str) -> None:
    with pytest.raises(TrainerError, match=f"lr_scheduler: monitor='{monitor}' {message}"):
        fit(Watching(monitor, interval=interval), loader(8), loader(4), max_epochs=2)
    assert fit(Watching("other", strict=False), loader(8), max_epochs=1).epochs == 1


def test_optimizer_state_is_keyed_by_the_modules_names() -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(Regression(), loader())
    assert "linear.weight" in str(trainer.optimizers[0].state_dict())


CLIPS = {"norm": 0.01, "value": 0.001}


class Norms(Callback):
    """Largest value and norm of the gradients before and after clipping."""

    def __init__(self) -> None:
        self.before: list[float] = []

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        self.before.append(float(mt.cat([p.grad.flatten() for p in module.parameters()]).norm()))


@pytest.mark.parametrize("algorithm", CLIPS)
def test_clipping_bounds_the_update(algorithm: str) -> None:
    class Task(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.parameters(), lr=1.0)

    task, limit, norms = Task(), CLIPS[algorithm], Norms()
    before = weights(task)
    fit(
        task,
        max_steps=1,
        gradient_clip_val=limit,
        gradient_clip_algorithm=algorithm,
        callbacks=norms,
    )
    moved = np.concatenate([(weights(task)[n] - before[n]).ravel() for n in before])
    size = np.linalg.norm(moved) if algorithm == "norm" else np.abs(moved).max()
    assert size == pytest.approx(limit, rel=1e-3)
    assert norms.before[0] > 10 * limit


@pytest.mark.parametrize("algorithm", ["norm", "value"])
@pytest.mark.parametrize("limit", [None, 0.25])
def test_groups_have_limits_of_their_own(algorithm: str, limit: float | None) -> None:
    class Grouped(Regression):
        def configure_optimizers(self) -> Any:
            bias = {"params": [self.linear.bias], "gradient_clip_val": 0.01}
            return mt.optim.SGD([{"params": [self.linear.weight]}, bias], lr=1.0)

    found: list[Any] = []
    for options in ({}, {"gradient_clip_val": limit, "gradient_clip_algorithm": algorithm}):
        mt.manual_seed(1)
        task: Any = Grouped() if options else Regression(lr=1.0)
        before = weights(task)
        fit(task, loader(8, 8, shuffle=False), max_epochs=1, **options)
        found.append({name: before[name] - value for name, value in weights(task).items()})
    free, clipped = found
    expected = {"linear.bias": 0.01, "linear.weight": limit}
    for name, most in expected.items():
        step = free[name]
        if most is not None:
            largest = np.linalg.norm(step) if algorithm == "norm" else 1.0
            step = (
                step * min(1.0, most / largest)
                if algorithm == "norm"
                else np.clip(step, -most, most)
            )
        np.testing.assert_allclose(clipped[name], step, rtol=1e-4)


def test_a_limit_of_a_group_is_a_number() -> None:
    class Grouped(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.SGD([{"params": self.parameters(), "gradient_clip_val": 0}], lr=1.0)

    with pytest.raises(ArgumentError, match=r"gradient_clip_val of a parameter group must be"):
        fit(Grouped(), max_epochs=1)


def test_own_clipping_replaces_the_trainers() -> None:
    seen: list[Any] = []

    class Task(Regression):
        def configure_gradient_clipping(
            self,
            optimizer: Any,
            gradient_clip_val: float | None = None,
            gradient_clip_algorithm: str | None = None,
        ) -> None:
            seen.append((gradient_clip_val, gradient_clip_algorithm))
            self.clip_gradients(optimizer, gradient_clip_val=0.5)

    fit(Task(), max_steps=1)
    assert seen == [(None, "norm")]


@pytest.mark.parametrize("algorithm", CLIPS)
def test_own_clipping_takes_the_trainers_limits(algorithm: str) -> None:
    class Own(Regression):
        def configure_gradient_clipping(self, optimizer: Any, *options: Any) -> None:
            self.clip_gradients(optimizer)

    found = []
    for kind in (Regression, Own):
        mt.manual_seed(1)
        task, limit = kind(), {"gradient_clip_val": CLIPS[algorithm]}
        fit(task, max_steps=2, gradient_clip_algorithm=algorithm, **limit)
        found.append(weights(task)["linear.weight"])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gradient_clip_val": 0.5}, r"gradient_clip_val is set in one place. Got 0.5 here and 3"),
        ({"gradient_clip_algorithm": "value"}, r"Got 'value' here and 'norm' in Trainer"),
    ],
)
def test_two_limits_are_refused(options: dict[str, Any], message: str) -> None:
    class Task(Regression):
        def configure_gradient_clipping(self, optimizer: Any, *given: Any) -> None:
            self.clip_gradients(optimizer, **options)

    with pytest.raises(ArgumentError, match=message):
        fit(Task(), max_steps=1, gradient_clip_val=3.0, gradient_clip_algorithm="norm")


def test_own_optimizer_step_and_zero_grad() -> None:
    losses: list[Any] = []
    zeroed: list[int] = []

    class Task(Regression):
        def optimizer_step(
            self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None
        ) -> None:
            losses.append(optimizer_closure())
            optimizer.step(closure=optimizer_closure)

        def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
            zeroed.append(batch_idx)
            optimizer.zero_grad()

    plain, own = Regression(), Task()
    own.load_state_dict(plain.state_dict())
    for task in (plain, own):
        mt.manual_seed(0)
        fit(task, max_epochs=1)
    assert len(losses) == 6
    assert zeroed == list(range(6))
    for name, value in weights(plain).items():
        np.testing.assert_array_equal(value, weights(own)[name])


class Gan(TaskModule):
    """Two optimizers, both stepped in every batch."""

    automatic_optimization = False

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = nn.Linear(2, 3), nn.Linear(3, 1)
        self.flags: list[list[bool]] = []

    def training_step(self, batch: Any, batch_idx: int) -> None:
        x = batch[0]
        g_opt, c_opt = self.optimizers()
        with self.toggled_optimizer(g_opt):
            self.flags.append([p.requires_grad for p in self.parameters()])
            loss = -self.critic(self.generator(mt.randn(x.shape[0], 2))).mean()
            g_opt.zero_grad()
            self.manual_backward(loss)
            g_opt.step()
        self.toggle_optimizer(c_opt)
        fake = self.generator(mt.randn(x.shape[0], 2)).detach()
        c_loss = (self.critic(fake) - self.critic(x)).mean()
        c_opt.zero_grad()
        self.manual_backward(c_loss)
        self.clip_gradients(c_opt, gradient_clip_val=0.1)
        c_opt.step()
        self.untoggle_optimizer(c_opt)
        self.log_dict({"g": loss, "c": c_loss})

    def configure_optimizers(self) -> Any:
        return [
            mt.optim.Adam(self.generator.parameters(), lr=0.01),
            mt.optim.SGD(self.critic.parameters(), lr=0.01),
        ]


@pytest.mark.parametrize("precision", ["32", "16-mixed"])
def test_manual_optimization_of_two_optimizers(precision: str) -> None:
    events: list[str] = []

    class Watch(Callback):
        def on_before_zero_grad(self, trainer: Any, module: Any, optimizer: Any) -> None:
            events.append("zero")

        def on_before_backward(self, trainer: Any, module: Any, loss: Any) -> None:
            events.append("backward")

        def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
            events.append("step")

    mt.manual_seed(0)
    task = Gan()
    before = weights(task)
    result = fit(task, max_epochs=1, callbacks=Watch(), precision=precision)
    updates = {"32": 6, "16-mixed": 5}[precision]  # the first scale is too large
    assert result.global_step == updates
    assert events == ["zero", "backward", "step"] * 12
    same = [name for name, v in weights(task).items() if np.array_equal(before[name], v)]
    assert same == ["critic.bias"]  # its gradient is 1 - 1
    assert task.flags[0] == [True, True, False, False]
    assert all(p.requires_grad for p in task.parameters())
    assert len(result.history["g"]) == updates


def test_updates_are_counted_as_the_optimizers_count_them() -> None:
    class EverySecond(Tiny):
        def optimizer_step(
            self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None
        ) -> None:
            if batch_idx % 2:
                optimizer.step()

        def configure_optimizers(self) -> Any:
            return pair(
                self,
                lambda o, s: {
                    "optimizer": o,
                    "lr_scheduler": {"scheduler": s, "interval": "step"},
                },
            )

    trainer = quiet(max_epochs=1)
    result = trainer.fit(EverySecond(), loader())
    assert result.global_step == trainer.optimizers[0].updates == 3
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0.5**3


def test_manual_steps_past_the_trainer_count() -> None:
    class Raw(Regression):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizer = self.trainer.optimizers[0]
            optimizer.zero_grad()
            loss = self.loss(batch)
            self.manual_backward(loss)
            optimizer.step()
            self.log("loss", loss)

    result = fit(Raw(), max_steps=4)
    assert (result.status, result.global_step) == ("completed", 4)
    assert [step for step, _ in result.history["loss"]] == [1, 2, 3, 4]


def test_manual_schedules_are_the_users() -> None:
    class Task(Regression):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            optimizer.step()
            if batch_idx == 0:
                self.lr_schedulers().step()

        def configure_optimizers(self) -> Any:
            optimizer = mt.optim.SGD(self.parameters(), lr=0.01)
            return [optimizer], [step_lr(optimizer)]

    trainer = quiet(max_epochs=2)
    trainer.fit(Task(), loader())
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0.0025


def test_manual_optimization_without_an_optimizer() -> None:
    class Task(Regression):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            with mt.no_grad():
                self.linear.weight.mul_(0.5)

        def configure_optimizers(self) -> Any:
            return None

    task = Task()
    before = weights(task)["linear.weight"]
    result = fit(task, max_epochs=1)
    assert result.global_step == 0
    np.testing.assert_allclose(weights(task)["linear.weight"], before * 0.5**6)


def test_manual_backward_checks_the_loss() -> None:
    class Task(Regression):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            self.manual_backward(self.loss(batch) * float("nan"))

    with pytest.raises(TrainerError, match="must be finite. Got nan"):
        fit(Task(), max_epochs=1)


def test_toggled_parameters_are_released_after_an_exception() -> None:
    class Task(Regression):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.toggle_optimizer(self.optimizers()[0])
            assert not self.linear.bias.requires_grad
            raise LookupError

        def configure_optimizers(self) -> Any:
            return [mt.optim.SGD([p], lr=0.1) for p in self.parameters()]

    task = Task()
    with pytest.raises(LookupError):
        fit(task, max_epochs=1)
    assert all(p.requires_grad for p in task.parameters())
