"""Workers behind one interface, and threads as workers."""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from ..kernels.threads import compute_alone
from .fetch import Fetcher, ReadTask, Recipe, Signal, StreamTask, Worker

_JOIN_SECONDS = 5.0


class Failure(NamedTuple):
    """An exception of a worker on its way to the consumer."""

    error: BaseException


class Pool(ABC):
    """Workers that answer their own tasks in order.

    Answers of earlier runs are dropped, so that a run that was left early does no harm.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.closed = False
        self.run = 0

    def begin(self) -> int:
        """Start a new run and return its number."""
        self.run += 1
        self._announce_run(self.run)
        return self.run

    def receive(self, worker: int, timeout_seconds: float | None) -> Any:
        """The next answer of `worker` to a task of this run.

        Raises:
            RuntimeError: no answer within the time, or the worker process died.
        """
        while True:
            run, answer = self._next(worker, timeout_seconds)
            if run == self.run and answer is not Signal.CANCELLED:
                return answer

    def close(self) -> None:
        """Stop the workers; a sample that is being read is finished first."""
        if not self.closed:
            self.closed = True
            self._close()

    def is_fresh(self) -> bool:
        """Whether the workers see the dataset as it is now."""
        return not self.closed

    @abstractmethod
    def submit(self, worker: int, task: ReadTask | StreamTask) -> None:
        """Give a task to a worker."""

    @abstractmethod
    def _announce_run(self, run: int) -> None: ...

    @abstractmethod
    def _next(self, worker: int, timeout_seconds: float | None) -> tuple[int, Any]: ...

    @abstractmethod
    def _close(self) -> None: ...


def serve(
    load: Callable[[], Recipe],
    worker: Worker,
    next_task: Callable[[], Any],
    answer: Callable[[int, Any], None],
    is_current: Callable[[int], bool],
) -> None:
    """The life of a worker: load the recipe, then answer tasks until None comes."""
    compute_alone()
    broken: Failure | None = None
    try:
        recipe = load()
        if recipe.worker_init_fn is not None:
            recipe.worker_init_fn(worker.id)
    except Exception as error:
        error.add_note(f"Raised while worker {worker.id} of the DataLoader started.")
        broken = Failure(error)
    run = None
    while (task := next_task()) is not None:
        if not is_current(task.run):
            continue
        if broken is not None:
            answer(task.run, broken)
            continue
        try:
            if task.run != run:  # a fresh start each run: no streams or columns of the last one
                run, fetch = task.run, Fetcher(recipe, worker, is_current)
            result = fetch(task)
        except BaseException as error:  # also SystemExit: the consumer must not wait for ever
            result = Failure(error)
        answer(task.run, result)
        del result


def ordered(
    pool: Pool,
    tasks: Callable[[int], Iterator[Any]],
    ahead: int,
    timeout_seconds: float | None,
) -> Iterator[tuple[Any, Any]]:
    """Run tasks on a pool and yield (task, answer) in the order of the tasks.

    Args:
        pool: the workers.
        tasks: from the number of the run to its tasks; it is read only `ahead` tasks in advance.
        ahead: most tasks that are read or wait to be taken at any time.
        timeout_seconds: most seconds to wait for one answer; None for no limit.
    """
    queue = tasks(pool.begin())
    pending: deque[Any] = deque()
    while True:
        while len(pending) < ahead and (task := next(queue, None)) is not None:
            pool.submit(_worker_of(task, pool), task)
            pending.append(task)
        if not pending:
            return
        task = pending.popleft()
        answer = pool.receive(_worker_of(task, pool), timeout_seconds)
        if isinstance(answer, Failure):
            raise answer.error
        if (following := next(queue, None)) is not None:
            pool.submit(_worker_of(following, pool), following)
            pending.append(following)
        yield task, answer
        del answer


def _worker_of(task: Any, pool: Pool) -> int:
    return (task.shard if isinstance(task, StreamTask) else task.number) % pool.size


class ThreadPool(Pool):
    """Threads of this process."""

    def __init__(self, recipe: Recipe, size: int) -> None:
        super().__init__(size)
        self._state = _State()
        self._tasks: list[SimpleQueue[Any]] = [SimpleQueue() for _ in range(size)]
        self._answers: list[SimpleQueue[Any]] = [SimpleQueue() for _ in range(size)]
        self._threads = []
        for i, (tasks, answers) in enumerate(zip(self._tasks, self._answers, strict=True)):
            thread = threading.Thread(
                target=serve,
                args=(
                    lambda: recipe,
                    Worker(i, size),
                    tasks.get,
                    _put(answers),
                    self._state.is_current,
                ),
                name=f"minitorch-data-{i}",
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()

    def submit(self, worker: int, task: ReadTask | StreamTask) -> None:
        """Give a task to a thread."""
        self._tasks[worker].put(task)

    def _announce_run(self, run: int) -> None:
        self._state.run = run

    def _next(self, worker: int, timeout_seconds: float | None) -> tuple[int, Any]:
        try:
            return self._answers[worker].get(timeout=timeout_seconds)
        except Empty:
            raise timed_out(worker, timeout_seconds) from None

    def _close(self) -> None:
        self._state.run = -1
        for tasks in self._tasks:
            tasks.put(None)
        for thread in self._threads:
            # The garbage collector may run this in one of the threads.
            if thread is not threading.current_thread():
                with contextlib.suppress(RuntimeError):
                    thread.join(_JOIN_SECONDS)


class _State:
    """The number of the run whose batches are wanted, shared with the threads."""

    def __init__(self) -> None:
        self.run = 0

    def is_current(self, run: int) -> bool:
        return run == self.run


def _put(answers: "SimpleQueue[Any]") -> Callable[[int, Any], None]:
    return lambda run, answer: answers.put((run, answer))


def timed_out(worker: int, timeout_seconds: float | None) -> RuntimeError:
    """The error for an answer that does not come in time."""
    return RuntimeError(
        f"DataLoader: worker {worker} gave no batch within timeout={timeout_seconds} seconds. "
        "Make the dataset faster, raise timeout, or use 0 to wait without limit."
    )
