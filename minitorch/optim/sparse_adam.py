"""Adam for gradients that are zero in most rows."""

from __future__ import annotations

from typing import Any

from .optimizer import Group
from .single import SingleOptimizer
from .update import check_betas, check_number


class SparseAdam(SingleOptimizer):
    """Adam that leaves rows alone whose gradient is zero, with their moments.

    Gradients are dense here; a row (an entry along axis 0) counts as absent where all of its
    elements are 0, as in the gradient of an embedding whose index did not occur. PyTorch takes
    sparse gradients only.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: Learning rate.
        betas: Decay of the first and of the second moment.
        eps: Added to the denominator.
        maximize: Ascend.

    Raises:
        ArgumentError: An option is out of range.

    Source: Adam: A Method for Stochastic Optimization, Kingma and Ba, 2015.

    >>> w = mt.nn.Parameter(mt.ones(3, 1))
    >>> optimizer = mt.optim.SparseAdam([w], lr=0.5)
    >>> (w[1] * w[1]).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w[:, 0].tolist()]
    [1.0, 0.5, 1.0]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "eps"):
            check_number("SparseAdam", group, name)
        check_betas("SparseAdam", group)

    def _new_states(self, xp: Any, p: Any, group: Group) -> dict[str, Any]:
        return {"exp_avg": xp.zeros_like(p), "exp_avg_sq": xp.zeros_like(p)}

    def _update(
        self, xp: Any, p: Any, g: Any, states: dict[str, Any], group: Group, step: int
    ) -> None:
        beta1, beta2 = map(float, group["betas"])
        g = -g if group["maximize"] else g
        rows = (g != 0).any(axis=tuple(range(1, g.ndim)), keepdims=True) if g.ndim else g != 0
        m, v = states["exp_avg"], states["exp_avg_sq"]
        zero = p.dtype.type(0)
        m += xp.where(rows, (g - m) * (1 - beta1), zero)
        v += xp.where(rows, (g * g - v) * (1 - beta2), zero)
        size = float(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p -= xp.where(rows, m / (xp.sqrt(v) + float(group["eps"])) * size, zero)
