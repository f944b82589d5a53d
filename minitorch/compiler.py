"""`compile`: functions and modules that record what they do and replay it, and its switches.

How it works, and what can be recorded, stands in capture/README.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .errors import ArgumentError
from .ops import primitive
from .ops.recording import unrecordable

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "reset"]

_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = ("inductor", "eager")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function that records its second call and replays it from then on; results are the same.

    What cannot be recorded runs eagerly, with a warning that names the reason and the line.
    A module is compiled in place and returned, so that names and state stay as they are.

    Args:
        model: A function or module; None gives the decorator.
        fullgraph: Raise CaptureError where a call cannot be recorded.
        dynamic: Accepted for PyTorch's signature: each shape has its recording.
        backend: "inductor", or "eager" to change nothing.
        mode: Accepted for PyTorch's signature.
        options: `{"max_recordings": n}`, 8 by default; what fits none of them runs eagerly.
        disable: Change nothing.

    Raises:
        ArgumentError: It cannot be called, or an option does not exist.
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise ArgumentError(f"compile: a function is needed. Got {type(model).__name__}.")
    if backend not in _BACKENDS:
        raise ArgumentError(f"compile: backend must be one of {_BACKENDS}. Got {backend!r}.")
    if mode not in _MODES:
        raise ArgumentError(f"compile: mode must be one of {_MODES}. Got {mode!r}.")
    unknown = set(options or ()) - {"max_recordings"}
    if unknown:
        raise ArgumentError(
            f"compile: the option is max_recordings. Got {', '.join(map(repr, sorted(unknown)))}."
        )
    if disable or backend == "eager" or getattr(model, "_compiler_disabled", False):
        return model
    from .capture import compiled

    return compiled(model, fullgraph, (options or {}).get("max_recordings"))


def disable(fn: Any = None, recursive: bool = True) -> Any:
    """A function that is never part of a recording: what calls it runs eagerly. Or a decorator.

    Args:
        fn: The function; None gives the decorator.
        recursive: Accepted for PyTorch's signature.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        unrecordable(f"{getattr(fn, '__name__', 'a function')} is kept out by compiler.disable")
        return fn(*args, **kwargs)

    call._compiler_disabled = True  # type: ignore[attr-defined]
    return call


def is_compiling() -> bool:
    """True while a call is recorded. Code that asks and then does something else for it is run
    eagerly, because its replays are found to differ."""
    return primitive.tape is not None


is_dynamo_compiling = is_compiling


def reset() -> None:
    """Forgets all recordings of all compiled functions."""
    from .capture import every

    for captured in list(every):
        captured.reset()
