"""Modules that hold other modules or parameters under names that are computed."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, Self, TypeVar

from ..errors import ArgumentError
from ..tensor import Parameter, Tensor
from .module import Module
from .tree import INTERNAL, check_name

Held = TypeVar("Held")


class _Ordered(Module, Generic[Held]):
    """A list whose items are the attributes "0", "1", ….

    Attributes:
        _kind: The class of the items.
    """

    _kind: type = Module

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, self._kind):
            raise TypeError(
                f"{type(self).__name__}: every item must be a {self._kind.__name__}. "
                f"Got {type(value).__name__}. Pass an instance, for example ReLU() and not ReLU."
            )
        return value

    def _items(self) -> list[Any]:
        kind = self._kind
        return [v for v in self.__dict__.values() if isinstance(v, kind)]

    def _keys(self) -> list[str]:
        return [k for k, v in self.__dict__.items() if isinstance(v, self._kind)]

    def _replace(self, items: Iterable[Any]) -> None:
        """Makes `items` the content, numbered from 0."""
        items = list(items)
        for key in self._keys():
            del self.__dict__[key]
        for i, item in enumerate(items):
            self.__dict__[str(i)] = item

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Held]:
        return iter(self._items())

    def __contains__(self, value: object) -> bool:
        return any(value is item for item in self._items())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._sliced(index)
        return self._items()[self._position(index)]

    def _sliced(self, index: slice) -> Any:
        return type(self)(self._items()[index])  # type: ignore[call-arg]

    def _position(self, index: Any) -> int:
        size, index = len(self), operator.index(index)
        if not -size <= index < size:
            raise IndexError(
                f"{type(self).__name__}: index must be from {-size} to {size - 1}. Got {index}."
            )
        return index % size

    def __setitem__(self, index: int, value: Held) -> None:
        self.__dict__[self._keys()[self._position(index)]] = self._checked(value)

    def __delitem__(self, index: int | slice) -> None:
        items = self._items()
        del items[index if isinstance(index, slice) else self._position(index)]
        self._replace(items)

    def append(self, value: Held) -> Self:
        """Adds an item at the end; returns self."""
        self.__dict__[str(len(self))] = self._checked(value)
        return self

    def extend(self, values: Iterable[Held]) -> Self:
        """Adds items at the end; returns self."""
        for value in list(values):
            self.append(value)
        return self

    def insert(self, index: int, value: Held) -> Self:
        """Puts an item before position `index`, and gives the container itself."""
        items = self._items()
        items.insert(index, self._checked(value))
        self._replace(items)
        return self

    def pop(self, index: int = -1) -> Held:
        """Removes and returns an item."""
        value = self[index]
        del self[index]
        return value

    def __iadd__(self, values: Iterable[Held]) -> Self:
        return self.extend(values)


class Sequential(_Ordered[Module]):
    """Calls its modules one after another.

    Args:
        modules: The modules, or one mapping from names to modules.
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, self._checked(module))
        else:
            for i, module in enumerate(modules):
                self.__dict__[str(i)] = self._checked(module)

    def forward(self, input: Any) -> Any:
        """The output of the last module."""
        for module in self._items():
            input = module(input)
        return input

    def _sliced(self, index: slice) -> Sequential:
        return Sequential({key: self.__dict__[key] for key in self._keys()[index]})

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)


class ModuleList(_Ordered[Module]):
    """A list of modules. A plain Python list does as well."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(repr(item) for item in self):
            if runs and runs[-1][2] == text:
                runs[-1] = runs[-1][0], i, text
            else:
                runs.append((i, i, text))
        lines = []
        for first, last, text in runs:
            text = text.replace("\n", "\n  ")
            if first == last:
                lines.append(f"({first}): {text}")
            else:
                lines.append(f"({first}-{last}): {last - first + 1} x {text}")
        return (
            f"{self._get_name()}("
            + "".join(f"\n  {line}" for line in lines)
            + "\n)" * bool(lines)
            + ")" * (not lines)
        )


class ParameterList(_Ordered[Parameter]):
    """A list of parameters; tensors become parameters."""

    _kind = Parameter

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _checked(self, value: Any) -> Parameter:
        return _as_parameter(type(self).__name__, value)

    def extra_repr(self) -> str:
        return "\n".join(f"({i}): {_shown(p)}" for i, p in enumerate(self))


class _Named(Module, Generic[Held]):
    """A dict whose items are attributes."""

    _kind: type = Module

    def _checked(self, value: Any) -> Any:
        if not isinstance(value, self._kind):
            raise TypeError(
                f"{type(self).__name__}: every value must be a {self._kind.__name__}. "
                f"Got {type(value).__name__}. Pass an instance, for example ReLU() and not ReLU."
            )
        return value

    def __getitem__(self, key: str) -> Held:
        held = self.__dict__.get(key)
        if not isinstance(held, self._kind):
            raise KeyError(key)
        return held  # type: ignore[return-value]

    def __setitem__(self, key: str, value: Held) -> None:
        check_name(type(self).__name__, "key", key)
        if key in INTERNAL or hasattr(type(self), key):
            raise ArgumentError(
                f"{type(self).__name__}: the key must not be an attribute of the class. "
                f"Got {key!r}. Choose another key, or use a plain dict."
            )
        self.__dict__[key] = self._checked(value)

    def __delitem__(self, key: str) -> None:
        self[key]
        del self.__dict__[key]

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(self.__dict__.get(key), self._kind)  # type: ignore[call-overload]

    def keys(self) -> list[str]:
        """The keys in order."""
        return [k for k, v in self.__dict__.items() if isinstance(v, self._kind)]

    def values(self) -> list[Held]:
        """The values in order."""
        return [self[key] for key in self.keys()]

    def items(self) -> list[tuple[str, Held]]:
        """(key, value) in order."""
        return [(key, self[key]) for key in self.keys()]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self else default

    def update(self, values: Any) -> None:
        """Sets all items of a mapping or of (key, value) pairs."""
        pairs = values.items() if hasattr(values, "items") else values
        for key, value in pairs:
            self[key] = value

    def pop(self, key: str) -> Held:
        """Removes `key` and returns its value."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Removes everything."""
        for key in self.keys():
            del self[key]


class ModuleDict(_Named[Module]):
    """A dict of modules. A plain Python dict does as well.

    Args:
        modules: A mapping, or (name, module) pairs.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})


class ParameterDict(_Named[Parameter]):
    """A dict of parameters; tensors become parameters.

    Args:
        parameters: A mapping, or (name, tensor) pairs.
    """

    _kind = Parameter

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def _checked(self, value: Any) -> Parameter:
        return _as_parameter(type(self).__name__, value)

    def extra_repr(self) -> str:
        return "\n".join(f"({key}): {_shown(p)}" for key, p in self.items())


def _as_parameter(owner: str, value: Any) -> Parameter:
    if isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value)
    raise TypeError(
        f"{owner}: every value must be a Parameter or a Tensor. Got {type(value).__name__}. "
        "Wrap it: nn.Parameter(minitorch.tensor(...))."
    )


def _shown(p: Parameter) -> str:
    size = "x".join(map(str, p.shape))
    return f"Parameter containing: [{p.dtype} of size {size}]"
