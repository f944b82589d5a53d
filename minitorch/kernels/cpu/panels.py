"""Products of float32 matrices of any strides, cut into blocks that threads take one by one.

The right matrix is copied in panels of 16 columns. A block of the result copies its rows of the
left one in panels of 6, some terms at a time, and multiplies the two; sums of 6 × 16 stay in
registers. The blocks and the order of every sum follow from the sizes alone. Several products and
sums of columns can be computed together: each is a line of a table, so that one piece of machine
code does all of it.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from .. import threads
from .kernel import inlined, kernel
from .vector import (
    COLUMNS,
    FETCHED,
    FEW_ROWS,
    ROWS,
    copy_line,
    copy_one,
    copy_six,
    fetch_lines,
    multiply_four,
    multiply_six,
    stack,
    sum_lines,
    turn_lines,
)

_TERMS = 256  # of one panel of the right matrix, which with them fills half of the first cache
_MOST_TERMS = 384  # that are not cut
_HIGH = 96  # rows of a block, which with their terms fill a part of the second cache
_EVEN = 4  # blocks of rows come in multiples of it, so that threads end together
_BLOCKS, _WIDE = 8, 128  # a result is cut into so many blocks, if columns of this number allow it
_LINES = 1024  # that are summed at a time: one sum of a million float32 would be wrong by a percent
_GROUP = 64  # columns that are copied or summed by one thread
_AHEAD = 8  # lines by which memory is read ahead of copies
_GAP = 16  # numbers between panels, which then do not begin in the same set of the cache
_ITEMSIZE = 4
_SHARED_FROM = 1 << 18  # multiplications from which a second thread pays

# A line of the table: its first items of the two rounds, which are copies of panels, or sums of
# columns, and blocks of the result; sizes; the cut; addresses, and bytes from place to place.
(_COPIES, _RESULTS, _SUMS, _M, _N, _K) = range(6)
(_TILES, _BLOCK_COLUMNS, _GROUPS, _DOWN, _ACROSS, _PANEL, _PACKED_MATRIX) = range(6, 13)
(_A, _A_MATRIX, _A_ROW, _A_COLUMN, _B, _B_MATRIX, _B_ROW, _B_COLUMN) = range(13, 21)
(_C, _C_MATRIX, _C_ROW, _START, _START_ROW, _PACKED) = range(21, 27)


@inlined
def _pack(source, step, apart, target, lines, panel, terms, count):  # type: ignore[no-untyped-def]
    """Puts `count` rows or columns in panels: `lines` of them for each term, term after term.

    Args:
        source: Address of the first number.
        step: From one term to the next.
        apart: From one row or column to the next.
        target: Address of the first panel.
        lines: ROWS or COLUMNS.
        panel: From one panel to the next.
        terms: How many terms.
        count: How many rows or columns; the last panel is filled up with copies of the last one.
    """
    line = _ITEMSIZE * lines
    first = 0  # row or column that is not copied yet
    if apart == _ITEMSIZE:
        first = count // lines * lines
        for t in range(terms):
            fetch_lines(source + (t + _AHEAD) * step)
            for p in range(count // lines):
                place = source + t * step + p * line
                if lines == COLUMNS:
                    copy_line(place, target + p * panel + t * line)
                else:
                    copy_six(place, target + p * panel + t * line)
    for p in range(first, count, lines):
        start, to, done = source + p * apart, target + p // lines * panel, 0
        if step == _ITEMSIZE:
            done = terms // 8 * 8
            for t in range(0, done, 8):
                for i in range(0, lines, 8):
                    place = start + i * apart + t * step
                    turn_lines(place, apart, count - p - i, to + t * line + i * _ITEMSIZE, line)
        for t in range(done, terms):
            for i in range(lines):
                place = start + min(i, count - p - 1) * apart + t * step
                copy_one(place, to + t * line + i * _ITEMSIZE)


@inlined
def _sum(s, source, out, columns, part):  # type: ignore[no-untyped-def]
    """The sums of up to 16 columns; those of some lines are kept in `part`, then added."""
    for t in range(0, s[_K], _LINES):
        to = part if t else out
        sum_lines(source + t * s[_B_ROW], s[_B_ROW], min(_LINES, s[_K] - t), to, columns)
        if t:
            sum_lines(out, part - out, 2, out, columns)


@inlined
def _copy(s, item, panels, part):  # type: ignore[no-untyped-def]
    """The first round: panels of a group of columns, or the sums of these columns."""
    z, left = item // s[_GROUPS], item % s[_GROUPS] * _GROUP
    b, columns = s[_B] + z * s[_B_MATRIX] + left * s[_B_COLUMN], min(_GROUP, s[_N] - left)
    if s[_SUMS]:
        for j in range(0, columns, COLUMNS):
            place = _ITEMSIZE * j
            _sum(s, b + place, s[_C] + _ITEMSIZE * left + place, columns - j, part)
        return
    to = panels + s[_PACKED] + z * s[_PACKED_MATRIX] + left // COLUMNS * s[_PANEL]
    _pack(b, s[_B_ROW], s[_B_COLUMN], to, COLUMNS, s[_PANEL], s[_K], columns)


@inlined
def _block(s, item, panels, lefts):  # type: ignore[no-untyped-def]
    """The second round: a block of the result."""
    z, item = item // (s[_DOWN] * s[_ACROSS]), item % (s[_DOWN] * s[_ACROSS])
    i, left = item // s[_ACROSS], item % s[_ACROSS] * s[_BLOCK_COLUMNS]
    top, end = s[_TILES] * i // s[_DOWN] * ROWS, s[_TILES] * (i + 1) // s[_DOWN] * ROWS
    rows, columns = min(end, s[_M]) - top, min(s[_BLOCK_COLUMNS], s[_N] - left)
    old, old_row = s[_START] + top * s[_START_ROW] + _ITEMSIZE * left, s[_START_ROW]
    new = s[_C] + z * s[_C_MATRIX] + top * s[_C_ROW] + _ITEMSIZE * left
    pieces = 1 if s[_K] <= _MOST_TERMS else (s[_K] + _TERMS - 1) // _TERMS
    for piece in range(pieces):
        t = s[_K] * piece // pieces
        terms = s[_K] * (piece + 1) // pieces - t
        a = s[_A] + z * s[_A_MATRIX] + top * s[_A_ROW] + t * s[_A_COLUMN]
        panel = _ITEMSIZE * (terms * ROWS + _GAP)
        _pack(a, s[_A_COLUMN], s[_A_ROW], lefts, ROWS, panel, terms, rows)
        for j in range(0, columns, COLUMNS):
            b = panels + s[_PACKED] + z * s[_PACKED_MATRIX] + (left + j) // COLUMNS * s[_PANEL]
            b += t * COLUMNS * _ITEMSIZE
            few = (terms * ROWS + rows - 1) // rows  # of the next panel's lines for each tile
            for r in range(0, rows, ROWS):
                for i in range(0, few, FETCHED):
                    fetch_lines(b + s[_PANEL] + (r // ROWS * few + i) * COLUMNS * _ITEMSIZE)
                left_rows = lefts + r // ROWS * panel
                start = old + r * old_row + _ITEMSIZE * j
                out = new + r * s[_C_ROW] + _ITEMSIZE * j
                if rows - r > FEW_ROWS:
                    multiply_six(
                        *(left_rows, _ITEMSIZE, _ITEMSIZE * ROWS, b, terms, start, old_row),
                        *(out, s[_C_ROW], rows - r, columns - j),
                    )
                else:
                    multiply_four(
                        *(left_rows, _ITEMSIZE, _ITEMSIZE * ROWS, b, terms, start, old_row),
                        *(out, s[_C_ROW], rows - r, columns - j),
                    )
        old, old_row = new, s[_C_ROW]


_room = stack(_HIGH // ROWS * (_MOST_TERMS * ROWS + _GAP))


@kernel(written_out=True)
def _work(first, last, jobs, packed, copying):  # type: ignore[no-untyped-def]
    lefts, panels = _room(), packed.ctypes.data
    for item in range(first, last):
        number = len(jobs) - 1
        while item < jobs[number, _COPIES if copying else _RESULTS]:
            number -= 1
        s = jobs[number]
        if copying:
            _copy(s, item - s[_COPIES], panels, lefts)
        else:
            _block(s, item - s[_RESULTS], panels, lefts)


@functools.cache
def _cut(m: int, n: int, k: int) -> tuple[int, ...]:
    """The part of a line of the table that follows from the sizes of a product."""
    tiles, down = -(-m // ROWS), -(-m // _HIGH)
    down = -(-down // _EVEN) * _EVEN if down > 2 else down
    across = max(1, min(_BLOCKS // down, n // _WIDE))
    columns = -(-n // (across * COLUMNS)) * COLUMNS
    panel = _ITEMSIZE * (k * COLUMNS + _GAP)
    cut = (tiles, columns, -(-n // _GROUP), down, -(-n // columns))
    return (0, m, n, k, *cut, panel, panel * -(-n // COLUMNS))


def _address(a: Any) -> int:
    return int(a.__array_interface__["data"][0])


class _Scratch(threading.local):
    """Memory of a thread that is used again; what is large is not kept."""

    def __init__(self) -> None:
        self.packed = np.empty(1 << 18, np.float32)
        self.zeros = np.zeros(1 << 12, np.float32)
        self.at_zeros = _address(self.zeros)


_scratch = _Scratch()


class Jobs:
    """Products and sums of columns of float32 that are computed together; none may be empty."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, ...]] = []
        self._kept: list[Any] = []  # arrays that must live until then
        self._copies = self._blocks = self._packed = self._work = 0

    def add_product(self, c: Any, a: Any, b: Any, start: Any = None) -> None:
        """c = start + a @ b.

        Args:
            c: f32[M, N] or f32[Z, M, N], rows in one piece.
            a: f32[M, K] or f32[Z, M, K] of any strides.
            b: f32[K, N] or f32[Z, K, N] of any strides.
            start: f32[N] in one piece, or `c` itself if it has two axes, or None.
        """
        matrices = c.shape[0] if c.ndim == 3 else 1
        (m, n), k = c.shape[-2:], a.shape[-1]
        cut = _cut(m, n, k)
        if start is None and n <= _scratch.zeros.size:
            at_start = _scratch.at_zeros
        else:
            start = np.zeros(n, np.float32) if start is None else start
            at_start = _address(start)
        self._kept += (a, b, c, start)
        self._lines.append(
            (self._copies, self._blocks, *cut)
            + (_address(a), *(0, *a.strides)[-3:], _address(b), *(0, *b.strides)[-3:])
            + (_address(c), *(0, *c.strides[:-1])[-2:])
            + (at_start, start.strides[0] if start is c else 0, self._packed)
        )
        *_, groups, down, across, _, packed = cut
        self._copies += matrices * groups
        self._blocks += matrices * down * across
        self._packed += matrices * packed
        self._work += matrices * m * n * k

    def add_sums(self, out: Any, x: Any) -> None:
        """out = the sums of x over its rows.

        Args:
            out: f32[N] in one piece.
            x: f32[M, N], rows in one piece.
        """
        (k, n), groups = x.shape, -(-x.shape[1] // _GROUP)
        head = (self._copies, self._blocks, 1, 0, n, k, 0, 0, groups, *[0] * 8)
        self._lines.append((*head, _address(x), 0, *x.strides, _address(out), *[0] * 5))
        self._kept += (x, out)
        self._copies += groups
        self._work += x.size

    def compute(self) -> None:
        """Computes all of them."""
        jobs, packed = np.array(self._lines, np.int64), _scratch.packed
        if self._packed > packed.nbytes:
            packed = np.empty(self._packed // _ITEMSIZE, np.float32)
        workers = threads.count() if self._work >= _SHARED_FROM else 0
        _work.share(workers, self._copies, jobs, packed, True)
        _work.share(workers, self._blocks, jobs, packed, False)
