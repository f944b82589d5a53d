"""Adamax."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_betas, check_number, refuse_differentiable


class Adamax(FusedOptimizer):
    """Adam with a running maximum in the place of the second moment.

    `m = β1·m + (1-β1)·g`, `u = max(β2·u, |g| + eps)`, `p -= lr/(1-β1ᵗ) · m/u`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Decay of the first moment and of the maximum.
        eps: Added to the size of the gradient.
        weight_decay: Factor of the L2 penalty.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        maximize: Ascend.
        differentiable: Only False: an update is no part of a graph.
        capturable: As `foreach`; an update never waits for the device.

    Raises:
        ArgumentError: An option is out of range.

    Source: Adam: A Method for Stochastic Optimization, Kingma and Ba, 2015, section 7.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.Adamax([w], lr=0.5, eps=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [0.5, 1.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        refuse_differentiable("Adamax", differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            check_number("Adamax", group, name)
        check_betas("Adamax", group)

    def _rule(self, group: Group) -> Rule:
        return _ADAMAX

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        return (
            1 - beta1,
            beta1,
            beta2,
            float(group["lr"]) / (1 - beta1**step),
            float(group["eps"]),
            float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )


def _adamax(
    xp: Any, p: Any, g: Any, m: Any, top: Any,
    w1: float, c1: float, b2: float, step: float, eps: float, wd: float, sign: float,
) -> None:  # fmt: skip
    d = g * sign + p * wd
    if w1 < c1:
        m += (d - m) * w1
    else:
        m[...] = d - (d - m) * c1
    top[...] = xp.maximum(top * b2, xp.abs(d) + eps)
    p -= m / top * step


_ADAMAX = Rule("adamax", ("exp_avg", "exp_inf"), _adamax)
