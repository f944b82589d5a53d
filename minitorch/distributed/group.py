"""The group of processes that this one belongs to."""

from __future__ import annotations

import atexit
import json
import os
import secrets
import tempfile
import time
from datetime import timedelta
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from ..autograd.node import user_line
from ..errors import ArgumentError, DistributedError
from .hub import Hub, receive, send

RENDEZVOUS = "MINITORCH_RENDEZVOUS"
TIMEOUT = timedelta(minutes=30)


class Group:
    """The connection of this process to the others.

    Attributes:
        rank: Number of this process, from 0.
        world_size: How many processes there are.
    """

    def __init__(self, rank: int, world_size: int, connection: Connection | None) -> None:
        self.rank = rank
        self.world_size = world_size
        self._connection = connection

    def exchange(
        self, call: str, line: str, payload: bytes = b"", details: dict[str, Any] | None = None
    ) -> bytes:
        """Sends what this rank gives to a collective and waits for the answer.

        Raises:
            DistributedError: The ranks do not do the same.
        """
        if self._connection is None:
            raise DistributedError(
                f"{call}: the group was left with destroy_process_group. Call init_process_group."
            )
        try:
            head = {"call": call, "line": line, "details": details or {}}
            send(self._connection, head, payload)
            answer, value = receive(self._connection)
        except (EOFError, OSError):
            raise DistributedError(
                f"{call}: rank 0 lets the ranks meet and must end last. It has ended. Look for an "
                "exception there, or call barrier() at the end of the program."
            ) from None
        if answer["error"]:
            raise DistributedError(answer["error"])
        return value

    def close(self) -> None:
        """Leaves the group."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_group: Group | None = None


def is_available() -> bool:
    """True: processes on this machine can work together."""
    return True


def is_initialized() -> bool:
    """Whether this process belongs to a group."""
    return _group is not None


def get_rank(group: Any = None) -> int:
    """The number of this process, from 0; 0 without a group."""
    return 0 if _group is None else _group.rank


def get_world_size(group: Any = None) -> int:
    """How many processes there are; 1 without a group."""
    return 1 if _group is None else _group.world_size


def get_backend(group: Any = None) -> str:
    """The name of the transport: "gloo" as in PyTorch, since values travel through the host."""
    return "gloo"


def is_nccl_available() -> bool:
    """False: there is no transport between GPUs."""
    return False


def is_gloo_available() -> bool:
    """True: the name stands for the transport through the host's memory."""
    return True


