"""Processes as workers: spawned, sent the dataset once, answering over pipes.

Large arrays of the dataset are not sent through a pipe but mapped from one file by all workers,
copy on write, so that memory does not grow with their number.
"""

import contextlib
import hashlib
import io
import mmap
import multiprocessing
import os
import pickle
import random
import signal
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np

from .. import random as mt_random
from ..errors import DataError
from .fetch import ReadTask, Recipe, StreamTask, Worker
from .pool import Failure, Pool, serve, timed_out

_ALIGNMENT = 64
_LARGE_BYTES = 100_000_000
_GRACE_SECONDS = 5.0


class ProcessPool(Pool):
    """Spawned processes.

    Raises:
        DataError: the dataset or a function cannot be pickled.
    """

    def __init__(self, recipe: Recipe, size: int) -> None:
        super().__init__(size)
        context = multiprocessing.get_context("spawn")
        self._recipe = recipe
        self._digest, self._path, layout = _write(recipe)
        self._pipes: list[Connection] = []
        self._processes = []
        try:
            for i in range(size):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_main,
                    args=(theirs, Worker(i, size), self._path, layout),
                    name=f"minitorch-data-{i}",
                    daemon=True,
                )
                self._pipes.append(ours)
                process.start()
                self._processes.append(process)
                theirs.close()
        except BaseException:
            self.close()
            raise

    def is_fresh(self) -> bool:
        """Whether the dataset still pickles to what the processes were sent."""
        return not self.closed and _pickled(self._recipe)[2] == self._digest

    def submit(self, worker: int, task: ReadTask | StreamTask) -> None:
        """Send a task to a process."""
        self._send(worker, task)

    def _announce_run(self, run: int) -> None:
        for worker in range(self.size):
            self._send(worker, run)

    def _send(self, worker: int, message: Any) -> None:
        try:
            self._pipes[worker].send(message)
        except OSError:
            raise self._died(worker) from None

    def _next(self, worker: int, timeout_seconds: float | None) -> tuple[int, Any]:
        pipe = self._pipes[worker]
        try:
            if timeout_seconds is not None and not pipe.poll(timeout_seconds):
                raise timed_out(worker, timeout_seconds)
            return _receive(pipe)
        except (EOFError, OSError):
            raise self._died(worker) from None

    def _died(self, worker: int) -> RuntimeError:
        process = self._processes[worker]
        process.join(_GRACE_SECONDS)
        return RuntimeError(
            f"DataLoader: worker process {worker} (pid {process.pid}) died with exit code "
            f"{process.exitcode}. If it died at its start, put the program's entry under "
            "`if __name__ == '__main__':`, because the process imports the main module; -9 means "
            "killed, mostly for lack of memory: use fewer workers or worker_type='thread'."
        )

    def _close(self) -> None:
        for pipe in self._pipes:
            pipe.close()  # the worker sees the end of its pipe and leaves
        for process in self._processes:
            process.join(_GRACE_SECONDS)
            if process.is_alive():
                process.terminate()
                process.join(_GRACE_SECONDS)
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _pickled(recipe: Recipe) -> tuple[bytes, list[Any], bytes]:
    buffers: list[Any] = []
    try:
        text = pickle.dumps(recipe, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        raise DataError(
            f"DataLoader(worker_type='process'): {_culprit(recipe)} cannot be pickled ({error}). "
            "Define classes and functions at the top level of a module, open files in "
            "__getitem__, or use worker_type='thread'."
        ) from error
    pieces = [buffer.raw() for buffer in buffers]
    digest = hashlib.blake2b(text, digest_size=16)
    for piece in pieces:
        digest.update(piece)
    return text, pieces, digest.digest()


def _culprit(recipe: Recipe) -> str:
    parts = {f"the dataset's attribute {k!r}": v for k, v in _attributes(recipe.dataset).items()}
    parts |= {
        "collate_fn": recipe.collate_fn,
        "worker_init_fn": recipe.worker_init_fn,
        f"the dataset ({type(recipe.dataset).__name__})": recipe.dataset,
    }
    for name, part in parts.items():
        try:
            pickle.dumps(part, protocol=5, buffer_callback=lambda buffer: None)
        except Exception:
            return name
    return "the dataset"


def _attributes(value: Any) -> dict[str, Any]:
    return getattr(value, "__dict__", {})


def _write(recipe: Recipe) -> tuple[bytes, str, list[tuple[int, int]]]:
    text, pieces, digest = _pickled(recipe)
    if len(text) > _LARGE_BYTES:
        warnings.warn(
            f"DataLoader(worker_type='process'): {type(recipe.dataset).__name__} holds "
            f"{len(text) / 1e6:.0f} MB of Python objects, which each worker has to copy. Pack long "
            "lists into NumPy arrays, which all workers share, or use worker_type='thread'.",
            stacklevel=2,
        )
    layout = []
    descriptor, path = tempfile.mkstemp(prefix="minitorch-data-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in (text, *pieces):
                file.write(bytes(-file.tell() % _ALIGNMENT))
                layout.append((file.tell(), len(piece)))
                file.write(piece)
    except BaseException:
        os.unlink(path)
        raise
    return digest, path, layout


def _read(path: str, layout: list[tuple[int, int]]) -> Recipe:
    with open(path, "rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    text, *pieces = [mapped[start : start + size] for start, size in layout]
    return pickle.loads(text, buffers=pieces)


def _main(pipe: Connection, worker: Worker, path: str, layout: list[tuple[int, int]]) -> None:
    """A worker process: one thread receives, one sends, and this one reads the dataset."""
    from threadpoolctl import threadpool_limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the consumer's to handle
    threadpool_limits(limits=1)
    inbox = _Inbox(pipe)
    answers: SimpleQueue[Any] = SimpleQueue()
    sender = threading.Thread(target=_send_answers, args=(pipe, answers), daemon=True)
    sender.start()

    def answer(run: int, value: Any) -> None:
        answers.put(_packed(run, value))

    serve(lambda: _read(path, layout), worker, _seeded(inbox.tasks.get), answer, inbox.is_current)
    answers.put(None)
    sender.join(_GRACE_SECONDS)
    inbox.finished.set()


class _Inbox:
    """Drains the pipe at once, so that the consumer never blocks while it sends."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.run = 0
        self.tasks: SimpleQueue[Any] = SimpleQueue()
        self.finished = threading.Event()
        threading.Thread(target=self._drain, daemon=True).start()

    def is_current(self, run: int) -> bool:
        return run == self.run

    def _drain(self) -> None:
        try:
            while True:
                message = self.pipe.recv()
                if isinstance(message, int):
                    self.run = message
                else:
                    self.tasks.put(message)
        except (EOFError, OSError):
            self.run = -1
            self.tasks.put(None)
            if not self.finished.wait(_GRACE_SECONDS):
                os._exit(1)  # the consumer is gone and the dataset does not return


def _seeded(next_task: Callable[[], Any]) -> Callable[[], Any]:
    """Seed the global generators of this process for each task, by what the task reads."""

    def next_seeded() -> Any:
        task = next_task()
        if task is not None:
            words = mt_random.numpy_at("worker", task.epoch, task.number, seed=task.seed)
            first, second, third = words.integers(2**32, size=3).tolist()
            random.seed(first)
            np.random.seed(second)
            mt_random.manual_seed(third)
        return task

    return next_seeded


def _packed(run: int, value: Any) -> list[Any]:
    buffers: list[pickle.PickleBuffer] = []
    if isinstance(value, Failure):
        value = Failure(_portable(value.error))
    try:
        text = pickle.dumps((run, value), protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        buffers = []
        text = pickle.dumps(
            (
                run,
                Failure(
                    DataError(
                        f"DataLoader(worker_type='process'): the batch cannot be pickled ({error})."
                        " Let collate_fn return arrays, Tensors and plain values, or use "
                        "worker_type='thread'."
                    )
                ),
            )
        )
    pieces = [buffer.raw() for buffer in buffers]
    head = pickle.dumps([len(piece) for piece in pieces]) + text
    return [head, *(piece for piece in pieces if len(piece))]


def _portable(error: BaseException) -> BaseException:
    """The exception with its traceback as a note, or a stand-in if it does not survive a pipe."""
    lines = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        stand_in = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            stand_in.add_note(note)
        error = stand_in
    error.add_note(f"Traceback of the worker process (pid {os.getpid()}):\n{lines}")
    return error


def _send_answers(pipe: Connection, answers: "SimpleQueue[Any]") -> None:
    try:
        while (pieces := answers.get()) is not None:
            for piece in pieces:
                pipe.send_bytes(piece)
    except OSError:
        return  # the consumer has left


def _receive(pipe: Connection) -> tuple[int, Any]:
    head = io.BytesIO(pipe.recv_bytes())
    buffers = [np.empty(size, np.uint8) for size in pickle.load(head)]
    for buffer in buffers:
        if buffer.size:
            pipe.recv_bytes_into(buffer)
    return pickle.load(head, buffers=buffers)
