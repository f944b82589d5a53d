"""Whether operations are recorded. The switch belongs to the thread that turns it."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


class _Mode(threading.local):
    """Per thread: 0 records nothing, 1 records, 2 looks at each node that was recorded."""

    recording = 1
    anomaly = False
    check_nan = True
    autocast: Any = None  # the half type
    autocast_device: str | None = None
    quiet = False
    saved_hooks: tuple[tuple[Any, Any], ...] = ()  # (pack, unpack), the innermost last
    running: Any = None  # the pass of backward that is under way
    # Results of operations numbered from `origin` to `horizon` are constants for new ones.
    origin, horizon = 0, -1
    meant: tuple[Any, ...] = ()  # the open `intended` blocks
    snapshots = False  # state dicts are copies
    on_empty_cache: Any = None  # is told how many seconds a call of empty_cache took
    on_stale_average: Any = None  # is told of averaged weights that meet foreign statistics
    noting = False  # operations note the user's line, as under anomaly mode


state = _Mode()


class quiet:
    """Inside, NumPy says nothing of overflow, division by zero and NaN, as PyTorch does.

    Operations enter it by themselves; a loop enters it once, which is quicker.
    """

    def __enter__(self) -> None:
        self._state = np.errstate(all="ignore")
        self._state.__enter__()
        self._before = state.quiet
        state.quiet = True

    def __exit__(self, *exc: Any) -> None:
        state.quiet = self._before
        self._state.__exit__(*exc)


def is_grad_enabled() -> bool:
    """True where operations on tensors that require grad are recorded."""
    return state.recording > 0


def recording_level(enabled: bool) -> int:
    """The value of `state.recording` for grad mode `enabled` under the modes that look at nodes."""
    watched = state.anomaly or state.saved_hooks or state.noting
    return (2 if watched else 1) if enabled else 0


def note_lines(on: bool) -> bool:
    """Lets operations note the user's line, or not; returns whether they did before."""
    before = state.noting
    state.noting = on
    state.recording = recording_level(state.recording > 0)
    return before


class _GradMode:
    """A context and decorator that sets grad mode and puts the previous one back."""

    enabled = True

    def __init__(self) -> None:
        self._previous: list[int] = []

    def __enter__(self) -> None:
        self._previous.append(state.recording)
        state.recording = recording_level(self.enabled)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        state.recording = self._previous.pop()

    def _fresh(self) -> _GradMode:
        return type(self)()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return _generator_in(self, function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


def _generator_in(mode: _GradMode, function: F) -> F:
    """`function` with the mode on while its body runs and off while its caller's does."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with mode._fresh():
            body = function(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(body.send, None)
        while True:
            try:
                with mode._fresh():
                    item = resume()
            except StopIteration as stop:
                return stop.value
            try:
                resume = functools.partial(body.send, (yield item))
            except GeneratorExit:
                with mode._fresh():
                    body.close()
                raise
            except BaseException as error:
                resume = functools.partial(body.throw, error)

    return call  # type: ignore[return-value]


class no_grad(_GradMode):
    """Records nothing inside: `with no_grad():` or `@no_grad()`."""

    enabled = False

    def __new__(cls, function: Any = None) -> Any:
        mode = super().__new__(cls)
        if function is None:
            return mode
        return mode(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()


class inference_mode(no_grad):
    """Like `no_grad`; here its tensors are ordinary ones and may be used anywhere later."""

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            made = object.__new__(cls)
            made.enabled = not mode
            return made
        return super().__new__(cls, mode)

    def __init__(self, mode: Any = True) -> None:
        super().__init__()

    def __enter__(self) -> None:
        self._previous.append(state.recording)
        if not self.enabled:
            state.recording = 0

    def _fresh(self) -> _GradMode:
        return type(self)(not self.enabled)


class enable_grad(_GradMode):
    """Records inside, also within `no_grad`: `with enable_grad():` or `@enable_grad()`."""

    def __new__(cls, function: Any = None) -> Any:
        mode = super().__new__(cls)
        if function is None:
            return mode
        return mode(function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()


class set_grad_enabled(_GradMode):
    """Sets grad mode at once; as a context it puts the previous mode back at the end."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.enabled = bool(mode)
        self._before = state.recording
        state.recording = recording_level(self.enabled)

    def __enter__(self) -> None:
        self._previous.append(self._before)
        state.recording = recording_level(self.enabled)

    def _fresh(self) -> _GradMode:
        return set_grad_enabled(self.enabled)

    def __call__(self, function: F) -> F:
        state.recording = self._before
        return super().__call__(function)


class detect_anomaly(_GradMode):
    """Inside, backward names the forward line of a failing operation and stops at the first NaN.

    Every operation notes the line that called it, so a step takes several times as long.

    Args:
        check_nan: Also raise when a gradient rule produces NaN.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self.check_nan = check_nan
        self._saved: list[tuple[bool, bool, int]] = []

    def __enter__(self) -> None:
        self._saved.append((state.anomaly, state.check_nan, state.recording))
        set_anomaly(True, self.check_nan)

    def __exit__(self, *exc: Any) -> None:
        state.anomaly, state.check_nan, state.recording = self._saved.pop()

    def _fresh(self) -> _GradMode:
        return detect_anomaly(self.check_nan)


def set_anomaly(enabled: bool, check_nan: bool = True) -> None:
    """Switches anomaly mode of this thread for good."""
    state.anomaly, state.check_nan = bool(enabled), bool(check_nan)
    state.recording = recording_level(state.recording > 0)


class set_detect_anomaly(detect_anomaly):
    """Switches anomaly mode at once; as a context it puts the previous mode back at the end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self._before = (state.anomaly, state.check_nan, state.recording)
        set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        self._saved.append(self._before)
