"""Adagrad."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_number, refuse_differentiable


class Adagrad(FusedOptimizer):
    """Gradient descent divided by the root of the sum of all squared gradients.

    `s = s + g²`, `p -= lr/(1 + (t-1)·lr_decay) · g / (√s + eps)`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        lr_decay: How fast the rate falls with the number of updates.
        weight_decay: Factor of the L2 penalty.
        initial_accumulator_value: What the sum starts with.
        eps: Added to the denominator.
        maximize: Ascend.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        differentiable: Only False: an update is no part of a graph.
        fused: As `foreach`.

    Raises:
        ArgumentError: An option is out of range.

    Source: Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, Duchi et
    al., 2011.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.Adagrad([w], lr=0.5, eps=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 1.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse_differentiable(type(self).__name__, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"):
            check_number("Adagrad", group, name)

    def _rule(self, group: Group) -> Rule:
        return _ADAGRAD

    def _new_state(self, name: str, group: Group, state: dict[str, Any]) -> float:
        return float(group["initial_accumulator_value"])

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        return (
            float(group["lr"]) / (1 + (step - 1) * float(group["lr_decay"])),
            float(group["eps"]),
            float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )


def _adagrad(
    xp: Any, p: Any, g: Any, total: Any, lr: float, eps: float, wd: float, sign: float
) -> None:
    d = g * sign + p * wd
    total += d * d
    p -= d / (xp.sqrt(total) + eps) * lr


_ADAGRAD = Rule("adagrad", ("sum",), _adagrad)
