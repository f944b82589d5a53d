"""The tape: one eager run as a flat list of calls on arrays.

Every array that a call reads has a known origin: an input, a tensor that was there before, a
constant, or an earlier call. An array without one ends the recording, so that whatever this
package does not know about can never be replayed wrongly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.node import user_line
from ..errors import describe
from ..ops import primitive
from .audit import framework_folders
from .compare import alike

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.dtype, type)
_ARRAYS = (np.ndarray, np.generic)
_DIVISIONS = frozenset(("floor_divide", "remainder", "fmod"))


class Ref:
    """The value number `slot` of a recording."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        self.slot = slot

    def __repr__(self) -> str:
        return f"v{self.slot}"


class TensorOf:
    """A value that a call gets wrapped in a Tensor."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


class Call:
    """One call of a recording.

    Attributes:
        body: What is called.
        args, kwargs: Its arguments, with `Ref` for values of the recording.
        outs: A `Ref` for each part of the result that somebody may use, in its structure.
        kind: "pure"; "random" for a draw; "write" for one that changes memory; "late" for one that
            changes a tensor from before, which may happen after all others; "log" for one that
            tells somebody; "check" for one whose `answer` the rest of the recording relies on.
        convert: "array" if the result is made an array, "tensor" if its array is taken.
        op: The operation whose body or rule it is, if it is known.
    """

    __slots__ = ("answer", "args", "body", "convert", "kind", "kwargs", "op", "outs")

    def __init__(
        self,
        body: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        outs: Any,
        *,
        kind: str = "pure",
        convert: str = "",
        answer: Any = None,
        op: Any = None,
    ) -> None:
        self.body, self.args, self.kwargs, self.outs = body, tuple(args), kwargs, outs
        self.kind, self.convert, self.answer, self.op = kind, convert, answer, op


class External:
    """A tensor that was there before the run.

    Attributes:
        array: Its array during the recording.
        ref: Its value.
        reason: What to say if nobody knows where it comes from.
    """

    __slots__ = ("array", "reason", "ref")

    def __init__(self, array: Any, ref: Ref, reason: tuple[str, str]) -> None:
        self.array, self.ref, self.reason = array, ref, reason


class Break(Exception):
    """Something cannot be recorded."""


class Tape:
    """Records what operations compute, while it is `primitive.tape`.

    Args:
        inputs: The tensors among the arguments.

    Attributes:
        calls: What was recorded.
        externals: The tensors from before that were used.
        constants: For slots of constants, their values when they were made.
        fresh: Slots of constants that the run changes, so that each run needs its own.
        written: Arrays of tensors from before that the run changes.
        reread: Such an array was read after the change.
        residuals: For nodes of fused operations, the values beside the output.
        reason: Why recording ended, and the user's line; None while it goes on.
    """

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.thread = threading.get_ident()
        self.calls: list[Call] = []
        self.externals: list[External] = []
        self.constants: dict[int, Any] = {}
        self.residuals: dict[Any, tuple[Any, ...]] = {}
        self.reason: tuple[str, str] | None = None
        self.count = 0
        self.fresh: set[int] = set()
        self.written: list[Any] = []
        self.reread = False
        self._late = False
        self._refs: dict[int, Ref] = {}
        self._keep: list[Any] = []  # so that no id is used twice
        self.inputs = [self.bind(t._array) for t in inputs]

    # ---- what is known ---------------------------------------------------------------------------

    def bind(self, value: Any) -> Ref:
        """A new value for `value`, an array or what else a call gave."""
        ref = Ref(self.count)
        self.count += 1
        self._keep.append(value)
        if isinstance(value, _ARRAYS):
            self._refs[id(value)] = ref
        return ref

    def known(self, array: Any) -> Ref | None:
        """The value of an array, if its origin is known."""
        return self._refs.get(id(array))

    def array_of(self, ref: Ref) -> Any:
        """What a value was in this run."""
        return self._keep[ref.slot]

    def forget(self, ref: Ref) -> None:
        """Lets go of the numbers of a value that no call reads any more; its shape stays."""
        array = self._keep[ref.slot]
        del self._refs[id(array)]
        self._keep[ref.slot] = np.broadcast_to(np.empty((), array.dtype), array.shape)

    def size_of(self, slot: int) -> int:
        """How many elements the value of a slot had; 0 if it was no array."""
        return int(getattr(self._keep[slot], "size", 0))

    def broken(self, reason: str, line: str | None = None) -> None:
        """Ends the recording."""
        if self.reason is None and threading.get_ident() == self.thread:
            self.reason = (reason, user_line(skip=framework_folders()) if line is None else line)

    @property
    def listening(self) -> bool:
        """Whether a call of this thread is to be recorded."""
        return self.reason is None and threading.get_ident() == self.thread

    def constant(self, array: Any) -> None:
        """Notes an array that is the same in every run, as plain numbers and guards make it."""
        if self.listening and isinstance(array, _ARRAYS) and id(array) not in self._refs:
            self.constants[self.bind(array).slot] = array.copy()

    # ---- calls -----------------------------------------------------------------------------------

    def note(self, op: Any, y: Any, inputs: Sequence[Any], params: dict[str, Any]) -> None:
        """An operation on tensors and numbers gave the array `y`."""
        if not self.listening:
            return
        self._late = False
        half = y.dtype.itemsize == 2 and y.dtype.kind in "fV"
        body = getattr(op, "half_forward" if half else "", None) or getattr(op, "forward", None)
        arrays = [getattr(x, "_array", x) for x in inputs]
        if body is None:
            self.broken(f"{op.name} has no body that could be called again")
            return
        if op.name == "index" and any(
            getattr(part, "dtype", None) == np.bool_ for part in params["index"]
        ):
            self.broken("a mask selects as many elements as it finds")
            return
        if op.name in _DIVISIONS and y.dtype.kind in "iu" and not self._is_constant(arrays[1]):
            self.broken(f"{op.name} of whole numbers looks for zeros among them")
            return
        try:
            args = [self._operand(x, op.name) for x in inputs]
            kwargs = self._encode_dict(params, op.name)
        except Break as reason:
            self.broken(str(reason))
            return
        again = body(*arrays, **params)
        if not alike(again, y, exactly=half):
            self.broken(f"{op.name} gives other values when it is computed again")
            return
        convert = "" if isinstance(again, np.ndarray) else "array"
        if self.known(y) is None:
            self.calls.append(Call(body, args, kwargs, self.bind(y), convert=convert, op=op))

    def _is_constant(self, array: Any) -> bool:
        ref = self.known(array)
        return ref is not None and ref.slot in self.constants

    def note_fused(
        self, op: Any, out: Any, arrays: Sequence[Any], inputs: Any, residuals: Any, params: Any
    ) -> None:
        """A fused operation gave the tensor `out` and its residuals."""
        if not self.listening:
            return
        self._late = False
        try:
            args = [self._operand(x, op.name) for x in inputs]
            kwargs = self._encode_dict(params, op.name)
        except Break as reason:
            self.broken(str(reason))
            return
        again, more = op.forward(*arrays, **params)
        if not alike(again, out._array):  # residuals may have room that nobody writes
            self.broken(f"{op.name} gives other values when it is computed again")
            return
        first = self.bind(out._array)
        rest = tuple(None if x is None else self.known(x) or self.bind(x) for x in residuals)
        self.calls.append(Call(op.forward, args, kwargs, (first, rest)))
        if not isinstance(again, np.ndarray):
            self.calls.append(Call(np.asarray, (first,), {}, first))
        if out._node is not None:
            self.residuals[out._node] = rest

    def call(
        self,
        body: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        result: Any,
        *,
        kind: str = "pure",
        convert: str = "",
        answer: Any = None,
    ) -> None:
        """`body(*args, **kwargs)` gave `result`; Tensors among the arguments stay Tensors."""
        if not self.listening:
            return
        name = getattr(body, "__name__", "a function").strip("_")
        self._late = kind == "late"
        try:
            args = tuple(self._encode(x, name) for x in args)
            kwargs = self._encode_dict(kwargs, name)
        except Break as reason:
            self.broken(str(reason))
            return
        outs = self._bind_parts(result)
        made = Call(body, args, kwargs, outs, kind=kind, convert=convert, answer=answer)
        self.calls.append(made)

    def _bind_parts(self, result: Any) -> Any:
        if isinstance(result, tuple | list):
            return tuple(self._bind_parts(x) for x in result)
        array = getattr(result, "_array", result)
        if not isinstance(array, _ARRAYS) or self.known(array) is not None:
            return None
        return self.bind(array)

    def opaque(
        self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any], kind: str
    ) -> Any:
        """Calls a function of tensors that is recorded as a whole."""
        if threading.get_ident() != self.thread:
            return function(*args, **kwargs)
        if kind == "random" and kwargs.get("generator") is not None:
            self.broken("numbers are drawn from a Generator of their own")
        primitive.tape = None
        try:
            result = function(*args, **kwargs)
        except Exception:  # the step may catch it, and values may have caused it
            self.broken(f"{function.__name__.strip('_')} raised an error")
            raise
        finally:
            primitive.tape = self
        is_tensor = isinstance(result, primitive.Tensor)
        if is_tensor and result._rg:
            self.broken(f"{function.__name__} is not recorded with gradients")
        convert = "tensor" if is_tensor else ""
        answer = result if kind == "check" else None
        self.call(function, args, kwargs, result, kind=kind, convert=convert, answer=answer)
        return result

    def told(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
        """Calls a function that tells somebody a value, here and at the end of each replay."""
        if threading.get_ident() != self.thread:
            return function(*args, **kwargs)
        primitive.tape = None
        try:
            function(*args, **kwargs)
        finally:
            primitive.tape = self
        if any(isinstance(x, primitive.Tensor | int | float | str) for x in args[2:]):
            self.call(function, args, kwargs, None, kind="log")
        else:
            self.broken(f"an object of {type(args[-1]).__name__} is logged")

    def changes(self, t: Any, name: str) -> str:
        """The kind of a call that changes the memory of the tensor `t`."""
        if threading.get_ident() != self.thread:
            return "write"
        array = t._array
        if any(np.may_share_memory(array, self.array_of(ref)) for ref in self.inputs):
            self.broken(f"{name} changes an argument in place")
        for slot in self.constants:
            if np.may_share_memory(array, self.array_of(Ref(slot))):
                self.fresh.add(slot)
        ref = self.known(array)
        if ref is None or any(external.ref is ref for external in self.externals):
            self.written.append(array)
            return "late"
        shared = [e.array for e in self.externals if np.may_share_memory(array, e.array)]
        self.written += shared
        self.reread = self.reread or bool(shared)
        return "write"

    def write(self, t: Any, source: Any, name: str) -> None:
        """The tensor `t`, a result of this run, got the values of the array `source`."""
        if self.listening and self.changes(t, name) == "late":
            self.broken(f"{name} changes a tensor from before while gradients are recorded")
        self.call(_write_array, (t._array, source), {}, None, kind="write")

    # ---- arguments -------------------------------------------------------------------------------

    def _operand(self, x: Any, name: str) -> Any:
        if isinstance(x, primitive.Tensor):
            return self._tensor(x, name)
        return self._encode(x, name)

    def _tensor(self, t: Any, name: str) -> Ref:
        array = t._array
        ref = self._read(array)
        if ref is not None:
            return ref
        if type(array) is not np.ndarray:
            raise Break("tensors that are not on the CPU take part")
        line = user_line(skip=framework_folders())
        reason = (
            f"a tensor {describe(t)} reaches {name} that nothing recorded has made and that is no "
            "parameter, buffer or variable from before"
        )
        ref = self.bind(array)
        self.externals.append(External(array, ref, (reason, line)))
        return ref

    def _read(self, array: Any) -> Ref | None:
        """`known` for an array that a call reads."""
        if self.written and not self._late:
            self.reread |= any(np.may_share_memory(array, other) for other in self.written)
        return self.known(array)

    def _encode_dict(self, params: dict[str, Any], name: str) -> dict[str, Any]:
        return {key: self._encode(value, name) for key, value in params.items()}

    def _encode(self, value: Any, name: str) -> Any:
        """`value` with `Ref` for the arrays in it.

        Raises:
            Break: It holds an array of unknown origin.
        """
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, _ARRAYS):
            ref = self._read(value)
            if ref is None:
                raise Break(f"{name} uses an array that nothing recorded has made")
            return ref
        if isinstance(value, primitive.Tensor):
            return TensorOf(self._tensor(value, name))
        if type(value) in (tuple, list):
            return type(value)(self._encode(x, name) for x in value)
        if type(value) is dict:
            return self._encode_dict(value, name)
        return value


def _write_array(array: Any, source: Any) -> None:
    array[...] = source
