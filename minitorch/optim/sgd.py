"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .optimizer import Group
from .update import FusedOptimizer, Rule, check_number, refuse_differentiable


class SGD(FusedOptimizer):
    """Stochastic gradient descent with momentum.

    `d = g + weight_decay·p`, `b = momentum·b + (1 - dampening)·d`,
    `p -= lr·(d + momentum·b)` with Nesterov's momentum, `p -= lr·b` without.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        momentum: Factor of the running sum; 0 keeps none.
        dampening: Weight that the newest gradient loses in the sum.
        weight_decay: Factor of the L2 penalty.
        nesterov: Look ahead along the momentum.
        maximize: Ascend.
        foreach: Accepted for PyTorch's signature; the update is always fused.
        differentiable: Only False: an update is no part of a graph.
        fused: As `foreach`.

    Raises:
        ArgumentError: An option is out of range.

    Source: On the importance of initialization and momentum in deep learning, Sutskever et al.,
    2013.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.SGD([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5, 1.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        refuse_differentiable(type(self).__name__, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "momentum", "weight_decay"):
            check_number("SGD", group, name)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError(
                "SGD: nesterov needs momentum above 0 and dampening 0. "
                f"Got momentum {group['momentum']} and dampening {group['dampening']}."
            )

    def _rule(self, group: Group) -> Rule:
        return _MOMENTUM if group["momentum"] else _PLAIN

    def _new_state(self, name: str, group: Group, state: dict[str, Any]) -> float:
        state["step"] = 0
        return 0.0

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        momentum = float(group["momentum"])
        sign = -1.0 if group["maximize"] else 1.0
        common = (float(group["lr"]), float(group["weight_decay"]), sign)
        if not momentum:
            return common
        # The first sum is the gradient itself, without dampening.
        keep, take = (momentum, 1 - group["dampening"]) if step > 1 else (0.0, 1.0)
        ahead = (1.0, momentum) if group["nesterov"] else (0.0, 1.0)
        return (*common, keep, float(take), *ahead)


def _plain(xp: Any, p: Any, g: Any, lr: float, wd: float, sign: float) -> None:
    p -= (g * sign + p * wd) * lr


def _momentum(
    xp: Any, p: Any, g: Any, buf: Any, lr: float, wd: float, sign: float,
    keep: float, take: float, direct: float, through: float,
) -> None:  # fmt: skip
    d = g * sign + p * wd
    buf *= keep
    buf += d * take
    p -= (d * direct + buf * through) * lr


_PLAIN = Rule("sgd", (), _plain)
_MOMENTUM = Rule("sgd_momentum", ("momentum_buffer",), _momentum)
