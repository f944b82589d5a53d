"""The tree of modules: modes, freezing, registration, which parameters are trained."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from harness import (
    Regression,
    assert_same,
    error,
    fit,
    good,
    impossible,
    loader,
    trained,
    weights,
)

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.nn import functional as F
from minitorch.trainer import freeze


class ManualTask(Regression):
    """Manual optimization."""

    automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        self.manual_backward(self.loss(batch))
        self.optimizers().step()


class WithDropout(Regression):
    """Dropout in a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.net[1] = nn.Sequential(nn.Tanh(), nn.Dropout(0.5))


@impossible("train-eval-mode-wrong")
def _() -> None:
    class Sticky(WithDropout):
        seen: list[bool] = []

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.seen.append(self.net[1][1].training)
            loss = self.loss(batch)
            self.eval()
            self.loss(batch)  # looks at the loss without dropout, and forgets train()
            return loss

    task = Sticky()
    fit(task)
    assert all(task.seen)


@impossible("train-eval-mode-wrong", "inside a callback")
def _() -> None:
    seen: list[bool] = []

    class Looks(Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, *rest: Any) -> None:
            module.net.eval()

    class Task(WithDropout):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            seen.append(self.net[1][1].training)
            return self.loss(batch)

    fit(Task(), callbacks=[Looks()])
    assert all(seen)


@impossible("train-eval-mode-wrong", "validation in the middle")
def _() -> None:
    modes: list[bool] = []

    class Task(WithDropout):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            assert self.net[1][1].training
            return self.loss(batch)

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            modes.append(self.net[1][1].training)

    fit(Task(), loader(), loader(), val_check_interval=2)
    assert modes
    assert not any(modes)


@good("train-eval-mode-wrong")
def _() -> None:
    class Task(WithDropout):
        def on_train_epoch_start(self) -> None:
            self.net[1][1].eval()

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            assert not self.net[1][1].training
            return self.loss(batch)

    fit(Task(), max_epochs=2)


@impossible("fit-starts-in-eval")
def _() -> None:
    task = WithDropout()
    task.eval()
    assert_same(trained(task), trained(WithDropout()))


@good("fit-starts-in-eval")
def _() -> None:
    task = WithDropout()
    freeze(task.net[0])
    before = weights(task)["net.0.weight"]
    np.testing.assert_array_equal(trained(task)["net.0.weight"], before)


