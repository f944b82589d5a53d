"""Whether the Python state of a recording is still made of the very same objects.

Nearly always it is. So this is asked first, by a function written for this state: one comparison
of two addresses for each entry. What a difference means, if there is one, `state.py` finds out.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

Entry = tuple[Any, Any, Any, str]

_MOST = 5000  # entries of which a function is made
_AT_ONCE = 200  # comparisons in one statement


class Identity:
    """The objects in some containers, by identity.

    Args:
        maps: Dicts, keys and values, each with its path.
        slots: Objects, names of attributes and their values.
        lists: Lists, places and values.
        cells: Closures' cells and what they hold.
        orders: Containers and the keys in them, in their order.
        sizes: Containers and how much they hold.
    """

    def __init__(
        self,
        *,
        maps: Sequence[Entry],
        slots: Sequence[Entry],
        lists: Sequence[Entry],
        cells: Sequence[tuple[Any, Any, str]],
        orders: Sequence[tuple[Any, Any, str]],
        sizes: Sequence[tuple[Any, int, str]],
    ) -> None:
        self._names: dict[str, Any] = {}
        self._known: dict[int, str] = {}
        self._ordered = [container for container, _, _ in orders]
        self._orders = [keys for _, keys, _ in orders]
        self._sized = [container for container, _, _ in sizes]
        self._sizes = [count for _, count, _ in sizes]
        tests = [f"{self._name(c)}.cell_contents is {self._name(v)}" for c, v, _ in cells]
        tests += self._of_maps(maps)
        tests += self._of_slots(slots)
        tests += [f"{self._name(held)}[{i!r}] is {self._name(v)}" for held, i, v, _ in lists]
        few = len(tests) <= _MOST
        self._same: Callable[[], bool] = self._function(tests) if few else lambda: False

    def holds(self) -> bool:
        """True if all is as it was; False says only that it is to be looked at."""
        try:
            return (
                list(map(len, self._sized)) == self._sizes
                and self._same()
                and list(map(list, self._ordered)) == self._orders
            )
        except (AttributeError, IndexError, KeyError, ValueError):  # something is gone
            return False

    def _name(self, thing: Any) -> str:
        if thing is None or thing is True or thing is False:
            return repr(thing)
        name = self._known.get(id(thing))
        if name is None:
            name = self._known[id(thing)] = f"x{len(self._known)}"
            self._names[name] = thing
        return name

    def _of_maps(self, maps: Sequence[Entry]) -> Iterator[str]:
        for held, key, value, _ in maps:
            where = repr(key) if type(key) in (str, int) else self._name(key)
            if type(held) in (dict, MappingProxyType):
                yield f"{self._name(held)}[{where}] is {self._name(value)}"
            else:  # whose way to answer may have effects
                yield f"{self._name(held)}.get({where}) is {self._name(value)}"

    def _of_slots(self, slots: Sequence[Entry]) -> Iterator[str]:
        for held, name, value, _ in slots:
            if name.isidentifier() and not keyword.iskeyword(name):
                yield f"{self._name(held)}.{name} is {self._name(value)}"
            else:
                yield f"getattr({self._name(held)}, {name!r}) is {self._name(value)}"

    def _function(self, tests: Sequence[str]) -> Callable[[], bool]:
        lines = ["def same():"]
        for i in range(0, len(tests), _AT_ONCE):
            lines += [
                f"    if not ({' and '.join(tests[i : i + _AT_ONCE])}):",
                "        return False",
            ]
        lines.append("    return True")
        exec(compile("\n".join(lines), "<captured: state>", "exec"), self._names)
        made: Callable[[], bool] = self._names["same"]
        return made


def question_of(held: Any) -> Callable[[], Any]:
    """What tells whether a set holds the same objects."""
    if all(type(x) is str for x in held):
        return lambda: frozenset(held)
    return lambda: sorted(map(id, held))
