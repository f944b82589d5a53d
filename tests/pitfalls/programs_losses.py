"""Losses, metrics, numbers: kinds, shapes, widths, targets, NaN, precision, clipping."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from harness import (
    Classifier,
    Regression,
    arrays,
    assert_same,
    classes,
    error,
    fit,
    good,
    impossible,
    loader,
    quiet,
    steps,
    trained,
    warns,
    weights,
)

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.nn import functional as F


def on_output(loss: Any) -> Any:
    """A classifier whose loss is a function of (output, targets)."""

    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return loss(self(batch[0]), batch[1])

    return steps(step, Classifier)


@error("double-softmax", r"must be logits. Got the output of softmax.*programs_losses.py")
def _() -> None:
    fit(on_output(lambda out, y: F.cross_entropy(out.softmax(1), y)))


@error("double-softmax", r"Got the output of softmax.*contains it", "hidden in a submodule")
def _() -> None:
    task = Classifier()
    task.net[2] = nn.Sequential(nn.Linear(8, 4), nn.Softmax(dim=-1), nn.Unflatten(1, (4, 1)))
    task.net.append(nn.Flatten())
    fit(task)


@error("double-softmax", r"Got the output of softmax", "clamped and cast")
def _() -> None:
    fit(on_output(lambda out, y: F.cross_entropy(out.softmax(1).clamp(1e-7, 1.0).float(), y)))


@error("double-softmax", r"values that look like probabilities", "own softmax")
def _() -> None:
    def own(out: Any, y: Any) -> Any:
        e = out.exp()
        return F.cross_entropy(e / e.sum(1, keepdim=True), y)

    fit(on_output(own))


@good("double-softmax")
def _() -> None:
    fit(on_output(lambda out, y: F.nll_loss(out.log_softmax(1), y)))
    fit(on_output(lambda out, y: F.cross_entropy(out.log_softmax(1), y)))


@good("double-softmax", "meant")
def _() -> None:
    def meant(out: Any, y: Any) -> Any:
        with mt.intended("double-softmax"):
            return F.cross_entropy(out.softmax(1), y)

    fit(on_output(meant))


def hot(y: Any) -> Any:
    """One-hot targets."""
    return mt.eye(4)[y]


@error("bce-nll-input-mixup", r"must be logits. Got the output of sigmoid")
def _() -> None:
    fit(on_output(lambda out, y: F.binary_cross_entropy_with_logits(out.sigmoid(), hot(y))))


@error("bce-nll-input-mixup", r"must be log-probabilities. Got the output of softmax", "nll")
def _() -> None:
    fit(on_output(lambda out, y: F.nll_loss(out.softmax(1)[:, :], y)))


@error("bce-nll-input-mixup", r"must be log-probabilities. Got the output of linear", "nll, raw")
def _() -> None:
    fit(on_output(lambda out, y: F.nll_loss(out, y)))


@error("bce-nll-input-mixup", r"values that look like logits", "nll, from far away")
def _() -> None:
    fit(on_output(lambda out, y: F.nll_loss(out * 2 + 5, y)))


@error("bce-nll-input-mixup", r"kl_div: the input must be log-probabilities", "kl_div")
def _() -> None:
    fit(on_output(lambda out, y: F.kl_div(out.softmax(1), hot(y))))


@error("bce-nll-input-mixup", r"must be probabilities, from 0 to 1", "bce on logits")
def _() -> None:
    fit(on_output(lambda out, y: F.binary_cross_entropy(out * 9, hot(y))))


@good("bce-nll-input-mixup")
def _() -> None:
    fit(on_output(lambda out, y: F.binary_cross_entropy(out.sigmoid(), hot(y))))
    fit(on_output(lambda out, y: F.kl_div(out.log_softmax(1), hot(y))))


def flat() -> Any:
    """Regression data with targets of shape [n]."""
    x, y = arrays()
    return loader((x, y[:, 0]))


@error("loss-shape-broadcast", r"input and target must have one shape.*Did you mean input.squeeze")
def _() -> None:
    fit(Regression(), flat())


@error("loss-shape-broadcast", r"Got \[4,1\] and \[4\] at .*programs_losses.*\[4,4\]", "own loss")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return ((self(batch[0]) - batch[1]) ** 2).mean()

    fit(steps(step), flat())


@error("loss-shape-broadcast", r"^eq: .*Got \[4,1\] and \[4\] at .*programs_losses.py", "accuracy")
def _() -> None:
    class Task(Classifier):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            x, y = batch
            best = self(x).argmax(1, keepdim=True)
            self.log("acc", (best == y).float().mean())

    data = loader(classes())
    fit(Task(), data, data)


@good("loss-shape-broadcast")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        out = self(x).squeeze(-1)
        pairs = out[:, None] - out[None, :]
        ranks = out.unsqueeze(1) - y
        same = y[:, None] == y
        return ((out - y) ** 2).mean() + (pairs**2 + ranks**2).mean() + same.float().mean()

    fit(steps(step), flat())


@impossible("float64-creep", "from the loader")
def _() -> None:
    x, y = arrays()
    doubles = [(x[i : i + 4].astype(np.float64), y[i : i + 4].astype(np.float64)) for i in (0, 4)]
    singles = [(x[i : i + 4], y[i : i + 4]) for i in (0, 4)]
    assert_same(trained(Regression(), doubles), trained(Regression(), singles))


@error("float64-creep", r"one float width computes, float32. Got float64 at .*programs_losses.py")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return ((self(batch[0]) - np.ones((4, 1))) ** 2).mean()

    fit(steps(step))


class Scale:
    """A helper with a NumPy array in it."""

    factors = np.linspace(1, 2, 8)

    def __call__(self, h: Any) -> Any:
        return (h * self.factors).float()


@error("float64-creep", r"Got float64 at .*programs_losses.py:\d+ in __call__", "cast back later")
def _() -> None:
    scale = Scale()

    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return (self.net[2](scale(self.net[1](self.net[0](batch[0])))) ** 2).mean()

    fit(steps(step))


@error("float64-creep", r"the loss must be float32. Got f64", "in a later batch")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        return loss if batch_idx < 3 else loss * mt.ones((), dtype=mt.float64).reshape(1)

    fit(steps(step))


@good("float64-creep")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        exact = self(batch[0]).double().sum().float()
        return self.loss(batch) * np.float32(1.0) * float(np.sqrt(2.0)) + exact * 0

    fit(steps(step))


def spoiled(value: float) -> Any:
    """A step with a log of 0 in a helper, from the fourth batch on."""

    def helper(h: Any) -> Any:
        return (h * value).log()

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.before = weights(self)
            loss = self.loss(batch)
            return loss if batch_idx < 3 else loss + helper(loss * 0)

    return Task()


@error("nan-unnoticed", r"Got -inf at epoch 0, batch 3.*first.* in log at .*in helper")
def _() -> None:
    fit(spoiled(1.0))


@error("nan-unnoticed", r"inf or nan in the gradients of net\.2\.bias", "gradient only")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch) + (self.net[2].bias.sum() * 0.0).sqrt()

    fit(steps(step))


@good("nan-unnoticed")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch) + mt.tensor([math.nan, 1.0])[1]

    fit(steps(step))


@impossible("where-branch-nan")
def _() -> None:
    def safe(self: Any, batch: Any, batch_idx: int) -> Any:
        out = self(batch[0])
        return mt.where(out > 0, out.clamp_min(1e-9).log(), mt.zeros_like(out)).sum()

    def bad(self: Any, batch: Any, batch_idx: int) -> Any:
        out = self(batch[0])
        return mt.where(out > 0, out.log(), mt.zeros_like(out)).sum()

    assert_same(trained(steps(bad)), trained(steps(safe)))


@error("where-branch-nan", r"inf or nan in the gradients of")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return (self(batch[0]) * 0.0).sqrt().sum()

    fit(steps(step))


@good("where-branch-nan")
def _() -> None:
    fit(steps(lambda self, batch, i: self(batch[0]).norm() + (self(batch[0]) * 0).norm()))


@error("clip-poisons-on-inf", r"inf or nan in the gradients of net\.2\.bias")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch) + (self.net[2].bias.sum() * 0.0).sqrt()

    fit(steps(step), gradient_clip_val=1.0)


@good("clip-poisons-on-inf")
def _() -> None:
    fit(Regression(), gradient_clip_val=1.0)


@error("label-target-type", r"from 0 to 3.*Got 1 to 4. Did you mean target - 1")
def _() -> None:
    x, y = classes()
    fit(Classifier(), loader((x, y + 1)))


@error("label-target-type", r"must be integers of shape \(4,\).*Use target.long\(\)", "floats")
def _() -> None:
    x, y = classes()
    fit(Classifier(), loader((x, y.astype(np.float32))))


@error("label-target-type", r"at least one target must count", "all ignored")
def _() -> None:
    x, y = classes()
    fit(Classifier(), loader((x, np.full_like(y, -100))))


@good("label-target-type")
def _() -> None:
    x, y = classes()
    fit(Classifier(), loader((x, np.where(y == 3, -100, y))))
    fit(Classifier(), loader((x, y.astype(np.int32))))


class Scrambled(Regression):
    """Turns (time, samples, channels) into (samples, time, channels)."""

    transposes = False

    def forward(self, x: Any) -> Any:
        shape = (x.shape[1], x.shape[0], x.shape[2])
        x = x.transpose(0, 1) if self.transposes else x.reshape(*shape)
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return (self(batch) ** 2).mean()


def series() -> list[Any]:
    """Batches of shape [5 steps, 4 samples, 3]."""
    return [np.random.default_rng(i).normal(size=(5, 4, 3)).astype(np.float32) for i in range(3)]


@warns("reshape-scrambles-axes", r"Got \(5, 4, 3\) → \(4, 5, 3\) at .*programs_losses.*transpose")
def _() -> None:
    fit(Scrambled(), series())


@warns("reshape-scrambles-axes", r"Got dim=0, the batch axis, of \(4, 4\) at", "softmax")
def _() -> None:
    fit(on_output(lambda out, y: (out.softmax(0)[:, 0] ** 2).mean()))


@good("reshape-scrambles-axes")
def _() -> None:
    class Right(Scrambled):
        transposes = True

    fit(Right(), series())
    fit(on_output(lambda out, y: (out.softmax(1)[:, 0] ** 2).mean()))


class Tokens(Regression):
    """Predicts tokens from tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9))

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return F.cross_entropy(self(x).reshape(-1, 9), y.reshape(-1))


