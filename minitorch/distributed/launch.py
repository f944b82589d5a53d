"""Starting processes that form a group."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ..errors import ArgumentError, DistributedError
from .group import RENDEZVOUS

GRACE_SECONDS = 5.0  # in which the others may say why they cannot go on


class Processes:
    """Processes that `spawn` started.

    Attributes:
        processes: One for each rank.
    """

    def __init__(
        self, processes: list[BaseProcess], reports: list[Connection], folder: Any
    ) -> None:
        self.processes = processes
        self._reports = reports
        self._folder = folder

    def pids(self) -> list[int | None]:
        """The numbers that the system knows them by."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Waits for all of them; when one fails the others are ended.

        Args:
            timeout: Most seconds to wait; None for no limit.

        Returns:
            Whether all have ended.

        Raises:
            DistributedError: One raised or was killed; the text has its traceback.
        """
        end = None if timeout is None else time.monotonic() + timeout
        running = {process.sentinel: process for process in self.processes}
        while running:
            left = None if end is None else max(0.0, end - time.monotonic())
            ended = wait(list(running), left)
            if not ended:
                return False
            for sentinel in ended:
                process = running.pop(sentinel)  # type: ignore[arg-type]
                process.join()
                if process.exitcode:
                    self._fail()
        self._folder.cleanup()
        return True

    def _fail(self) -> None:
        end = time.monotonic() + GRACE_SECONDS
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.terminate()
                process.join()
        texts = []
        for rank, (process, report) in enumerate(zip(self.processes, self._reports, strict=True)):
            if report.poll():
                try:
                    texts.append(f"rank {rank}:\n{report.recv_bytes().decode()}")
                    continue
                except EOFError:
                    pass
            if process.exitcode:
                texts.append(f"rank {rank}: ended with exit code {process.exitcode}")
        self._folder.cleanup()
        raise DistributedError("spawn: every process must end well. Got " + "\n".join(texts))


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Processes | None:
    """Runs `fn(rank, *args)` in several new processes.

    In each of them `init_process_group()` needs no arguments.

    Args:
        fn: A function at the top of a module.
        args: Its further arguments.
        nprocs: How many processes.
        join: Wait for them; False returns at once.
        daemon: End them with this process.
        start_method: "spawn"; compiled kernels do not survive a fork.

    Returns:
        With join=False the processes, to be joined.

    Raises:
        ArgumentError: nprocs or start_method is outside of its rule.
        DistributedError: A process raised or was killed.
    """
    if not isinstance(nprocs, int) or nprocs < 1:
        raise ArgumentError(f"spawn: nprocs must be a positive integer. Got {nprocs!r}.")
    if start_method != "spawn":
        raise ArgumentError(
            f"spawn: start_method must be 'spawn': threads of compiled kernels do not survive a "
            f"fork. Got {start_method!r}."
        )
    context = multiprocessing.get_context("spawn")
    folder = tempfile.TemporaryDirectory(prefix="minitorch-")
    meeting = os.path.join(folder.name, "group")
    processes: list[BaseProcess] = []
    reports = []
    for rank in range(nprocs):
        report, child = context.Pipe(duplex=False)
        process = context.Process(
            target=_run, args=(fn, rank, args, nprocs, meeting, child), daemon=daemon
        )
        process.start()
        child.close()
        processes.append(process)
        reports.append(report)
    started = Processes(processes, reports, folder)
    if not join:
        return started
    started.join()
    return None


def _run(
    fn: Callable[..., Any],
    rank: int,
    args: tuple[Any, ...],
    nprocs: int,
    meeting: str,
    report: Connection,
) -> None:
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(nprocs), **{RENDEZVOUS: meeting}
    )
    try:
        fn(rank, *args)
    except KeyboardInterrupt:
        raise SystemExit(1) from None
    except Exception:
        report.send_bytes(traceback.format_exc().encode())
        raise SystemExit(1) from None
