"""Limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backend
from ..autograd.mode import enable_grad
from ..errors import ArgumentError, DeviceError
from ..ops.primitive import wrap
from .line_search import Point, strong_wolfe
from .optimizer import Group, Optimizer, state_dtype
from .update import check_number, check_place, move_state

MIN_CURVATURE = 1e-10
# State that lies along all parameters; the lists have one entry for each kept step.
_VECTORS = ("d", "prev_flat_grad")
_LISTS = ("old_dirs", "old_stps")


class LBFGS(Optimizer):
    """Newton's method with an inverse Hessian built from the last steps; needs a closure.

    `d = -H·g`, `p += t·d`, with H from the pairs `(Δp, Δg)` of up to `history_size` steps. One call
    of `step` makes up to `max_iter` of them. All parameters are one vector and one group.

    Args:
        params: Parameters or `(name, parameter)` pairs, one group.
        lr: Length of a step, or the first length that the line search tries.
        max_iter: Iterations in one call of `step`.
        max_eval: Calls of the closure in one call of `step`; default `1.25·max_iter`.
        tolerance_grad: Stop when no element of the gradient is larger.
        tolerance_change: Stop when neither the value nor a parameter changes more.
        history_size: Steps that H remembers.
        line_search_fn: `"strong_wolfe"`, or None for steps of fixed length.

    Raises:
        ArgumentError: An option is out of range, several groups, or no closure.
        DeviceError: The parameters are on several devices.

    Source: On the limited memory BFGS method for large scale optimization, Liu and Nocedal, 1989.

    >>> w = mt.nn.Parameter(mt.tensor([1.0, 2.0]))
    >>> optimizer = mt.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 3.0) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    5.0
    >>> [round(x, 3) for x in w.tolist()]
    [3.0, 3.0]
    """

    needs_closure = True

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, group: Group) -> None:
        if self.param_groups:
            raise ArgumentError(
                "LBFGS: all parameters are one group with one set of options. Got a second group. "
                "Put its parameters into the first one."
            )
        super().add_param_group(group)

    def _check_options(self, group: Group) -> None:
        for name in ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change"):
            check_number("LBFGS", group, name)
        check_number("LBFGS", group, "history_size", 1)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentError(
                "LBFGS: line_search_fn must be 'strong_wolfe' or None. "
                f"Got {group['line_search_fn']!r}."
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes up to `max_iter` iterations.

        Args:
            closure: Clears the gradients, computes the loss and calls backward; called often.

        Returns:
            The loss before the first iteration, as the closure gave it.
        """
        if closure is None:
            raise ArgumentError(
                "LBFGS.step: it evaluates the loss several times and needs a closure. Got none. "
                "Write def closure(): optimizer.zero_grad(); loss = …; loss.backward(); return loss"
            )
        group = self.param_groups[0]
        for p in group["params"]:
            check_place(self, p)
        where = {str(p.device) for p in group["params"]}
        if len(where) > 1:
            raise DeviceError(
                f"LBFGS: all parameters must be on one device. Got {', '.join(sorted(where))}. "
                "Move the model with model.to(device)."
            )
        with np.errstate(all="ignore"):
            return _Call(self, group, closure).run()


