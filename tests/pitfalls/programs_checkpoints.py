"""Checkpoints and what a resumed run finds in them."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from harness import (
    Classifier,
    Regression,
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
from minitorch.callbacks import Callback, ModelCheckpoint
from minitorch.optim import lr_scheduler


def cut(task: Any, path: Path, steps: int = 4, **options: Any) -> str:
    """A run that ends after so many updates and leaves a checkpoint."""
    trainer = quiet(max_steps=steps, max_epochs=-1)
    trainer.fit(task, loader(shuffle=True), **options)
    trainer.save_checkpoint(path / "cut.ckpt")
    return str(path / "cut.ckpt")


class Momentum(Regression):
    """Adam, a schedule by update, and dropout."""

    def __init__(self, lr: float = 0.05) -> None:
        super().__init__(lr)
        self.net[1] = nn.Sequential(nn.Tanh(), nn.Dropout(0.3))

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=self.hparams.lr)
        schedule = lr_scheduler.StepLR(optimizer, 3, 0.5)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def whole_and_resumed(tmp_path: Path) -> tuple[Any, Any]:
    """Weights of an uninterrupted run, and of one cut inside its first epoch."""
    mt.manual_seed(5)
    whole = trained(Momentum(), loader(shuffle=True), max_epochs=2)
    mt.manual_seed(5)
    path = cut(Momentum(), tmp_path)
    mt.manual_seed(99)
    task = Momentum()
    quiet(max_epochs=2).fit(task, loader(shuffle=True), ckpt_path=path)
    return whole, weights(task)


@impossible("resume-mid-epoch-replays-data")
def _(tmp_path: Path) -> None:
    assert_same(*whole_and_resumed(tmp_path))


@good("resume-mid-epoch-replays-data")
def _(tmp_path: Path) -> None:
    fit(Momentum(), loader(shuffle=True), max_epochs=2)


@impossible("checkpoint-incomplete")
def _(tmp_path: Path) -> None:
    assert_same(*whole_and_resumed(tmp_path))


@error("checkpoint-incomplete", r"resuming needs the whole state.*holds weights only")
def _(tmp_path: Path) -> None:
    trainer = quiet()
    trainer.fit(Regression(), loader())
    trainer.save_checkpoint(tmp_path / "w.ckpt", weights_only=True)
    fit(Regression(), ckpt_path=tmp_path / "w.ckpt")


@good("checkpoint-incomplete")
def _(tmp_path: Path) -> None:
    trainer = quiet()
    trainer.fit(Regression(), loader())
    trainer.save_checkpoint(tmp_path / "w.ckpt", weights_only=True)
    Regression.load_from_checkpoint(tmp_path / "w.ckpt")


class Unsaveable(Callback):
    """State that no file can hold."""

    def state_dict(self) -> dict[str, Any]:
        return {"handle": object()}


@impossible("checkpoint-not-atomic")
def _(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    trainer = quiet()
    trainer.fit(Regression(), loader())
    trainer.save_checkpoint(path)
    before = path.read_bytes()
    broken = quiet(callbacks=[Unsaveable()])
    broken.fit(Regression(), loader())
    try:
        broken.save_checkpoint(path)
    except RuntimeError:
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]
        return
    raise AssertionError("an object went into a file")


@good("checkpoint-not-atomic")
def _(tmp_path: Path) -> None:
    trainer = quiet()
    trainer.fit(Regression(), loader())
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    trainer.save_checkpoint(tmp_path / "a.ckpt")


class Attack:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("echo attacked > attacked",)


@impossible("unsafe-checkpoint-load")
def _(tmp_path: Path) -> None:
    path = tmp_path / "bad.ckpt"
    path.write_bytes(pickle.dumps({"state_dict": Attack()}))
    try:
        Regression.load_from_checkpoint(path)
    except RuntimeError:
        assert not (tmp_path / "attacked").exists()
        return
    raise AssertionError("a pickle was read")


@error("unsafe-checkpoint-load", r"thing", "at save time")
def _(tmp_path: Path) -> None:
    task = Regression()
    task.hparams["thing"] = object()
    fit(task, callbacks=[ModelCheckpoint(tmp_path)])


@good("unsafe-checkpoint-load")
def _(tmp_path: Path) -> None:
    task = Regression()
    task.hparams["rate"] = np.float32(0.5)
    trainer = quiet(callbacks=[ModelCheckpoint(tmp_path)])
    trainer.fit(task, loader())


@impossible("best-weights-aliased")
def _() -> None:
    class Best(Callback):
        best: Any = None
        values: Any = None

        def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
            if self.best is None:
                self.best, self.values = module.state_dict(), weights(module)

    callback = Best()
    task = Regression()
    fit(task, callbacks=[callback])
    for name, value in callback.values.items():
        np.testing.assert_array_equal(callback.best[name].numpy(), value)
    assert not np.array_equal(callback.values["net.0.weight"], weights(task)["net.0.weight"])


@impossible("best-weights-aliased", "of a submodule")
def _() -> None:
    kept: list[Any] = []

    class Task(Regression):
        def on_train_batch_end(self, *rest: Any) -> None:
            kept.append(self.net.state_dict())

    fit(Task())
    first, last = kept[0]["0.weight"].numpy(), kept[-1]["0.weight"].numpy()
    assert not np.array_equal(first, last)


@good("best-weights-aliased")
def _() -> None:
    class Restores(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            module.load_state_dict(module.state_dict())

    assert_same(trained(Regression(), callbacks=[Restores()]), trained(Regression()))


@impossible("optimizer-state-by-position")
def _() -> None:
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    first = mt.optim.Adam([("a", a.weight), ("b", b.weight)], lr=0.1)
    (a.weight.sum() * 3 + b.weight.sum()).backward()
    first.step()
    second = mt.optim.Adam([("b", b.weight), ("a", a.weight)], lr=0.1)
    second.load_state_dict(first.state_dict())
    moment = second.state[a.weight]["exp_avg"].numpy()
    np.testing.assert_array_equal(moment, first.state[a.weight]["exp_avg"].numpy())


@error("optimizer-state-by-position", r"missing: c")
def _() -> None:
    first = mt.optim.SGD([("a", nn.Linear(2, 2).weight)], lr=0.1, momentum=0.9)
    second = mt.optim.SGD([("c", nn.Linear(2, 2).weight)], lr=0.1, momentum=0.9)
    second.load_state_dict(first.state_dict())


@good("optimizer-state-by-position")
def _(tmp_path: Path) -> None:
    fit(Momentum(), loader(), ckpt_path=None)


@error("resume-overrides-or-loses-hyperparameters", r"initial_lr: 0.05 in the checkpoint, 0.5 now")
def _(tmp_path: Path) -> None:
    path = cut(Momentum(), tmp_path)
    quiet(max_epochs=2).fit(Momentum(lr=0.5), loader(shuffle=True), ckpt_path=path)


@error(
    "resume-overrides-or-loses-hyperparameters",
    r"width: 3 in the checkpoint, 4 now",
    "that no optimizer has",
)
def _(tmp_path: Path) -> None:
    class Sized(Momentum):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.save_hyperparameters()

    path = cut(Sized(3), tmp_path)
    quiet(max_epochs=2).fit(Sized(4), loader(shuffle=True), ckpt_path=path)


class Ends(Regression):
    """A schedule as long as the run, whose rate is 0 at the end."""

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.SGD(self.parameters(), lr=0.05)
        schedule = lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.max_epochs)
        return [optimizer], [schedule]


@error(
    "resume-overrides-or-loses-hyperparameters",
    r'CosineAnnealingLR.T_max: 3 in the checkpoint, 6 now. Pass hparams="new"',
    "a longer schedule",
)
def _(tmp_path: Path) -> None:
    trainer = quiet(max_epochs=3)
    trainer.fit(Ends(), loader())
    trainer.save_checkpoint(tmp_path / "end.ckpt")
    fit(Ends(), max_epochs=6, ckpt_path=tmp_path / "end.ckpt")


@good("resume-overrides-or-loses-hyperparameters")
def _(tmp_path: Path) -> None:
    path = cut(Momentum(), tmp_path)
    rates: list[Any] = []

    class Looks(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    for choice, lr in (("new", 0.5), ("old", 0.5), (None, 0.05)):
        trainer = quiet(max_epochs=2, callbacks=[Looks()])
        trainer.fit(Momentum(lr=lr), loader(shuffle=True), ckpt_path=path, hparams=choice)
    np.testing.assert_allclose(rates, [0.25, 0.025, 0.025])


@error("fit-again-does-nothing", r"a Trainer fits once. It stands at epoch 1")
def _() -> None:
    trainer = quiet()
    trainer.fit(Regression(), loader())
    trainer.fit(Regression(), loader())


@error("fit-again-does-nothing", r"nothing left to do", "from a checkpoint")
def _(tmp_path: Path) -> None:
    path = cut(Regression(), tmp_path)
    quiet(max_steps=4, max_epochs=-1).fit(Regression(), loader(shuffle=True), ckpt_path=path)


@good("fit-again-does-nothing")
def _(tmp_path: Path) -> None:
    path = cut(Regression(), tmp_path)
    assert quiet(max_epochs=2).fit(Regression(), loader(), ckpt_path=path).epochs == 2


@warns("precision-default-surprise", r'Got precision="32" and a checkpoint of a run with "bf16')
def _(tmp_path: Path) -> None:
    trainer = quiet(max_steps=4, max_epochs=-1, precision="bf16-mixed")
    trainer.fit(Regression(), loader())
    trainer.save_checkpoint(tmp_path / "a.ckpt")
    quiet(max_epochs=2).fit(Regression(), loader(), ckpt_path=tmp_path / "a.ckpt")


@good("precision-default-surprise")
def _(tmp_path: Path) -> None:
    path = cut(Regression(), tmp_path)
    quiet(max_epochs=2).fit(Regression(), loader(), ckpt_path=path)


@impossible("view-saved-whole-storage")
def _(tmp_path: Path) -> None:
    large = mt.zeros(100_000)
    mt.save({"x": large[:10]}, tmp_path / "part")
    assert (tmp_path / "part").stat().st_size < 5_000


@good("view-saved-whole-storage")
def _(tmp_path: Path) -> None:
    x = mt.arange(10)
    mt.save({"x": x[2:4]}, tmp_path / "part")
    assert mt.load(tmp_path / "part")["x"].tolist() == [2, 3]


def prefixed(state: Any, prefix: str) -> dict[str, Any]:
    return {prefix + name: value for name, value in state.items()}


@impossible("prefix-mismatch-nonstrict")
def _() -> None:
    trained_task = Regression()
    fit(trained_task)
    for prefix in ("module.", "_orig_mod."):
        task = Regression()
        task.load_state_dict(prefixed(trained_task.state_dict(), prefix), strict=False)
        assert_same(weights(task), weights(trained_task))
    wrapped = nn.DataParallel(Regression())
    wrapped.load_state_dict(trained_task.state_dict())
    assert_same(weights(wrapped.module), weights(trained_task))


@error("prefix-mismatch-nonstrict", r"names, shapes and kinds.*0 of 4 tensors", "nothing matches")
def _() -> None:
    task = Regression()
    task.load_state_dict(prefixed(task.state_dict(), "model."), strict=False)


@error("prefix-mismatch-nonstrict", r"Got 3 of 4 tensors: net.0.weight.*prefix 'model.'", "partly")
def _() -> None:
    task = Regression()
    state = task.state_dict()
    bias = {"net.2.bias": state.pop("net.2.bias")}
    task.load_state_dict({**prefixed(state, "model."), **bias}, strict=False)
    fit(task)


@warns("prefix-mismatch-nonstrict", r"1 of 4 tensors: net.2.bias.*exclude=\[\"net.2.\*\"\]", "few")
def _() -> None:
    task = Regression()
    state = task.state_dict()
    del state["net.2.bias"]
    task.load_state_dict(state, strict=False)
    fit(task)


@warns("prefix-mismatch-nonstrict", r"what load_state_dict\(strict=False\) did not find", "hidden")
def _() -> None:
    class Task(Regression):
        def setup(self, stage: str) -> None:
            state = nn.Sequential(nn.Linear(3, 8)).state_dict()
            self.net.load_state_dict(state, strict=False)

    fit(Task())


@good("prefix-mismatch-nonstrict")
def _(tmp_path: Path) -> None:
    task = Regression()
    state = Regression().state_dict()
    del state["net.2.bias"]
    assert repr(task.load_part(state, exclude="net.2.bias")).startswith("<3 of 4 tensors loaded")
    task.net[0].load_part(state, include="weight", prefix="net.0.")
    fit(task)
    with mt.intended("prefix-mismatch-nonstrict", "net.2.*"):
        other = Regression()
        other.load_state_dict(state, strict=False)
        fit(other)
    again = Regression()
    again.load_state_dict(state, strict=False)
    nn.init.constant_(again.net[2].bias, 0.5)  # whoever sets it has seen it
    fit(again)


class Tied(Classifier):
    """Two layers that share a weight by declaration."""

    def __init__(self) -> None:
        super().__init__()
        self.again = nn.Linear(3, 8)
        self.tie("again.weight", "net.0.weight")

    def forward(self, x: Any) -> Any:
        return self.net[2](self.again(x) + self.net[0](x))


def copies(task: Any) -> None:
    """Copies both sides of a tie apart."""
    task.again = copy.deepcopy(task.again)
    task.net = copy.deepcopy(task.net)


@impossible("weight-tying-broken")
def _() -> None:
    whole = Tied()
    expected = trained(copy.deepcopy(whole))
    copies(whole)
    assert whole.again.weight is not whole.net[0].weight
    assert_same(trained(whole), expected)
    assert whole.again.weight is whole.net[0].weight


@impossible("weight-tying-broken", "in a hook")
def _() -> None:
    class Hooked(Tied):
        def on_fit_start(self) -> None:
            self.again.weight = nn.Parameter(self.again.weight.detach().clone())

    task = Hooked()
    assert_same(trained(task), trained(Tied()))
    assert task.again.weight is task.net[0].weight


@impossible("weight-tying-broken", "checkpoint")
def _(tmp_path: Path) -> None:
    trainer = quiet(max_steps=4)
    trainer.fit(Tied(), loader(classes()))
    trainer.save_checkpoint(tmp_path / "cut.ckpt")
    task = Tied()
    quiet(max_epochs=2).fit(task, loader(classes()), ckpt_path=tmp_path / "cut.ckpt")
    assert task.again.weight is task.net[0].weight
    assert_same(weights(task), trained(Tied(), max_epochs=2))


@error("weight-tying-broken", r"a declared tie holds one parameter.*'again.weight'.*untie")
def _() -> None:
    task = Tied()
    task.again.weight = nn.Parameter(mt.ones(8, 3))
    fit(task)


@warns("weight-tying-broken", r"Got net.0.weight and again.weight.*self.tie\(", "undeclared copy")
def _() -> None:
    class Task(Tied):
        def __init__(self) -> None:
            super().__init__()
            self.untie("again.weight")  # as a deepcopy of one side leaves it

    fit(Task())


@warns("weight-tying-broken", r"a deepcopy or an assignment", "undeclared values")
def _() -> None:
    task = steps(Regression.training_step)
    task.left, task.right = nn.Linear(3, 8), nn.Embedding(8, 3)
    task.right.weight.data = task.left.weight.detach().clone()
    task.forward = lambda x: task.net[2](task.left(x) + x @ task.right.weight.T + task.net[0](x))
    fit(task)


@good("weight-tying-broken")
def _() -> None:
    fit(Tied())
    task = steps(Regression.training_step)
    layer = nn.Linear(8, 8)
    task.net = nn.Sequential(nn.Linear(3, 8), *(copy.deepcopy(layer) for _ in range(3)))
    task.net.append(nn.Linear(8, 1))
    fit(task)