def tokens(shift: int) -> list[Any]:
    """Batches of inputs, and targets that are `shift` places on."""
    rows = np.random.default_rng(0).integers(0, 9, (3, 4, 12))
    return [(r[:, :8], r[:, shift : shift + 8]) for r in rows]


@warns("label-shift-off-by-one", r"Got targets that are the inputs themselves at .*programs_losses")
def _() -> None:
    fit(Tokens(), tokens(0))


@warns("label-shift-off-by-one", r"the inputs two places on", "shifted twice")
def _() -> None:
    class Again(Tokens):
        def loss(self, batch: Any) -> Any:
            x, y = batch
            return F.cross_entropy(self(x)[:, :-1].reshape(-1, 9), y[:, 1:].reshape(-1))

    fit(Again(), tokens(1))


@good("label-shift-off-by-one")
def _() -> None:
    fit(Tokens(), tokens(1))


@impossible("metric-not-reset")
def _() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("n", 1.0, on_epoch=True, on_step=False, reduce_fx="sum")
            return self.loss(batch)

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val/n", 1.0, reduce_fx="sum")

    result = fit(Task(), loader(), loader(batch_size=8), max_epochs=3)
    assert [value for _, value in result.history["n"]] == [6.0] * 3
    assert [value for _, value in result.history["val/n"]] == [3.0] * 3


@good("metric-not-reset")
def _() -> None:
    class Resets(Callback):
        count = 0

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            self.count = 0

        def on_train_batch_end(self, *args: Any) -> None:
            self.count += 1

    callback = Resets()
    quiet(max_epochs=2, callbacks=[callback]).fit(Regression(), loader())
    assert callback.count == 6
