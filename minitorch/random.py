"""Random numbers as arithmetic: named, counter-based Philox streams under one root seed.

A draw is a function of (root seed, stream name, position) and of nothing else, so that a metric
that draws numbers cannot move the data order, and a resumed run needs only a few integers.

Threads: positions are counted under a lock and each thread has its own NumPy generator, so no
position is lost or used twice; which thread gets which position is up to the scheduler, so code
that runs in several threads should use `numpy_at`, keyed by what it works on.
Processes: a forked child inherits seed and positions and goes on exactly as its parent would (it
repeats the parent's numbers unless its work is keyed by `numpy_at`); a spawned process starts
unseeded and has to be given `state_dict()`.
"""

import contextlib
import hashlib
import json
import operator
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from .device import device as _device
from .errors import ArgumentError

_UNSEEDED_GENERATOR = 67280421310721
_lock = threading.RLock()


class Stream:
    """The draws of one name: draw p owns the Philox counter block (0, 0, p, 0).

    Get one from `stream(name)`; the same name always gives the same object.
    """

    __slots__ = ("_family", "_key", "_local", "_position", "name")

    _key: tuple[int, int]
    _position: int

    def __init__(self, family: "_Family", name: str) -> None:
        self._family = family
        self.name = name
        self._local = threading.local()
        self._restart(0)

    @property
    def position(self) -> int:
        """The number of draws taken so far, which is the number of the next draw."""
        return self._position

    def numpy(self) -> np.random.Generator:
        """Return a NumPy generator for the next draw and advance the position by one.

        Returns: a generator that stays valid until this thread's next call on this stream (the
            object is reused); a draw may take any number of values from it.
        """
        key, position = self.advance()
        local = self._local
        try:
            generator = local.generator
        except AttributeError:
            local.bits = np.random.Philox(key=0)
            local.generator = generator = np.random.Generator(local.bits)
        local.bits.state = _philox_state(key, position)
        return generator

    def advance(self) -> tuple[tuple[int, int], int]:
        """The Philox key and the number of the next draw, which this one takes.

        Returns: two words of 64 bits, and the position.
        """
        with _lock:
            position = self._position
            self._position = position + 1
            return self._key, position

    def _restart(self, position: int) -> None:
        self._key = _hash_key(self._family.seed, b"stream", self.name)
        self._position = position

    def __reduce__(self) -> Any:
        return (self._family.stream, (self.name,))

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, position={self._position})"


class _Family:
    """A root seed and the streams that hang on it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        _check_name(name)
        with _lock:
            if name not in self.streams:
                self.streams[name] = Stream(self, name)
            return self.streams[name]

    def restart(self, seed: int, positions: dict[str, int]) -> None:
        with _lock:
            self.seed = seed
            for name in positions:
                self.stream(name)
            for name, one in self.streams.items():
                one._restart(positions.get(name, 0))

    def state_dict(self) -> dict[str, Any]:
        with _lock:
            moved = {name: s._position for name, s in self.streams.items() if s._position}
            return {"seed": self.seed, "positions": moved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict) or set(state) != {"seed", "positions"}:
            raise ArgumentError(
                "load_state_dict: a random state is a dict with the keys 'seed' and 'positions', "
                f"as state_dict() returns it. Got {_short(state)}."
            )
        positions = state["positions"]
        if not isinstance(positions, dict):
            raise ArgumentError(
                "load_state_dict: 'positions' must be a dict of stream name to position. "
                f"Got {_short(positions)}."
            )
        checked = {}
        for name, position in positions.items():
            _check_name(name)
            checked[name] = _check_position(name, position)
        self.restart(_check_seed("load_state_dict", state["seed"]), checked)

    def __reduce__(self) -> Any:
        if self is _root:
            return "_root"
        return (_rebuild_family, (self.state_dict(),))


class Generator:
    """PyTorch's generator object: a seed of its own, apart from the root seed.

    A new generator has PyTorch's fixed initial seed, so it repeats its numbers in every run until
    it is seeded. The device is a label: the numbers are the same on every device.

    Args:
        device: the device that the drawn tensors are meant for.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device = _device(device)
        self._family = _Family(_UNSEEDED_GENERATOR)

    @property
    def device(self) -> _device:
        """The device given to the constructor."""
        return self._device

    def manual_seed(self, seed: int) -> "Generator":
        """Seed with an integer in [-2**63, 2**64), go back to position 0, and return self."""
        self._family.restart(_check_seed("manual_seed", seed), {})
        return self

    def seed(self) -> int:
        """Seed from the operating system's entropy and return the new seed."""
        self._family.restart(_fresh_seed(), {})
        return self._family.seed

    def initial_seed(self) -> int:
        """Return the seed in use, in [0, 2**64)."""
        return self._family.seed

    def numpy(self) -> np.random.Generator:
        """Return a NumPy generator for the next draw, as `Stream.numpy` does."""
        return self._family.stream("default").numpy()

    def advance(self) -> tuple[tuple[int, int], int]:
        """Take the next draw, as `Stream.advance` does."""
        return self._family.stream("default").advance()

    def get_state(self) -> Any:
        """Return seed and positions as a 1-d uint8 tensor, for `set_state`."""
        from .ops.primitive import wrap  # operations import this module

        text = json.dumps(self._family.state_dict())
        return wrap(np.frombuffer(text.encode(), np.uint8).copy())

    def set_state(self, state: Any) -> None:
        """Go back to a state that `get_state` returned."""
        array = np.asarray(getattr(state, "_array", state))
        try:
            tree = json.loads(array.tobytes()) if array.dtype == np.uint8 else None
        except ValueError:
            tree = None
        if tree is None:
            raise ArgumentError(
                "set_state: the state must be the uint8 value that get_state() returned. "
                f"Got {_short(state)}."
            )
        self._family.load_state_dict(tree)

    def __reduce__(self) -> Any:
        return (_rebuild_generator, (self._device, self._family))

    def __repr__(self) -> str:
        return f"Generator(device={str(self._device)!r}, initial_seed={self.initial_seed()})"


