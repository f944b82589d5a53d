"""Which values backward computes again instead of keeping them from the forward pass.

Where kernels join what makes a value with what reads it, keeping it for backward would be the only
reason to have it in memory. It is computed again from values that are kept anyway, since reading
costs more than computing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .fusion import LEAST, SMALLER, Segment
from .lowering import Lowered
from .program import makes, reads
from .symbols import APPROXIMATE
from .tape import Call, Tape

_MOST_STEPS = 12  # of what is computed again for one value
_SLOW = 5  # steps that a function such as exp is worth


def recomputed(
    tape: Tape, forwards: Sequence[Call], saved: set[int], exposed: Iterable[int]
) -> list[Call]:
    """The calls of the forward pass that backward makes again.

    Args:
        tape: Where the values come from.
        forwards: The forward pass.
        saved: Slots of it that backward reads.
        exposed: Slots of it that are needed otherwise.
    """
    if any(call.kind == "write" for call in forwards):
        return []
    return _Search(tape, forwards, saved, set(exposed)).found()


class _Search:
    def __init__(
        self, tape: Tape, forwards: Sequence[Call], saved: set[int], exposed: set[int]
    ) -> None:
        self._tape, self._calls, self._saved = tape, forwards, saved
        segment = Segment(tape, forwards, set())
        parts = [segment.lowered(call) for call in forwards]
        self._made = {slot: i for i, call in enumerate(forwards) for slot in makes(call)}
        self._parts: list[Lowered | None] = parts
        stored = set(exposed)
        for call, part in zip(forwards, parts, strict=True):
            if part is None or max(map(tape.size_of, makes(call)), default=0) < LEAST:
                stored.update(reads(call))
        self._candidates = {
            slot for slot in saved if self._is_computed(slot) and slot not in stored
        }

    def found(self) -> list[Call]:
        """The calls in order."""
        while True:
            lost = {slot for slot in self._candidates if self._calls_for(slot) is None}
            self._candidates -= lost
            if not lost:
                break
        numbers: set[int] = set()
        for slot in sorted(self._candidates):
            numbers |= self._calls_for(slot) or set()
        return [self._calls[i] for i in sorted(numbers)]

    def _calls_for(self, slot: int) -> set[int] | None:
        """The numbers of the calls that a value takes; None if it is to be kept."""
        numbers: set[int] = set()
        if not self._reaches(slot, self._tape.size_of(slot) // SMALLER, numbers):
            return None
        parts = [part for i in numbers if (part := self._parts[i]) is not None]
        steps = {id(x): x for part in parts for x in part.steps}.values()
        work = sum(_SLOW if x.op in APPROXIMATE else 1 for x in steps)
        return numbers if work <= _MOST_STEPS else None

    def _is_computed(self, slot: int) -> bool:
        part = self._parts[self._made[slot]] if slot in self._made else None
        return part is not None and part.sums is None and self._tape.size_of(slot) >= LEAST

    def _reaches(self, slot: int, small: int, numbers: set[int]) -> bool:
        """Whether a value can be had from what is kept; `numbers` gets the calls that it takes."""
        if slot in self._tape.constants or (slot in self._saved and slot not in self._candidates):
            return True
        i = self._made.get(slot)
        if i is None:
            return False  # somebody else's, who may change it in between
        if self._tape.size_of(slot) <= small:
            return True
        part = self._parts[i]
        if part is None or part.sums is not None:
            return False
        numbers.add(i)
        return all(self._reaches(s, small, numbers) for s in reads(self._calls[i]))