class WithNorm(Regression):
    """Batch normalisation in a backbone."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8)), nn.Tanh(), nn.Linear(8, 1)
        )


@impossible("batchnorm-not-really-frozen")
def _() -> None:
    task = WithNorm()
    task.net[0].requires_grad_(False)
    before = weights(task)
    after = trained(task)
    for name in before:
        assert np.array_equal(before[name], after[name]) is name.startswith("net.0"), name


@impossible("batchnorm-not-really-frozen", "by a callback, in a later epoch")
def _() -> None:
    kept: list[Any] = []

    class Freezes(Callback):
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            if trainer.current_epoch == 1:
                module.net[0].requires_grad_(False)
                kept.append(weights(module))

    task = WithNorm()
    after = trained(task, max_epochs=2, callbacks=[Freezes()])
    np.testing.assert_array_equal(kept[0]["net.0.1.running_mean"], after["net.0.1.running_mean"])


@good("batchnorm-not-really-frozen")
def _() -> None:
    task = WithNorm()
    before = weights(task)["net.0.1.running_mean"]
    assert not np.array_equal(trained(task)["net.0.1.running_mean"], before)


@error("unused-params", r"no gradient for aux\.weight, aux\.bias\. Use them, freeze them")
def _() -> None:
    task = Regression()
    task.aux = nn.Linear(2, 2)
    fit(task)


@error("unused-params", r"no gradient for net\.1\.spare\.weight", "hidden in a submodule")
def _() -> None:
    task = Regression()
    task.net[1].spare = nn.Linear(2, 2)
    fit(task, accumulate_grad_batches=2)


@error("unused-params", r"no gradient for aux\.weight", "manual optimization")
def _() -> None:
    task = ManualTask()
    task.aux = nn.Linear(2, 2)
    fit(task)


@good("unused-params")
def _() -> None:
    task = Regression()
    task.aux = nn.Linear(2, 2)
    task.aux.requires_grad_(False)
    fit(task)


@good("unused-params", "a branch that is taken now and then")
def _() -> None:
    class Branches(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.rare = nn.Linear(3, 1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            return loss + self.rare(batch[0]).mean() if batch_idx == 4 else loss

    fit(Branches(), max_epochs=2)


@good("unused-params", "meant")
def _() -> None:
    class Task(Regression):
        @mt.intended("unused-params", "aux.*")
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch)

    task = Task()
    task.aux = nn.Linear(2, 2)
    fit(task)


@impossible("unregistered-layers")
def _() -> None:
    class Listed(Regression):
        def __init__(self) -> None:
            super().__init__()
            net = list(self.net)
            del self.net
            self.layers = {"all": [net[0], (net[1], net[2])]}

        def forward(self, x: Any) -> Any:
            first, (act, last) = self.layers["all"]
            return last(act(first(x)))

    ours, right = trained(Listed()), trained(Regression())
    np.testing.assert_array_equal(list(ours.values())[0], list(right.values())[0])


class Holder:
    """A plain object with a layer."""

    def __init__(self) -> None:
        self.layer = nn.Linear(1, 1)


@error(
    "unregistered-layers", r"a parameter f32\[1\].*in self\.helper\.layer\.bias", "helper object"
)
def _() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.helper = Holder()

        def forward(self, x: Any) -> Any:
            return self.helper.layer(self.net(x))

    fit(Task())


@error("unregistered-layers", r"a parameter f32\[1\].*in no attribute of the module", "global")
def _() -> None:
    hidden = nn.Linear(1, 1)

    class Task(Regression):
        def forward(self, x: Any) -> Any:
            return hidden(self.net(x))

    fit(Task())


@good("unregistered-layers")
def _() -> None:
    teacher = nn.Linear(3, 1).requires_grad_(False)

    class Task(Regression):
        def loss(self, batch: Any) -> Any:
            return F.mse_loss(self(batch[0]), teacher(batch[0]))

    fit(Task())


@error("plain-tensor-attribute", r"a plain tensor f32\[1\].*in self\.scale. Make it an nn.Param")
def _() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.scale = mt.ones(1, requires_grad=True)

        def forward(self, x: Any) -> Any:
            return self.net(x) * self.scale

    fit(Task())


@impossible("plain-tensor-attribute")
def _(tmp_path: Any) -> None:
    class Task(Regression):
        def __init__(self, value: float = 1.0) -> None:
            super().__init__()
            self.scale = mt.full((1,), value)

        def forward(self, x: Any) -> Any:
            return self.net(x) * self.scale

    task, fresh = Task(2.0), Task()
    task.double()
    assert task.scale.dtype is mt.float64
    fresh.load_state_dict(task.state_dict())
    assert fresh.scale.item() == 2.0


@good("plain-tensor-attribute")
def _() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(mt.ones(1))

        def forward(self, x: Any) -> Any:
            return self.net(x) * self.scale

    task = Task()
    assert trained(task)["scale"] != 1.0


@impossible("frozen-but-moving")
def _() -> None:
    kept: list[Any] = []

    class Task(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.parameters(), lr=0.1, momentum=0.9, weight_decay=0.0)

        def on_train_epoch_start(self) -> None:
            if self.current_epoch == 1:
                self.net[0].requires_grad_(False)
                kept.append(weights(self)["net.0.weight"])

    np.testing.assert_array_equal(trained(Task(), max_epochs=2)["net.0.weight"], kept[0])


@good("frozen-but-moving")
def _() -> None:
    before = weights(Regression())["net.0.weight"]
    assert not np.array_equal(trained(Regression())["net.0.weight"], before)


@error("stale-copy-of-model", r"hold parameters of this module. Got 4 of 4 that are not in it")
def _() -> None:
    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.optimizer = [mt.optim.SGD(self.parameters(), lr=0.1)]

        def configure_optimizers(self) -> Any:
            return self.optimizer[0]

    task = Task()
    twin = copy.copy(task)
    twin.net = copy.deepcopy(task.net)
    fit(twin)


@good("stale-copy-of-model")
def _() -> None:
    fit(copy.deepcopy(Regression()))


@error("params-missing-from-optimizer", r"net\.0\.weight, net\.0\.bias.*built in .*modules\.py:")
def _() -> None:
    class Task(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.net[2].parameters(), lr=0.1)

    fit(Task())


@error("params-missing-from-optimizer", r"Missing are net\.2\.weight", "head replaced later")
def _() -> None:
    class Swaps(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            module.net[2] = nn.Linear(8, 1)

    fit(Regression(), callbacks=[Swaps()])


@good("params-missing-from-optimizer")
def _() -> None:
    class Task(Regression):
        def configure_optimizers(self) -> Any:
            self.net[0].requires_grad_(False)
            return mt.optim.SGD(self.net[2].parameters(), lr=0.1)

    fit(Task())
