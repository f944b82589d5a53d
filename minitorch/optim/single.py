"""Optimizers whose update looks at a whole parameter: its rows, its norm, its products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..autograd.mode import enable_grad
from ..ops.primitive import wrap
from .optimizer import Group, Optimizer, state_dtype
from .update import check_place, move_state


class SingleOptimizer(Optimizer):
    """An optimizer that updates one parameter after the other, each where it lies.

    float16 and bfloat16 parameters have float32 state and a float32 master copy in
    `state[p]["master"]`.
    """

    def _new_states(self, xp: Any, p: Any, group: Group) -> dict[str, Any]:
        """The state arrays of a parameter with the (float32 or wider) values `p`."""
        raise NotImplementedError

    def _update(
        self, xp: Any, p: Any, g: Any, states: dict[str, Any], group: Group, step: int
    ) -> None:
        """Changes `p` and the state arrays in place."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and p.requires_grad:
                    with np.errstate(all="ignore"):
                        self._step_one(p, p.grad._array, group)
                    p._bump(f"{type(self).__name__}.step")
        return loss

    def _step_one(self, p: Any, g: Any, group: Group) -> None:
        check_place(self, p)
        array, state = p._array, self.state[p]
        xp, dtype = backend.namespace(array), state_dtype(array.dtype)
        half = array.dtype in dtypes.HALF
        if "step" not in state:
            state["step"] = 0
            if half:
                state["master"] = wrap(array.astype(dtype))
            new = self._new_states(xp, array.astype(dtype) if half else array, group)
            state.update({name: wrap(value) for name, value in new.items()})
        held = {name: t for name, t in state.items() if hasattr(t, "_array")}
        for tensor in held.values():
            move_state(p, tensor)
        step = state["step"] = state["step"] + 1
        states = {name: t._array for name, t in held.items()}
        if not half:
            self._update(xp, array, g, states, group, step)
            return
        # Where the parameter is not the rounded master copy any more, it was written, and leads.
        master = states.pop("master")
        written = array != master.astype(array.dtype)
        master[...] = xp.where(written, array.astype(dtype), master)
        self._update(xp, master, g.astype(dtype), states, group, step)
        array[...] = master.astype(array.dtype)
