"""The flight check: what the first update verifies once, so that nothing is wrong in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backend, finfo
from minitorch.autograd.mode import note_lines
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core import recorded as graph
from minitorch.callbacks.core.nested import leaves
from minitorch.callbacks.core.watch import Watch
from minitorch.errors import listed

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer

_SAMPLE = 4096
_PROBE_EVERY = 200
_FLIGHT = frozenset(
    "on_train_batch_start transform_loss on_after_backward on_before_optimizer_step "
    "on_after_optimizer_step on_train_batch_end".split()
)
_EVALUATION = frozenset(("on_validation_batch_start", "on_validation_batch_end"))


class FlightCheck(Callback):
    """Verifies the first update of each optimizer: its parameters are registered and changed by it;
    shapes, kinds and widths on the way are as they must be.

    In the first batch every operation notes the line that called it, so that messages can name it.
    After the first update one look per loss is left: for gradients that a backward inside of the
    step has made, and every 200 updates for ReLUs that are never active. A manual task keeps one
    call per backward until each parameter has had a gradient.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._on = self._flying = self._evaluating = False
        self._watch: Watch | None = None
        self._missing: dict[str, Any] = {}
        self._before: dict[str, Any] = {}
        self._batches = 0
        self._updates = 0
        self._updated: set[int] = set()

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._on = self._flying = self._evaluating = stage == "fit" and trainer.checks.on
        self._batches = self._updates = 0
        self._updated = set()
        self._watch = Watch(trainer)

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._end_recording()
        self._flying = self._evaluating = False
        self._before = self._missing = {}

    def listens(self, event: str) -> bool:
        if event == "transform_loss":
            return self._on
        if event in _FLIGHT:
            return self._flying
        if event in _EVALUATION:
            return self._evaluating
        return super().listens(event)

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._missing = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self._updates = trainer.position.global_step

    # The first batches.

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        self._batches += 1
        if self._batches == 1 and self._watch is not None:
            self._watch.open(_sizes(batch), _series(batch))
            note_lines(True)

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        if self._flying:
            if self._batches == 1:
                if module.automatic_optimization:
                    self._end_recording()
                self._look(trainer, module, loss)
        elif trainer.position.global_step % _PROBE_EVERY == 0:
            graph.check_units(trainer, module, graph.Recorded(loss))
        if trainer.position.learned == 0 and module.automatic_optimization:
            for optimizer in trainer.active:
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        if parameter._grad is not None:
                            parameter._grad = None
                            self._warn_of_backward(trainer)
        return loss

    @staticmethod
    def _warn_of_backward(trainer: Trainer) -> None:
        trainer.checks.warn(
            "retain-graph-misuse",
            "training_step: the Trainer calls backward on the loss that is returned. Got gradients "
            "from a backward inside of the step, which are dropped. Remove that call and return "
            "the sum of the losses, or set automatic_optimization = False.",
        )

    def _look(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> None:
        batch = trainer.current_batch.data
        found = graph.Recorded(loss)
        graph.check_leaves(trainer, module, found)
        graph.check_shapes(trainer, found, _sizes(batch))
        graph.check_widths(trainer, found)
        graph.check_units(trainer, module, found)
        graph.check_alignment(trainer, found, _whole_numbers(batch))
        if not trainer.position.global_step and not trainer.resumed:
            trainer.first_loss = float(backend.to_host(loss._array).item())
            graph.check_first_loss(trainer, found)

    def _end_recording(self) -> None:
        if self._watch is not None:
            self._watch.close()
        note_lines(False)

    def on_after_backward(self, trainer: Trainer, module: TaskModule) -> None:
        self._missing = {n: p for n, p in self._missing.items() if p._grad is None}

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        params = [p for group in optimizer.param_groups for p in group["params"]]
        had = [p for p in params if p.requires_grad and id(p) not in self._missing_ids()]
        if had and all(p._grad is None for p in had) and not trainer.checks.meant(_NO_EFFECT):
            trainer.checks.error(
                _NO_EFFECT,
                "optimizer step: gradients of the backward pass must reach the update. Got none: "
                "they were cleared between backward and step. The Trainer clears them by itself; "
                "remove the call of zero_grad.",
            )
        named = {id(p): name for name, p in module.named_parameters()}
        self._before = {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p._grad is not None and p.requires_grad and group["lr"] != 0:
                    self._before[named.get(id(p), "")] = (p, _sample(p), _reach(p, group["lr"]))

    def _missing_ids(self) -> set[int]:
        return {id(p) for p in self._missing.values()}

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        still = [
            name
            for name, (p, before, reach) in self._before.items()
            if reach and np.array_equal(before, _sample(p))
        ]
        self._before = {}
        self._updated.add(id(optimizer))
        if still and not trainer.checks.meant(_NO_EFFECT, still[0]):
            trainer.checks.error(
                _NO_EFFECT,
                "optimizer step: an update must change what has a gradient. Got the same values "
                f"as before in {listed(still)}. Look for a learning rate that is too small for "
                "these weights, an optimizer_step that does not step, or an optimizer of other "
                "objects.",
            )

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._end_recording()
        if trainer.position.global_step == self._updates:
            return
        if module.automatic_optimization:
            landed = all(id(optimizer) in self._updated for optimizer in trainer.optimizers)
        else:
            landed = not self._missing
        if landed:
            self._flying = False
            trainer.rewire()

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        waits = any(e.frequency > trainer.position.windows for e in trainer.named.values())
        resumed_inside = self._batches < trainer.position.batch
        if not self._flying or waits or resumed_inside:
            return
        self._flying = False
        if not module.automatic_optimization:
            self._check_manual(trainer)
        trainer.rewire()

    def _check_manual(self, trainer: Trainer) -> None:
        if not trainer.optimizers:
            return
        if trainer.position.global_step == self._updates:
            trainer.checks.error(
                _NO_EFFECT,
                "training_step: manual optimization steps by itself. Got no update in a whole "
                "epoch. Call self.manual_backward(loss) and self.optimizers().step().",
            )

    # The first batches of validation.

    def on_validation_batch_start(
        self,
        trainer: Trainer,
        module: TaskModule,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self._watch is not None:
            self._watch.open(_sizes(batch), _series(batch))

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        if self._watch is not None:
            self._watch.close()

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self._evaluating:
            self._evaluating = False
            trainer.rewire()


_NO_EFFECT = "update-had-no-effect"


def _sample(tensor: Any) -> np.ndarray:
    """Up to 4096 values of a tensor, spread over it."""
    flat = tensor._array.reshape(-1)
    step = max(1, flat.size // _SAMPLE)
    return np.array(backend.to_host(flat[::step]))


def _reach(tensor: Any, lr: float) -> bool:
    """Whether the gradient is large enough for lr times it to be seen in the values at all."""
    step = np.abs(_sample(tensor._grad).astype(np.float64)).max(initial=0.0) * float(lr)
    values = np.abs(_sample(tensor).astype(np.float64)).max(initial=0.0)
    return bool(step > max(1e-6, 2 * finfo(tensor.dtype).eps) * values)


def _sizes(batch: Any) -> set[int]:
    return {leaf.shape[0] for leaf in leaves(batch) if leaf.ndim}


def _series(batch: Any) -> set[tuple[int, int]]:
    return {tuple(leaf.shape[:2]) for leaf in leaves(batch) if leaf.ndim > 1}


def _whole_numbers(batch: Any) -> list[Any]:
    """The batch's arrays of tokens: whole numbers with two axes."""
    arrays = [getattr(leaf, "_array", leaf) for leaf in leaves(batch)]
    return [backend.to_host(a) for a in arrays if a.dtype.kind in "iu" and a.ndim == 2]
