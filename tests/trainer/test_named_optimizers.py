"""Several optimizers declared by name, against the same steps written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_exact_resume import assert_same
from toy_tasks import Regression, arrays, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, LearningRateMonitor
from minitorch.errors import TrainerError
from minitorch.io import load_tree
from minitorch.nn import functional as F
from minitorch.optim import lr_scheduler
from minitorch.trainer import TaskModule


def bce(scores: Any, real: bool) -> Any:
    target = mt.ones_like(scores) if real else mt.zeros_like(scores)
    return F.binary_cross_entropy_with_logits(scores, target)


class Gan(TaskModule):
    """Two small networks with dropout; `step` is the training_step under test."""

    frequency = 1

    def __init__(self) -> None:
        super().__init__()
        mt.manual_seed(3)
        self.g = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 3))
        self.d = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Dropout(0.2), nn.Linear(6, 1))

    def noise(self, batch: Any) -> Any:
        return mt.randn(len(batch[0]), 2)

    def d_loss(self, batch: Any, fake: Any) -> Any:
        return bce(self.d(batch[0]), True) + bce(self.d(fake), False)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        fake = self.g(self.noise(batch))
        yield "discriminator", self.d_loss(batch, fake.detach())
        if self.is_due("generator"):
            loss = bce(self.d(fake), True)
            self.log("generator", loss, on_step=True, on_epoch=True)
            yield "generator", loss

    def adam(self, part: Any) -> Any:
        return mt.optim.Adam(part.parameters(), lr=0.02, betas=(0.5, 0.9))

    def configure_optimizers(self) -> Any:
        generator = {"optimizer": self.adam(self.g), "frequency": self.frequency}
        return {"discriminator": self.adam(self.d), "generator": generator}


class Together(Gan):
    """Both losses with the weights of the start; the second graph runs through the first."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        fake = self.d(self.g(self.noise(batch)))
        d_loss = bce(self.d(batch[0]), True) + bce(fake, False)
        return {"discriminator": d_loss, "generator": -bce(fake, False), "fake": fake}


class Eager(Gan):
    """No dropout and SGD: windows can be compared with large batches."""

    def __init__(self) -> None:
        super().__init__()
        del self.d[2]

    def noise(self, batch: Any) -> Any:
        return batch[1].repeat(1, 2)

    def adam(self, part: Any) -> Any:
        return mt.optim.SGD(part.parameters(), lr=0.1)


class EagerTogether(Together, Eager):
    pass


def batches(sizes: list[int]) -> list[Any]:
    x, y = arrays(sum(sizes))
    ends = np.cumsum(sizes)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, sizes, strict=True)]


def by_hand(task: Any, data: list[Any], epochs: int, frequency: int) -> dict[str, np.ndarray]:
    """The DCGAN loop, written with minitorch alone."""
    opt_d, opt_g = task.adam(task.d), task.adam(task.g)
    task.train()
    done = 0
    for _ in range(epochs):
        for x, y in data:
            batch = mt.from_numpy(x), mt.from_numpy(y)
            fake = task.g(task.noise(batch))
            opt_d.zero_grad()
            task.d_loss(batch, fake.detach()).backward()
            opt_d.step()
            done += 1
            if done % frequency == 0:
                opt_g.zero_grad()
                bce(task.d(fake), True).backward()
                opt_g.step()
    return weights(task)


@pytest.mark.parametrize("frequency", [1, 2, 5])
def test_alternating_updates_equal_the_loop_by_hand(frequency: int) -> None:
    data = batches([4, 4, 4])
    expected = by_hand(Gan(), data, 3, frequency)
    task = type("Task", (Gan,), {"frequency": frequency})()
    result = quiet(max_epochs=3).fit(task, data)
    assert result.global_step == 9
    assert [o.updates for o in task.trainer.optimizers] == [9, 9 // frequency]
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)


def test_losses_of_a_dict_see_the_same_weights_and_stay_apart() -> None:
    data = batches([5])
    task = EagerTogether()
    x, y = map(mt.from_numpy, data[0])
    before = weights(task)
    outputs = task.training_step((x, y), 0)
    wanted = {
        "d": mt.autograd.grad(outputs["discriminator"], list(task.d.parameters()), None, True),
        "g": mt.autograd.grad(outputs["generator"], list(task.g.parameters())),
    }
    seen: list[Any] = []

    class Keep(Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, out: Any, *rest: Any) -> None:
            seen.append(out)

    quiet(max_epochs=1, callbacks=Keep()).fit(task, data)
    assert sorted(seen[0]) == ["discriminator", "fake", "generator"]
    for part, grads in wanted.items():
        for (name, p), grad in zip(getattr(task, part).named_parameters(), grads, strict=True):
            expected = before[f"{part}.{name}"] - 0.1 * grad.numpy()
            np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("task", [Eager, EagerTogether])
