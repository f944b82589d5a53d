"""A plane where the numbers that neighbouring outputs need for a tap are neighbours.

See `plane_plan`.
"""

from __future__ import annotations

from .kernel import inlined
from .memory import copy
from .taps import VECTOR_BYTES, take_pairs


@inlined
def fill(x, begin, buffer, at, moves, step):  # type: ignore[no-untyped-def]
    """Copies a plane, which begins at `begin`, to `at`; what its padding covers is not written."""
    lanes = VECTOR_BYTES // x.itemsize
    for m in range(len(moves)):
        source, target, count = begin + moves[m, 0], at + moves[m, 1], moves[m, 2]
        if step == 1:
            copy(x, source, buffer, target, count)
            continue
        done = 0
        if step == 2 and count >= lanes:
            while done < count:
                done = min(done, count - lanes)
                take_pairs(x, source + 2 * done, buffer, target + done)
                done += lanes
        for i in range(done, count):
            buffer[target + i] = x[source + i * step]
