"""Muon."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from .optimizer import Group
from .single import SingleOptimizer
from .update import check_number

_RATES = (None, "original", "match_rms_adamw")
_MOST_STEPS = 100


class Muon(SingleOptimizer):
    """Momentum whose matrix is made orthogonal before each step; for weights with two axes.

    `b += (1-momentum)·(g - b)`, `u = g + momentum·(b - g)` (Nesterov) or `b`,
    `p = p·(1 - lr·weight_decay) - lr'·orthogonal(u)`, where `lr'` is `lr·√max(1, rows/columns)`
    ("original") or `lr·0.2·√max(rows, columns)` ("match_rms_adamw"). The iteration runs in the
    dtype of the state, PyTorch's in bfloat16.

    Args:
        params: Parameters with two axes; train the others with AdamW.
        lr: Learning rate.
        weight_decay: Factor of the decoupled decay.
        momentum: Decay of the momentum.
        nesterov: Look ahead along the momentum.
        ns_coefficients: The polynomial of the Newton-Schulz iteration.
        eps: Smallest norm that is divided by.
        ns_steps: Iterations, below 100.
        adjust_lr_fn: None or "original", or "match_rms_adamw": how the rate depends on the shape.

    Raises:
        ArgumentError: An option is out of range.
        ShapeError: A parameter does not have two axes.

    Source: Muon: An optimizer for hidden layers in neural networks, Jordan et al., 2024; Muon is
    Scalable for LLM Training, Liu et al., 2025.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "weight_decay", "momentum", "eps"):
            check_number("Muon", group, name)
        check_number("Muon", group, "ns_steps", 0, _MOST_STEPS)
        if group["adjust_lr_fn"] not in _RATES:
            raise ArgumentError(
                "Muon: adjust_lr_fn must be 'original' or 'match_rms_adamw'. "
                f"Got {group['adjust_lr_fn']!r}."
            )
        if len(group["ns_coefficients"]) != 3:
            raise ArgumentError(
                f"Muon: ns_coefficients must be three numbers. Got {group['ns_coefficients']!r}."
            )
        for p in group["params"]:
            if p.ndim != 2:
                raise ShapeError(
                    f"Muon: parameters must have two axes. Got {describe(p)}. Give vectors and "
                    "kernels of convolutions to AdamW, or reshape them to [out, -1]."
                )

    def _new_states(self, xp: Any, p: Any, group: Group) -> dict[str, Any]:
        return {"momentum_buffer": xp.zeros_like(p)}

    def _update(
        self, xp: Any, p: Any, g: Any, states: dict[str, Any], group: Group, step: int
    ) -> None:
        lr, momentum = float(group["lr"]), float(group["momentum"])
        buffer = states["momentum_buffer"]
        buffer += (g - buffer) * (1 - momentum)
        update = g + (buffer - g) * momentum if group["nesterov"] else buffer
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = lr * 0.2 * max(rows, columns) ** 0.5
        else:
            rate = lr * max(1.0, rows / max(columns, 1)) ** 0.5
        p *= 1 - lr * float(group["weight_decay"])
        p -= _orthogonal(xp, update, group) * rate


def _orthogonal(xp: Any, matrix: Any, group: Group) -> Any:
    """About the nearest orthogonal matrix, by the quintic Newton-Schulz iteration."""
    a, b, c = map(float, group["ns_coefficients"])
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / xp.maximum(xp.sqrt((x * x).sum()), float(group["eps"]))
    for _ in range(group["ns_steps"]):
        gram = x @ x.T
        x = x * a + (gram * b + gram @ gram * c) @ x
    return x.T if tall else x
