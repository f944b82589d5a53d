"""A plane where the numbers that neighbouring outputs need for a tap are neighbours.

See `plane_plan`.
"""

from __future__ import annotations

from .kernel import inlined
from .lines import take


@inlined
def fill(x, begin, buffer, at, moves, step):  # type: ignore[no-untyped-def]
    """Copies a plane, which begins at `begin`, to `at`; what its padding covers is not written."""
    for m in range(len(moves)):
        take(x, begin + moves[m, 0], step, buffer, at + moves[m, 1], moves[m, 2])