@pytest.mark.parametrize("sizes", [[4, 4], [5, 2, 1, 4], [3, 2, 6]])
def test_windows_equal_large_batches_with_losses_of_one_moment(task: Any, sizes: list[int]) -> None:
    merged = [sum(sizes[i : i + 2]) for i in range(0, len(sizes), 2)]

    class AtOnce(task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            output = super().training_step(batch, batch_idx)
            return output if isinstance(output, dict) else dict(output)

    small, large = task(), AtOnce()
    quiet(max_epochs=2, accumulate_grad_batches=2).fit(small, batches(sizes))
    quiet(max_epochs=2).fit(large, batches(merged))
    for name, value in weights(small).items():
        np.testing.assert_allclose(value, weights(large)[name], rtol=1e-5, atol=1e-6)


class Rich(Gan):
    """Everything that has state: cadence, schedules by step and epoch, counts."""

    frequency = 2

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        for name, loss in super().training_step(batch, batch_idx):
            yield name, {"loss": loss, "count": len(batch[0]) + batch_idx}

    def configure_optimizers(self) -> Any:
        declared = super().configure_optimizers()
        d, g = declared["discriminator"], declared["generator"]
        steps = {"scheduler": lr_scheduler.ExponentialLR(g["optimizer"], 0.9), "interval": "step"}
        return {
            "discriminator": {"optimizer": d, "lr_scheduler": lr_scheduler.StepLR(d, 1, 0.5)},
            "generator": {**g, "lr_scheduler": steps},
        }


class SaveAt(Callback):
    def __init__(self, batch: int, path: Path) -> None:
        self.batch, self.path = batch, path

    def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
        if trainer.position.batches == self.batch:
            trainer.save_checkpoint(self.path)


@pytest.mark.parametrize("batch", range(1, 8))
@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate_grad_batches": 3}, {"precision": "16-mixed", "gradient_clip_val": 0.1}],
    ids=["plain", "accumulated", "mixed"],
)
def test_resumes_exactly_after_every_batch(
    batch: int, options: dict[str, Any], tmp_path: Path
) -> None:
    data, end = batches([4, 3, 4, 2]), {"max_epochs": 2, **options}
    path = tmp_path / "at.ckpt"
    whole = quiet(**end, callbacks=SaveAt(batch, path))
    whole.fit(Rich(), data)
    whole.save_checkpoint(tmp_path / "whole.ckpt")
    again = quiet(**end, callbacks=SaveAt(batch, path))
    again.fit(Rich(), data, ckpt_path=path)
    again.save_checkpoint(tmp_path / "again.ckpt")
    assert_same(load_tree(tmp_path / "whole.ckpt"), load_tree(tmp_path / "again.ckpt"))


def test_what_is_frozen_rests() -> None:
    class Half(Gan):
        """The first layer of the generator is frozen, and after an epoch the discriminator."""

        def __init__(self) -> None:
            super().__init__()
            self.g[0].requires_grad_(False)

        def on_train_epoch_start(self) -> None:
            if self.current_epoch == 1:
                self.d.requires_grad_(False)
                self.kept = weights(self)

    task = Half()
    trainer = quiet(max_epochs=2)
    result = trainer.fit(task, batches([4, 4]))
    assert result.global_step == 4
    assert [o.updates for o in trainer.optimizers] == [2, 4]
    for name, value in weights(task).items():
        moved = name.startswith("g.2")
        assert np.array_equal(value, task.kept[name]) is not moved, name


def test_each_schedule_follows_its_own_optimizer() -> None:
    task = Rich()
    trainer = quiet(max_epochs=2)
    trainer.fit(task, batches([4, 4, 4]))
    d, g = (o.param_groups[0]["lr"] for o in trainer.optimizers)
    assert d == 0.02 * 0.25
    np.testing.assert_allclose(g, 0.02 * 0.9**3)


def test_rates_are_logged_by_name() -> None:
    result = quiet(max_epochs=2, callbacks=LearningRateMonitor()).fit(Rich(), batches([4, 4]))
    assert [v for _, v in result.history["lr-discriminator"]] == [0.02, 0.01]
    assert len(result.history["lr-generator"]) == 4


def test_a_schedule_as_long_as_the_updates_of_its_own_optimizer_moves_with_them() -> None:
    class Task(Gan):
        frequency = 2

        def configure_optimizers(self) -> Any:
            declared = super().configure_optimizers()
            optimizer = declared["generator"]["optimizer"]
            declared["generator"]["lr_scheduler"] = lr_scheduler.LinearLR(
                optimizer, 1.0, 0.5, total_iters=4
            )
            return declared

    trainer = quiet(max_epochs=2)
    trainer.fit(Task(), batches([4, 4, 4, 4]))
    assert trainer.lr_scheduler_configs[0].interval == "step"
    assert trainer.optimizers[1].param_groups[0]["lr"] == pytest.approx(0.01)


