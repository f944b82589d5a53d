"""A reader for pickles that runs nothing.

A pickle is a program for a small stack machine. The machine here knows the instructions that make
plain values and containers; a function that a pickle names is looked up in a table of ours, never
imported, and what is not in the table is refused by its full name.
"""

import pickletools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from minitorch.errors import CheckpointError

from .container import damaged

_PUSH = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING "
    "BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 UNICODE SHORT_BINUNICODE BINUNICODE "
    "BINUNICODE8".split()
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_FRESH: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": set,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MALFORMED = (
    AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError,
)  # fmt: skip
_MARK = object()


class Call:
    """A function that a pickle may call.

    Args:
        name: the full name in the pickle.
        function: ours in its place; what it gets comes from the file and is not to be trusted.
    """

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function


class Outside:
    """What a pickle refers to outside of itself; only a function may take it.

    Attributes:
        name: what it is, for error texts.
    """

    name: str


class Missing:
    """A name that is known and has no counterpart here.

    Args:
        what: it, for the error text.
        fix: what to do about it.
    """

    __slots__ = ("fix", "what")

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix


class Built:
    """What a function made and the pickle then fills; `build` gets the state of the object."""

    def build(self, state: Any) -> None:
        """Takes the state, which is not to be trusted."""
        raise NotImplementedError


def read_pickle(
    data: bytes, table: Mapping[str, Any], persistent: Callable[[Any], Any], where: str
) -> Any:
    """The value that a pickle describes.

    Args:
        data: the pickle.
        table: by full name, a `Call` or a constant for everything that the pickle may name, and
            what is `Missing`.
        persistent: from the description of an object outside of the pickle to the object.
        where: the file's name for error texts.

    Raises:
        CheckpointError: the pickle names something else, or is damaged.
    """
    machine = _Machine(table, persistent, where)
    try:
        for opcode, argument, _ in pickletools.genops(data):
            machine.step(opcode.name, argument)
        (value,) = machine.stack
        _check_nothing_is_left(value, where)
    except _MALFORMED as error:
        raise damaged(where, f"its pickle cannot be read ({error!r})") from error
    return value


def refused(where: str, name: str) -> CheckpointError:
    """The error for a file that holds more than data."""
    return CheckpointError(
        f"load: {where} holds {name}, which is refused: only tensors, numbers, texts, None, and "
        "dicts, lists, tuples and sets of them are read, and nothing in a file is executed, "
        "whatever weights_only says. In PyTorch, save the plain state: "
        "torch.save(model.state_dict(), path)."
    )


class _Machine:
    """The stack, the marks in it and the memo."""

    def __init__(
        self, table: Mapping[str, Any], persistent: Callable[[Any], Any], where: str
    ) -> None:
        self.stack: list[Any] = []
        self._table = table
        self._persistent = persistent
        self._where = where
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """Carries out one instruction."""
        stack = self.stack
        if name in _PUSH:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _FRESH:
            stack.append(_FRESH[name]())
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(self._top(_TUPLES[name]))]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self._memo[argument])
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self._memo[argument] = self._top(1)[0]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = self._top(1)[0]
        elif name == "MARK":
            stack.append(_MARK)
        elif name not in ("PROTO", "FRAME", "STOP"):
            method = getattr(self, f"_do_{name.lower()}", None)
            if method is None:
                raise refused(self._where, f"the pickle instruction {name}")
            method(argument)

    def _top(self, count: int) -> list[Any]:
        values = self.stack[-count:]
        if len(values) != count or any(value is _MARK for value in values):
            raise IndexError("the stack is too short")
        return values

    def _pop(self) -> Any:
        (value,) = self._top(1)
        self.stack.pop()
        return value

    def _items(self) -> list[Any]:
        """Takes everything above the latest mark, and the mark."""
        stack = self.stack
        place = len(stack) - 1
        while stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError("the stack has no mark")
        values = stack[place + 1 :]
        del stack[place:]
        return values

    def _holder(self, *kinds: type) -> Any:
        (holder,) = self._top(1)
        if type(holder) not in kinds:
            raise TypeError(f"{type(holder).__name__} is not a {kinds[0].__name__}")
        return holder

    def _do_pop(self, _: Any) -> None:
        self.stack.pop()

    def _do_pop_mark(self, _: Any) -> None:
        self._items()

    def _do_dup(self, _: Any) -> None:
        self.stack.append(self._top(1)[0])

    def _do_tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._items()))

    def _do_list(self, _: Any) -> None:
        self.stack.append(self._items())

    def _do_frozenset(self, _: Any) -> None:
        self.stack.append(frozenset(self._items()))

    def _do_dict(self, _: Any) -> None:
        values = self._items()
        self.stack.append(dict(zip(values[::2], values[1::2], strict=True)))

    def _do_append(self, _: Any) -> None:
        value = self._pop()
        self._holder(list).append(value)

    def _do_appends(self, _: Any) -> None:
        values = self._items()
        self._holder(list).extend(values)

    def _do_additems(self, _: Any) -> None:
        values = self._items()
        self._holder(set).update(values)

    def _do_setitem(self, _: Any) -> None:
        key, value = self._top(2)
        del self.stack[-2:]
        self._holder(dict, OrderedDict)[key] = value

    def _do_setitems(self, _: Any) -> None:
        values = self._items()
        self._holder(dict, OrderedDict).update(zip(values[::2], values[1::2], strict=True))

    def _do_global(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._name(module, name)

    def _do_stack_global(self, _: Any) -> None:
        module, name = self._top(2)
        del self.stack[-2:]
        if type(module) is not str or type(name) is not str:
            raise TypeError("a name is not a text")
        self._name(module, name)

    def _name(self, module: str, name: str) -> None:
        full = f"{module}.{name}"
        if full not in self._table:
            raise refused(self._where, full)
        value = self._table[full]
        if isinstance(value, Missing):
            raise CheckpointError(
                f"load: {self._where} holds {value.what}, which tensors here do not have. "
                f"{value.fix}"
            )
        self.stack.append(value)

    def _do_reduce(self, _: Any) -> None:
        call, arguments = self._top(2)
        del self.stack[-2:]
        if not isinstance(call, Call) or type(arguments) is not tuple:
            raise TypeError(f"{call!r} is not called with a tuple of arguments")
        self.stack.append(call.function(*arguments))

    def _do_build(self, _: Any) -> None:
        """The state of an object: that of a PyTorch state_dict is its `_metadata`."""
        state = self._pop()
        if isinstance(self._top(1)[0], Built):
            self._top(1)[0].build(state)
            return
        holder = self._holder(OrderedDict)
        if type(state) is not dict or set(state) - {"_metadata"}:
            raise TypeError(f"attributes of an OrderedDict: {state!r}")
        vars(holder).update(state)

    def _do_binpersid(self, _: Any) -> None:
        self.stack.append(self._persistent(self._pop()))


def _check_nothing_is_left(value: Any, where: str) -> None:
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Call | Outside):
            raise refused(where, one.name)
        if isinstance(one, dict | list | tuple | set | frozenset) and id(one) not in seen:
            seen.add(id(one))
            waiting.extend(one)
            if isinstance(one, dict):
                waiting.extend(one.values())
