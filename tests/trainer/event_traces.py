"""Callbacks, tasks and data that record their events, here and under Lightning."""

from __future__ import annotations

from typing import Any

from toy_tasks import Regression, arrays, loader, quiet

from minitorch.callbacks import Callback, Order
from minitorch.callbacks.callback import EVENTS
from minitorch.trainer import DataModule
from minitorch.trainer.hooks import Hooks

Trace = list[str]


def tracer(label: str, trace: Trace, base: type = Callback) -> Any:
    """An object of a subclass of `base` that records every event it gets."""

    def recording(event: str) -> Any:
        def method(self: Any, *args: Any) -> Any:
            trace.append(f"{label}.{event}")
            if event in ("transform_batch", "transform_loss"):
                return args[2]
            return None

        return method

    owner = Callback if base is Callback else Hooks
    body = {event: recording(event) for event in EVENTS if hasattr(owner, event)}
    return type(label, (base,), {**body, "trace": trace})


class StepTrace(Regression):
    """Records its steps."""

    trace: Trace

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.trace.append("M.training_step")
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.trace.append("M.validation_step")
        return super().validation_step(batch, batch_idx)

    def configure_optimizers(self) -> Any:
        self.trace.append("M.configure_optimizers")
        return super().configure_optimizers()


class LoggerTrace:
    """A logger that records what reaches it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.trace.append(f"L.log_metrics {' '.join(sorted(metrics))} @{step}")

    def log_hyperparams(self, params: Any, metrics: Any = None) -> None:
        self.trace.append("L.log_hyperparams")

    def save(self) -> None: ...

    def finalize(self, status: str) -> None:
        self.trace.append(f"L.finalize {status}")


class DataTrace(DataModule):
    """Records the hooks of a DataModule."""

    def __init__(self, trace: Trace) -> None:
        self.seen = trace.append

    def prepare_data(self) -> None:
        self.seen("D.prepare_data")

    def setup(self, stage: str) -> None:
        self.seen("D.setup")

    def teardown(self, stage: str) -> None:
        self.seen("D.teardown")

    def train_dataloader(self) -> Any:
        self.seen("D.train_dataloader")
        return loader(4, shuffle=False)

    def val_dataloader(self) -> Any:
        self.seen("D.val_dataloader")
        return [arrays(2)]

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.seen("D.on_before_batch_transfer")
        return batch

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.seen("D.on_after_batch_transfer")
        return batch

    def on_exception(self, exception: BaseException) -> None:
        self.seen("D.on_exception")


class At(Callback):
    """Does something after so many batches, last in its event."""

    order = Order.PERSIST

    def __init__(self, batches: int, action: Any) -> None:
        self.batches, self.action = batches, action

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.position.batches == self.batches:
            self.action(trainer)


class Manual(StepTrace):
    """Two updates in one batch."""

    automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        self.trace.append("M.training_step")
        optimizer = self.optimizers()
        for _ in range(2):
            optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            optimizer.step()


STEPS = ("training_step", "validation_step", "test_step", "predict_step", "configure_optimizers")


def traced_lightning(pl: Any, stage: str, **options: Any) -> Trace:
    """The events of Lightning for the same program."""
    import torch

    trace: Trace = []

    def record(name: str) -> Any:
        return lambda *args, **kwargs: trace.append(name)

    class Task(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 1)

        def step(self, name: str, batch: Any) -> Any:
            trace.append(f"M.{name}")
            return ((self.linear(batch[0]) - batch[1]) ** 2).mean()

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.step("training_step", batch)

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.step("validation_step", batch)

        def test_step(self, batch: Any, batch_idx: int) -> None:
            self.step("test_step", batch)

        def predict_step(self, batch: Any, batch_idx: int) -> Any:
            return self.step("predict_step", batch)

        def configure_optimizers(self) -> Any:
            trace.append("M.configure_optimizers")
            return torch.optim.SGD(self.parameters(), 0.01)

    shared = [event for event in EVENTS if hasattr(pl.Callback, event)]
    callback = type("C", (pl.Callback,), {e: record(f"C.{e}") for e in shared})()
    hooks = {e: record(f"M.{e}") for e in shared if hasattr(pl.LightningModule, e)}
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback],
        **options,
    )
    data = torch.utils.data.TensorDataset(torch.randn(12, 3), torch.randn(12, 1))
    few = torch.utils.data.Subset(data, range(4))
    loaders = [torch.utils.data.DataLoader(one, 4) for one in (data, few)]
    given = loaders if stage == "fit" else loaders[1:]
    getattr(trainer, stage)(type("M", (Task,), hooks)(), *given)
    return trace


def traced_here(stage: str, **options: Any) -> Trace:
    trace: Trace = []

    class Task(StepTrace):
        def test_step(self, batch: Any, batch_idx: int) -> None:
            trace.append("M.test_step")

        def predict_step(self, batch: Any, batch_idx: int) -> Any:  # type: ignore[override]
            trace.append("M.predict_step")
            return batch[0]

    trainer = quiet(callbacks=tracer("C", trace)(), max_epochs=1, **options)
    loaders = (loader(12), loader(4, shuffle=False))
    given = loaders if stage == "fit" else loaders[1:]
    getattr(trainer, stage)(tracer("M", trace, Task)(), *given)
    return trace
