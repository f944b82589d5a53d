"""Looking at operations while they run: profilers and the FLOP counter hear of every call.

Nothing is looked at in ordinary runs. While an observer is there, the places that every operation
passes are wrapped: the calls of its kinds, the visits of backward, and the updates of optimizers.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

from ..autograd.engine import Pass
from . import families, fused, primitive, several

__all__ = ["Call", "Observer", "labelled", "observed"]


class Call:
    """One operation, visit of backward or labelled part of a program.

    Attributes:
        name: The operation's name, or the label.
        op: The operation; None for a label.
        inputs: Its positional arguments; the gradient for a visit of backward.
        params: Its options.
        node: The node that backward visits, else None.
        parent: The call inside of which it runs, or None.
        start, end: Times, in nanoseconds of `time.perf_counter_ns`.
        output: What it returned; None after an exception.
        thread: Identity of its thread.
        notes: What observers keep with it.
    """

    __slots__ = (
        "end",
        "inputs",
        "name",
        "node",
        "notes",
        "op",
        "output",
        "params",
        "parent",
        "start",
        "thread",
    )

    def __init__(
        self, name: str, op: Any, inputs: tuple[Any, ...], params: dict[str, Any], node: Any = None
    ) -> None:
        self.name, self.op, self.inputs, self.params, self.node = name, op, inputs, params, node
        self.parent: Call | None = None
        self.output: Any = None
        self.start = self.end = 0
        self.thread = threading.get_ident()
        self.notes: dict[str, Any] = {}


class Observer:
    """Hears of calls; override `begin` or `end`."""

    def begin(self, call: Call) -> None:
        """A call begins; its start is taken after this."""

    def end(self, call: Call) -> None:
        """A call is over."""


class _Thread(threading.local):
    innermost: Call | None = None
    started = 0


_observers: list[Observer] = []
_here = _Thread()
_undo: list[Callable[[], None]] = []
_lock = threading.Lock()


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Inside, `observer` hears of every call of every thread."""
    with _lock:
        if not _observers:
            _install()
        _observers.append(observer)
    try:
        yield
    finally:
        with _lock:
            _observers.remove(observer)
            if not _observers:
                while _undo:
                    _undo.pop()()


@contextlib.contextmanager
def labelled(name: str) -> Iterator[None]:
    """A label around a part of a program; costs one look where nobody observes."""
    if not _observers:
        yield
        return
    call = _begin(Call(name, None, (), {}))
    try:
        yield
    finally:
        _end(call, None)


def _begin(call: Call, at: int = 0) -> Call:
    call.parent, _here.innermost = _here.innermost, call
    _here.started = 0
    for observer in _observers:
        observer.begin(call)
    call.start = at or perf_counter_ns()
    return call


def _end(call: Call, output: Any) -> None:
    call.end = perf_counter_ns()
    call.output = output
    _here.innermost = call.parent
    for observer in reversed(_observers):
        observer.end(call)


def _run(call: Call, body: Callable[..., Any], *args: Any, **params: Any) -> Any:
    output = None
    _begin(call)
    try:
        output = body(*args, **params)
        return output
    finally:
        _end(call, output)


# The places that are wrapped.


def _replace(owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
    before = vars(owner)[name]
    wrapped = functools.wraps(before)(wrapper(before))
    setattr(owner, name, staticmethod(wrapped) if isinstance(before, staticmethod) else wrapped)
    _undo.append(lambda: setattr(owner, name, before))


def _install() -> None:
    for family in (primitive.Primitive, families.Unary, fused.Fused, several.Several):
        _replace(family, "__call__", _called)
    _replace(Pass, "visit", _visited)
    for op in families.Binary.made:
        for function in (op.function, op.operator):
            _note_start(function)
    _replace(families, "finish_two", _finishes)
    for name in ("_binary_slow", "_finish_number"):
        _replace(families, name, _names_op)
    _install_functions()
    optimizer = sys.modules.get("minitorch.optim.optimizer")
    if optimizer is not None:
        for kind in _with_subclasses(optimizer.Optimizer):
            if "step" in vars(kind):
                _replace(kind, "step", _updates)


def _install_functions() -> None:
    from .. import conversion
    from . import contraction, elementwise, joining, linalg, reduction

    for module in (linalg, contraction):  # each has the function under its own name
        _replace(module, "_matmul", _is(linalg._MATMUL))
    _replace(joining, "_cat_tensors", _is(joining._CAT))
    _replace(conversion, "_moved", _is(conversion._MOVE))
    _replace(reduction, "root", _is(reduction._ROOT))
    _replace(primitive._Cast, "forward", _starts)
    _replace(primitive, "finish", _finishes)
    _replace(elementwise, "_copied", _starts)
    _replace(elementwise, "finish", _finishes)
    _replace(reduction, "_total", _starts)
    _replace(reduction, "finish_one", _finishes)


def _with_subclasses(kind: Any) -> list[Any]:
    found = [kind]
    for below in kind.__subclasses__():
        found += _with_subclasses(below)
    return found


def _called(before: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *inputs: Any, **params: Any) -> Any:
        return _run(Call(self.name, self, inputs, params), before, self, *inputs, **params)

    return call


def _visited(before: Callable[..., Any]) -> Callable[..., Any]:
    def visit(self: Any, node: Any, g: Any) -> Any:
        # The visit forgets what the node saved, so that observers look at it when it begins.
        return _run(Call(node.name(), node.op, (g,), node.params, node), before, self, node, g)

    return visit


def _updates(before: Callable[..., Any]) -> Callable[..., Any]:
    def step(self: Any, *args: Any, **options: Any) -> Any:
        name = f"Optimizer.step#{type(self).__name__}.step"
        if _here.innermost is not None and _here.innermost.name == name:
            return before(self, *args, **options)  # a subclass calls its parent's
        return _run(Call(name, None, (), {}), before, self, *args, **options)

    return step


def _is(op: Any) -> Callable[[Any], Any]:
    def wrapper(before: Callable[..., Any]) -> Callable[..., Any]:
        def call(*inputs: Any) -> Any:
            return _run(Call(op.name, op, inputs, {}), before, *inputs)

        return call

    return wrapper


def _names_op(before: Callable[..., Any]) -> Callable[..., Any]:
    def call(op: Any, *inputs: Any) -> Any:
        innermost = _here.innermost
        if innermost is not None and innermost.op is op and not innermost.node:
            return before(op, *inputs)
        return _run(Call(op.name, op, inputs[-2:], {}), before, op, *inputs)

    return call


def _note_start(function: Any) -> None:
    """Lets the fast path of a binary operation note when it begins."""
    cell = function.__closure__[function.__code__.co_freevars.index("fast")]
    before = cell.cell_contents
    cell.cell_contents = _starts(before)
    _undo.append(lambda: setattr(cell, "cell_contents", before))


def _starts(before: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arrays: Any, **params: Any) -> Any:
        _here.started = perf_counter_ns()
        return before(*arrays, **params)

    return call


def _finishes(before: Callable[..., Any]) -> Callable[..., Any]:
    def finish(op: Any, y: Any, *rest: Any) -> Any:
        if not _here.started:
            return before(op, y, *rest)
        tensors = rest[0] if isinstance(rest[0], tuple) else rest
        inputs = tuple(x for x in tensors if isinstance(x, primitive.Tensor))
        call = _begin(Call(op.name, op, inputs, {}), _here.started)
        output = None
        try:
            output = before(op, y, *rest)
            return output
        finally:
            _end(call, output)

    return finish
