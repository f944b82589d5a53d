"""`python -m minitorch.kernels --build` compiles the kernels of common layers ahead of use."""

from __future__ import annotations

import argparse
import os
import queue
import sys
import threading
import time
from contextlib import ExitStack
from typing import Any

from . import ahead, programs
from .loader import cache_folder, load

_IDLE_SECONDS = 20.0  # after which a process with nothing left to compile ends
_LOOK_AGAIN = 0.02  # seconds between two looks at bodies that others compile


def build() -> int:
    """Compiles what each program needs, and prints the seconds; the exit status."""
    ahead.made.update(programs.PROGRAMS)
    team = load("team")
    if team is None:
        print("kernels: there are none to compile without numba, or with MINITORCH_KERNELS=off.")
        return 1
    from .cpu.compiler import announced

    announced()
    team.of(2)
    for name in programs.PROGRAMS:
        start = time.perf_counter()
        for need in programs.needs_of(name):
            need.kernel.compile(need.types)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    return 0


def work_ahead() -> None:
    """Compiles what the process needs that writes names to the standard input, until that ends."""
    names: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(names,), daemon=True).start()
    asked = {names.get()}
    with ExitStack() as stack:
        slots = (ahead.claim(cache_folder(), f"ahead-{i}", wait=False) for i in range(ahead.MOST))
        if any(stack.enter_context(slot) for slot in slots):
            _compile(names, asked)


def _listen(names: queue.Queue[str]) -> None:
    try:
        for line in sys.stdin:
            names.put(line.strip())
    finally:
        os._exit(0)  # the other process has ended, or cannot be heard


def _compile(names: queue.Queue[str], asked: set[str]) -> None:
    """Compiles what goes with the names, long bodies first and what is needed last first; then what
    goes with them mostly."""
    known: dict[str, list[programs.Need]] = {}
    done: set[tuple[Any, ...]] = set()
    while True:
        while not names.empty():
            asked.add(names.get())
        made = None
        for guessed in programs.guesses(asked):
            left = [n for n in _needs(known, guessed) if n[:2] not in done]
            left.sort(key=lambda need: need.kernel.written_out)
            made = made or next((need for need in reversed(left) if _compiled(need)), None)
        if made is not None:
            done.add(made[:2])
        elif left:
            time.sleep(_LOOK_AGAIN)
        else:
            try:
                asked.add(names.get(timeout=_IDLE_SECONDS))
            except queue.Empty:
                return


def _needs(known: dict[str, list[programs.Need]], asked: set[str]) -> list[programs.Need]:
    """What goes with the names, in the order of need; `known` has the programs rehearsed so far."""
    rehearsed = programs.PROGRAMS if any("." in name for name in asked) else asked
    for program in programs.PROGRAMS:
        if program in rehearsed and program not in known:
            known[program] = programs.needs_of(program)
    return programs.in_order(programs.wanted(known, asked))


def _compiled(need: programs.Need) -> bool:
    return need.kernel.compile(need.types, wait=False)


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minitorch.kernels", description=__doc__)
    parser.add_argument("--build", action="store_true", help="compile now what is not cached yet")
    parser.add_argument("--ahead", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.build:
        return build()
    if options.ahead:
        work_ahead()
        return 0
    parser.print_help()
    return 2


if __name__ == "__main__":
    sys.exit(main())
