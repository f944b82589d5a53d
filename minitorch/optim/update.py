"""How the optimizers here apply their rule: to stretches of packed parameters, or one by one."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import backend, dtypes
from ..autograd.mode import enable_grad
from ..autograd.mode import state as modes
from ..autograd.node import writes
from ..errors import ArgumentError, ShapeError, describe
from ..ops.inplace import repeats_memory
from ..ops.primitive import wrap
from . import flat
from .flat import LARGE, Pack
from .optimizer import Group, Optimizer, state_dtype

# The NumPy rules run over blocks whose temporaries stay in the cache.
NUMPY_BLOCK = 32768
_NOTHING = contextlib.nullcontext()
MAX_PAUSE = 1024


class Rule(NamedTuple):
    """An update of one array.

    Attributes:
        name: Name of the kernel that does the same.
        states: Names of the state arrays that it changes.
        body: `body(xp, p, g, *states, *scalars)`; works in place, on arrays of any shape.
    """

    name: str
    states: tuple[str, ...]
    body: Callable[..., None]


class FusedOptimizer(Optimizer):
    """An optimizer whose update is one rule on arrays.

    On the first step parameters, gradients and state move into contiguous memory where that cannot
    be noticed (see README.md); results are the same bit for bit. float16 and bfloat16 parameters
    have float32 state and a float32 master copy in `state[p]["master"]`.
    """

    # Counts a parameter's updates where more than their number decides the scalars: takes the group
    # and the state, gives what `_scalars` gets. Slots whose values are equal are updated together.
    _advance: Callable[[Group, dict[str, Any]], Any] | None = None

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        self._pause = self._until_pack = 1
        self._sized = (0, 0)  # number of parameters, and of elements in them

    def _rule(self, group: Group) -> Rule:
        """The rule for a group with these options."""
        raise NotImplementedError

    def _scalars(self, group: Group, step: int) -> tuple[float, ...]:
        """The numbers that the rule needs in update number `step` of a parameter.

        Where `_advance` is overridden, `step` is what that returned.
        """
        raise NotImplementedError

    def _new_state(self, name: str, group: Group, state: dict[str, Any]) -> float:
        """The value that a new state array is filled with."""
        return 0.0

    def add_param_group(self, group: Group) -> None:
        super().add_param_group(group)
        self._pause = self._until_pack = 1

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        loose: list[tuple[Any, Rule]] = []
        compiled = self._kernels()
        for group in self.param_groups:
            _GroupUpdate(self, group, compiled).run(loose)
        if loose:
            self._until_pack -= 1
            if self._until_pack <= 0:
                self._pause = self._until_pack = min(2 * self._pause, MAX_PAUSE)
                self._pack(loose)
        return loss

    def _kernels(self) -> ModuleType | None:
        count = 0
        for group in self.param_groups:
            count += len(group["params"])
        if count != self._sized[0]:
            params = (p for group in self.param_groups for p in group["params"])
            self._sized = (count, sum(int(p._array.size) for p in params))
        return flat.compiled(self._sized[1])

    def _started(self, p: Any, group: Group, rule: Rule) -> dict[str, Any]:
        """The state of `p`, with what is missing in it made."""
        state = self.state[p]
        array = p._array
        dtype = state_dtype(array.dtype)
        xp = backend.namespace(array)
        state.setdefault("step", 0)
        for name in rule.states:
            if name not in state:
                fill = self._new_state(name, group, state)
                state[name] = wrap(xp.full(array.shape, fill, dtype=dtype))
        if array.dtype in dtypes.HALF and "master" not in state:
            state["master"] = wrap(array.astype(dtype))
        return state

    def _pack(self, loose: list[tuple[Any, Rule]]) -> None:
        """Moves those parameters into packs whose memory nobody else sees."""
        together: dict[Any, list[Any]] = defaultdict(list)
        for p, rule in loose:
            if not flat.release(p, self) or not flat.is_movable(p):
                continue
            state = self.state[p]
            if all(flat.is_movable(state[name]) for name in rule.states):
                together[p._array.dtype, rule.states].append(p)
        for (_, names), params in together.items():
            if len(params) > 1 or params[0]._array.size >= LARGE:
                Pack(params, [self.state[p] for p in params], names, self)


class _GroupUpdate:
    """One update of one group."""

    def __init__(self, optimizer: FusedOptimizer, group: Group, compiled: Any) -> None:
        self.optimizer = optimizer
        self.group = group
        self.rule = optimizer._rule(group)
        self.kernel = getattr(compiled, self.rule.name, None)
        self.scalars: dict[Any, tuple[float, ...]] = {}
        self.numbers: dict[tuple[Any, Any], np.ndarray] = {}  # the same, for kernels

    def run(self, loose: list[tuple[Any, Rule]]) -> None:
        """Updates what has a gradient; adds what is not packed to `loose`."""
        try:
            self._run(loose)
        finally:
            writes.note()

    def _run(self, loose: list[tuple[Any, Rule]]) -> None:
        optimizer, rule, states = self.optimizer, self.rule, self.optimizer.state
        name, names = type(optimizer).__name__ + ".step", rule.states
        advance = optimizer._advance
        packed: dict[tuple[Pack, Any], list[flat.Place]] = {}  # by the number of the update
        # The slots of the tensors are read directly here: for small models this loop is the update.
        for p in self.group["params"]:
            grad = p._grad
            if grad is None or not p._rg:
                continue
            slot, state = p._grad_slot, states.get(p)
            if slot is not None and slot.array is p._array and state and slot.holds(state, names):
                g = grad._array
                if advance is None:
                    step = state["step"] = state["step"] + 1
                else:
                    step = advance(self.group, state)
                if g is slot.grad or (g.size < LARGE and slot.take(g)):
                    packed.setdefault((slot.pack, step), []).append(slot.place)
                elif g.flags.c_contiguous:
                    self.apply_flat(step, slot.flat[0], g.reshape(-1), *slot.flat[1:])
                else:
                    self.apply(step, p._array, g, [view for _, _, view in slot.bound])
            else:
                loose.append((p, rule))
                self.update_alone(p, grad._array)
            version = p._version
            if version is not None:
                version[0] += 1
                version[1] = name
        for (pack, step), places in packed.items():
            for arrays in pack.stretches(places):
                self.apply_flat(step, *arrays)

    def update_alone(self, p: Any, g: Any) -> None:
        """Updates one parameter where it lies."""
        state = self.optimizer._started(p, self.group, self.rule)
        array = p._array
        check_place(self.optimizer, p)
        for name in (*self.rule.states, "master"):
            if name in state:
                _follow(p, name, state[name])
        advance = self.optimizer._advance
        if advance is None:
            step = state["step"] = state["step"] + 1
        else:
            step = advance(self.group, state)
        arrays = [state[name]._array for name in self.rule.states]
        if array.dtype not in dtypes.HALF:
            self.apply(step, array, g, arrays)
            return
        with np.errstate(all="ignore"):
            self.update_half(step, array, g, state["master"]._array, arrays)

    def update_half(self, step: int, p: Any, g: Any, master: Any, states: list[Any]) -> None:
        """Updates the float32 copy, and rounds it to the parameter."""
        # The parameter may have been written since (a loaded state, an initialiser): where it no
        # longer is the rounded master copy, it leads.
        written = p != master.astype(p.dtype)
        master[...] = backend.namespace(p).where(written, p.astype(master.dtype), master)
        self.apply(step, master, g.astype(master.dtype), states)
        p[...] = master.astype(p.dtype)

    def scalars_of(self, step: Any) -> tuple[float, ...]:
        """The numbers of the rule, computed once for all parameters in their update `step`."""
        scalars = self.scalars.get(step)
        if scalars is None:
            scalars = self.scalars[step] = self.optimizer._scalars(self.group, step)
        return scalars

    def apply(self, step: int, p: Any, g: Any, states: list[Any]) -> None:
        """Runs the rule on one array and its state."""
        arrays = [p, g, *states]
        if type(p) is np.ndarray and all([a.flags.c_contiguous for a in (p, *states)]):
            self.apply_flat(step, *[a.reshape(-1) for a in arrays])
            return
        with _NOTHING if modes.quiet else np.errstate(all="ignore"):
            self.rule.body(backend.namespace(p), *arrays, *self.scalars_of(step))

    def apply_flat(self, step: int, *arrays: np.ndarray) -> None:
        """Runs the rule on arrays with one axis: parameters, gradients and state."""
        p = arrays[0]
        if self.kernel is not None and p.dtype in flat.PACKED_DTYPES:
            key = (step, p.dtype)
            numbers = self.numbers.get(key)
            if numbers is None:
                numbers = self.numbers[key] = np.array(self.scalars_of(step), p.dtype)
            self.kernel(*arrays, numbers)
            return
        scalars = self.scalars_of(step)
        with _NOTHING if modes.quiet else np.errstate(all="ignore"):
            if p.size <= NUMPY_BLOCK:
                self.rule.body(np, *arrays, *scalars)
                return
            for low in range(0, p.size, NUMPY_BLOCK):
                block = [a[low : low + NUMPY_BLOCK] for a in arrays]
                self.rule.body(np, *block, *scalars)


def check_place(optimizer: Optimizer, p: Any) -> None:
    """Raises where writing into the parameter would hit shared elements."""
    array = p._array
    if repeats_memory(array) or not getattr(array.flags, "writeable", True):
        raise ShapeError(
            f"{type(optimizer).__name__}.step: a parameter must have memory of its own for every "
            f"element. Got {describe(p)} that was expanded or is read-only. Use "
            "Parameter(t.clone())."
        )


def _follow(p: Any, name: str, tensor: Any) -> None:
    """Moves a state to the device and dtype that its parameter has now; checks its shape."""
    move_state(p, tensor)
    array, old = p._array, tensor._array
    if old.shape != array.shape:
        raise ShapeError(
            f"optimizer: the state {name!r} has the shape {list(old.shape)}, its parameter is "
            f"{describe(p)} now. Delete optimizer.state[p] to start it anew."
        )


def move_state(p: Any, tensor: Any) -> None:
    """Moves a state to the device and dtype that its parameter has now."""
    array, old = p._array, tensor._array
    dtype = state_dtype(array.dtype)
    if type(old) is not type(array) or tensor.device != p.device:
        old = backend.transfer(old, p.device)
    if old.dtype != dtype:
        old = old.astype(dtype)
    if old is not tensor._array:
        tensor._array = old


def check_number(kind: str, group: Group, name: str, low: float = 0.0, high: Any = None) -> None:
    """Raises unless `low <= group[name]` and, with `high`, `group[name] < high`.

    Raises:
        ArgumentError: Names the option and its range.
    """
    value = group[name]
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (number >= low and (high is None or number < high)):
        rule = f"at least {low:g}" + ("" if high is None else f" and below {high:g}")
        raise ArgumentError(f"{kind}: {name} must be a number, {rule}. Got {value!r}.")


def refuse_differentiable(kind: str, differentiable: bool) -> None:
    """Raises if an update shall be part of a graph.

    Raises:
        ArgumentError: It shall.
    """
    if differentiable:
        raise ArgumentError(
            f"{kind}: updates are made in place and are no part of a graph. Got "
            "differentiable=True. Write the update with tensor operations, from the gradients of "
            "autograd.grad(..., create_graph=True)."
        )


def check_betas(kind: str, group: Group) -> None:
    """Raises unless `group["betas"]` are two numbers, at least 0 and below 1.

    Raises:
        ArgumentError: They are not.
    """
    betas = group["betas"]
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ArgumentError(f"{kind}: betas must be two numbers. Got {betas!r}.")
    for i, beta in enumerate(betas):
        check_number(kind, {f"betas[{i}]": beta}, f"betas[{i}]", 0.0, 1.0)