def test_an_overflow_skips_the_update_of_its_optimizer_only() -> None:
    class Overflows(Gan):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            for name, loss in super().training_step(batch, batch_idx):
                yield name, loss * 1e38 if name == "generator" and batch_idx == 1 else loss

    trainer = quiet(max_epochs=1, precision="16-mixed")
    scales: list[float] = []

    class Watch(Callback):
        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            scales.append(trainer.precision.scaler.get_scale())

    trainer.user_callbacks.append(Watch())
    trainer.fit(Overflows(), batches([4, 4, 4]))
    assert [o.updates for o in trainer.optimizers] == [3, 2]
    assert scales == [65536.0, 32768.0, 32768.0]


def returned(value: Any) -> Any:
    return {"training_step": lambda self, batch, batch_idx: value(self, batch)}


def yielded(*values: Any) -> Any:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        for value in values:
            yield value(self, batch)

    return {"training_step": step}


def declared(value: Any) -> Any:
    return {"configure_optimizers": value}


def loss(self: Any, batch: Any) -> Any:
    return self.d_loss(batch, self.g(self.noise(batch)))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one loss": (returned(loss), "it returns a dict of losses, 'discriminator' and 'generator'"),
    "None": (returned(lambda *_: None), r"Got None"),
    "misspelt": (
        returned(lambda s, b: {"discriminator": loss(s, b), "generater": loss(s, b)}),
        "Got 'discriminator', 'generater'; missing are 'generator'",
    ),
    "a loss is missing": (
        yielded(lambda s, b: ("discriminator", loss(s, b))),
        r"missing are 'generator'.*ask self.is_due\(name\)",
    ),
    "unknown name": (yielded(lambda s, b: ("critic", loss(s, b))), "Got 'critic'"),
    "no pair": (yielded(loss), 'Write `yield "discriminator", loss`'),
    "twice": (yielded(*[lambda s, b: ("discriminator", loss(s, b))] * 2), "Got a second one"),
    "not a number": (
        yielded(lambda s, b: ("discriminator", s.d(b[0]))),
        r"must return the loss, a scalar tensor. Got",
    ),
    "no names": (
        declared(lambda s: [s.adam(s.d), s.adam(s.g)]),
        "several optimizers of automatic optimization have names",
    ),
    "not an optimizer": (
        declared(lambda s: {"d": s.adam(s.d), "g": 3}),
        "Got a dict with the keys 'd', 'g', and",
    ),
    "reserved name": (declared(lambda s: {"loss": s.adam(s)}), "not 'loss'"),
    "frequency": (
        declared(lambda s: {"d": {"optimizer": s.adam(s), "frequency": 0}}),
        r"frequency of 'd' .* an integer ≥ 1\. Got 0",
    ),
    "nobody is due": (
        declared(lambda s: {"d": {"optimizer": s.adam(s), "frequency": 2}}),
        "Got d in every 2. Divide",
    ),
    "unknown key": (
        declared(lambda s: {"d": {"optimizer": s.adam(s), "frequncy": 2}}),
        "Did you mean 'frequency'",
    ),
    "shared parameter": (
        declared(lambda s: {"d": s.adam(s.d), "g": s.adam(s)}),
        r"Got d\.0\.weight in 'd' and 'g'",
    ),
    "by number": (
        {"training_step": lambda self, batch, batch_idx, optimizer_idx: None},
        r"by name, not by number. Got a training_step that takes optimizer_idx",
    ),
    "backward of old": (
        {"backward": lambda self, loss: loss.backward()},
        r"def backward\(self, loss, \*\*options\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_declarations_and_steps(case: str) -> None:
    methods, message = WRONG[case]
    with pytest.raises(TrainerError, match=message):
        quiet(max_epochs=1).fit(type("Task", (Gan,), methods)(), batches([4]))


def test_a_bad_loss_names_its_operation() -> None:
    class Task(Gan):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            for name, loss in super().training_step(batch, batch_idx):
                yield name, (loss - loss).log() if name == "generator" else loss

    with pytest.raises(TrainerError, match=r"first bad value came up in log at .*test_named_opt"):
        quiet(max_epochs=1).fit(Task(), batches([4]))


def test_is_due_knows_the_names() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.is_due("generator")

    with pytest.raises(TrainerError, match="Got 'generator'. Declared are none"):
        quiet(max_epochs=1).fit(Task(), batches([4]))


def test_a_parameter_that_its_own_loss_does_not_reach() -> None:
    class Task(Gan):
        def __init__(self) -> None:
            super().__init__()
            self.g.append(nn.Linear(3, 3))

        def configure_optimizers(self) -> Any:
            extra = [*self.d.parameters(), *self.g[3].parameters()]
            g = [p for part in list(self.g)[:3] for p in part.parameters()]
            return {
                "discriminator": mt.optim.SGD(extra, lr=0.1),
                "generator": mt.optim.SGD(g, lr=0.1),
            }

    with pytest.raises(TrainerError, match=r"no gradient for g\.3\.weight, g\.3\.bias"):
        quiet(max_epochs=1).fit(Task(), batches([4, 4]))