def current(name: str) -> Group:
    """The group of this process.

    Raises:
        DistributedError: There is none.
    """
    if _group is None:
        raise DistributedError(
            f"{name}: processes must form a group first. Got a process without one. Start them "
            "with distributed.spawn and call distributed.init_process_group() in each."
        )
    return _group


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes this process a member of a group; returns when all have come.

    In processes that `spawn` started no argument is needed.

    Args:
        backend: "gloo" or None: values travel through the host's memory.
        init_method: "file:///path" of a file that all ranks can see and that does not exist yet,
            "env://" (default) or "tcp://localhost:port"; MASTER_PORT or the port only names the
            group.
        timeout: How long a rank waits for the others; 30 minutes by default.
        world_size: How many processes there are; by default the environment's WORLD_SIZE.
        rank: Number of this one, from 0; by default the environment's RANK.
        store, group_name, pg_options, device_id: Accepted for PyTorch's signature; must be unset.

    Raises:
        ArgumentError: An argument is outside of its rule.
        DistributedError: There is a group already, or the others did not come in time.
    """
    global _group
    if _group is not None:
        raise DistributedError(
            "init_process_group: a process belongs to one group. It has one already. Call "
            "destroy_process_group first."
        )
    if backend not in (None, "gloo", "cpu:gloo"):
        raise ArgumentError(
            f"init_process_group: backend must be 'gloo': values travel through the host's memory. "
            f"Got {backend!r}. Leave it out."
        )
    if store is not None or pg_options is not None:
        raise ArgumentError(
            "init_process_group: store and pg_options belong to PyTorch's transports. Leave them "
            "out."
        )
    seconds = (TIMEOUT if timeout is None else timeout).total_seconds()
    world_size = _number("world_size", world_size, "WORLD_SIZE", least=1)
    rank = _number("rank", rank, "RANK", least=0)
    if rank >= world_size:
        raise ArgumentError(
            f"init_process_group: rank must be below world_size={world_size}. Got {rank}. Ranks "
            "count from 0."
        )
    path = _meeting_point(init_method)
    if rank == 0:
        _open_hub(path, world_size, seconds)
    connection = _join(path, rank, seconds)
    _group = Group(rank, world_size, connection)
    _group.exchange("init_process_group", user_line(), details={"kind": "gather"})
    if rank == 0:
        path.unlink(missing_ok=True)


def destroy_process_group(group: Any = None) -> None:
    """Leaves the group; nothing happens without one."""
    global _group
    if _group is not None:
        _group.close()
        _group = None


atexit.register(destroy_process_group)


def _number(name: str, given: int, variable: str, *, least: int) -> int:
    if given == -1:
        text = os.environ.get(variable, "")
        if not text.isdecimal():
            raise ArgumentError(
                f"init_process_group: {name} is missing. Got no argument and {variable}={text!r} "
                f"in the environment. Pass {name}=..., or start the processes with "
                "distributed.spawn."
            )
        given = int(text)
    if not isinstance(given, int) or given < least:
        raise ArgumentError(f"init_process_group: {name} must be ≥ {least}. Got {given!r}.")
    return given


def _meeting_point(init_method: str | None) -> Path:
    """The file in which rank 0 says where it listens."""
    if init_method in (None, "env://") and RENDEZVOUS in os.environ:
        return Path(os.environ[RENDEZVOUS])
    parts = urlparse(init_method or "env://")
    if parts.scheme == "file" and parts.path:
        return Path(parts.path)
    host, port = parts.hostname, str(parts.port or "")
    if parts.scheme == "env":
        host = os.environ.get("MASTER_ADDR", "localhost")
        port = os.environ.get("MASTER_PORT", "")
    if parts.scheme not in ("env", "tcp") or host not in ("localhost", "127.0.0.1") or not port:
        raise ArgumentError(
            "init_process_group: init_method must be 'file:///path', 'tcp://localhost:port', or "
            "'env://' with MASTER_PORT set; all processes run on one machine. Got "
            f"{init_method!r} (host {host!r}, port {port!r}). Start the processes with "
            "distributed.spawn, which needs neither."
        )
    folder = Path(tempfile.gettempdir()) / f"minitorch-groups-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise ArgumentError(
            f"init_process_group: the folder of groups must be this user's own. Got {folder} of "
            "another user. Pass init_method='file:///path'."
        )
    return folder / port


def _open_hub(path: Path, world_size: int, seconds: float) -> None:
    from .collectives import combine

    key = secrets.token_bytes(32)
    listener = Listener(backlog=world_size, authkey=key)
    Hub(listener, world_size, seconds, combine).start()
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump({"address": listener.address, "key": key.hex()}, file)
    os.replace(fresh, path)


def _join(path: Path, rank: int, seconds: float) -> Connection:
    end = time.monotonic() + seconds
    while True:
        try:
            found = json.loads(path.read_text())
            address = found["address"]
            address = tuple(address) if isinstance(address, list) else address
            connection = Client(address, authkey=bytes.fromhex(found["key"]))
            send(connection, {"rank": rank}, b"")
            return connection
        except (OSError, ValueError, AuthenticationError, EOFError):
            if time.monotonic() > end:
                raise DistributedError(
                    f"init_process_group: all ranks must come within {seconds:g} s. Rank {rank} "
                    f"found no rank 0 at {path}. Start rank 0, with the same init_method."
                ) from None
            time.sleep(0.02)
