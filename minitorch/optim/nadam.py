"""NAdam."""

from __future__ import annotations

from typing import Any

from .adam import moments
from .optimizer import Group
from .update import FusedOptimizer, Rule, check_betas, check_number, refuse_differentiable


class NAdam(FusedOptimizer):
    """Adam with Nesterov's momentum.

    `μₜ = β1·(1 - 0.96^(t·momentum_decay)/2)`, `m = β1·m + (1-β1)·g`, `v = β2·v + (1-β2)·g²`,
    `p -= lr·((1-μₜ)/(1-Πμ)·g + μₜ₊₁/(1-Πμ·μₜ₊₁)·m)/(√(v/(1-β2ᵗ)) + eps)`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Decay of the first and of the second moment.
        eps: Added to the denominator.
        weight_decay: Factor of the L2 penalty, or of the decay if it is decoupled.
        momentum_decay: How fast the momentum rises to its full size.
        decoupled_weight_decay: Decay the weights themselves, as AdamW does.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        maximize: Ascend.
        capturable: As `foreach`; an update never waits for the device.
        differentiable: Only False: an update is no part of a graph.

    Raises:
        ArgumentError: An option is out of range.

    Source: Incorporating Nesterov Momentum into Adam, Dozat, 2016.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.NAdam([w], lr=0.5, momentum_decay=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [0.472, 1.472]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable("NAdam", differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay", "momentum_decay"):
            check_number("NAdam", group, name)
        check_betas("NAdam", group)

    def _rule(self, group: Group) -> Rule:
        return _NADAM

    def _advance(self, group: Group, state: dict[str, Any]) -> tuple[int, float]:
        step = state["step"] = state["step"] + 1
        product = state.get("mu_product", 1.0) * _momentum(group, step)
        state["mu_product"] = product
        return step, product

    def _scalars(self, group: Group, step: Any) -> tuple[float, ...]:
        count, product = step
        beta1, beta2 = map(float, group["betas"])
        lr, wd = float(group["lr"]), float(group["weight_decay"])
        decoupled = group["decoupled_weight_decay"]
        mu, ahead = _momentum(group, count), _momentum(group, count + 1)
        return (
            1 - beta1,
            beta1,
            beta2,
            1 - beta2,
            lr * (1 - mu) / (1 - product),
            lr * ahead / (1 - product * ahead),
            1 - beta2**count,
            float(group["eps"]),
            0.0 if decoupled else wd,
            1 - lr * wd if decoupled else 1.0,
            -1.0 if group["maximize"] else 1.0,
        )


def _momentum(group: Group, step: int) -> float:
    rise = 0.96 ** (step * float(group["momentum_decay"]))
    return float(group["betas"][0]) * (1.0 - 0.5 * rise)


def _nadam(
    xp: Any, p: Any, g: Any, m: Any, v: Any, w1: float, c1: float, b2: float, w2: float,
    direct: float, through: float, correction: float, eps: float, wd: float, keep: float,
    sign: float,
) -> None:  # fmt: skip
    d = moments(p, g, m, v, w1, c1, b2, w2, wd, sign)
    below = xp.sqrt(v / correction) + eps
    p *= keep
    p -= d / below * direct
    p -= m / below * through


_NADAM = Rule("nadam", ("exp_avg", "exp_avg_sq"), _nadam)
