"""A function that records what it does once and then does it again without Python's detours."""

from __future__ import annotations

import copy
import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from ..autograd.node import user_level, user_line
from ..nn import hooks
from ..ops import primitive
from .audit import Watcher, framework_folders
from .matcher import Match, matcher
from .program import Retreat
from .recording import Recording
from .signature import Unsupported, difference, modes, objects_in, signature, watched
from .state import State, TooLarge
from .tape import Break, Tape

BUDGET = 8
# Which replays are compared with an eager run: the first ones, and then ever more rarely.
_PROVEN = frozenset((0, 1, 50, 1000, 10_000, 100_000))


class CaptureError(RuntimeError):
    """A function that must be captured as a whole (`fullgraph=True`) cannot be."""


class CaptureWarning(UserWarning):
    """A compiled function runs eagerly, or is recorded again and again."""


@dataclass
class Counts:
    """What became of the calls of a compiled function.

    Attributes:
        eager: Calls that ran eagerly.
        recordings: How often it was recorded.
        replays: Calls that were replayed.
        breaks: Reasons why it was not recorded, with the user's line, and how often each ended
            a recording or kept a call eager.
    """

    eager: int = 0
    recordings: int = 0
    replays: int = 0
    breaks: dict[tuple[str, str], int] = field(default_factory=dict)


class _Usual(NamedTuple):
    """Calls that are recognised quickly.

    Attributes:
        match: Gives the tensors of such a call, None for another one.
        key: What chooses their recordings.
        recordings: These.
    """

    match: Match
    key: Any
    recordings: list[Recording]


