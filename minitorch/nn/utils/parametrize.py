"""Parametrisations: a parameter that is computed from others whenever it is read."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from ...autograd import no_grad
from ...errors import ArgumentError, describe
from ...tensor import Parameter, Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module

_cache: dict[tuple[int, str], Tensor] = {}
_caching = [0]


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrised tensor is computed once."""
    _caching[0] += 1
    try:
        yield
    finally:
        _caching[0] -= 1
        if not _caching[0]:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, and the original tensors that they start from.

    Attributes:
        original: The tensor that the first one gets; `original0`, `original1` … if its
            `right_inverse` gives several.
        unsafe: Whether shape and dtype may change.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        with no_grad():
            for module in reversed(list(modules)):
                if hasattr(module, "right_inverse"):
                    new = module.right_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original is not new:
                original.data = new.detach()
            self._set("original", original, original)
        else:
            for i, part in enumerate(new):
                self._set(f"original{i}", part, original)
        if not unsafe:
            self._check(original)

    def _set(self, name: str, value: Any, original: Tensor) -> None:
        if isinstance(original, Parameter):
            is_new = not isinstance(value, Parameter)
            value = Parameter(value.detach(), original.requires_grad) if is_new else value
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def _check(self, original: Tensor) -> None:
        with no_grad():
            result = self()
        if not isinstance(result, Tensor) or describe(result) != describe(original):
            raise ArgumentError(
                "register_parametrization: the result must have the shape and dtype of the "
                f"original, {describe(original)}. Got {describe(result)}. Pass unsafe=True if "
                "that is meant."
            )

    def originals(self) -> list[Any]:
        """The tensors that the first parametrisation gets."""
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def forward(self) -> Any:
        """The parametrised tensor."""
        first, *rest = self
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the result becomes `value`."""
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise ArgumentError(
                        f"parametrize: {type(module).__name__} has no right_inverse, so that the "
                        "tensor cannot be set. Define it, or set the original."
                    )
                new = module.right_inverse(new)
            for original, part in zip(
                self.originals(), [new] if self.is_tensor else new, strict=True
            ):
                original.data = part.detach().clone()


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes a parameter or buffer the result of `parametrization`.

    `module.name` is computed from `module.parametrizations.name.original` whenever it is read. The
    first parametrisation's `right_inverse`, if it has one, gives the originals.

    Args:
        module: The module; it is changed and returned.
        tensor_name: The parameter or buffer.
        parametrization: A module from a tensor to a tensor.
        unsafe: Allow another shape or dtype.

    Raises:
        ArgumentError: There is no such tensor, or the result does not fit.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        listed: Any = module.parametrizations[tensor_name]
        before = getattr(module, tensor_name)
        if not (unsafe or listed.unsafe):
            with no_grad():
                after = parametrization(before)
            if describe(after) != describe(before):
                raise ArgumentError(
                    "register_parametrization: the result must have the shape and dtype of its "
                    f"input, {describe(before)}. Got {describe(after)}. Pass unsafe=True if that "
                    "is meant."
                )
        if hasattr(parametrization, "right_inverse"):
            with no_grad():
                value = parametrization.right_inverse(before)
            listed.right_inverse(value)
        listed.append(parametrization)
        listed.unsafe = listed.unsafe or unsafe
        return module
    original = vars(module).get(tensor_name)
    if not isinstance(original, Tensor):
        raise ArgumentError(
            f"register_parametrization: {type(module).__name__} must have a parameter or buffer "
            f"'{tensor_name}'. Got {type(original).__name__}."
        )
    listed = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _parametrized_class(type(module), ())
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = listed
    return module


def _parametrized_class(base: type, names: Sequence[str]) -> type:
    """A class for one module whose parametrised tensors are properties."""

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "pickle: a parametrised module cannot be pickled. Save its state_dict(), or call "
            "remove_parametrizations first."
        )

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        new: Any = object.__new__(_parametrized_class(base, tuple(self.parametrizations.keys())))
        memo[id(self)] = new
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    body = {"__getstate__": refuse, "__deepcopy__": copied, "_parametrized_from": base}
    body["__doc__"] = base.__doc__
    return type(
        f"Parametrized{base.__name__}", (base,), {**body, **{n: _property(n) for n in names}}
    )


def _property(name: str) -> property:
    def read(self: Any) -> Any:
        listed = self.parametrizations[name]
        if not _caching[0]:
            return listed()
        key = id(self), name
        if key not in _cache:
            _cache[key] = listed()
        return _cache[key]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if the module, or its tensor of that name, is parametrised."""
    listed = vars(module).get("parametrizations")
    if not isinstance(listed, ModuleDict):
        return False
    return len(listed) > 0 if tensor_name is None else tensor_name in listed


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before its first parametrisation."""
    return getattr(type(module), "_parametrized_from", type(module))


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes the tensor an ordinary one again.

    Args:
        module: The module; it is changed and returned.
        tensor_name: The parametrised tensor.
        leave_parametrized: It keeps the computed value; else it gets that of the original.

    Raises:
        ArgumentError: The tensor is not parametrised, or has several originals to go back to.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(
            f"remove_parametrizations: '{tensor_name}' of {type(module).__name__} is not "
            "parametrised."
        )
    listed: Any = module.parametrizations[tensor_name]
    original = listed.originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        if listed.is_tensor:
            original.data = value
        else:
            original = Parameter(value, original.requires_grad)
    elif not listed.is_tensor:
        raise ArgumentError(
            "remove_parametrizations: with leave_parametrized=False there must be one original. "
            f"'{tensor_name}' has {listed.ntensors}."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module