def manual_seed(seed: int) -> Generator:
    """Set the root seed, put every stream back to position 0, and return the default generator.

    Args:
        seed: an integer in [-2**63, 2**64); a negative one counts from 2**64, as in PyTorch.
    """
    return default_generator.manual_seed(seed)


def initial_seed() -> int:
    """Return the root seed, in [0, 2**64); a process that was never seeded has a random one."""
    return _root.seed


def seed() -> int:
    """Take a new root seed from the operating system's entropy and return it."""
    return default_generator.seed()


def stream(name: str) -> Stream:
    """Return the stream of this name under the root seed, always the same object.

    Args:
        name: the purpose of the draws, such as "init", "shuffle" or "dropout".
    """
    return _root.stream(name)


def numpy_at(name: str, *indices: int, seed: int | None = None) -> np.random.Generator:
    """Return a new NumPy generator that depends on (seed, name, indices) only.

    Args:
        name: the purpose of the draws; it shares no numbers with the stream of the same name.
        indices: integers ≥ 0 that say what is drawn for, such as epoch and sample number.
        seed: the seed to use in place of the root seed.
    """
    _check_name(name)
    root = _root.seed if seed is None else _check_seed("numpy_at", seed)
    where = ",".join([str(_check_index(index)) for index in indices])
    key = _hash_key(root, b"at", f"{where}|{name}")
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))


def state_dict() -> dict[str, Any]:
    """Return the root seed and the positions of all streams, as a dict that JSON can hold."""
    return _root.state_dict()


def load_state_dict(state: dict[str, Any]) -> None:
    """Go back to a state that `state_dict` returned; streams that it does not name restart at 0."""
    _root.load_state_dict(state)


def get_rng_state() -> Any:
    """Return the root seed and all positions as a 1-d uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Go back to a state that `get_rng_state` returned."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the root seed and all positions at the end of the block, also after an exception.

    Args:
        devices: accepted for PyTorch's signature; the streams are the same on every device.
        enabled: False makes the context do nothing.
    """
    before = _root.state_dict()
    try:
        yield
    finally:
        if enabled:
            _root.load_state_dict(before)


def positions() -> list[tuple[Stream, int]]:
    """The streams under the root seed and where they stand, for `rewind`."""
    return [(one, one._position) for one in _root.streams.values()]


def rewind(before: list[tuple[Stream, int]]) -> None:
    """Puts streams back where they stood; a stream that is new since then starts anew."""
    for one in _root.streams.values():
        one._position = 0
    for one, position in before:
        one._position = position


def _philox_state(key: tuple[int, int], position: int) -> dict[str, Any]:
    return {
        "bit_generator": "Philox",
        "state": {"counter": (0, 0, position, 0), "key": key},
        "buffer": (0, 0, 0, 0),
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }


def _hash_key(seed: int, kind: bytes, name: str) -> tuple[int, int]:
    data = name.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=16, key=seed.to_bytes(8, "little"), person=kind)
    raw = digest.digest()
    return int.from_bytes(raw[:8], "little"), int.from_bytes(raw[8:], "little")


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _check_seed(where: str, seed: Any) -> int:
    try:
        if isinstance(seed, bool | np.bool_):
            raise TypeError
        value = operator.index(seed)
    except TypeError:
        raise ArgumentError(
            f"{where}: a seed must be an integer. Got {_short(seed)}. Convert it with int(seed)."
        ) from None
    if not -(2**63) <= value < 2**64:
        raise ArgumentError(
            f"{where}: a seed must lie in [-2**63, 2**64). Got {value}. Use seed % 2**64."
        )
    return value % 2**64


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentError(
            "random stream: the name must be a non-empty string that says what is drawn, such as "
            f"'dropout'. Got {_short(name)}."
        )


def _check_index(index: Any) -> int:
    try:
        if isinstance(index, bool | np.bool_) or operator.index(index) < 0:
            raise TypeError
    except TypeError:
        raise ArgumentError(
            f"numpy_at: indices must be integers ≥ 0. Got {_short(index)}. "
            "Put what is not a number into the name."
        ) from None
    return operator.index(index)


def _check_position(name: str, position: Any) -> int:
    if type(position) is not int or not 0 <= position < 2**64:
        raise ArgumentError(
            f"load_state_dict: the position of stream {name!r} must be an integer in [0, 2**64). "
            f"Got {_short(position)}."
        )
    return position


def _short(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _rebuild_family(state: dict[str, Any]) -> _Family:
    family = _Family(0)
    family.load_state_dict(state)
    return family


def _rebuild_generator(device: Any, family: _Family) -> Generator:
    generator = Generator(device)
    generator._family = family
    return generator


_root = _Family(_fresh_seed())
default_generator = _rebuild_generator("cpu", _root)
if hasattr(os, "register_at_fork"):  # else another thread could hold the lock in the child for ever
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
