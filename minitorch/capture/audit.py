"""What runs while a step is recorded: the user's code, and whether the framework's may be replayed.

A profile function sees every call. Of the framework only files whose functions neither look at the
values of tensors nor keep anything beside what the tape sees may take part; what the user's code
asks of C must be free of effects. Everything else ends the recording.
"""

from __future__ import annotations

import gc
import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ..autograd.node import user_line
from ..ops.recording import above

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_NUMPY = os.path.dirname(np.__file__) + os.sep

# Paths in minitorch/ without suffix. A function that is denied, or decorated to be recorded as a
# whole, stands for itself.
_FILES = frozenset(
    "checks compiler conversion device dtypes errors layouts lazy pytree settings size tensor "
    "amp/autocast autograd/mode autograd/node autograd/handle backend/__init__ backend/memory "
    "backend/registry nn/__init__ nn/utils/parametrize nn/utils/parametrizations "
    "nn/utils/reparametrized ops/__init__ __init__ utils/checkpoint".split()
    + [
        f"ops/{name}"
        for name in (
            "activation arithmetic assembly at_once attention autocasting comparison compiled "
            "contraction conv creation cross_entropy cumulative distance distinct dropout "
            "elementwise embedding families forms fused indexing inplace joining late layout "
            "linalg maths methods norm numpy_names pool primitive product recording recurrent "
            "recurrent_steps reduction resample sampling several shape short_axes softmax special "
            "special_arrays special_functions unfold wide windows"
        ).split()
    ]
    + [
        f"nn/functional/{name}"
        for name in (
            "__init__ activation attention checks conv in_place layer loss loss_checks multi_head "
            "norm padding poisson pool recurrent resize shrinkage similarity targets transposed "
            "vision"
        ).split()
    ]
)
_FOLDERS = ("kernels/", "capture/")
_READS = "reads the value of a tensor"
_DENIED = {
    **dict.fromkeys(
        (
            "conversion.item conversion.tolist conversion.numpy conversion.__array__ "
            "tensor.__bool__ tensor.__float__ tensor.__int__ tensor.__index__ tensor.__complex__ "
            "tensor.__contains__ tensor.__format__ tensor.__repr__ ops/comparison.allclose "
            "ops/comparison.equal tensor.__reduce_ex__ tensor.__deepcopy__"
        ).split(),
        _READS,
    ),
    **dict.fromkeys(
        "ops/indexing.nonzero ops/layout.repeat_interleave ops/indexing.masked_select "
        "ops/sampling.multinomial".split(),
        "has a result whose shape or values depend on values",
    ),
    **dict.fromkeys(
        "nn/utils/parametrize.cached nn/utils/parametrize.register_parametrization "
        "nn/utils/parametrize.remove_parametrizations".split(),
        "changes how modules are read",
    ),
    **dict.fromkeys(
        "tensor.backward tensor.grad tensor.register_hook tensor.retain_grad tensor.data "
        "tensor.register_post_accumulate_grad_hook tensor.requires_grad_ tensor.detach_".split(),
        "works on gradients or on the graph",
    ),
}
# Of nn/ every layer, but for what changes or watches modules.
_NN = ("nn/",)
_NN_DENIED = ("nn/utils/", "nn/parallel", "nn/functional/", "nn/ties")

_BUILTIN_MODULES = frozenset(
    "builtins math cmath operator _operator itertools functools _functools collections "
    "_collections _abc typing _typing types copy numpy".split()
)
_EFFECTS = frozenset("print input open exec eval compile breakpoint".split())
# Modules of types whose methods answer differently, or act, without any change that is seen here.
_CHANGING = frozenset("time _random random _io _thread socket contextvars _contextvars".split())
_PLAIN_OWNERS = (str, bytes, list, dict, tuple, set, frozenset, int, float, complex, slice, range)


def framework_folders() -> tuple[str, ...]:
    """The folders of this package, with a separator at the end."""
    names = ("trainer", "callbacks", "loggers")
    folders = [_HERE]
    for name in names:
        module = sys.modules.get(f"minitorch.{name}")
        if module is not None and module.__file__:
            folders.append(os.path.dirname(os.path.abspath(module.__file__)) + os.sep)
    return tuple(folders)


def _verdict(path: str, name: str) -> str:
    """Why a function of the framework ends a recording; "" if it does not."""
    place = path[len(_HERE) :].removesuffix(".py").replace(os.sep, "/")
    key = f"{place}.{name}"
    if key in _DENIED:
        return f"{name.strip('_')} {_DENIED[key]}"
    if place in _FILES or place.startswith(_FOLDERS):
        return ""
    if place.startswith(_NN) and not place.startswith(_NN_DENIED):
        return ""
    if name in ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>"):
        name = "a function"
    return f"{name} of minitorch/{place}.py is not known to be free of looks at values"


