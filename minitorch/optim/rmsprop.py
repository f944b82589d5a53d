"""RMSprop."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .update import FusedOptimizer, Rule, check_number, refuse_differentiable


class RMSprop(FusedOptimizer):
    """Gradient descent divided by a running root mean square of the gradient.

    `v = α·v + (1-α)·g²`, `p -= lr · g / (√v + eps)`; centered: `√(v - ḡ²)` for `√v`, with ḡ the
    running mean; with momentum: `b = momentum·b + g/(√v + eps)`, `p -= lr·b`.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        alpha: Decay of the mean square.
        eps: Added to the denominator.
        weight_decay: Factor of the L2 penalty.
        momentum: Factor of the running sum; 0 keeps none.
        centered: Divide by the estimated standard deviation.
        maximize: Ascend.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        capturable: As `foreach`; an update never waits for the device.
        differentiable: Only False: an update is no part of a graph.

    Raises:
        ArgumentError: An option is out of range.

    Source: Neural Networks for Machine Learning, lecture 6e, Hinton, 2012; Generating Sequences
    With Recurrent Neural Networks, Graves, 2013.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.RMSprop([w], lr=0.25, alpha=0.75, eps=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 1.5]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        refuse_differentiable(type(self).__name__, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "eps", "weight_decay", "momentum", "alpha"):
            check_number("RMSprop", group, name)

    def _rule(self, group: Group) -> Rule:
        return _RULES[bool(group["centered"]), bool(group["momentum"])]

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        alpha, momentum = float(group["alpha"]), float(group["momentum"])
        common = (
            float(group["lr"]),
            alpha,
            1 - alpha,
            float(group["eps"]),
            float(group["weight_decay"]),
            -1.0 if group["maximize"] else 1.0,
        )
        return (*common, momentum) if momentum else common


def _square(p: Any, g: Any, v: Any, alpha: float, w: float, wd: float, sign: float) -> Any:
    d = g * sign + p * wd
    v *= alpha
    v += d * w * d
    return d


def _plain(
    xp: Any, p: Any, g: Any, v: Any,
    lr: float, alpha: float, w: float, eps: float, wd: float, sign: float,
) -> None:  # fmt: skip
    d = _square(p, g, v, alpha, w, wd, sign)
    p -= d / (xp.sqrt(v) + eps) * lr


def _momentum(
    xp: Any, p: Any, g: Any, v: Any, buf: Any,
    lr: float, alpha: float, w: float, eps: float, wd: float, sign: float, momentum: float,
) -> None:  # fmt: skip
    d = _square(p, g, v, alpha, w, wd, sign)
    buf *= momentum
    buf += d / (xp.sqrt(v) + eps)
    p -= buf * lr


def _deviation(xp: Any, d: Any, v: Any, mean: Any, alpha: float, w: float) -> Any:
    if w < 0.5:
        mean += (d - mean) * w
    else:
        mean[...] = d - (d - mean) * alpha
    return xp.sqrt(v - mean * mean)


def _centered(
    xp: Any, p: Any, g: Any, v: Any, mean: Any,
    lr: float, alpha: float, w: float, eps: float, wd: float, sign: float,
) -> None:  # fmt: skip
    d = _square(p, g, v, alpha, w, wd, sign)
    p -= d / (_deviation(xp, d, v, mean, alpha, w) + eps) * lr


def _centered_momentum(
    xp: Any, p: Any, g: Any, v: Any, mean: Any, buf: Any,
    lr: float, alpha: float, w: float, eps: float, wd: float, sign: float, momentum: float,
) -> None:  # fmt: skip
    d = _square(p, g, v, alpha, w, wd, sign)
    buf *= momentum
    buf += d / (_deviation(xp, d, v, mean, alpha, w) + eps)
    p -= buf * lr


_RULES = {
    (False, False): Rule("rmsprop", ("square_avg",), _plain),
    (False, True): Rule("rmsprop_momentum", ("square_avg", "momentum_buffer"), _momentum),
    (True, False): Rule("rmsprop_centered", ("square_avg", "grad_avg"), _centered),
    (True, True): Rule(
        "rmsprop_centered_momentum",
        ("square_avg", "grad_avg", "momentum_buffer"),
        _centered_momentum,
    ),
}
