"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .optimizer import Group
from .update import FusedOptimizer, Rule, check_number, refuse_differentiable


class Rprop(FusedOptimizer):
    """Steps along the sign of the gradient; each element's size grows while the sign stays.

    `s = s·η⁺` where g·g₋₁ > 0 and `s·η⁻` where it is < 0 (there g becomes 0), within
    `step_sizes`; `p -= s·sign(g)`. For whole batches: noise changes signs.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: The first step size.
        etas: Factors where the sign changed, and where it stayed.
        step_sizes: The smallest and the largest step.
        capturable: As `foreach`; an update never waits for the device.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        maximize: Ascend.
        differentiable: Only False: an update is no part of a graph.

    Raises:
        ArgumentError: An option is out of range.

    Source: A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP Algorithm,
    Riedmiller and Braun, 1993.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, -2.0]))
    >>> optimizer = mt.optim.Rprop([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, -1.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable("Rprop", differentiable)
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        check_number("Rprop", group, "lr")
        for name in ("etas", "step_sizes"):
            pair = group[name]
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ArgumentError(f"Rprop: {name} must be two numbers. Got {pair!r}.")
        minus, plus = group["etas"]
        if not 0 < minus < 1 < plus:
            raise ArgumentError(
                f"Rprop: etas must be one number between 0 and 1 and one above 1. "
                f"Got {(minus, plus)}."
            )

    def _rule(self, group: Group) -> Rule:
        return _RPROP

    def _new_state(self, name: str, group: Group, state: dict[str, Any]) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        sign = -1.0 if group["maximize"] else 1.0
        return (*map(float, (*group["etas"], *group["step_sizes"])), sign)


def _rprop(
    xp: Any, p: Any, g: Any, prev: Any, size: Any,
    minus: float, plus: float, low: float, high: float, sign: float,
) -> None:  # fmt: skip
    d = g * sign
    along = d * prev
    turned = along < 0
    size *= xp.where(along > 0, size.dtype.type(plus), size.dtype.type(1))
    size *= xp.where(turned, size.dtype.type(minus), size.dtype.type(1))
    size[...] = xp.minimum(xp.maximum(size, low), high)
    prev[...] = xp.where(turned, xp.zeros_like(d), d)
    p -= xp.sign(prev) * size


_RPROP = Rule("rprop", ("prev", "step_size"), _rprop)