class _Call:
    """One call of `step`: the parameters as one vector, and the iterations on it."""

    def __init__(self, optimizer: LBFGS, group: Group, closure: Callable[[], Any]) -> None:
        self.group = group
        self.params: list[Any] = group["params"]
        self.closure = closure
        self.state: dict[str, Any] = optimizer.state[self.params[0]]
        self.xp = backend.namespace(self.params[0]._array)
        self.dtype = np.result_type(*[state_dtype(p._array.dtype) for p in self.params])
        self.evaluations = 0
        for name in (*_VECTORS, *_LISTS):
            held = self.state.get(name, [])
            for tensor in held if isinstance(held, list) else [held]:
                move_state(self.params[0], tensor)

    def run(self) -> Any:
        group, state = self.group, self.state
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        loss = self.evaluate()
        value, gradient = float(loss), self.gradient()
        for iteration in range(1, int(group["max_iter"]) + 1):
            if self.largest(gradient) <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            direction = self.direction(gradient)
            lr, before = float(group["lr"]), value
            first = state["n_iter"] == 1
            t = min(1.0, 1.0 / float(self.xp.abs(gradient).sum())) * lr if first else lr
            state["d"] = wrap(direction)
            state["prev_flat_grad"] = wrap(gradient)
            slope = float(gradient @ direction)
            if slope > -group["tolerance_change"]:
                state["t"], state["prev_loss"] = t, value
                break
            start = Point(0.0, value, slope, gradient)
            value, gradient, t = self.advance(start, direction, t, iteration)
            state["t"], state["prev_loss"] = t, before
            if self.ended(t, direction, value - before):
                break
        state["func_evals"] += self.evaluations
        return loss

    def ended(self, t: float, direction: Any, change: float) -> bool:
        """Whether the calls are used up or nothing changes any more."""
        tolerance = self.group["tolerance_change"]
        if self.evaluations >= self.group["max_eval"]:
            return True
        return bool(self.largest(direction) * abs(t) <= tolerance or abs(change) < tolerance)

    def direction(self, gradient: Any) -> Any:
        """`-H·g`, after the last step has been added to H."""
        state = self.state
        if state["n_iter"] == 1 or "d" not in state:
            state.update({"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1.0})
            return -gradient
        y = gradient - state["prev_flat_grad"]._array
        s = state["d"]._array * state["t"]
        curvature = float(y @ s)
        changes, steps, inverse = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature > MIN_CURVATURE:
            while len(changes) >= self.group["history_size"]:
                for kept in (changes, steps, inverse):
                    kept.pop(0)
            changes.append(wrap(y))
            steps.append(wrap(s))
            inverse.append(1.0 / curvature)
            state["H_diag"] = curvature / float(y @ y)
        return _product(-gradient, changes, steps, inverse, state["H_diag"])

    def advance(
        self, start: Point, direction: Any, t: float, iteration: int
    ) -> tuple[float, Any, float]:
        """Moves the parameters; gives the loss and the gradient there, and the distance."""
        group = self.group
        origin = [p._array.astype(self.dtype) for p in self.params]
        if group["line_search_fn"] is None:
            self.move(origin, direction, t)
            if iteration == group["max_iter"]:
                return start.value, start.gradient, t
            value = float(self.evaluate())
            return value, self.gradient(), t

        def evaluate(distance: float) -> Point:
            self.move(origin, direction, distance)
            value = float(self.evaluate())
            gradient = self.gradient()
            return Point(distance, value, float(gradient @ direction), gradient)

        most = int(group["max_eval"]) - self.evaluations
        found, _ = strong_wolfe(
            evaluate, start, t, self.largest(direction), group["tolerance_change"], most
        )
        self.move(origin, direction, found.t)
        return found.value, found.gradient, found.t

    def evaluate(self) -> Any:
        self.evaluations += 1
        with enable_grad():
            return self.closure()

    def largest(self, vector: Any) -> float:
        return float(self.xp.abs(vector).max()) if vector.size else 0.0

    def gradient(self) -> Any:
        """All gradients as one vector; 0 for frozen parameters and those without gradient."""
        parts = []
        for p in self.params:
            grad = p.grad._array if p.grad is not None and p.requires_grad else None
            parts.append(
                self.xp.zeros(p._array.size, self.dtype)
                if grad is None
                else grad.reshape(-1).astype(self.dtype)
            )
        return self.xp.concatenate(parts)

    def move(self, origin: list[Any], direction: Any, t: float) -> None:
        """`p = origin + t·direction`, for what is trainable."""
        start = 0
        for p, values in zip(self.params, origin, strict=True):
            part = direction[start : start + values.size].reshape(values.shape)
            start += values.size
            if p.requires_grad:
                p._array[...] = (values + part * t).astype(p._array.dtype)
                p._bump("LBFGS.step")


def _product(q: Any, changes: list[Any], steps: list[Any], inverse: list[float], h: float) -> Any:
    """`H·q` by the two-loop recursion."""
    factors = []
    for y, s, r in zip(reversed(changes), reversed(steps), reversed(inverse), strict=True):
        factor = float(s._array @ q) * r
        factors.append(factor)
        q = q - y._array * factor
    q = q * h
    for y, s, r, factor in zip(changes, steps, inverse, reversed(factors), strict=True):
        q = q + s._array * (factor - float(y._array @ q) * r)
    return q
