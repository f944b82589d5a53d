"""The step: gradients, graphs, modes, freezing, updates, recording."""

from __future__ import annotations

from typing import Any

from harness import (
    Classifier,
    Regression,
    assert_same,
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
from minitorch.autograd.node import Node
from minitorch.callbacks import Callback
from minitorch.nn import functional as F


class Manual(Regression):
    """Manual optimization, done right."""

    automatic_optimization = False
    clears = True

    def training_step(self, batch: Any, batch_idx: int) -> None:
        optimizer = self.optimizers()
        if self.clears:
            optimizer.zero_grad()
        self.manual_backward(self.loss(batch))
        optimizer.step()


@impossible("zero-grad-missing")
def _() -> None:
    class Forgets(Manual):
        clears = False

    assert_same(trained(Forgets()), trained(Manual()))


@impossible("zero-grad-missing", "left over by a callback")
def _() -> None:
    class Stray(Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
            module.loss(trainer.current_batch.data).backward()

    assert_same(trained(Regression(), callbacks=[Stray()]), trained(Regression()))


@good("zero-grad-missing")
def _() -> None:
    assert_same(trained(Manual()), trained(Regression()))


def nodes_of(values: list[Any]) -> int:
    """Operations that kept values hold on to."""
    seen: set[int] = set()
    waiting = [v.grad_fn for v in values]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and id(node) not in seen:
            seen.add(id(node))
            waiting += node.edges or ()
    return len(seen)


@impossible("live-loss-kept")
def _() -> None:
    class Keeps(Regression):
        kept: list[Any] = []

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            self.kept.append(loss)
            return loss

    task = Keeps()
    fit(task)
    assert nodes_of(task.kept) <= len(task.kept)


@impossible("live-loss-kept", "running total in a callback")
def _() -> None:
    class Total(Callback):
        total: Any = 0.0
        sizes: list[int] = []

        def on_train_batch_start(self, trainer: Any, module: Any, *rest: Any) -> None:
            self.total = self.total + module.net[0].weight.sum()
            self.sizes.append(nodes_of([self.total]))

    callback = Total()
    fit(Regression(), callbacks=[callback])
    assert callback.sizes[-1] == callback.sizes[2]


@impossible("live-loss-kept", "validation")
def _() -> None:
    class Keeps(Regression):
        kept: list[Any] = []

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.kept.append(self.loss(batch))

    task = Keeps()
    fit(task, loader(), loader())
    assert task.kept
    assert nodes_of(task.kept) == 0


@good("live-loss-kept")
def _() -> None:
    kept: list[Any] = []

    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        kept.append(loss.detach())
        return loss

    fit(steps(step))
    assert len(kept) == 6


@impossible("no-grad-missing-in-eval")
def _() -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            assert self.loss(batch).grad_fn is None

        test_step = validation_step

    task = Task()
    fit(task, loader(), loader())
    quiet().test(task, loader(), verbose=False)


@good("no-grad-missing-in-eval")
def _() -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            with mt.enable_grad():
                x = batch[0].detach().requires_grad_()
                self(x).sum().backward()
            assert x.grad is not None

    fit(Task(), loader(), loader())


class Carries(Regression):
    """A state that goes on from batch to batch."""

    detaches = False

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(1, 1)
        self.state: Any = None

    def loss(self, batch: Any) -> Any:
        x, y = batch
        before = mt.zeros(1) if self.state is None else self.state
        if self.detaches:
            before = before.detach()
        h = self.cell(before).tanh() * 0.5 + x.mean()
        self.state = h
        return F.mse_loss(self(x) + h, y)


@impossible("graph-reused-across-steps")
def _() -> None:
    class Detaches(Carries):
        detaches = True

    ours, right = trained(Carries()), trained(Detaches())
    assert_same({k: v for k, v in ours.items() if k != "state"}, right)


@error("graph-reused-across-steps", r"no gradient for table\.weight.*before a step begins", "hook")
def _() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Linear(1, 1)

        def on_train_epoch_start(self) -> None:
            self.shift = [self.table(mt.ones(1))]

        def loss(self, batch: Any) -> Any:
            return F.mse_loss(self(batch[0]) + self.shift[0], batch[1])

    fit(Task())


@good("graph-reused-across-steps")
def _() -> None:
    class Detaches(Carries):
        detaches = True

    fit(Detaches(), max_epochs=2)


class Between(Regression):
    """The same in the module's own hook."""

    def on_after_backward(self) -> None:
        self.zero_grad()


class NoStep(Regression):
    """An optimizer_step that leaves the weights alone but counts."""

    def optimizer_step(self, epoch: int, batch: int, optimizer: Any, closure: Any) -> None:
        optimizer.updates += 1


@error("update-had-no-effect", r"Got none: they were cleared between backward and step")
def _() -> None:
    fit(Between())


@error("update-had-no-effect", r"Got the same values as before in net\.0\.weight", "no real step")
def _() -> None:
    fit(NoStep())


@error("update-had-no-effect", r"Got no update in a whole epoch", "manual, without step")
def _() -> None:
    class Task(Manual):
        def training_step(self, batch: Any, batch_idx: int) -> None:
            self.manual_backward(self.loss(batch))

    fit(Task())


@warns("update-had-no-effect", r"SGD with lr=0 in all groups through epoch 0", "rate 0")
def _() -> None:
    fit(Regression(lr=0.0), max_epochs=2)


@good("update-had-no-effect")
def _() -> None:
    with mt.intended("update-had-no-effect"):
        fit(Regression(lr=0.0))
    fit(Manual())


@error("lossless-step", r"Got None. Add `return loss`")
def _() -> None:
    fit(steps(lambda self, batch, batch_idx: None))


@error("lossless-step", r"made by hand that requires gradients", "wrapped again")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        return mt.tensor(self.loss(batch).item(), requires_grad=True)

    fit(steps(step))


@good("lossless-step")
def _() -> None:
    fit(steps(lambda self, batch, batch_idx: {"loss": self.loss(batch), "more": 1}))


@impossible("retain-graph-misuse")
def _() -> None:
    class Twice(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            loss.backward(retain_graph=True)
            return loss

    assert_same(trained(Twice()), trained(Regression()))


@good("retain-graph-misuse")
def _() -> None:
    class Two(Manual):
        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizer = self.optimizers()
            loss = self.loss(batch)
            self.manual_backward(loss * 0.5, retain_graph=True)
            self.manual_backward(loss * 0.5)
            optimizer.step()

    assert_same(trained(Two()), trained(Regression()), rtol=1e-5)


def writes(how: Any) -> Any:
    """A step that changes a value after exp saved it."""

    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        y = self(batch[0]).exp()
        loss = y.sum()
        how(y)
        return loss

    return steps(step)


@error("inplace-on-saved-value", r"exp needs a value.*add_ changed it in place.*programs_steps")
def _() -> None:
    fit(writes(lambda y: y.add_(1)))


@error("inplace-on-saved-value", r"exp needs a value that it saved", "through .data")
def _() -> None:
    fit(writes(lambda y: y.data.mul_(2)))


@good("inplace-on-saved-value")
def _() -> None:
    fit(writes(lambda y: y + 1))


@error("data-attribute-bypass", r"changed it in place afterwards")
def _() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            self.net[2].weight.data -= 0.1
            return loss

    fit(Task())


@impossible("data-attribute-bypass")
def _() -> None:
    x = mt.ones(3, requires_grad=True)
    y = x.exp()
    try:
        y.data.mul_(100)
        y.sum().backward()
    except RuntimeError:
        return
    raise AssertionError("a write through .data was not noticed")


@good("data-attribute-bypass")
def _() -> None:
    class Clamps(Regression):
        def on_train_batch_end(self, *rest: Any) -> None:
            with mt.no_grad():
                self.net[2].weight.clamp_(-1, 1)

    fit(Clamps())


@impossible("global-grad-mode-leak")
def _() -> None:
    class Leaks(Callback):
        def on_train_batch_end(self, *args: Any) -> None:
            mt.set_grad_enabled(False)

    assert_same(trained(Regression(), callbacks=[Leaks()]), trained(Regression()))
    assert mt.is_grad_enabled()


@impossible("global-grad-mode-leak", "before the fit")
def _() -> None:
    mt.set_grad_enabled(False)
    try:
        ours = trained(Regression())
    finally:
        mt.set_grad_enabled(True)
    assert_same(ours, trained(Regression()))


@good("global-grad-mode-leak")
def _() -> None:
    def step(self: Any, batch: Any, batch_idx: int) -> Any:
        with mt.no_grad():
            self(batch[0])
        return self.loss(batch)

    assert_same(trained(steps(step)), trained(Regression()))


@warns("dead-units-exploding", r"Got 0 for all .* of the ReLU after net\.0.*harness")
def _() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.net[1] = nn.ReLU()
            with mt.no_grad():
                self.net[0].bias.fill_(-100.0)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch)

    fit(Task())


@good("dead-units-exploding")
def _() -> None:
    task = Regression()
    task.net[1] = nn.ReLU()
    fit(task)


@warns("init-last-layer", r"about log 4 = 1.39. Got")
def _() -> None:
    task = Classifier()
    with mt.no_grad():
        task.net[2].bias.copy_(mt.tensor([50.0, 0.0, 0.0, 0.0]))
    fit(task)


@good("init-last-layer")
def _() -> None:
    fit(Classifier())


class Gan(Regression):
    """Two optimizers, declared."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(1, 1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        guess = self(batch[0])
        yield "critic", F.mse_loss(self.other(guess.detach()), batch[1])
        yield "net", -self.other(guess).mean()

    def configure_optimizers(self) -> Any:
        rates = {"critic": self.other, "net": self.net}
        return {n: mt.optim.SGD(part.parameters(), lr=0.1) for n, part in rates.items()}


@impossible("manual-optimization-traps")
def _() -> None:
    """Nothing is left to forget: the same steps by hand."""
    ours, task = trained(Gan()), Gan()
    rates = task.configure_optimizers()
    for batch in loader():
        guess = task(batch[0])
        losses = {"critic": lambda b=batch, g=guess: F.mse_loss(task.other(g.detach()), b[1])}
        losses["net"] = lambda g=guess: -task.other(g).mean()
        for name, loss in losses.items():
            rates[name].zero_grad()
            loss().backward()
            rates[name].step()
    assert_same(ours, weights(task))


@impossible("manual-optimization-traps", "counters")
def _() -> None:
    assert fit(Gan()).global_step == 6


@warns("manual-optimization-traps", r"Got a StepLR that did not move in an epoch", "schedule")
def _() -> None:
    class Scheduled(Manual):
        def configure_optimizers(self) -> Any:
            optimizer = mt.optim.SGD(self.parameters(), lr=0.01)
            return [optimizer], [mt.optim.lr_scheduler.StepLR(optimizer, 1)]

    fit(Scheduled(), max_epochs=2)


@good("manual-optimization-traps")
def _() -> None:
    assert fit(Manual()).global_step == 6


@good("manual-optimization-traps", "a schedule that moves")
def _() -> None:
    class Moves(Manual):
        def on_train_epoch_end(self) -> None:
            self.lr_schedulers().step()

        def configure_optimizers(self) -> Any:
            optimizer = mt.optim.SGD(self.parameters(), lr=0.01)
            return [optimizer], [mt.optim.lr_scheduler.StepLR(optimizer, 1)]

    fit(Moves(), max_epochs=2)
