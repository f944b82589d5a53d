"""Kernels that will be needed soon are compiled by other processes meanwhile.

The compiler is Python and keeps one core busy. In a process that has to compile a kernel, as many
more as there are cores to spare compile what the layers and optimizers made so far will need
(`programs.py`), from the end: the updates and gradients, while this process compiles what comes
first. They meet in the folder of compiled code. Who compiles a body claims it there, by a lock that
the system takes back when a process ends; whoever needs a claimed body waits for it.

These processes end with this one or once nothing is left to do. There are none on one core or for
one thread, in a process that they started, and with `MINITORCH_COMPILE_AHEAD=off`; two programs
that compile for the same folder at once share them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # this system has no such locks
    fcntl = None  # type: ignore[assignment]

_SWITCH = "MINITORCH_COMPILE_AHEAD"
MOST = 3  # processes
_LOOK_AGAIN = 0.005  # seconds between two looks at a claimed body
LONGEST = 60.0  # seconds that a claimed body is waited for

# Names of the layers and optimizers that this process has made.
made: set[str] = set()
_processes: list[Any] = []
_begun = False


@contextlib.contextmanager
def claim(folder: str | os.PathLike[str], name: str, wait: bool = True) -> Iterator[bool]:
    """Keeps other processes from compiling the same meanwhile.

    Args:
        folder: That of the compiled code.
        name: What is compiled.
        wait: Whether to wait for a process that compiles it now.

    Yields:
        False if another process compiles it. Where there can be no locks it is True, and both may.
    """
    file = _open(Path(folder), name)
    if file is None:
        yield True
        return
    try:
        yield _lock(file, time.monotonic() + (LONGEST if wait else 0)) or wait
    finally:
        # Closing is not enough: a process that was forked meanwhile has the file too.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _open(folder: Path, name: str) -> int | None:
    if fcntl is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None


def _lock(file: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_AGAIN)
        except OSError:  # a file system without locks
            return True


def begin(threads: int | None, cache: str) -> None:
    """Starts the processes, once and if they can help.

    Args:
        threads: How many threads the user asked for, or None.
        cache: What NUMBA_CACHE_DIR is for them.
    """
    global _begun
    count = min(MOST, (threads or _cores()) - 1, _cores() - 1)
    if _begun or not made or count < 1 or not _possible():
        return
    _begun = True
    import subprocess

    command = [sys.executable, "-P", "-m", "minitorch.kernels", "--ahead"]
    options: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    options |= {"stdin": subprocess.PIPE}
    # This package may be importable here only because the program lies beside it.
    places = (os.environ.get("PYTHONPATH"), str(Path(__file__).parents[2]))
    options["env"] = os.environ | {_SWITCH: "off", "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    options["env"]["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    for _ in range(count):
        try:
            # A session of its own: Ctrl-C is for this process, whose end is also theirs.
            process = subprocess.Popen(command, start_new_session=True, **options)
        except OSError:
            break
        _processes.append(process)
        with contextlib.suppress(RuntimeError):  # no thread may start, as when Python ends
            threading.Thread(target=process.wait, name="minitorch-ahead", daemon=True).start()
    atexit.register(_end, os.getpid())
    tell(*sorted(made))


def body_name(body: Any) -> str:
    """What a body is called here, as `norm._layer_norm`."""
    return f"{body.__module__.rpartition('.')[2]}.{body.__qualname__}"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _possible() -> bool:
    """Not where the executable is a program that has Python in it, which would start again."""
    named = os.path.basename(sys.executable or "").startswith("python")
    frozen = getattr(sys, "frozen", False)
    return fcntl is not None and named and not frozen and os.environ.get(_SWITCH, "on") != "off"


def tell(*names: str) -> None:
    """The other processes shall compile what goes with these layers, or bodies, too."""
    for process in list(_processes):
        try:
            _write(process.stdin.fileno(), "".join(f"{name}\n" for name in names).encode())
        except (OSError, ValueError):  # it has ended, or this process does
            with contextlib.suppress(ValueError):
                _processes.remove(process)


def _write(file: int, text: bytes) -> None:
    """Writes to a pipe; where nobody reads it, SIGPIPE would end programs that do not ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        os.write(file, text)
    finally:
        if signal.SIGPIPE not in before and signal.SIGPIPE in signal.sigpending():
            signal.sigwait({signal.SIGPIPE})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(owner: int) -> None:
    if os.getpid() != owner:  # a fork of the process that they belong to
        return
    for process in _processes:
        process.kill()
    for process in _processes:
        process.wait()
        process.stdin.close()


def _after_fork() -> None:
    """The processes are the parent's. The child does not keep them alive."""
    global _begun
    _begun = True
    for process in _processes:
        process.stdin.close()
        process.returncode = 0
    _processes.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
