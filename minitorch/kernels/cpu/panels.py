"""Products of float32 matrices of any strides, cut into blocks that threads take one by one.

The right matrix is copied in panels of 16 columns. A block of the result copies its rows of the
left one in panels of 6, some terms at a time, and multiplies the two; sums of 6 × 16 stay in
registers. The blocks and the order of every sum follow from the sizes alone. Several products and
sums of columns can be computed together: each is a line of a table, so that one piece of machine
code does all of it.
"""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import threads
from .kernel import in_rounds, inlined, kernel
from .memory import address, stack, word, words_of
from .vector import (
    COLUMNS,
    FETCHED,
    FEW_ROWS,
    ROWS,
    WIDE,
    copy_line,
    copy_one,
    copy_six,
    fetch_lines,
    multiply_four,
    multiply_six,
    sum_lines,
    sum_wide_lines,
    turn_lines,
)

_TERMS = 256  # of one panel of the right matrix, which with them fills half of the first cache
_MOST_TERMS = 384  # that are not cut
_HIGH = 96  # rows of a block, which with their terms fill a part of the second cache
_EVEN = 4  # blocks of rows come in multiples of it, so that threads end together
_BLOCKS, _WIDE = 8, 128  # a result is cut into so many blocks, if columns of this number allow it
_LINES = 1024  # that are summed at a time: one sum of a million float32 would be wrong by a percent
_GROUP = WIDE  # columns that are copied or summed by one thread
_AHEAD = 8  # lines by which memory is read ahead of copies
_GAP = 16  # numbers between panels, which then do not begin in the same set of the cache
_ITEMSIZE = 4
_SHARED_FROM = 1 << 18  # multiplications from which a second thread pays

# A line of the table: its first items of the two rounds, which are copies of panels, or sums of
# columns, and blocks of the result; sizes; the cut; positions in the list of arrays, and bytes from
# place to place. Before the first one stands a line that has only where the second round begins.
(_COPIES, _RESULTS, _SUMS, _M, _N, _K) = range(6)
(_TILES, _BLOCK_COLUMNS, _GROUPS, _DOWN, _ACROSS, _PANEL, _PACKED_MATRIX) = range(6, 13)
(_A, _A_MATRIX, _A_ROW, _A_COLUMN, _B, _B_MATRIX, _B_ROW, _B_COLUMN) = range(13, 21)
(_C, _C_MATRIX, _C_ROW, _START, _START_ROW, _PACKED) = range(21, 27)


@inlined
def pack(source, step, apart, target, lines, panel, terms, count):  # type: ignore[no-untyped-def]
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
    """The sums of up to WIDE columns; those of some lines are kept in `part`, then added."""
    for t in range(0, s[_K], _LINES):
        to, lines = part if t else out, min(_LINES, s[_K] - t)
        if columns == WIDE:
            sum_wide_lines(source + t * s[_B_ROW], s[_B_ROW], lines, to)
        for j in range(0, 0 if columns == WIDE else columns, COLUMNS):
            first, have = source + t * s[_B_ROW] + _ITEMSIZE * j, columns - j
            sum_lines(first, s[_B_ROW], lines, to + _ITEMSIZE * j, have)
        for j in range(0, columns if t else 0, COLUMNS):
            place = out + _ITEMSIZE * j
            sum_lines(place, part - out, 2, place, columns - j)


@inlined
def _copy(s, places, item, part):  # type: ignore[no-untyped-def]
    """The first round: panels of a group of columns, or the sums of these columns."""
    z, left = item // s[_GROUPS], item % s[_GROUPS] * _GROUP
    b = address(word(places, s[_B])) + z * s[_B_MATRIX] + left * s[_B_COLUMN]
    columns = min(_GROUP, s[_N] - left)
    if s[_SUMS]:
        _sum(s, b, address(word(places, s[_C])) + _ITEMSIZE * left, columns, part)
        return
    to = address(word(places, 0)) + s[_PACKED] + z * s[_PACKED_MATRIX] + left // COLUMNS * s[_PANEL]
    pack(b, s[_B_ROW], s[_B_COLUMN], to, COLUMNS, s[_PANEL], s[_K], columns)


@inlined
def _block(s, places, item, lefts):  # type: ignore[no-untyped-def]
    """The second round: a block of the result."""
    z, item = item // (s[_DOWN] * s[_ACROSS]), item % (s[_DOWN] * s[_ACROSS])
    i, left = item // s[_ACROSS], item % s[_ACROSS] * s[_BLOCK_COLUMNS]
    top, end = s[_TILES] * i // s[_DOWN] * ROWS, s[_TILES] * (i + 1) // s[_DOWN] * ROWS
    rows, columns = min(end, s[_M]) - top, min(s[_BLOCK_COLUMNS], s[_N] - left)
    panels = address(word(places, 0)) + s[_PACKED] + z * s[_PACKED_MATRIX]
    old, old_row = address(word(places, s[_START])) + _ITEMSIZE * left, s[_START_ROW]
    old += top * old_row
    new = address(word(places, s[_C])) + z * s[_C_MATRIX] + top * s[_C_ROW] + _ITEMSIZE * left
    pieces = 1 if s[_K] <= _MOST_TERMS else (s[_K] + _TERMS - 1) // _TERMS
    for piece in range(pieces):
        t = s[_K] * piece // pieces
        terms = s[_K] * (piece + 1) // pieces - t
        a = address(word(places, s[_A])) + z * s[_A_MATRIX] + top * s[_A_ROW] + t * s[_A_COLUMN]
        panel = _ITEMSIZE * (terms * ROWS + _GAP)
        pack(a, s[_A_COLUMN], s[_A_ROW], lefts, ROWS, panel, terms, rows)
        for j in range(0, columns, COLUMNS):
            b = panels + (left + j) // COLUMNS * s[_PANEL] + t * COLUMNS * _ITEMSIZE
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
def _work(first, last, jobs, places):  # type: ignore[no-untyped-def]
    lefts = _room()
    for item in range(first, last):
        copying, number = item < jobs[0, _RESULTS], len(jobs) - 1
        while item < jobs[number, _COPIES if copying else _RESULTS]:
            number -= 1
        s = jobs[number]
        if copying:
            _copy(s, places, item - s[_COPIES], lefts)
        else:
            _block(s, places, item - s[_RESULTS], lefts)


