"""Adadelta."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_number, refuse_differentiable


class Adadelta(FusedOptimizer):
    """Gradient descent in the units of the parameters: past updates over past gradients.

    `v = ρ·v + (1-ρ)·g²`, `δ = √(u + eps)/√(v + eps)·g`, `u = ρ·u + (1-ρ)·δ²`, `p -= lr·δ`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Factor of the update.
        rho: Decay of both means.
        eps: Added under both roots.
        weight_decay: Factor of the L2 penalty.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        capturable: As `foreach`; an update never waits for the device.
        maximize: Ascend.
        differentiable: Only False: an update is no part of a graph.

    Raises:
        ArgumentError: An option is out of range.

    Source: ADADELTA: An Adaptive Learning Rate Method, Zeiler, 2012.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.Adadelta([w], eps=1.0, rho=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [-0.155, 0.667]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable("Adadelta", differentiable)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            check_number("Adadelta", group, name)
        check_number("Adadelta", group, "rho", 0.0, 1.0 + 1e-12)

    def _rule(self, group: Group) -> Rule:
        return _ADADELTA

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        rho = float(group["rho"])
        return (
            float(group["lr"]),
            rho,
            1 - rho,
            float(group["eps"]),
            float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )


def _adadelta(
    xp: Any, p: Any, g: Any, v: Any, u: Any,
    lr: float, rho: float, w: float, eps: float, wd: float, sign: float,
) -> None:  # fmt: skip
    d = g * sign + p * wd
    v *= rho
    v += d * w * d
    d = xp.sqrt(u + eps) / xp.sqrt(v + eps) * d
    u *= rho
    u += d * w * d
    p -= d * lr


_ADADELTA = Rule("adadelta", ("square_avg", "acc_delta"), _adadelta)
