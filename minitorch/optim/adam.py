"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_betas, check_number, refuse_differentiable


class Adam(FusedOptimizer):
    """Gradient descent scaled by running moments of the gradient.

    `m = β1·m + (1-β1)·g`, `v = β2·v + (1-β2)·g²`,
    `p -= lr/(1-β1ᵗ) · m / (√v/√(1-β2ᵗ) + eps)`, with `g + weight_decay·p` for `g`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Decay of the first and of the second moment.
        eps: Added to the denominator.
        weight_decay: Factor of the L2 penalty, or of the decay if it is decoupled.
        amsgrad: Divide by the largest second moment so far.
        maximize: Ascend.
        decoupled_weight_decay: Decay the weights themselves, as AdamW does.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        capturable: As `foreach`; an update never waits for the device.
        differentiable: Only False: an update is no part of a graph.
        fused: As `foreach`.

    Raises:
        ArgumentError: An option is out of range.

    Source: Adam: A Method for Stochastic Optimization, Kingma and Ba, 2015; On the Convergence of
    Adam and Beyond, Reddi et al., 2018.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.Adam([w], lr=0.5, eps=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [0.5, 1.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse_differentiable(type(self).__name__, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        kind = type(self).__name__
        for name in ("lr", "eps", "weight_decay"):
            check_number(kind, group, name)
        check_betas(kind, group)

    def _rule(self, group: Group) -> Rule:
        return _AMSGRAD if group["amsgrad"] else _ADAM

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        beta1, beta2 = map(float, group["betas"])
        lr, wd = float(group["lr"]), float(group["weight_decay"])
        decoupled = group["decoupled_weight_decay"]
        return (
            1 - beta1,
            beta1,
            beta2,
            1 - beta2,
            lr / (1 - beta1**step),
            (1 - beta2**step) ** 0.5,
            float(group["eps"]),
            0.0 if decoupled else wd,
            1 - lr * wd if decoupled else 1.0,
            -1.0 if group["maximize"] else 1.0,
        )


class AdamW(Adam):
    """Adam with decoupled weight decay: `p *= 1 - lr·weight_decay` before each update.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Decay of the first and of the second moment.
        eps: Added to the denominator.
        weight_decay: Factor of the decay.
        amsgrad: Divide by the largest second moment so far.
        maximize: Ascend.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        capturable: As `foreach`; an update never waits for the device.
        differentiable: Only False: an update is no part of a graph.
        fused: As `foreach`.

    Source: Decoupled Weight Decay Regularization, Loshchilov and Hutter, 2019.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.AdamW([w], lr=0.5, eps=0.0, weight_decay=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [0.25, 1.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
            differentiable=differentiable,
        )


def moments(
    p: Any, g: Any, m: Any, v: Any,
    w1: float, c1: float, b2: float, w2: float, wd: float, sign: float,
) -> Any:  # fmt: skip
    """Moves both moments; gives the gradient with sign and decay."""
    d = g if sign == 1 else g * sign
    if wd:
        d = d + p * wd
    if w1 < c1:
        m += (d - m) * w1
    else:
        m[...] = d - (d - m) * c1
    v *= b2
    v += d * w2 * d
    return d


def _adam(
    xp: Any, p: Any, g: Any, m: Any, v: Any, w1: float, c1: float, b2: float, w2: float,
    step: float, correction: float, eps: float, wd: float, keep: float, sign: float,
) -> None:  # fmt: skip
    moments(p, g, m, v, w1, c1, b2, w2, wd, sign)
    if keep != 1:
        p *= keep
    p -= m / (xp.sqrt(v) / correction + eps) * step


def _amsgrad(
    xp: Any, p: Any, g: Any, m: Any, v: Any, top: Any, w1: float, c1: float, b2: float, w2: float,
    step: float, correction: float, eps: float, wd: float, keep: float, sign: float,
) -> None:  # fmt: skip
    moments(p, g, m, v, w1, c1, b2, w2, wd, sign)
    top[...] = xp.maximum(top, v)
    if keep != 1:
        p *= keep
    p -= m / (xp.sqrt(top) / correction + eps) * step


_ADAM = Rule("adam", ("exp_avg", "exp_avg_sq"), _adam)
_AMSGRAD = Rule("adam_amsgrad", ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), _amsgrad)
