"""Adafactor."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .optimizer import Group
from .single import SingleOptimizer
from .update import check_number


class Adafactor(SingleOptimizer):
    """Adam's scaling with the second moment of a matrix kept as one row and one column.

    With `w = t^beta2_decay`: `R += w·(mean(g², -1) - R)`, `C += w·(mean(g², -2) - C)`,
    `u = g/√(R·C/mean(R))`, `p -= max(eps[1], rms(p))·min(lr, 1/√t)·u/max(1, rms(u)/d)`. Vectors
    keep the whole second moment.

    Args:
        params: Parameters, `(name, parameter)` pairs or group dicts.
        lr: The largest relative step, and the rate of the decay.
        beta2_decay: Power by which the memory of the second moment grows, at most 0.
        eps: Smallest divisor (default: that of the dtype), and smallest size of a parameter.
        d: The update's root mean square is clipped to it.
        weight_decay: Factor of the decoupled decay.
        foreach: Accepted for PyTorch's signature.
        maximize: Ascend.

    Raises:
        ArgumentError: An option is out of range.

    Source: Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, Shazeer and Stern, 2018.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.Adafactor([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> [round(x, 3) for x in w.tolist()]
    [0.209, 1.209]
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay"):
            check_number("Adafactor", group, name)
        check_number("Adafactor", group, "d", 1.0)
        if not group["beta2_decay"] <= 0:
            raise ArgumentError(
                f"Adafactor: beta2_decay must be at most 0. Got {group['beta2_decay']!r}."
            )
        eps = group["eps"]
        if not isinstance(eps, tuple | list) or len(eps) != 2:
            raise ArgumentError(f"Adafactor: eps must be two numbers. Got {eps!r}.")
        for i, value in enumerate(eps):
            if i or value is not None:
                check_number("Adafactor", {f"eps[{i}]": value}, f"eps[{i}]")

    def _new_states(self, xp: Any, p: Any, group: Group) -> dict[str, Any]:
        if p.ndim < 2:
            return {"variance": xp.zeros_like(p)}
        row, column = (*p.shape[:-1], 1), (*p.shape[:-2], 1, p.shape[-1])
        return {"row_var": xp.zeros(row, p.dtype), "col_var": xp.zeros(column, p.dtype)}

    def _update(
        self, xp: Any, p: Any, g: Any, states: dict[str, Any], group: Group, step: int
    ) -> None:
        if not p.size:
            return
        g = -g if group["maximize"] else g
        lr, wd = float(group["lr"]), float(group["weight_decay"])
        small, low = group["eps"]
        small = float(xp.finfo(p.dtype).eps) if small is None else float(small)
        size = xp.maximum(_rms(xp, p), low) * min(lr, 1 / step**0.5)
        weight = float(step) ** float(group["beta2_decay"])
        if wd:
            p *= 1 - lr * wd
        squares = g * g
        if p.ndim < 2:
            states["variance"] += (squares - states["variance"]) * weight
            estimate = states["variance"]
        else:
            row, column = states["row_var"], states["col_var"]
            row += (squares.mean(axis=-1, keepdims=True) - row) * weight
            column += (squares.mean(axis=-2, keepdims=True) - column) * weight
            estimate = row * column / xp.maximum(row.mean(axis=-2, keepdims=True), small)
        update = g / xp.sqrt(xp.maximum(estimate, small * small))
        p -= update * (size / xp.maximum(_rms(xp, update) / float(group["d"]), 1.0))


def _rms(xp: Any, a: Any) -> Any:
    return xp.sqrt((a * a).mean())
