"""Numbers: half precision, loss scale, clipping, accumulation."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import (
    Classifier,
    Regression,
    assert_same,
    classes,
    fit,
    good,
    impossible,
    loader,
    trained,
    weights,
)

import minitorch as mt
from minitorch import nn


@impossible("half-precision-optimizer-blowup")
def _() -> None:
    class Half(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.half()

        def configure_optimizers(self) -> Any:
            return mt.optim.Adam(self.parameters(), lr=1e-3)

    values = trained(Half())
    assert all(v.dtype == np.float32 and np.isfinite(v).all() for v in values.values())


@impossible("half-precision-optimizer-blowup", "asked for")
def _() -> None:
    class Adam(Regression):
        def configure_optimizers(self) -> Any:
            return mt.optim.Adam(self.parameters(), lr=1e-3)

    for precision in ("16-true", "bf16-true"):
        values = trained(Adam(), precision=precision)
        assert all(np.isfinite(v.astype(np.float32)).all() for v in values.values())


@good("half-precision-optimizer-blowup")
def _() -> None:
    fit(Regression(), precision="bf16-mixed")


@impossible("low-precision-update-lost")
def _() -> None:
    class Small(Regression):
        def __init__(self) -> None:
            super().__init__(lr=1e-4)
            self.bfloat16()

    before = weights(Small())["net.0.weight"].astype(np.float32)
    assert not np.array_equal(trained(Small(), precision="bf16-mixed")["net.0.weight"], before)


@impossible("low-precision-update-lost", "weights in bfloat16")
def _() -> None:
    class Constant(Regression):
        """Each update moves the weight by a sixteenth of its last place."""

        def __init__(self) -> None:
            super().__init__(lr=2.0**-12)
            self.net = nn.Linear(3, 1, bias=False)
            nn.init.ones_(self.net.weight)

        def loss(self, batch: Any) -> Any:
            return self.net.weight.sum()

        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.parameters(), lr=self.hparams.lr)

    values = trained(Constant(), precision="bf16-true", max_epochs=8)
    assert (values["net.weight"].astype(np.float32) == 1 - 48 * 2.0**-12).all()


@good("low-precision-update-lost")
def _() -> None:
    fit(Regression(lr=1e-4))


@impossible("clip-before-unscale")
def _() -> None:
    options: dict[str, Any] = {"gradient_clip_val": 0.1}
    ours = trained(Regression(), precision="16-mixed", **options)
    assert_same(ours, trained(Regression(), **options), rtol=2e-2)


@good("clip-before-unscale")
def _() -> None:
    fit(Regression(), precision="16-mixed")


def scheduled(counts: list[int]) -> Any:
    """A task whose first updates overflow at the loss scale."""

    class Task(Regression):
        def configure_optimizers(self) -> Any:
            optimizer = mt.optim.SGD(self.parameters(), lr=0.01)
            schedule = mt.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
            return [optimizer], [{"scheduler": schedule, "interval": "step"}]

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch) * 10.0

        def on_train_batch_end(self, *rest: Any) -> None:
            counts.append(self.lr_schedulers().last_epoch - self.trainer.global_step)

    return Task()


@impossible("scaler-skip-schedule-advances")
def _() -> None:
    counts: list[int] = []
    task = scheduled(counts)
    result = fit(task, precision="16-mixed", max_epochs=3)
    assert set(counts) == {0}
    assert result.global_step < 18


@good("scaler-skip-schedule-advances")
def _() -> None:
    counts: list[int] = []
    assert fit(scheduled(counts)).global_step == 6


def sequences(lengths: list[int]) -> list[Any]:
    """Batches of token rows padded with ignored targets."""
    rng = np.random.default_rng(0)
    batches = []
    for n in lengths:
        x = rng.normal(size=(4, 3)).astype(np.float32)
        y = rng.integers(0, 4, 4)
        y[n:] = -100
        batches.append((x, y))
    return batches


class Plain(Classifier):
    """Without momentum, so that one update shows its gradient."""

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=0.1)


@impossible("accum-wrong-normaliser")
def _() -> None:
    batches = sequences([4, 1])
    whole = [tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))]
    ours = trained(Plain(), batches, accumulate_grad_batches=2)
    assert_same(ours, trained(Plain(), whole), rtol=1e-5)


@impossible("accum-wrong-normaliser", "batches of 3 and 1 samples")
def _() -> None:
    x, y = classes(4)
    ours = trained(Plain(), [(x[:3], y[:3]), (x[3:], y[3:])], accumulate_grad_batches=2)
    assert_same(ours, trained(Plain(), [(x, y)]), rtol=1e-5)


@good("accum-wrong-normaliser")
def _() -> None:
    class Counts(Plain):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return {"loss": self.loss(batch), "count": int((batch[1] != -100).sum())}

    batches = sequences([4, 1])
    ours = trained(Counts(), batches, accumulate_grad_batches=2)
    assert_same(ours, trained(Plain(), batches, accumulate_grad_batches=2))


@impossible("grad-accum-last-window")
def _() -> None:
    x, y = classes(12)
    three = loader((x, y), 4)
    ours = trained(Plain(), three, accumulate_grad_batches=2)
    right = trained(Plain(), [(x[:8], y[:8]), (x[8:], y[8:])])
    assert_same(ours, right, rtol=1e-5)


@good("grad-accum-last-window")
def _() -> None:
    assert fit(Plain(), loader(classes(16), 4), accumulate_grad_batches=2).global_step == 2