class Captured:
    """Calls `function`; from the second call with the same guards on it is replayed.

    The first call watches which code runs, the next one records it. Recordings are chosen by the
    shapes and dtypes of tensors, by the values of other arguments, by the modes of autograd and
    autocast, and hold while the Python state that the code may read stays as it is.

    Args:
        function: The function.
        name: Its name in messages.
        roots: What else it may read: pairs of a name and an object.
        fullgraph: Raise where it cannot be recorded.
        report: Is told of a break or of too many recordings: `report(text)`.
        budget: Recordings at most; what fits none of them runs eagerly then.
        ignored: The function looks at no positional argument from this number on.
        counted: Is told of `counts` when it was recorded, or broke for a new reason.

    Attributes:
        counts: What became of its calls.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        roots: Sequence[tuple[str, Any]] = (),
        fullgraph: bool = False,
        report: Callable[[str], None] | None = None,
        budget: int = BUDGET,
        ignored: int | None = None,
        counted: Callable[[Counts], None] | None = None,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.roots = [*roots, (self.name, function)]
        self.fullgraph = fullgraph
        self.budget = budget
        self.counts = Counts()
        self._report = report or _warn
        self._ignored = ignored
        self._counted = counted or (lambda counts: None)
        self._codes: dict[Any, Any] = {}
        self._recordings: dict[Any, list[Recording]] = {}
        self._broken: dict[Any, tuple[str, str]] = {}
        self._last: Any = None
        self._usual: _Usual | None = None
        self._before: Recording | None = None
        self._spent = False
        self._watched = False
        every.add(self)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if primitive.tape is not None:
            return self.function(*args, **kwargs)
        if watched() or hooks.in_use:
            self.counts.eager += 1
            return self.function(*args, **kwargs)
        seen = args if self._ignored is None else args[: self._ignored]
        usual = self._usual
        tensors: Any = None if usual is None else usual.match(seen, kwargs)
        if tensors is not None and usual is not None:
            key = usual.key
        else:
            tensors = []
            try:
                key = (signature(seen, kwargs, tensors), modes())
            except Unsupported as reason:
                return self._eager((str(reason), user_line(skip=framework_folders())), args, kwargs)
            usual = None
        for recording in self._recordings.get(key, ()) if usual is None else usual.recordings:
            if recording.misfit():
                continue
            try:
                if recording.replays in _PROVEN:
                    return self._proven(key, recording, args, kwargs, tensors)
                out = recording.replay(tensors)
            except Retreat:
                continue
            self.counts.replays += 1
            if usual is None and not kwargs:
                self._became_usual(key, recording, seen)
            return out
        return self._missed(key, args, kwargs, tensors)

    def _became_usual(self, key: Any, recording: Recording, seen: Any) -> None:
        """Makes calls like the last two, which had no keywords, quick to recognise."""
        if recording is not self._before:
            self._before = recording
            return
        if recording.is_matched:
            match = matcher(seen)
            recording.is_matched = match is not None
            self._usual = None if match is None else _Usual(match, key, self._recordings[key])

    def reset(self) -> None:
        """Forgets all recordings."""
        self._recordings.clear()
        self._usual = self._before = None
        self._broken.clear()
        self.counts.recordings = 0
        self._spent = self._watched = False
        self._last = None

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Captured:
        return self._again(copy.deepcopy(self.function, memo))

    def __reduce__(self) -> Any:
        return _rebuilt, (self.function, self.name, self.fullgraph, self.budget)

    def _again(self, function: Callable[..., Any]) -> Captured:
        return Captured(function, name=self.name, fullgraph=self.fullgraph, budget=self.budget)

    # ---- recording -------------------------------------------------------------------------------

    def _missed(self, key: Any, args: Any, kwargs: Any, tensors: list[Any]) -> Any:
        """No recording fits: makes one, or runs eagerly, as while another thread makes one."""
        known = self._broken.get(key)
        if known is not None:
            return self._eager(known, args, kwargs, told=True)
        if self._spent:
            self.counts.eager += 1
            return self.function(*args, **kwargs)
        if self.counts.recordings >= self.budget:
            self._spent = True
            self._tell_spent(key)
            self.counts.eager += 1
            return self.function(*args, **kwargs)
        if not _one_at_a_time.acquire(blocking=False):
            self.counts.eager += 1
            return self.function(*args, **kwargs)
        try:
            return self._record(key, args, kwargs, tensors)
        finally:
            _one_at_a_time.release()

    def _record(self, key: Any, args: Any, kwargs: Any, tensors: list[Any]) -> Any:
        judge = self._watched
        objects = [("an argument", x) for x in objects_in(key)]
        tape = Tape(tensors)
        if any(type(t._array) is not np.ndarray for t in tensors):
            tape.broken("tensors that are not on the CPU take part")
        try:
            before = State([*self.roots, *objects], self._codes)
            given = State([("an argument", args), ("an argument", kwargs)], {})
            if before.iterator:
                tape.broken(f"{before.iterator} is an iterator, which a replay would not advance")
        except TooLarge:
            tape.broken("there is too much Python state to compare in every step")
        draws = _host_draws()
        active = tape if judge and tape.reason is None else None
        watcher = Watcher(
            tape.broken, lambda: active is not None and primitive.tape is None, judge=judge
        )
        primitive.tape = active
        try:
            with watcher:
                output = self.function(*args, **kwargs)
        finally:
            primitive.tape = None
        self.counts.eager += 1
        self._watched = True
        unknown = watcher.codes.keys() - self._codes.keys()
        self._codes |= watcher.codes
        if tape.reason is None and _host_draws() != draws:
            tape.broken("numbers are drawn from random or numpy.random", self._own_line())
        if tape.reason is not None:
            self._break(key, tape.reason)
        elif judge and not unknown:
            self._finish(key, tape, (before, given), tensors, output)
        return output

    def _finish(
        self, key: Any, tape: Tape, states: tuple[State, State], tensors: Any, output: Any
    ) -> None:
        before, given = states
        changed = before.changed_now() or given.changed_now()
        if changed:
            self._break(key, (f"the step changes {changed}", self._line_that_sets(changed)))
            return
        try:
            label = f"{self.name} {self.counts.recordings}"
            recording = Recording(tape, before, tensors, output, label, given=given)
        except Break as reason:
            line = reason.args[1] if len(reason.args) > 1 else self._own_line()
            self._break(key, (reason.args[0], line))
            return
        except Exception as error:  # of this package, or no memory: the step itself went well
            text = f"the recording could not be finished ({type(error).__name__}: {error})"
            self._break(key, (text, self._own_line()))
            return
        self.counts.recordings += 1
        self._recordings.setdefault(key, []).insert(0, recording)
        self._last = key
        self._counted(self.counts)

    def _proven(
        self, key: Any, recording: Recording, args: Any, kwargs: Any, tensors: list[Any]
    ) -> Any:
        """An eager call, compared with the replay."""
        output, same = recording.prove(lambda: self.function(*args, **kwargs), tensors)
        if not same:
            self._recordings[key].remove(recording)
            reason = "a replay gave other numbers than the step itself, whose numbers are used"
            self._break(key, (reason, self._own_line()))
        self.counts.eager += 1
        return output

    # ---- messages --------------------------------------------------------------------------------

    def _eager(self, reason: tuple[str, str], args: Any, kwargs: Any, *, told: bool = False) -> Any:
        self.counts.eager += 1
        if told:
            self._count(reason)
        else:
            self._break(None, reason)
        return self.function(*args, **kwargs)

    def _count(self, reason: tuple[str, str]) -> int:
        breaks = self.counts.breaks
        breaks[reason] = breaks.get(reason, 0) + 1
        return breaks[reason]

    def _break(self, key: Any, reason: tuple[str, str]) -> None:
        if key is not None:
            self._broken[key] = reason
            self._spent = self._spent or len(self._broken) > 4 * self.budget
        first = self._count(reason) == 1
        text, line = reason
        if self.fullgraph:
            raise CaptureError(
                f"compile: {self.name} must be captured as a whole (fullgraph=True). It cannot "
                f"be, because {text}, at {line}. Move that out of the function, or leave fullgraph "
                "away."
            )
        if first:
            self._counted(self.counts)
            self._report(
                f"compile: a captured step must do the same in every call. {self.name} runs "
                f"eagerly, because {text}, at {line}. Move that out of the step, or leave compile "
                "away."
            )

    def _tell_spent(self, key: Any) -> None:
        if key in self._recordings:
            guard = self._recordings[key][0].misfit() or "what a check of values answers"
        else:
            guard = difference(key, self._last)
        text = (
            f"compile: recordings are meant to be used again. {self.name} was recorded "
            f"{self.counts.recordings} times and what fits none of them runs eagerly from now on; "
            f"last it was {guard} that differed, at {self._own_line()}. Pad batches to few "
            "lengths, and keep what changes in tensors."
        )
        if self.fullgraph:
            raise CaptureError(text)
        self._report(text)

    def _own_line(self) -> str:
        code = _code_of(self.function)
        if code is None:
            return self.name
        return f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"

    def _line_that_sets(self, path: str) -> str:
        """The line of the user's code that names the attribute or variable last in `path`."""
        import dis

        from .audit import line_in

        name = path.rpartition(".")[2].rpartition(" ")[2].partition("[")[0]
        best = ""
        for code in self._codes:
            line = code.co_firstlineno
            for step in dis.get_instructions(code):
                line = (step.positions.lineno if step.positions else None) or line
                if step.argval == name:
                    if step.opname.startswith("STORE"):
                        return line_in(code, line)
                    best = best or line_in(code, line)
        return best or self._own_line()


_one_at_a_time = threading.Lock()  # there is one `primitive.tape` for all threads
every: weakref.WeakSet[Captured] = weakref.WeakSet()


def _rebuilt(function: Any, name: str, fullgraph: bool, budget: int) -> Captured:
    return Captured(function, name=name, fullgraph=fullgraph, budget=budget)


def _code_of(function: Any) -> Any:
    function = inspect.unwrap(function)
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is None and not isinstance(inner, type):
        code = getattr(getattr(type(inner), "forward", None), "__code__", None)
    return code


def _host_draws() -> Any:
    """Where the generators of `random` and `numpy.random` stand."""
    import random

    state: Any = np.random.get_state()
    return random.getstate(), state[1].tobytes(), state[2:]


def _warn(text: str) -> None:
    warnings.warn(text, CaptureWarning, stacklevel=user_level())
