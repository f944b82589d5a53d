"""Who makes, keeps and ends the workers of a loader."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .fetch import Fetcher, Recipe
from .pool import Pool, ThreadPool, ordered

_AHEAD = 2


class Workers:
    """The workers of one loader.

    Args:
        recipe: what they read.
        count: how many; 0 reads in the consumer's thread.
        kind: "thread" or "process".
        ahead: batches that each of them reads ahead; None for two.
        timeout_seconds: most seconds to wait for a batch; 0 for no limit.
        keep: keep them between epochs; None keeps processes only.
    """

    def __init__(
        self,
        recipe: Recipe,
        count: int,
        *,
        kind: str,
        ahead: int | None,
        timeout_seconds: float,
        keep: bool | None,
    ) -> None:
        self.recipe = recipe
        self.count = count
        self.kind = kind
        self.ahead = _AHEAD if ahead is None else ahead
        self.timeout_seconds = timeout_seconds
        self.keep = kind == "process" if keep is None else keep
        self._kept: Pool | None = None
        self._close_kept: Callable[[], Any] = _nothing
        self._kept_is_used = False

    def answers(
        self, tasks: Callable[[int], Iterator[Any]], shards: int | None
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (task, answer) in the order of the tasks.

        Args:
            tasks: from the number of the run to its tasks.
            shards: parts of a stream, which is how many workers can read it; None for no limit.
        """
        if not self.count:
            fetch = Fetcher(self.recipe)
            for task in tasks(0):
                yield task, fetch(task)
            return
        pool = self._borrow(min(self.count, shards or self.count))
        try:
            limit = self.timeout_seconds or None
            yield from ordered(pool, tasks, self.ahead * pool.size, limit)
        except GeneratorExit:
            raise
        except BaseException:  # an interrupt may have cut a message in two
            pool.close()
            raise
        finally:
            self._give_back(pool)

    def _borrow(self, size: int) -> Pool:
        if not self.keep or self._kept_is_used:
            return self._make(size)
        if self._kept is not None and (self._kept.size != size or not self._kept.is_fresh()):
            self._close_kept()
        if self._kept is None or self._kept.closed:
            self._close_kept()
            self._kept = self._make(size)
            self._close_kept = weakref.finalize(self, self._kept.close)
        self._kept_is_used = True
        return self._kept

    def _give_back(self, pool: Pool) -> None:
        if pool is self._kept:
            self._kept_is_used = False
        else:
            pool.close()

    def _make(self, size: int) -> Pool:
        if self.kind == "thread":
            return ThreadPool(self.recipe, size)
        from .processes import ProcessPool

        return ProcessPool(self.recipe, size)

    def __getstate__(self) -> dict[str, Any]:
        own = {"_kept": None, "_close_kept": _nothing, "_kept_is_used": False}
        return {**self.__dict__, **own}


def _nothing() -> None:
    """What there is to close before the first worker."""
