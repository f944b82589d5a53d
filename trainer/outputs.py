"""What steps return: what is accepted, and what an error says about the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import Tensor, backend, is_grad_enabled
from minitorch.autograd.mode import state
from minitorch.callbacks.cancel import CancelStep
from minitorch.callbacks.core.nested import map_leaves
from minitorch.errors import TrainerError, describe
from minitorch.trainer.first_bad import first_bad

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer


def read_loss(output: Any, trainer: Trainer) -> tuple[Tensor, dict[str, Any], float | None]:
    """Takes apart what training_step returned.

    Args:
        output: A scalar loss, or a dict with the key "loss" and optionally "count", the number of
            items that the loss is a mean of.
        trainer: The run, for its position and its checks.

    Returns:
        The loss with its graph, the detached outputs for callbacks, and the count.

    Raises:
        TrainerError: It is no loss that can be differentiated.
        DivergenceError: It is not finite.
    """
    extra: Mapping[str, Any] = {}
    if type(output) is not Tensor and isinstance(output, Mapping):
        extra = output
        if "loss" not in extra:
            _refuse(f"a dict with the keys {', '.join(map(repr, extra))}", 'Add the key "loss".')
        output = extra["loss"]
    if not isinstance(output, Tensor):
        _refuse_kind(output, trainer)
    array = output._array
    if array.size != 1:
        _refuse(describe(output), "Reduce it to one number, for example with .mean().")
    if not output.requires_grad:
        _refuse_constant()
    check_finite(output, trainer)
    refused = trainer.plan.refused_width
    if refused is not None and array.dtype == refused and not state.noting:  # the flight says where
        _refuse_width(output, trainer)
    outputs: dict[str, Any] = {"loss": output.detach()}
    if not extra:
        return output, outputs, None
    for key, value in extra.items():
        if key != "loss":
            outputs[key] = detach(value)
    return output, outputs, _count(extra.get("count"))


def check_finite(loss: Tensor, trainer: Trainer) -> None:
    """Raises DivergenceError for a loss that is nan or inf.

    On a GPU it is read back and checked every `log_every_n_steps` batches, on the CPU always.
    """
    array = loss._array
    if type(array) is np.ndarray or trainer.position.batches % trainer.plan.check_every == 0:
        value = float(backend.to_host(array).item())
        if not math.isfinite(value):
            trainer.finite.on_bad_loss(trainer, _not_finite(value, trainer))


def _refuse_width(loss: Tensor, trainer: Trainer) -> None:
    trainer.checks.error(
        "float64-creep",
        f"training_step: the loss must be {trainer.precision.widest.numpy}. Got "
        f"{describe(loss)} at epoch {trainer.position.epoch}, batch {trainer.position.batch}: a "
        "NumPy array or a .double() slipped in. Convert it with .float() or np.float32.",
    )


def detach(value: Any) -> Any:
    """The same tree with all tensors out of the graph."""
    return map_leaves(value, _detach_leaf)


def _detach_leaf(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf


def read_evaluation(name: str, output: Any) -> Any:
    """Checks what validation_step or test_step returned, and detaches it.

    Raises:
        TrainerError: It is not a tensor, a number, a dict or None.
    """
    if output is None or isinstance(output, int | float):
        return output
    if isinstance(output, Tensor | Mapping):
        return detach(output)
    raise TrainerError(
        f"{name}: it returns a tensor, a dict or nothing, for callbacks to use. Got "
        f"{describe(output)}. Metrics are kept with self.log(name, value)."
    )


def read_manual(output: Any) -> Any:
    """Checks what training_step returned under manual optimization, and detaches it."""
    return {} if output is None else read_evaluation("training_step", output)


def _count(count: Any) -> float | None:
    if count is None:
        return None
    value = float(count)
    if not value > 0:
        raise TrainerError(
            'training_step: "count" is the number of items that the loss is a mean of, > 0. '
            f"Got {value:g}. Leave it out to use the batch size."
        )
    return value


def _refuse(came: str, fix: str) -> None:
    raise TrainerError(
        f"training_step: it must return the loss, a scalar tensor. Got {came}. {fix}"
    )


def skip_if_meant(trainer: Trainer) -> None:
    """Leaves out the batch, if the task says that None as a loss does so."""
    if trainer.checks.said("lossless-step"):
        raise CancelStep("training_step returned None")


def _refuse_kind(output: Any, trainer: Trainer) -> None:
    if output is None:
        skip_if_meant(trainer)
        _refuse(
            "None",
            'Add `return loss`. To leave a batch out, raise CancelStep("why"), or say that None '
            'does so: @intended("lossless-step") on training_step.',
        )
    if isinstance(output, int | float | np.number):
        _refuse(
            f"the number {output}",
            "Return the tensor itself: .item() and float() cut it off its graph.",
        )
    if isinstance(output, list | tuple):
        _refuse(describe(output), 'Return loss, or {"loss": loss, "more": values}.')
    _refuse(describe(output), "Compute it with minitorch operations on the module's output.")


def _refuse_constant() -> None:
    if not is_grad_enabled():
        _refuse(
            "a loss that requires no gradient, because recording is switched off",
            "Somebody called set_grad_enabled(False) or left a no_grad() open. "
            "Use `with minitorch.no_grad():` around the part that needs it.",
        )
    _refuse(
        "a loss that requires no gradient: no trainable parameter took part in it",
        "Look for .detach(), .item(), tensor(loss), argmax or comparisons on the way, "
        "or for parameters that are all frozen.",
    )


def _not_finite(value: float, trainer: Trainer) -> str:
    position, found = trainer.position, ""
    if trainer.checks.on and trainer.module.automatic_optimization:
        found = first_bad(trainer)
    return (
        f"training_step: the loss must be finite. Got {value} at epoch {position.epoch}, batch "
        f"{position.batch} (after {position.global_step} updates). The weights are those of the "
        f"last good update.{found} Lower the learning rate or clip gradients if it grew step by "
        "step; look for log(0), division by 0 or inf in the batch if it came at once."
    )
