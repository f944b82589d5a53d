"""Finds the compiled bodies of a family of operations, or says that there are none."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from numpy import ndarray

from ..backend.memory import keep_freed_memory
from . import ahead, threads
from .unobserved import unobserved

# Elements below which a few calls of NumPy are as fast, and importing numba is not worth it. Fixed,
# so that the bodies, and with them the last bits, do not depend on what ran before.
LEAST = 1 << 11

_KEPT_SECONDS = 60 * 24 * 3600

_loaded: dict[str, ModuleType | None] = {}
_importing = threading.RLock()  # by one thread: others would see half of numba
_reentrant = False  # several threads can call kernels at once
_forked = False  # this process was forked after its parent had compiled kernels


def load(family: str) -> ModuleType | None:
    """The module `minitorch.kernels.cpu.<family>`.

    Args:
        family: `"special"`, `"optim"`, `"conv"`, …

    Returns:
        The module; None where the operation's plain body has to serve: numba cannot be imported,
        MINITORCH_KERNELS is `off` or NUMBA_DISABLE_JIT is set, the process was forked from one that
        had used kernels or was importing them (their threads do not survive a fork), or a thread
        other than the main one calls on a system without semaphores while numba found no
        threading layer that several threads may enter.
    """
    module = _loaded.get(family)
    if module is not None and _reentrant:
        return module
    if _forked:
        return None
    if module is None:
        if family in _loaded:
            return None
        with _importing, unobserved():
            if family not in _loaded:
                _loaded[family] = _import(family)
            module = _loaded[family]
        if module is None:
            return None
    if _reentrant or threading.current_thread() is threading.main_thread():
        return module
    return None


def load_for(
    family: str, *arrays: Any, least: int = LEAST, kinds: str = "fd", contiguous: bool = False
) -> ModuleType | None:
    """The module of `family` if it can take these arrays and they are worth a call, or None.

    Args:
        family: As in `load`.
        arrays: Inputs of one dtype on the CPU; None among them is passed over.
        least: Elements that the first must have.
        kinds: Type characters of the dtypes that the kernels know.
        contiguous: Whether all must be C-contiguous.
    """
    first = arrays[0]
    if type(first) is not ndarray or first.size < least:
        return None
    dtype = first.dtype
    if dtype.char not in kinds:
        return None
    for a in arrays:
        if a is None:
            continue
        if type(a) is not ndarray or (a.dtype is not dtype and a.dtype != dtype):
            return None
        if contiguous and not a.flags.c_contiguous:
            return None
    return load(family)


def _import(family: str) -> ModuleType | None:
    global _reentrant
    if os.environ.get("MINITORCH_KERNELS", "on") == "off":
        return None
    keep_freed_memory()
    if importlib.util.find_spec("numba") is not None and not os.path.isdir(cache_folder()):
        begin_ahead()  # before the second that it takes to import numba
    keep_folders_in_use(cache_folder())
    try:
        import numba
    except ImportError:
        return None
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # bodies would be Python's loops
        return None
    try:
        importlib.import_module("minitorch.kernels.cpu.compiler")
    except ImportError as error:
        warnings.warn(
            f"minitorch: kernels are not used, since this version of numba does not fit: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    with own_cache():
        team = importlib.import_module("minitorch.kernels.cpu.team")
        _reentrant = team.available or _has_layer("omppool") or _has_layer("tbbpool")
        return importlib.import_module(f"minitorch.kernels.cpu.{family}")


@contextlib.contextmanager
def own_cache() -> Iterator[None]:
    """Kernels defined here are kept in the user's cache folder, unless NUMBA_CACHE_DIR is set.

    Beside the sources they would outlive the package: an uninstalled one would leave a folder
    that Python takes for it. What other versions of this package left is not looked at: numba
    itself notices changes of a body, but not of the functions that are called in it.
    """
    from numba import config

    before = config.CACHE_DIR  # type: ignore[attr-defined]
    config.CACHE_DIR = cache_folder()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]


def cache_folder() -> str:
    """Where compiled kernels of these sources are kept."""
    config = getattr(sys.modules.get("numba"), "config", None)  # another thread may import it now
    root = getattr(config, "CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR")) or _users_folder()
    return root if os.path.basename(root) == _version() else os.path.join(root, _version())


def _users_folder() -> str:
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "minitorch", "kernels")


def keep_folders_in_use(folder: str) -> None:
    """Notes that a folder of compiled kernels is used, and removes those not used for 60 days.

    Nothing is removed while this one exists, and nothing elsewhere than in the user's cache folder.
    """
    root = os.path.dirname(folder)
    if root != _users_folder():
        return
    with contextlib.suppress(OSError):
        if os.path.isdir(folder):
            os.utime(folder)
            return
        os.makedirs(folder)
        for entry in os.scandir(root):
            ours = re.fullmatch("[0-9a-f]{8}", entry.name) and entry.is_dir(follow_symlinks=False)
            if ours and time.time() - entry.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(entry.path, ignore_errors=True)


def begin_ahead() -> None:
    """Lets other processes compile what this one will need soon."""
    ahead.begin(threads.asked(), os.path.dirname(cache_folder()))


@functools.cache
def _version() -> str:
    """A name for what the sources of the kernels are, and of the plans whose sizes they hold."""
    here, sources = os.path.dirname(__file__), hashlib.sha256()
    for folder, end in ((here, "_plan.py"), (os.path.join(here, "cpu"), ".py")):
        for name in sorted(name for name in os.listdir(folder) if name.endswith(end)):
            with open(os.path.join(folder, name), "rb") as file:
                sources.update(file.read())
    return sources.hexdigest()[:8]


def _has_layer(name: str) -> bool:
    try:
        importlib.import_module(f"numba.np.ufunc.{name}")
    except ImportError:
        return False
    return True


def _after_fork() -> None:
    global _forked, _importing, _reentrant
    # A thread of the parent that was importing numba holds locks which nobody here gives back.
    begun = not _importing.acquire(blocking=False)
    _importing = threading.RLock()
    _forked = _forked or begun or any(module is not None for module in _loaded.values())
    _reentrant = _reentrant and not _forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
