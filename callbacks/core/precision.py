"""Numeric precision: which dtype computes, and loss scaling where it is needed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from minitorch import dtypes
from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import DivergenceError

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer

_NO_CONTEXT = contextlib.nullcontext()
_NO_EFFECT = "update-had-no-effect"
_STORED = {"64": dtypes.float64, "16-true": dtypes.float16, "bf16-true": dtypes.bfloat16}


class Precision(Callback):
    """ "32", "64", "16-mixed" (autocast to float16 with a dynamic loss scale), "bf16-mixed",
    "16-true" or "bf16-true" (weights and activations in the half type).

    Updates are never lost to rounding: with the mixed ones weights are float32, with the true ones
    the optimizer keeps a float32 copy of each weight, beside float32 state, and rounds it to the
    weight. The order is fixed: scale, backward, unscale, average, clip, step, adapt the scale;
    schedules count applied updates only. A run in which the scaler left out every update is an
    error, one in which it left out most of them a warning.
    """

    order = Order.TRANSFORM
    writes = {"gradients": "on_window_end"}

    rolls_back = True

    def __init__(self) -> None:
        self.name = "32"
        self.scaler: Any = None
        self._context: Any = _NO_CONTEXT
        self._saved_scaler: dict[str, Any] | None = None
        self._previous_dtype: Any = None
        self._unscaled: set[int] = set()
        self._stepped: set[int] = set()
        self._start = (0, 0)

    @property
    def state_key(self) -> str:
        return "Precision"

    @property
    def input_dtype(self) -> dtypes.dtype:
        """Dtype of the weights, and that floating batches are cast to."""
        return _STORED.get(self.name, dtypes.float32)

    @property
    def widest(self) -> dtypes.dtype:
        """The widest float that a step may compute in: half types are summed in float32."""
        return dtypes.float64 if self.name == "64" else dtypes.float32

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self.name = trainer.settings.precision_name
        if self.name == "64":
            self._previous_dtype = dtypes.get_default_dtype()
            dtypes.set_default_dtype(dtypes.float64)

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        module.to(self.input_dtype)
        if self.name.endswith("-mixed"):
            from minitorch.amp import autocast
            from minitorch.amp.grad_scaler import GradScaler

            half = dtypes.float16 if self.name == "16-mixed" else dtypes.bfloat16
            self._context = autocast(trainer.device.type, dtype=half)
            if self.name == "16-mixed" and stage == "fit":
                self.scaler = GradScaler(trainer.device.type)
                if self._saved_scaler is not None:
                    self.scaler.load_state_dict(self._saved_scaler)
        elif self.name.endswith("-true"):
            self._context = _DefaultDtype(self.input_dtype)
        if trainer.device.type != "cpu":
            self._context = _On(trainer.device, self._context)

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self._previous_dtype is not None:
            dtypes.set_default_dtype(self._previous_dtype)
            self._previous_dtype = None

    def listens(self, event: str) -> bool:
        if event in ("transform_loss", "on_window_end", "on_train_start", "on_train_end"):
            return self.scaler is not None
        if event == "on_train_batch_end":
            trainer = self._trainer
            manual = trainer is not None and not trainer.module.automatic_optimization
            return self.scaler is not None and manual
        return super().listens(event)

    def forward_context(self) -> Any:
        """The context that every step of the module runs in."""
        return self._context

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._start = self.scaler.skipped_steps, sum(o.updates for o in trainer.optimizers)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        skipped = self.scaler.skipped_steps - self._start[0]
        applied = sum(o.updates for o in trainer.optimizers) - self._start[1]
        if skipped <= applied or trainer.checks.meant(_NO_EFFECT):
            return
        text = (
            f"precision: updates must be applied. Got {applied} in this run, and {skipped} that "
            "the loss scaler left out because gradients overflowed in float16: it begins at 65536 "
            f"and halves after each, to {self.scaler.get_scale():g} now. Train longer, make the "
            'loss smaller (a mean, not a sum), or use precision="bf16-mixed".'
        )
        completed = trainer.ending is not None and trainer.ending[0] == "completed"
        if applied or trainer.fast_dev_run or not completed:
            trainer.checks.warn(_NO_EFFECT, text)
        else:
            trainer.checks.error(_NO_EFFECT, text)

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        scaled: Tensor = self.scaler.scale(loss)
        return scaled

    def on_window_end(self, trainer: Trainer, module: TaskModule) -> None:
        for optimizer in trainer.active:
            self.unscale(optimizer)

    def unscale(self, optimizer: Optimizer) -> None:
        """Takes the loss scale out of an optimizer's gradients, unless it was taken out already."""
        if self.scaler is None:
            return
        optimizer = bare(optimizer)
        one = id(optimizer)
        if one in self._unscaled:
            return
        if one in self._stepped:
            self.scaler.reopen(optimizer)
        self.scaler.unscale_(optimizer)
        self._unscaled.add(one)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Manual optimization: all losses of a batch have the same scale."""
        if self._stepped:
            self._adapt(trainer)

    def optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer, loss: Any
    ) -> bool:
        """Applies the update unless gradients overflowed at this loss scale.

        Returns:
            Whether an update was applied; `optimizer_step` of the module may leave it out, too.

        Raises:
            DivergenceError: Gradients are not finite although the scale cannot get smaller.
        """
        position = trainer.position
        place = position.epoch, position.batch
        before = optimizer.updates
        if self.scaler is None:
            module.optimizer_step(*place, optimizer, lambda: loss)
            return optimizer.updates != before
        scaled: Any = ScaledOptimizer(optimizer, self.scaler)
        module.optimizer_step(*place, scaled, lambda: loss)
        self._unscaled.discard(id(optimizer))
        self._stepped.add(id(optimizer))
        if module.automatic_optimization and optimizer is trainer.active[-1]:
            self._adapt(trainer)
        return optimizer.updates != before

    def close_round(self, trainer: Trainer) -> None:
        """Ends the round of an update that is left out: what its gradients said counts."""
        if self._unscaled or self._stepped:
            self._adapt(trainer)

    def _adapt(self, trainer: Trainer) -> None:
        position, scale = trainer.position, self.scaler.get_scale()
        self.scaler.update()
        self._unscaled.clear()
        self._stepped.clear()
        if self.scaler.get_scale() < scale <= 1.0:
            raise DivergenceError(
                "precision: gradients must be finite. They overflow in float16 even at the loss "
                f"scale {scale:g} (epoch {position.epoch}, batch {position.batch}), so it is no "
                'matter of scaling. Lower the learning rate, or use precision="bf16-mixed".'
            )

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"name": self.name}
        if self.scaler is not None:
            state["scaler"] = self.scaler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._saved_scaler = state_dict.get("scaler")
        before, trainer = state_dict.get("name", self.name), self._trainer
        check = "precision-default-surprise"
        if before != self.name and trainer is not None and not trainer.checks.meant(check):
            trainer.checks.warn(
                check,
                "Trainer: a resumed run computes as it did before. Got "
                f'precision="{self.name}" and a checkpoint of a run with "{before}". Pass '
                f'precision="{before}", or accept other numbers.',
            )
        if self.scaler is not None and self._saved_scaler is not None:
            self.scaler.load_state_dict(self._saved_scaler)


class _DefaultDtype:
    """The context of a step whose new tensors are as wide as its weights."""

    def __init__(self, dtype: dtypes.dtype) -> None:
        self._dtype = dtype
        self._before = dtypes.float32

    def __enter__(self) -> None:
        self._before = dtypes.get_default_dtype()
        dtypes.set_default_dtype(self._dtype)

    def __exit__(self, *exc: Any) -> None:
        dtypes.set_default_dtype(self._before)


class _On:
    """The context of a step on a GPU: new tensors are made there."""

    def __init__(self, device: Any, inner: Any) -> None:
        self._parts = (device, inner)

    def __enter__(self) -> None:
        for part in self._parts:
            part.__enter__()

    def __exit__(self, *exc: Any) -> None:
        for part in reversed(self._parts):
            part.__exit__(*exc)


def bare(optimizer: Any) -> Optimizer:
    """The optimizer itself, out of what hooks and `TaskModule.optimizers` give."""
    from minitorch.optim import Optimizer

    inner: Optimizer = optimizer if isinstance(optimizer, Optimizer) else optimizer.optimizer
    return inner


class ScaledOptimizer:
    """The optimizer under a loss scaler: `step` does nothing when gradients overflowed."""

    def __init__(self, optimizer: Optimizer, scaler: Any) -> None:
        self.optimizer = optimizer
        self.scaler = scaler

    def step(self, closure: Any = None) -> Any:
        """The update, unless a gradient is not finite."""
        if closure is not None:
            closure()
        return self.scaler.step(self.optimizer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)
