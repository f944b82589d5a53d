"""Contiguous memory behind many parameters, their gradients and their optimizer state.

A `Pack` holds parameters of one dtype side by side; the array of each parameter becomes a view of
it, and its `GradSlot` lends backward a view of the gradient memory. See README.md in this folder
for when a parameter is packed, and how other holders of the memory are noticed.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Sequence
from sys import getrefcount
from types import ModuleType
from typing import Any

import numpy as np

from .. import kernels

ALIGN_BYTES = 64
PAGE_BYTES = 4096
FIRST_PLACE = 7 * ALIGN_BYTES
STAGGER_BYTES = 13 * ALIGN_BYTES
# From this size on a gradient is used where backward made it: one more kernel call costs less than
# a copy into the slot.
LARGE = 8192
NORM_BLOCK = 8192
PACKED_DTYPES = frozenset((np.dtype(np.float32), np.dtype(np.float64)))

# From this many elements on it pays to load or compile kernels; sooner if numba is there anyway.
KERNELS_FROM = 65536
KERNELS_FROM_IF_NUMBA = 8192


Place = tuple[int, int, int]  # start, stop, start of the next slot


class _Memory(np.ndarray):
    """The memory of a pack.

    A class of its own: NumPy gives a view of a view the last base of the same class. Views of a
    slot therefore hold the slot's array, whose reference count then tells whether there are any.
    """


class _Probe:
    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def _count_alone() -> tuple[int, int]:
    """The reference counts of an array, and of a base, that one object holds."""
    probe = _Probe(np.empty(4)[1:])
    return getrefcount(probe.array), getrefcount(probe.array.base)


_ALONE, _BASE_ALONE = _count_alone()


class GradSlot:
    """The place of one parameter in a pack.

    Attributes:
        array: The parameter's view of the pack.
        grad: The view that backward may write the gradient into.
        pack: The pack.
        start: First element in the pack.
        stop: End of the elements.
        next: Where the following slot starts.
        place: `(start, stop, next)`.
        blocks: Range of this slot's blocks in `pack.starts` and `pack.stops`.
        bound: `(name, Tensor, view)` of each state that lies in the pack.
        names: The names in `bound`.
        flat: The parameter and its states in the pack, as arrays with one axis.
        owner: Weak reference to the optimizer that packed it.
    """

    __slots__ = (
        "array",
        "blocks",
        "bound",
        "flat",
        "grad",
        "names",
        "next",
        "owner",
        "pack",
        "place",
        "start",
        "stop",
    )

    def __init__(self, pack: Pack, start: int, shape: tuple[int, ...], owner: Any) -> None:
        self.pack = pack
        self.start = start
        self.array = pack.view(pack.params, start, shape)
        self.grad = pack.view(pack.grads, start, shape)
        self.stop = start + self.array.size
        self.next = pack.aligned(self.stop)
        self.place = (start, self.stop, self.next)
        self.blocks = (0, 0)
        self.bound: tuple[tuple[str, Any, np.ndarray], ...] = ()
        self.names: tuple[str, ...] = ()
        self.flat: tuple[np.ndarray, ...] = ()
        self.owner = weakref.ref(owner)

    def take(self, g: Any) -> bool:
        """Copies a gradient into the slot; False if it does not fit or the slot is in use."""
        fits = type(g) is np.ndarray and g.shape == self.grad.shape and g.dtype == self.grad.dtype
        if not fits or getrefcount(self.grad) != _ALONE:
            return False
        self.grad[...] = g
        return True

    def store(self, g: Any, fresh: bool) -> Any:
        """The array for the `.grad` of a parameter that has none yet.

        Args:
            g: The gradient, of the parameter's shape and dtype.
            fresh: Nothing else holds the memory of `g`.

        Returns:
            The slot's view with the values of `g`, or an array of its own where a user still holds
            an earlier gradient of this slot, or where `g` is large and can be kept as it is.
        """
        taken = getrefcount(self.grad) != _ALONE
        if (taken or g.size >= LARGE) and fresh and g.base is None and g.flags.c_contiguous:
            return g
        if taken:
            return g.copy()
        self.grad[...] = g
        return self.grad

    def holds(self, state: dict[str, Any], names: tuple[str, ...]) -> bool:
        """True if every state named is still the one that lies in the pack."""
        if names != self.names:
            return False
        for name, tensor, view in self.bound:
            if tensor._array is not view or state.get(name) is not tensor:
                return False
        return True


class Pack:
    """Contiguous memory for parameters of one dtype on the CPU.

    Args:
        params: Tensors whose memory nobody else sees.
        states: For each of them a dict with the state tensors `names`.
        names: The state arrays that move into the pack.
        owner: The optimizer.
    """

    def __init__(
        self,
        params: Sequence[Any],
        states: Sequence[dict[str, Any]],
        names: tuple[str, ...],
        owner: Any,
    ) -> None:
        self.dtype = params[0]._array.dtype
        self.itemsize = self.dtype.itemsize
        # The large ones first, so that the small ones make one run.
        sizes = [int(p._array.size) for p in params]
        order = sorted(range(len(params)), key=lambda i: sizes[i] < LARGE)
        size = sum(map(self.aligned, sizes))
        self.params = self._memory(size, 0)
        self.grads = self._memory(size, 1)
        self.states = {name: self._memory(size, 2 + i) for i, name in enumerate(names)}
        start = 0
        slots = []
        for i in order:
            slot = self._seat(params[i], states[i], start, owner)
            slots.append(slot)
            start = slot.next
        self._cut_blocks(slots)
        self._places: list[Place] = []  # those that `stretches` was asked for last
        self._stretches: list[tuple[np.ndarray, ...]] = []

    def aligned(self, n: int) -> int:
        """`n` elements rounded up to whole cache lines."""
        step = ALIGN_BYTES // self.itemsize
        return -(-n // step) * step

    def _memory(self, size: int, number: int) -> np.ndarray:
        """A flat array that starts on a cache line, each `number` at another place in its page.

        A processor takes a load for one of the stores before it if both are at the same place of
        their pages; with all arrays at one place an update takes twice as long.
        """
        raw = _Memory((size + PAGE_BYTES // self.itemsize,), self.dtype)
        place = (FIRST_PLACE + number * STAGGER_BYTES) % PAGE_BYTES
        skip = (place - raw.ctypes.data) % PAGE_BYTES
        return np.ndarray((size,), self.dtype, buffer=raw, offset=skip)

    def view(self, flat: np.ndarray, start: int, shape: tuple[int, ...]) -> np.ndarray:
        """The part of `flat` that begins at `start`, as an array whose base is the memory."""
        raw: Any = flat.base
        offset = flat.ctypes.data - raw.ctypes.data + start * self.itemsize
        return np.ndarray(shape, self.dtype, buffer=raw, offset=offset)

    def _seat(self, param: Any, state: dict[str, Any], start: int, owner: Any) -> GradSlot:
        """Moves one parameter and its state into the pack."""
        shape = param._array.shape
        slot = GradSlot(self, start, shape, owner)
        gap = slice(slot.stop, slot.next)
        for flat in (self.params, self.grads, *self.states.values()):
            flat[gap] = 0
        slot.array[...] = param._array
        param._array = slot.array
        param._grad_slot = slot
        bound: list[tuple[str, Any, np.ndarray]] = []
        for name, flat in self.states.items():
            tensor, view = state[name], self.view(flat, start, shape)
            view[...] = tensor._array
            tensor._array = view
            bound.append((name, tensor, view))
        slot.bound = tuple(bound)
        slot.names = tuple(self.states)
        flats = (self.params, *self.states.values())
        slot.flat = tuple([flat[slot.start : slot.stop] for flat in flats])
        return slot

    def stretches(self, places: list[Place]) -> list[tuple[np.ndarray, ...]]:
        """Parameters, gradients and states at places, as flat arrays: few, where they are
        neighbours, and cut once as long as the same places are asked for."""
        if places != self._places:
            flats = (self.params, self.grads, *self.states.values())
            self._places = places
            self._stretches = [
                tuple([flat[low:high] for flat in flats]) for low, high in merged(list(places))
            ]
        return self._stretches

    def _cut_blocks(self, slots: list[GradSlot]) -> None:
        """Cuts each slot into blocks of its own, over which norms are summed."""
        starts: list[np.ndarray] = []
        count = 0
        for slot in slots:
            cuts = np.arange(slot.start, slot.stop, NORM_BLOCK)
            slot.blocks = (count, count + cuts.size)
            count += cuts.size
            starts.append(cuts)
        self.starts = np.concatenate(starts)
        ends = [np.minimum(c + NORM_BLOCK, s.stop) for c, s in zip(starts, slots, strict=True)]
        self.stops = np.concatenate(ends)


def compiled(elements: int) -> ModuleType | None:
    """The kernels for optimizers, if there are any and so many elements are worth them."""
    least = KERNELS_FROM_IF_NUMBA if "numba" in sys.modules else KERNELS_FROM
    return kernels.load("optim") if elements >= least else None


def release(param: Any, owner: Any) -> bool:
    """Gives up a slot that is of no use to `owner`; False if another optimizer uses it."""
    slot = param._grad_slot
    if slot is not None:
        other = slot.owner()
        if other is not None and other is not owner and slot.array is param._array:
            return False
        param._grad_slot = None
    return True


def is_movable(tensor: Any) -> bool:
    """True if the tensor is a float array on the CPU whose memory nobody else sees.

    Only such memory can move into a pack: a view, a detached tensor or a NumPy array over it would
    go on showing the old place.
    """
    array = tensor._array
    if type(array) is not np.ndarray or array.dtype not in PACKED_DTYPES or not array.size:
        return False
    base = array.base
    del array
    if getrefcount(tensor._array) != _ALONE:
        return False
    if base is None or isinstance(base, _Memory):
        return True
    owned = isinstance(base, np.ndarray) and base.base is None and base.flags.owndata
    del base
    return owned and getrefcount(tensor._array.base) == _BASE_ALONE


def merged(places: list[Place]) -> Iterator[tuple[int, int]]:
    """Joins slots that follow each other.

    Args:
        places: Those of slots of one pack, in any order.

    Yields:
        `(start, stop)` of each run.
    """
    places.sort()
    low, high, following = places[0]
    for start, stop, after in places[1:]:
        if start != following:
            yield low, high
            low = start
        high, following = stop, after
    yield low, high


class Run:
    """Gradients that lie side by side, or one gradient alone.

    Attributes:
        array: A flat view of a pack, or the array of one gradient in its own shape.
        starts: First element of each block, for norms; None for arrays that are not on the CPU.
        stops: End of each block.
    """

    __slots__ = ("array", "starts", "stops")

    def __init__(self, array: Any, starts: Any = None, stops: Any = None) -> None:
        self.array = array
        self.starts = starts
        self.stops = stops


def gradient_runs(params: Iterable[Any]) -> list[Run]:
    """The gradients of `params` as few arrays: one for each stretch of packed ones.

    Args:
        params: Tensors; those without gradient are left out.
    """
    packed: dict[int, tuple[Pack, list[GradSlot]]] = {}
    runs = []
    for p in params:
        grad, slot = p.grad, p._grad_slot
        if grad is None:
            continue
        array = grad._array
        if slot is not None and array is slot.grad:
            packed.setdefault(id(slot.pack), (slot.pack, []))[1].append(slot)
        else:
            runs.append(_single(array))
    for pack, slots in packed.values():
        runs += _joined(pack, slots)
    return runs


def runs_of(arrays: Iterable[Any]) -> list[Run]:
    """Each array as a run of its own."""
    return [_single(array) for array in arrays]


def _single(array: Any) -> Run:
    if type(array) is not np.ndarray:
        return Run(array)
    starts = np.arange(0, array.size, NORM_BLOCK)
    return Run(array, starts, np.minimum(starts + NORM_BLOCK, array.size))


def _joined(pack: Pack, slots: list[GradSlot]) -> Iterator[Run]:
    by_start = {slot.start: slot for slot in slots}
    by_stop = {slot.stop: slot for slot in slots}
    for low, high in merged([slot.place for slot in slots]):
        blocks = slice(by_start[low].blocks[0], by_stop[high].blocks[1])
        yield Run(pack.grads[low:high], pack.starts[blocks] - low, pack.stops[blocks] - low)
