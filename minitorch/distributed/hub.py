"""The thread in rank 0 that lets all ranks meet: it gathers a request of each and answers."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait
from typing import Any, NamedTuple

RULE = "every rank must enter the same collectives in the same order"
Combine = Callable[[dict[str, Any], Sequence[bytes]], Sequence[bytes]]


class Request(NamedTuple):
    """What one rank wants.

    Attributes:
        call: Name and details that must be equal in all ranks, as `all_reduce f32[3] (sum)`.
        line: The user's line.
        details: What `combine` needs.
        payload: The value.
    """

    call: str
    line: str
    details: dict[str, Any]
    payload: bytes


def send(connection: Connection, head: dict[str, Any], payload: bytes) -> None:
    """Sends a message of two parts."""
    connection.send_bytes(json.dumps(head).encode())
    connection.send_bytes(payload)


def receive(connection: Connection) -> tuple[dict[str, Any], bytes]:
    """The two parts of a message.

    Raises:
        EOFError, OSError: The other side has ended.
    """
    return json.loads(connection.recv_bytes()), connection.recv_bytes()


class Hub(threading.Thread):
    """Answers the ranks of a group until all of them have left.

    Args:
        listener: Where the ranks connect.
        world_size: How many there are.
        timeout_seconds: How long a rank waits for the others.
        combine: From the requests' details and payloads to one answer for each rank.
    """

    def __init__(
        self, listener: Listener, world_size: int, timeout_seconds: float, combine: Combine
    ) -> None:
        super().__init__(name="minitorch-hub", daemon=True)
        self._listener, self._address = listener, listener.address
        self._world_size = world_size
        self._timeout = timeout_seconds
        self._combine = combine
        self._ranks: dict[Connection, int] = {}
        self._waiting: dict[int, Request] = {}
        self._last: dict[int, str] = {}
        self._gone: list[int] = []
        self._since = 0.0
        self._broken = ""

    def run(self) -> None:
        """Lets the ranks in, then serves them."""
        try:
            self._let_in()
        except Exception as error:
            self._broken = _text_of_failure(error)
        self._listener.close()
        while self._ranks:
            try:
                self._serve()
            except Exception as error:
                if self._broken:
                    raise
                self._broken = _text_of_failure(error)
                self._answer_all(error=self._broken)

    def _let_in(self) -> None:
        """Waits until all ranks are there; those that come get an error if one does not."""
        end = time.monotonic() + self._timeout
        late = threading.Timer(self._timeout + 0.01, self._knock)  # a listener waits for ever
        late.daemon = True
        late.start()
        try:
            while len(self._ranks) < self._world_size:
                if time.monotonic() >= end:
                    self._broken = self._text_of_missing()
                    return
                try:
                    connection = self._listener.accept()
                    if connection.poll(max(0.0, end - time.monotonic())):
                        self._ranks[connection] = receive(connection)[0]["rank"]
                except (AuthenticationError, EOFError, ConnectionError):
                    continue  # somebody else, or a process that ended
        finally:
            late.cancel()

    def _knock(self) -> None:
        with contextlib.suppress(OSError):
            Client(self._address).close()

    def _serve(self) -> None:
        left = None
        if self._waiting:
            left = max(0.0, self._since + self._timeout - time.monotonic())
        ready = wait(list(self._ranks), left)
        for connection in ready:
            assert isinstance(connection, Connection)
            self._take(connection)
        if self._waiting and self._gone and not self._broken:
            self._broken = self._text_of_ended()
        if self._waiting and not ready and not self._broken:
            self._broken = self._text_of_late()
        if self._broken:
            self._answer_all(error=self._broken)
        elif len(self._waiting) == self._world_size:
            self._finish_round()

    def _take(self, connection: Connection) -> None:
        rank = self._ranks[connection]
        try:
            head, payload = receive(connection)
        except (EOFError, OSError):
            del self._ranks[connection]
            self._gone.append(rank)
            return
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting[rank] = Request(head["call"], head["line"], head["details"], payload)

    def _finish_round(self) -> None:
        requests = [self._waiting[rank] for rank in range(self._world_size)]
        if len({request.call for request in requests}) > 1:
            self._broken = (
                f"distributed: {RULE}. Got {self._places()}. Move the call out of code that only "
                "some ranks run, such as `if rank == 0:`."
            )
            self._answer_all(error=self._broken)
            return
        answers = self._combine(requests[0].details, [request.payload for request in requests])
        self._answer_all(answers)

    def _answer_all(self, answers: Sequence[bytes] = (), *, error: str = "") -> None:
        """Rank 0 comes last: its process may end as soon as it is answered."""
        connections = sorted(self._ranks.items(), key=lambda item: -item[1])
        for connection, rank in connections:
            if rank not in self._waiting:
                continue
            request = self._waiting.pop(rank)
            self._last[rank] = f"{request.call} at {request.line}"
            try:
                send(connection, {"error": error}, b"" if error else answers[rank])
            except OSError:
                del self._ranks[connection]
                self._gone.append(rank)

    def _places(self) -> str:
        return "; ".join(
            f"rank {rank} in {request.call} at {request.line}"
            for rank, request in sorted(self._waiting.items())
        )

    def _before(self, ranks: Sequence[int]) -> str:
        return ", ".join(
            f"rank {rank} (its last: {self._last.get(rank, 'none')})" for rank in ranks
        )

    def _text_of_missing(self) -> str:
        there = sorted(self._ranks.values())
        missing = [rank for rank in range(self._world_size) if rank not in there]
        return (
            f"init_process_group: all {self._world_size} ranks must come within "
            f"{self._timeout:g} s. Got {_listed(there)} and not {_listed(missing)}. Start a "
            "process for each rank, with the same init_method, or raise timeout=..."
        )

    def _text_of_ended(self) -> str:
        return (
            f"distributed: {RULE}. Got {self._places()}, and processes that have ended: "
            f"{self._before(self._gone)}. Look for an exception there, or let every rank make as "
            "many calls as the others."
        )

    def _text_of_late(self) -> str:
        late = [rank for rank in self._ranks.values() if rank not in self._waiting]
        return (
            f"distributed: {RULE}. Got {self._places()}, and after {self._timeout:g} s still not "
            f"there: {self._before(sorted(late))}. Move the call out of code that only some ranks "
            "run, or raise init_process_group(timeout=...) if a rank may take that long."
        )


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(f"rank {rank}" for rank in ranks) or "none"


def _text_of_failure(error: Exception) -> str:
    return (
        f"distributed: the values of the ranks could not be brought together. Got "
        f"{type(error).__name__}: {error}. Start the group anew."
    )
