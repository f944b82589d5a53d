"""Hooks around the forward and backward pass of a module.

A module without hooks holds None and calls its forward directly; the first hook makes a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..autograd import Function, is_grad_enabled
from ..autograd.handle import RemovableHandle
from ..tensor import Tensor

if TYPE_CHECKING:
    from .module import Module

FORWARD_PRE, FORWARD, BACKWARD_PRE, BACKWARD = "forward_pre", "forward", "backward_pre", "backward"
SAVE_PRE, SAVE, LOAD_PRE, LOAD = "save_pre", "save", "load_pre", "load"
KINDS = (FORWARD_PRE, FORWARD, BACKWARD_PRE, BACKWARD, SAVE_PRE, SAVE, LOAD_PRE, LOAD)


class Hook:
    """One registered function with its options."""

    __slots__ = ("always_call", "function", "with_kwargs")

    def __init__(self, function: Callable[..., Any], with_kwargs: bool, always_call: bool) -> None:
        self.function = function
        self.with_kwargs = with_kwargs
        self.always_call = always_call

    def __call__(self, module: Module, *values: Any, kwargs: dict[str, Any]) -> Any:
        if self.with_kwargs:
            return self.function(module, values[0], kwargs, *values[1:])
        return self.function(module, *values)


class HookTable:
    """The hooks of one module, by kind and in the order in which they run."""

    __slots__ = ("kinds",)

    def __init__(self) -> None:
        self.kinds: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}

    def __getitem__(self, kind: str) -> list[Any]:
        return list(self.kinds[kind].values())

    def empty(self) -> bool:
        """True if no hook is left."""
        return not any(self.kinds.values())


# The hooks of every module; `in_use` is what a call looks at.
EVERYWHERE = HookTable()
in_use: dict[str, HookTable] = {}


def register(module: Any, kind: str, hook: Any, prepend: bool = False) -> RemovableHandle:
    """Puts a hook into the table of `module`, which exists while there is a hook."""
    table = module._hooks
    if table is None:
        table = module._hooks = HookTable()

    def drop_table() -> None:
        if module._hooks is not None and module._hooks.empty():
            module._hooks = None

    return RemovableHandle(table.kinds[kind], hook, prepend, drop_table)


def register_everywhere(kind: str, hook: Any) -> RemovableHandle:
    """Puts a hook before those that every module has of its own."""

    def switch_off() -> None:
        if EVERYWHERE.empty():
            in_use.clear()

    in_use["table"] = EVERYWHERE
    return RemovableHandle(EVERYWHERE.kinds[kind], hook, after=switch_off)


def hooks_of(module: Any, kind: str) -> list[Any]:
    """The hooks of one kind that apply to `module`, those of every module first."""
    own = module._hooks
    return [*EVERYWHERE[kind], *(own[kind] if own is not None else ())]


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `module.forward` between its hooks, with PyTorch's meaning of what hooks return."""
    done: set[int] = set()
    try:
        for hook in hooks_of(module, FORWARD_PRE):
            args, kwargs = _after_pre_hook(hook, hook(module, args, kwargs=kwargs), args, kwargs)
        watch = None
        pre, full = hooks_of(module, BACKWARD_PRE), hooks_of(module, BACKWARD)
        if (pre or full) and is_grad_enabled():
            watch = _BackwardWatch(module, pre, full)
            args = watch.wrap_inputs(args)
        output = module.forward(*args, **kwargs)
        for hook in hooks_of(module, FORWARD):
            done.add(id(hook))
            changed = hook(module, args, output, kwargs=kwargs)
            output = output if changed is None else changed
        return output if watch is None else watch.wrap_outputs(output)
    except Exception:
        for hook in hooks_of(module, FORWARD):
            if hook.always_call and id(hook) not in done:
                hook(module, args, None, kwargs=kwargs)
        raise


def _after_pre_hook(
    hook: Hook, changed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if changed is None:
        return args, kwargs
    if not hook.with_kwargs:
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    raise TypeError(
        "forward pre-hook: with with_kwargs=True a hook must return None or (args, kwargs). "
        f"Got {type(changed).__name__}. Return the pair, also where only one of them changes."
    )


class _BackwardWatch:
    """Joins the gradients of a module's inputs and outputs for its full backward hooks."""

    def __init__(self, module: Module, pre: list[Hook], full: list[Hook]) -> None:
        self.module = module
        self.pre, self.hooks = pre, full
        self.input_places: list[int] = []
        self.input_count = 0
        self.grad_output: tuple[Any, ...] = ()

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Puts an identity before the module, where the gradients of all inputs meet."""
        self.input_count = len(args)
        self.input_places = [
            i for i, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad
        ]
        if not self.input_places:
            return args
        passed = _Inputs.apply(self, *(args[i] for i in self.input_places))
        passed = passed if isinstance(passed, tuple) else (passed,)
        wrapped = list(args)
        for place, value in zip(self.input_places, passed, strict=True):
            wrapped[place] = value
        return tuple(wrapped)

    def wrap_outputs(self, output: Any) -> Any:
        """Puts an identity after the module, where the gradients of all outputs meet."""
        values = output if isinstance(output, tuple) else (output,)
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
        if not places:
            return output
        passed = _Outputs.apply(self, len(values), places, *(values[i] for i in places))
        passed = passed if isinstance(passed, tuple) else (passed,)
        wrapped = list(values)
        for place, value in zip(places, passed, strict=True):
            wrapped[place] = value
        return tuple(wrapped) if isinstance(output, tuple) else wrapped[0]

    def on_output(self, grads: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
        """Runs the pre-hooks; without differentiable inputs also the hooks."""
        full: list[Any] = [None] * count
        for place, grad in zip(places, grads, strict=True):
            full[place] = grad
        self.grad_output = tuple(full)
        for hook in self.pre:
            changed = hook.function(self.module, self.grad_output)
            if changed is not None:
                self.grad_output = changed if isinstance(changed, tuple) else (changed,)
        if not self.input_places:
            self._run((None,) * self.input_count)
        return tuple(self.grad_output[place] for place in places)

    def on_input(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Runs the hooks on the gradients of the inputs; what they return replaces these."""
        full: list[Any] = [None] * self.input_count
        for place, grad in zip(self.input_places, grads, strict=True):
            full[place] = grad
        grad_input = self._run(tuple(full))
        return tuple(grad_input[place] for place in self.input_places)

    def _run(self, grad_input: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            changed = hook.function(self.module, grad_input, self.grad_output)
            if changed is None:
                continue
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != len(grad_input):
                raise RuntimeError(
                    "backward hook: as many gradients must be returned as the module has inputs. "
                    f"Got {len(changed)} for {len(grad_input)} inputs. Return None to keep them."
                )
            grad_input = changed
        return grad_input


class _Inputs(Function):
    @staticmethod
    def forward(ctx: Any, watch: _BackwardWatch, *inputs: Tensor) -> Any:
        ctx.watch = watch
        return tuple(value.view_as(value) for value in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *ctx.watch.on_input(grads)


class _Outputs(Function):
    @staticmethod
    def forward(
        ctx: Any, watch: _BackwardWatch, count: int, places: list[int], *outputs: Tensor
    ) -> Any:
        ctx.watch, ctx.count, ctx.places = watch, count, places
        return tuple(value.view_as(value) for value in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, *ctx.watch.on_output(grads, ctx.places, ctx.count)
