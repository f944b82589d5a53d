"""Module: the base class of layers and models."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

from .. import dtypes
from ..device import device as Device
from ..errors import ArgumentError
from ..ops.creation import empty_like
from ..tensor import Parameter, Tensor
from . import hooks, state, tree
from .convert import parse_to
from .hook_methods import HookMethods
from .partial import PartialLoad
from .ties import TieMethods
from .tree import View, check_name

_hooked_everywhere = hooks.in_use
_REGISTERED = (Parameter, tree.TreeNode)


class Module(HookMethods, TieMethods, PartialLoad):
    """A layer or a model: a callable that holds parameters, buffers and other modules.

    The attributes are the tree. A `Parameter`, a `Module` and a plain tensor that needs no gradient
    (a buffer) count wherever they are attributes; parameters and modules count in plain lists,
    tuples and dicts as well, under names such as `blocks.0.weight`. A plain tensor is saved if the
    constructor set it; one that is set later needs `register_buffer` for that.

    Attributes:
        training: True in training mode; `train()` and `eval()` switch it in the whole tree.

    Example:
        >>> class Net(Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layers = [Linear(4, 8), Linear(8, 2)]
        ...     def forward(self, x):
        ...         return self.layers[1](self.layers[0](x).relu())
    """

    _version: int = 1  # in the metadata of state dicts, for hooks that convert older ones

    def __init__(self) -> None:
        tree.note_made(self)
        set_ = super().__setattr__
        set_("training", True)
        set_("_hooks", None)
        set_("_declared", {})
        set_("_constants", set())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooks is None and not _hooked_everywhere:
            return self.forward(*args, **kwargs)
        return hooks.call_with_hooks(self, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the output; every module defines it."""
        name = type(self).__name__
        near = difflib.get_close_matches("forward", vars(type(self)), n=1, cutoff=0.7)
        raise NotImplementedError(
            f"{name}: a module that is called must define forward(self, ...). "
            + (f"Did you mean forward by '{near[0]}'?" if near else "Add the method to the class.")
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is not Parameter:
            attributes = self.__dict__
            held = attributes.get(name)
            if value is not None and isinstance(held, _REGISTERED):
                self._check_replaced(name, held, value)
            elif isinstance(value, Tensor):
                if not isinstance(held, Tensor):
                    tree.note_constant(self, name)
            elif value is not None and name in attributes.get("_declared", ()):
                self._check_replaced(name, held, value)
        super().__setattr__(name, value)

    def _check_replaced(self, name: str, held: Any, value: Any) -> None:
        """Raises where a registered name would lose its kind, so that it fell out of the tree."""
        owner, got = type(self).__name__, type(value).__name__
        if isinstance(held, Parameter) and not isinstance(value, Parameter):
            raise TypeError(
                f"{owner}: parameter '{name}' can only be replaced by a Parameter or "
                f"None. Got {got}, which would not be trained. Write "
                f"nn.Parameter(value), or self.{name}.data = value to change its values."
            )
        if isinstance(held, Module) and not isinstance(value, Module):
            raise TypeError(
                f"{owner}: module '{name}' can only be replaced by a Module or None. Got {got}. "
                f"Delete the attribute first if it shall be something else: del self.{name}."
            )
        if name in self.__dict__.get("_declared", ()) and not isinstance(value, Tensor):
            raise TypeError(
                f"{owner}: buffer '{name}' can only be replaced by a Tensor or None. Got {got}. "
                "Convert it with minitorch.tensor(...)."
            )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name, name=name, obj=self)
        static = inspect.getattr_static(type(self), name, None)
        if isinstance(static, property) and static.fget is not None:
            return static.fget(self)  # the property itself failed: raise its own error again
        raise MissingAttributeError(self, name)

    def __dir__(self) -> list[str]:
        return sorted(
            {*super().__dir__(), *(name for held in tree.contents(self) for name, _ in held)}
        )

    @property
    def _parameters(self) -> Mapping[str, Parameter]:
        return MappingProxyType(dict(tree.contents(self).parameters))

    @property
    def _buffers(self) -> Mapping[str, Tensor]:
        return MappingProxyType(dict(tree.contents(self).buffers))

    @property
    def _modules(self) -> Mapping[str, Module]:
        return MappingProxyType(dict(tree.contents(self).modules))

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Declares `tensor` as a buffer: moved with the module, not trained.

        Args:
            name: Name of the attribute.
            tensor: The values, or None for a buffer that is set later.
            persistent: Whether state dicts contain it.
        """
        self._check_new("buffer", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"{type(self).__name__}.register_buffer: '{name}' must be a tensor or None. "
                f"Got {type(tensor).__name__}. Convert it with minitorch.tensor(...)."
            )
        self._declared[name] = persistent
        setattr(self, name, tensor)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Sets attribute `name` to a parameter, or to None for one that is switched off."""
        self._check_new("parameter", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"{type(self).__name__}.register_parameter: '{name}' must be a Parameter or None. "
                f"Got {type(param).__name__}. Wrap it: nn.Parameter(tensor)."
            )
        setattr(self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Sets attribute `name` to a module; for names that are computed."""
        self._check_new("module", name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}.add_module: '{name}' must be a Module or None. "
                f"Got {type(module).__name__}. Pass an instance, not a class or a function."
            )
        setattr(self, name, module)

    register_module = add_module

    def _check_new(self, kind: str, name: str) -> None:
        owner = type(self).__name__
        check_name(owner, kind, name)
        held = vars(self).get(name)
        if hasattr(type(self), name) or not (held is None or isinstance(held, Tensor | Module)):
            raise ArgumentError(
                f"{owner}: attribute '{name}' exists already and is no {kind}. Choose another name."
            )

    # Walking the tree

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> View[tuple[str, Module]]:
        """Yields (path, module) of this module and of everything below it, parents first."""
        seen = frozenset(memo or ())
        return View(lambda: self._walk(prefix, remove_duplicate, set(seen)))

    def _walk(
        self, prefix: str, remove_duplicate: bool, seen: set[int]
    ) -> Iterator[tuple[str, Module]]:
        walked = tree.walk(self, prefix, remove_duplicate, seen)
        return ((path, module) for path, module, _ in walked)

    def modules(self) -> View[Module]:
        """Yields this module and everything below it, each once."""
        return View(lambda: (m for _, m, _ in tree.walk(self, "", True, set())))

    def named_children(self) -> View[tuple[str, Module]]:
        """Yields (name, module) of the direct children, each once."""
        return View(self._children)

    def _children(self) -> Iterator[tuple[str, Module]]:
        seen: set[int] = set()
        for name, child in tree.contents(self).modules:
            if id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> View[Module]:
        """Yields the direct children, each once."""
        return View(lambda: (child for _, child in self._children()))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> View[tuple[str, Parameter]]:
        """Yields (path, parameter); a parameter with two paths only at its first one.

        Args:
            prefix: Put before every path.
            recurse: Look into children as well.
            remove_duplicate: False reports tied parameters at every path.
        """
        which = "parameters"
        return View(lambda: tree.walk_leaves(self, which, prefix, recurse, remove_duplicate))

    def parameters(self, recurse: bool = True) -> View[Parameter]:
        """A view of the parameters, each once: iterate it as often as you like."""
        which = "parameters"
        return View(lambda: (p for _, p in tree.walk_leaves(self, which, "", recurse, True)))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> View[tuple[str, Tensor]]:
        """Yields (path, tensor) of declared buffers and of plain tensors that need no gradient."""
        which = "buffers"
        return View(lambda: tree.walk_leaves(self, which, prefix, recurse, remove_duplicate))

    def buffers(self, recurse: bool = True) -> View[Tensor]:
        """A view of the buffers, each once."""
        which = "buffers"
        return View(lambda: (b for _, b in tree.walk_leaves(self, which, "", recurse, True)))

    def get_submodule(self, target: str) -> Module:
        """The module at the path `target`; `""` is this module."""
        return self._at("submodule", target, self._walk("", False, set()))

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the path `target`."""
        return self._at("parameter", target, self.named_parameters(remove_duplicate=False))

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the path `target`."""
        return self._at("buffer", target, self.named_buffers(remove_duplicate=False))

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts `module` at the path `target`, also into a plain list or dict.

        Args:
            target: The path, such as `blocks.0.attention`.
            module: What is put there.
            strict: Raise if there is no module at that path yet.

        Raises:
            AttributeError: The parent does not exist, or (`strict`) nothing is there yet.
        """
        if not isinstance(module, Module) or not target:
            raise ArgumentError(
                f"{type(self).__name__}.set_submodule: a non-empty path and a Module are needed. "
                f"Got {target!r} and {type(module).__name__}."
            )
        if strict:
            self.get_submodule(target)
        holder, key = tree.locate(self, target)
        if isinstance(holder, Module):
            setattr(holder, key, module)
        else:
            holder[key] = module

    def _at(self, kind: str, target: str, named: Any) -> Any:
        found = dict(named)
        if target not in found:
            near = difflib.get_close_matches(target, found, n=1)
            raise AttributeError(
                f"{type(self).__name__}: there is no {kind} '{target}'. "
                + (f"Did you mean '{near[0]}'?" if near else f"There are {sorted(found)}.")
            )
        return found[target]

    def compile(self, **options: Any) -> None:
        """`minitorch.compile` of this module, in place."""
        from ..compiler import compile

        compile(self, **options)

    # Modes and conversion

    def apply(self, fn: Callable[[Module], object]) -> Self:
        """Calls `fn` on every module below this one and then on this one; returns self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switches this module and everything below it to training mode, or to evaluation mode."""
        if not isinstance(mode, bool):
            raise ArgumentError(
                f"{type(self).__name__}.train: mode must be True or False. Got {mode!r}. "
                "The training loop itself is Trainer.fit."
            )
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """Switches to evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freezes (False) or thaws (True) all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of all parameters."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad.detach_().zero_()

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and casts all tensors in place: `to(device)`, `to(dtype)`, `to(device, dtype)`,
        `to(tensor)`.

        Parameters stay the same objects, so an optimizer built before goes on working. Only
        floating tensors are cast; ties are kept.
        """
        where, dtype = parse_to(*args, **kwargs)

        def convert(tensor: Tensor) -> Tensor:
            cast = dtype if tensor.dtype.is_floating_point else None
            return tensor.to(device=where, dtype=cast)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves all tensors to `device` without their values: what they hold then is arbitrary."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replaces every tensor of the tree by `fn` of it."""
        for parameter in self.parameters(recurse):
            with state.no_grad():
                parameter.data = fn(parameter.detach())
                if parameter.grad is not None:
                    parameter.grad = fn(parameter.grad.detach())
        done: dict[int, tuple[Tensor, Tensor]] = {}
        for module in self.modules() if recurse else [self]:
            for name, buffer in tree.contents(module).buffers:
                if id(buffer) not in done:
                    done[id(buffer)] = buffer, fn(buffer)
                setattr(module, name, done[id(buffer)][1])
        return self

    def type(self, dst_type: Any) -> Self:
        """Casts all floating tensors to `dst_type`."""
        return self.to(dtypes.of(dst_type))

    def float(self) -> Self:
        """Casts all floating tensors to float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Casts all floating tensors to float64."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Casts all floating tensors to float16."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Self:
        """Casts all floating tensors to bfloat16."""
        return self.to(dtypes.bfloat16)

    def cpu(self) -> Self:
        """Moves all tensors to the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | None = None) -> Self:
        """Moves all tensors to a GPU."""
        return self.to(Device("cuda", device))

    # State

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """An ordered mapping from path to tensor, sharing memory with the module.

        Args:
            destination: A mapping to fill; None makes a new one.
            prefix: Put before every name.
            keep_vars: True gives the parameters themselves instead of detached tensors.
        """
        if args:  # PyTorch's old positional form
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            return self.state_dict(**given)
        return state.collect(self, destination, prefix, keep_vars)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Puts the tensors of this module itself into `destination`; subclasses may change it."""
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Takes the tensors of this module itself from `state_dict`; subclasses may change it."""
        keys = missing_keys, unexpected_keys
        state.load_own(self, state_dict, prefix, local_metadata, strict, *keys, error_msgs)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Copies values into the tensors of this module; nothing is changed if anything is wrong.

        Args:
            state_dict: From path to tensor or array.
            strict: Whether the names must match exactly. Plain tensors may be missing.
            assign: Take over the given tensors (with their dtype) instead of copying.

        Returns:
            The names that were missing and those that were unexpected.

        Raises:
            CheckpointError: Names (strict) or shapes do not match, or nothing matches at all.
        """
        return state.restore(self, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """What state dicts hold besides tensors; override together with `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__}: get_extra_state is not overridden.")

    def set_extra_state(self, state: Any) -> None:
        """Restores what `get_extra_state` returned."""
        raise NotImplementedError(
            f"{type(self).__name__}: a class that overrides get_extra_state must override "
            "set_extra_state as well."
        )

    # Text

    def extra_repr(self) -> str:
        """The options that `repr` shows in the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(m))}" for name, m in tree.contents(self).modules]
        name = self._get_name()
        if len(lines) == 1 and not children:
            return f"{name}({extra})"
        body = lines + children
        return f"{name}(\n  " + "\n  ".join(body) + "\n)" if body else f"{name}()"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


class MissingAttributeError(AttributeError):
    """An attribute that a module does not have; the text is made only where it is read."""

    def __init__(self, module: Module, name: str) -> None:
        super().__init__(name=name, obj=module)

    def __str__(self) -> str:
        module, name = self.obj, self.name
        owner = type(module).__name__
        if "training" not in vars(module):
            return (
                f"{owner}: attribute '{name}' is not there because {owner}.__init__ did not call "
                "super().__init__(). Make it the first line of __init__."
            )
        near = difflib.get_close_matches(str(name), dir(module), n=1)
        fix = f"Did you mean '{near[0]}'?" if near else "Assign it in __init__."
        return f"'{owner}' object has no attribute '{name}'. {fix}"
