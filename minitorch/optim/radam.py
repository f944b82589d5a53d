"""RAdam."""

from __future__ import annotations

from typing import Any

from .adam import moments
from .optimizer import Group
from .update import FusedOptimizer, Rule, check_betas, check_number, refuse_differentiable


class RAdam(FusedOptimizer):
    """Adam that scales by the second moment only when enough was seen to know it.

    With `ρ∞ = 2/(1-β2) - 1` and `ρ = ρ∞ - 2t·β2ᵗ/(1-β2ᵗ)`: where ρ > 5, Adam's update times
    `√((ρ-4)(ρ-2)ρ∞ / ((ρ∞-4)(ρ∞-2)ρ))`; before that `p -= lr·m/(1-β1ᵗ)`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Decay of the first and of the second moment.
        eps: Added to the denominator.
        weight_decay: Factor of the L2 penalty, or of the decay if it is decoupled.
        decoupled_weight_decay: Decay the weights themselves, as AdamW does.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        maximize: Ascend.
        capturable: As `foreach`; an update never waits for the device.
        differentiable: Only False: an update is no part of a graph.

    Raises:
        ArgumentError: An option is out of range.

    Source: On the Variance of the Adaptive Learning Rate and Beyond, Liu et al., 2020.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.RAdam([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [0.5, 1.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable("RAdam", differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay"):
            check_number("RAdam", group, name)
        check_betas("RAdam", group)

    def _rule(self, group: Group) -> Rule:
        return _RADAM

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        lr, wd = float(group["lr"]), float(group["weight_decay"])
        decoupled = group["decoupled_weight_decay"]
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction
        scaled = length > 5.0
        size = lr / (1 - beta1**step)
        if scaled:
            above = (length - 4) * (length - 2) * longest
            size *= (above / ((longest - 4) * (longest - 2) * length)) ** 0.5 * correction**0.5
        return (
            1 - beta1,
            beta1,
            beta2,
            1 - beta2,
            size,
            float(scaled),
            float(group["eps"]),
            0.0 if decoupled else wd,
            1 - lr * wd if decoupled else 1.0,
            -1.0 if group["maximize"] else 1.0,
        )


def _radam(
    xp: Any, p: Any, g: Any, m: Any, v: Any, w1: float, c1: float, b2: float, w2: float,
    size: float, scaled: float, eps: float, wd: float, keep: float, sign: float,
) -> None:  # fmt: skip
    moments(p, g, m, v, w1, c1, b2, w2, wd, sign)
    p *= keep
    p -= m / (xp.sqrt(v) + eps) * size if scaled else m * size


_RADAM = Rule("radam", ("exp_avg", "exp_avg_sq"), _radam)