class Watcher:
    """Sees every call of this thread while it is entered.

    Args:
        broken: Is told the reason and the line.
        paused: Says whether what runs now is recorded as a whole.
        judge: Also look at the framework's own functions.

    Attributes:
        codes: The user's code that ran, with its globals.
    """

    def __init__(
        self, broken: Callable[[str, str], None], paused: Callable[[], bool], *, judge: bool
    ) -> None:
        self.codes: dict[CodeType, dict[str, Any]] = {}
        self._broken, self._paused, self._judge = broken, paused, judge
        self._fine: set[CodeType] = set()
        self._folders = framework_folders()
        self._before: Any = None
        self._collects = True

    def __enter__(self) -> Watcher:
        self._collects = gc.isenabled()
        gc.disable()  # what a finalizer calls is no part of the step
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *exc: Any) -> None:
        if self._before is None or callable(self._before):
            sys.setprofile(self._before)
        else:  # a profiler written in C, such as cProfile's
            sys.setprofile(None)
            self._before.enable()
        if self._collects:
            gc.enable()

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self._fine and not self._paused():
                self._enter(frame, code)
        elif event == "c_call" and frame.f_code in self.codes and not self._paused():
            reason = _effect(arg)
            if reason:
                self._broken(reason, self._line(frame))

    def _enter(self, frame: FrameType, code: CodeType) -> None:
        path = code.co_filename
        if not path.startswith(self._folders):
            if path.startswith(_NUMPY):
                return
            caller = frame.f_back
            asked = caller is not None and caller.f_code in self.codes
            if asked or self._origin(frame) == "user":  # else the framework asks a library
                self.codes[code] = frame.f_globals
                self._fine.add(code)
            return
        if not self._judge:
            return
        # Installed, the Trainer's folders lie inside of this package's.
        ours = path.startswith(_HERE) and not path.startswith(self._folders[1:])
        reason = _verdict(path, code.co_name) if ours else _verdict_above(code)
        if reason:
            self._broken(reason, self._line(frame))
        else:
            self._fine.add(code)

    def _origin(self, frame: FrameType) -> str:
        """Whose code runs; that from a string is whose is what runs it."""
        path, caller = frame.f_code.co_filename, frame.f_back
        while path == "<string>" and caller is not None:
            above = caller.f_code.co_filename
            if above.startswith(self._folders):
                break
            path, caller = above, caller.f_back
        return origin(path)

    def _line(self, frame: FrameType | None) -> str:
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith((*self._folders, "<")):
                return line_in(code, frame.f_lineno)
            frame = frame.f_back
        return user_line(skip=self._folders)


def line_in(code: CodeType, number: int) -> str:
    """A line of code as messages show it."""
    text = linecache.getline(code.co_filename, number).strip()
    return f"{code.co_filename}:{number} in {code.co_name}: {text}"


def _verdict_above(code: CodeType) -> str:
    """Why a function of trainer/, callbacks/ or loggers/ ends a recording."""
    name, reason = code.co_name, above.get(code)
    if reason is not None:
        return f"{name} {reason}" if reason else ""
    if name.startswith(("_", "<")):
        return ""
    return f"{name} of the Trainer is asked for, which may answer something else in other steps"


def _effect(function: Any) -> str:
    """Why a C function ends a recording; "" if it has no effects that matter."""
    name = getattr(function, "__name__", "")
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and name in ("now", "today", "utcnow"):
        return f"{name} of {owner.__name__} is something else in every step"
    if isinstance(owner, _PLAIN_OWNERS) or isinstance(owner, type):
        return ""
    module = getattr(function, "__module__", None) or getattr(owner, "__name__", None)
    if name == "globals":
        return "globals() may hold something else in every step"
    if name in _EFFECTS:
        return f"{name} has an effect outside of the step"
    if module is None:  # a method of a type
        kind = type(owner).__module__
        if kind in _CHANGING:
            return f"{name} of {kind} is something else in every step"
        return ""
    root = module.partition(".")[0]
    if root in _BUILTIN_MODULES or root == "minitorch":
        return ""
    return f"{module}.{name} may be something else in every step"


def origin(filename: str) -> str:
    """Whose code a file holds: "user", "library" or "standard library"."""
    if "site-packages" in filename or "dist-packages" in filename:
        return "library"
    root = (sys.modules["os"].__file__ or "").removesuffix("os.py")
    standard = filename.startswith((root, "<frozen"))
    return "standard library" if standard else "user"