def _cut(m: int, n: int, k: int) -> tuple[int, ...]:
    """The part of a line of the table that follows from the sizes of a product."""
    tiles, down = -(-m // ROWS), -(-m // _HIGH)
    down = -(-down // _EVEN) * _EVEN if down > 2 else down
    across = max(1, min(_BLOCKS // down, n // _WIDE))
    columns = -(-n // (across * COLUMNS)) * COLUMNS
    panel = _ITEMSIZE * (k * COLUMNS + _GAP)
    cut = (tiles, columns, -(-n // _GROUP), down, -(-n // columns))
    return (0, m, n, k, *cut, panel, panel * -(-n // COLUMNS))


class Plan:
    """What follows from the shapes and strides of the arrays of some jobs.

    Args:
        sizes: What `Jobs` notes of each.
    """

    def __init__(self, sizes: Iterable[tuple[Any, ...]]) -> None:
        copies = blocks = packed = work = 0
        lines: list[tuple[int, ...]] = []
        place = 1  # of the next array; the panels are the first one
        for a_shape, a_steps, b_shape, b_steps, c_steps, start_step in sizes:
            matrices, (*_, k, n) = 1 if len(b_shape) == 2 else b_shape[0], b_shape
            if a_shape is None:
                groups = -(-n // _GROUP)
                head = (copies, blocks, 1, 0, n, k, 0, 0, groups, *[0] * 8)
                lines.append((*head, place, 0, *b_steps, place + 1, *[0] * 5))
                place += 2
                work += k * n
            else:
                m, cut = a_shape[-2], _cut(a_shape[-2], n, k)
                *_, groups, down, across, _, bytes_of_matrix = cut
                lines.append(
                    (copies, blocks, *cut, place, *(0, *a_steps)[-3:])
                    + (place + 1, *(0, *b_steps)[-3:], place + 2, *(0, *c_steps[:-1])[-2:])
                    + (place + 3, start_step, packed)
                )
                place += 4
                blocks += matrices * down * across
                packed += matrices * bytes_of_matrix
                work += matrices * m * n * k
            copies += matrices * groups
        self._table = np.zeros((1 + len(lines), _PACKED + 1), np.int64)
        self._table[1:] = lines
        self._table[:, _RESULTS] += copies
        self._items = in_rounds(copies, blocks)
        self._packed = packed
        self._shared = work >= _SHARED_FROM
        self._places = struct.Struct(f"{place}q").pack

    def compute(self, *arrays: Any) -> None:
        """Computes the jobs.

        Args:
            arrays: For each product a, b, c and start, for each sum x and out.
        """
        packed = _scratch.packed
        if self._packed > packed.nbytes:
            packed = np.empty(self._packed // _ITEMSIZE, np.float32)
        places = self._places(id(packed), *map(id, arrays))
        workers = threads.count() if self._shared else 0
        _work.share(workers, self._items, self._table, words_of(places))


_plan = functools.lru_cache(1024)(Plan)


class _Scratch(threading.local):
    """Memory of a thread that is used again; what is large is not kept."""

    def __init__(self) -> None:
        self.packed = np.empty(1 << 18, np.float32)


_scratch = _Scratch()
_zeros = np.zeros(1 << 12, np.float32)


def zeros(count: int) -> Any:
    """A line of at least so many, to start a product from."""
    return _zeros if count <= _zeros.size else np.zeros(count, np.float32)


class Jobs:
    """Products and sums of columns of float32 that are computed together; none may be empty."""

    def __init__(self) -> None:
        self._sizes: list[tuple[Any, ...]] = []
        self._arrays: list[Any] = []

    def add_product(self, c: Any, a: Any, b: Any, start: Any = None) -> None:
        """c = start + a @ b.

        Args:
            c: f32[M, N] or f32[Z, M, N], rows in one piece.
            a: f32[M, K] or f32[Z, M, K] of any strides.
            b: f32[K, N] or f32[Z, K, N] of any strides.
            start: f32[N] in one piece, or `c` itself if it has two axes, or None.
        """
        shape, steps = b.shape, c.strides
        if start is None:
            start = zeros(shape[-1])
        self._sizes.append(
            (a.shape, a.strides, shape, b.strides, steps, steps[0] if start is c else 0)
        )
        self._arrays += (a, b, c, start)

    def add_sums(self, out: Any, x: Any) -> None:
        """out = the sums of x over its rows.

        Args:
            out: f32[N] in one piece.
            x: f32[M, N], rows in one piece.
        """
        self._sizes.append((None, None, x.shape, x.strides, None, 0))
        self._arrays += (x, out)

    def compute(self) -> None:
        """Computes all of them."""
        _plan(tuple(self._sizes)).compute(*self._arrays)
