"""Checkpointing: save the inputs of a part of the model, and compute the part again in backward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import random
from ..autograd.mode import enable_grad, state
from ..autograd.reconnected import connected
from ..autograd.saved import Packed, saved_tensors_hooks
from ..errors import ArgumentError, GraphError, describe
from ..ops.primitive import version_of
from ..tensor import Tensor

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing, the default of `checkpoint`."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls `function` without keeping what its backward needs; backward calls it again for that.

    The second call sees the same arguments, random numbers and autocast. It works with
    `autograd.grad`, `create_graph`, several backward passes, and inside of itself.

    Args:
        function: From the arguments to tensors; a module, for example.
        args: Its positional arguments.
        use_reentrant: Accepted for PyTorch's signature; there is one way here, which does what
            either of PyTorch's does.
        context_fn: Gives two contexts, one around the first call, one around the second.
        determinism_check: `"default"` raises where the second call computes other shapes or
            dtypes than the first, `"none"` does not look.
        debug: Accepted for PyTorch's signature.
        early_stop: The second call ends as soon as everything needed is there.
        preserve_rng_state: The second call draws the random numbers of the first.
        kwargs: The keyword arguments of `function`.

    Returns:
        What `function` returns.

    Raises:
        ArgumentError: `determinism_check` is unknown.
        GraphError: In backward, if an argument was changed in place since, or if the second call
            does something else than the first.

    Source: Training Deep Nets with Sublinear Memory Cost, Chen et al., 2016.

    >>> x = mt.ones(3, requires_grad=True)
    >>> mt.utils.checkpoint.checkpoint(lambda t: (t * 2).exp(), x).sum().backward()
    """
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            f"checkpoint: determinism_check must be 'default' or 'none'. Got {determinism_check!r}."
        )
    forward_context, again_context = context_fn()
    if not state.recording:
        with forward_context:
            return function(*args, **kwargs)
    frame = _Frame(function, args, kwargs, again_context, preserve_rng_state)
    frame.checks, frame.stops_early = determinism_check == "default", early_stop
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        output = function(*args, **kwargs)
    frame.complete = True
    return output


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs a list of functions, or a Sequential, in checkpointed segments; the last one is not.

    Args:
        functions: Each is called with the result of the one before.
        segments: In how many parts the list is cut.
        input: The input of the first.
        use_reentrant: Accepted for PyTorch's signature.
        kwargs: `preserve_rng_state`, as for `checkpoint`.

    Returns:
        The result of the last.

    Raises:
        ArgumentError: There are fewer functions than segments, or an option is unknown.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ArgumentError(f"checkpoint_sequential: unknown options {', '.join(kwargs)}.")
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 1 <= segments <= len(steps):
        raise ArgumentError(
            f"checkpoint_sequential: segments must be from 1 to the number of functions. "
            f"Got {segments} for {len(steps)}."
        )
    size = len(steps) // segments

    def chained(part: list[Callable[..., Any]]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in part:
                value = step(value)
            return value

        return run

    for start in range(0, size * (segments - 1), size):
        part = chained(steps[start : start + size])
        input = checkpoint(part, input, preserve_rng_state=preserve)
    return chained(steps[size * (segments - 1) :])(input)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values with each tensor cut off its graph; `requires_grad` stays."""
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


class _Enough(Exception):
    """Everything that backward needs has been computed again."""


class _Argument:
    """A tensor argument: itself, or packed by the hooks around the call, such as those of an outer
    checkpoint, which then need not keep it.
    """

    def __init__(self, t: Tensor) -> None:
        self.kept: Any = Packed(t) if state.saved_hooks else t
        self.requires_grad = t.requires_grad
        self.version = None if state.saved_hooks else version_of(t)
        self.count = self.version[0] if self.version is not None else 0

    def value(self) -> Any:
        """The tensor again.

        Raises:
            GraphError: It was changed in place since.
        """
        if self.version is not None and self.version[0] != self.count:
            raise GraphError(
                f"checkpoint: an argument, {describe(self.kept)}, was changed in place by "
                f"{self.version[1]} since the call, so that it cannot be repeated. "
                f"Use the out-of-place form of {self.version[1]}, or clone the argument."
            )
        if not isinstance(self.kept, Packed):
            return self.kept
        from ..ops.primitive import wrap

        array = self.kept.unpacked()
        return connected(array, wrap(array).requires_grad_()) if self.requires_grad else wrap(array)


class _Frame:
    """One checkpointed call: what is needed to repeat it, and what the repetition has saved."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: contextlib.AbstractContextManager[Any],
        preserve: bool,
    ) -> None:
        self.function, self.context = function, context
        self.args = [_Argument(x) if isinstance(x, Tensor) else x for x in args]
        self.kwargs = {k: _Argument(x) if isinstance(x, Tensor) else x for k, x in kwargs.items()}
        self.random = random.state_dict() if preserve else None
        self.autocast = state.autocast, state.autocast_device
        self.kinds: list[str] = []
        self.complete = self.checks = self.stops_early = False
        self.values: list[Tensor] = []
        self.taken: set[int] = set()

    def pack(self, t: Tensor) -> int:
        """Keeps of a saved tensor its number only."""
        self.kinds.append(describe(t))
        return len(self.kinds) - 1

    def unpack(self, index: int) -> Tensor:
        """The saved tensor of that number, computed again with all others on first use."""
        if not self.values:
            self.repeat()
        if index >= len(self.values):
            self.raise_other(f"it saved {len(self.values)} values in place of {len(self.kinds)}")
        value = self.values[index]
        self.taken.add(index)
        if len(self.taken) == len(self.kinds):
            self.values, self.taken = [], set()
        return value

    def collect(self, t: Tensor) -> Tensor:
        """Takes what the repetition saves."""
        index = len(self.values)
        if self.complete and index >= len(self.kinds):
            if self.checks:
                self.raise_other(f"it saved more than {len(self.kinds)} values")
            return t
        if self.complete and self.checks and describe(t) != self.kinds[index]:
            self.raise_other(f"value {index} is {describe(t)} in place of {self.kinds[index]}")
        self.values.append(t.detach())
        if self.complete and self.stops_early and len(self.values) == len(self.kinds):
            raise _Enough
        return t

    def repeat(self) -> None:
        """Calls the function again under the conditions of the first call."""
        args = [x.value() if isinstance(x, _Argument) else x for x in self.args]
        kwargs = {k: x.value() if isinstance(x, _Argument) else x for k, x in self.kwargs.items()}
        self.values, self.taken = [], set()
        hooks = saved_tensors_hooks(self.collect, lambda t: t)
        with contextlib.suppress(_Enough), self._conditions(), hooks, self.context:
            self.function(*args, **kwargs)

    @contextlib.contextmanager
    def _conditions(self) -> Iterator[None]:
        autocast = state.autocast, state.autocast_device
        outer, state.saved_hooks = state.saved_hooks, ()
        state.autocast, state.autocast_device = self.autocast
        try:
            with enable_grad(), random.fork_rng(enabled=self.random is not None):
                if self.random is not None:
                    random.load_state_dict(self.random)
                yield
        finally:
            state.autocast, state.autocast_device = autocast
            state.saved_hooks = outer

    def raise_other(self, what: str) -> None:
        """Raises the error of a call that is not repeatable."""
        raise GraphError(
            f"checkpoint: the function must do the same when backward calls it again, but {what}. "
            "Make it a function of its arguments alone: no state that changes between the calls."
        )
