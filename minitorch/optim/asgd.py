"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_number, refuse_differentiable


class ASGD(FusedOptimizer):
    """Gradient descent with a falling rate, and the average of the iterates beside it.

    `p = p·(1 - lambd·η) - η·g`, `ax += μ·(p - ax)`, then `η = lr/(1 + lambd·lr·t)^alpha` and
    `μ = 1/max(1, t - t0)`. The average lies in `state[p]["ax"]`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        lambd: Decay term.
        alpha: Power of the fall of the rate.
        t0: Update at which averaging begins.
        weight_decay: Factor of the L2 penalty.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        maximize: Ascend.
        differentiable: Only False: an update is no part of a graph.
        capturable: As `foreach`; an update never waits for the device.

    Raises:
        ArgumentError: An option is out of range.

    Source: Acceleration of Stochastic Approximation by Averaging, Polyak and Juditsky, 1992.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.ASGD([w], lr=0.25, lambd=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 1.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        refuse_differentiable("ASGD", differentiable)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay"):
            check_number("ASGD", group, name)

    def _rule(self, group: Group) -> Rule:
        return _ASGD

    def _advance(self, group: Group, state: dict[str, Any]) -> tuple[float, float]:
        step = state["step"] = state["step"] + 1
        lr = float(group["lr"])
        used = state.get("eta", lr), state.get("mu", 1.0)
        state["eta"] = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])
        return used

    def _scalars(self, group: Group, step: Any) -> tuple[float, ...]:
        eta, mu = step
        return (
            eta,
            1 - float(group["lambd"]) * eta,
            mu,
            float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )


def _asgd(
    xp: Any, p: Any, g: Any, ax: Any, eta: float, keep: float, mu: float, wd: float, sign: float
) -> None:
    d = g * sign + p * wd
    p *= keep
    p -= d * eta
    if mu == 1:
        ax[...] = p
    else:
        ax += (p - ax) * mu


_ASGD = Rule("asgd", ("ax",), _asgd)
