"""Lion."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_betas, check_number, refuse_differentiable


class Lion(FusedOptimizer):
    """Steps along the sign of the momentum, all elements equally far.

    `p = p·(1 - lr·weight_decay) - lr·sign(β1·m + (1-β1)·g)`, `m = β2·m + (1-β2)·g`. PyTorch has
    none; names and defaults are those of the paper's implementation. Rates are 3 to 10 times
    smaller than Adam's, and decays larger by as much.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Share of the momentum in the step, and decay of the momentum.
        weight_decay: Factor of the decoupled decay.
        maximize: Ascend.
        foreach: Accepted as the other optimizers do; the update is always fused.
        capturable: As `foreach`; an update never waits for the device.
        differentiable: Only False: an update is no part of a graph.

    Raises:
        ArgumentError: An option is out of range.

    Source: Symbolic Discovery of Optimization Algorithms, Chen et al., 2023.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, -2.0]))
    >>> optimizer = mt.optim.Lion([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, -1.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable("Lion", differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay"):
            check_number("Lion", group, name)
        check_betas("Lion", group)

    def _rule(self, group: Group) -> Rule:
        return _LION

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        lr = float(group["lr"])
        return (
            lr,
            beta1,
            1 - beta1,
            beta2,
            1 - beta2,
            1 - lr * float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )


def _lion(
    xp: Any, p: Any, g: Any, m: Any,
    lr: float, b1: float, w1: float, b2: float, w2: float, keep: float, sign: float,
) -> None:  # fmt: skip
    d = g * sign
    p *= keep
    p -= xp.sign(m * b1 + d * w1) * lr
    m *= b2
    m += d * w2


_LION = Rule("lion", ("exp_avg",), _lion)
