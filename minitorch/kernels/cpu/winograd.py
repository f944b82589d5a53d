"""Convolution of float32 images by 3 × 3 with a quarter of the multiplications.

Four by four outputs come of a tile of six by six inputs: `y = Aᵀ [(G w Gᵀ) ⊙ (Bᵀ d B)] A`. In
the middle each of the 36 places is a matrix product over channels, by `vector.multiply_tile`. The
gradient of the input is a convolution with the weights turned around; that of the weight is the
same formula read backwards, `Gᵀ [Σ (A g Aᵀ) ⊙ (Bᵀ d B)] G` with a sum over all tiles.

The points are 0, ±√½, ±√2 and ∞, with which the error is about five times that of a plain sum: a
millionth of the result. A number that is not finite would spread over its tile; the results say
whether there is one, and then the caller takes the plain way.

Source: A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..winograd_plan import (
    ALL,
    GATHER,
    IN,
    LANES,
    MULTIPLY,
    OUT,
    PLACES,
    SPREAD,
    Plan,
    plan_tiles,
)
from .kernel import inlined, kernel
from .lines import add_line
from .memory import clear, copy
from .sandwich import checked_sandwich, sandwich
from .vector import COLUMNS, ROWS, multiply_tile, put_columns, turn

_TERMS = 256  # of a sum, whose weights stay in the first cache
_SIX = ROWS * COLUMNS  # numbers of a tile of the product

_A, _B = math.sqrt(0.5), math.sqrt(2)
# Rows and columns of six are those of the points 0, a, -a, b, -b, ∞. In "parts", ±p are replaced by
# what is even in p and what is odd.
_PAIRS = np.diag([1.0, 1, -1, 1, -1, 1])
_PAIRS[1, 2] = _PAIRS[2, 1] = _PAIRS[3, 4] = _PAIRS[4, 3] = 1
_SLOPES = np.diag([1, 1, _A, 1, _B, 1])
_INPUT_PARTS = np.array(
    [
        [1, 0, -2.5, 0, 1, 0],
        [0, 0, -2, 0, 1, 0],
        [0, -2, 0, 1, 0, 0],
        [0, 0, -0.5, 0, 1, 0],
        [0, -0.5, 0, 1, 0, 0],
        [0, 1, 0, -2.5, 0, 1],
    ]
)
_OUTPUT_PARTS = np.array(
    [
        [1, 1, 0, 1, 0, 0],
        [0, 0, _A, 0, _B, 0],
        [0, _A**2, 0, _B**2, 0, 0],
        [0, 0, _A**3, 0, _B**3, 1],
    ]
)
_WEIGHT_PARTS = np.array(
    [
        [1, 0, 0],
        [-1 / 1.5, 0, -(_A**2) / 1.5],
        [0, -_A / 1.5, 0],
        [1 / 6, 0, _B**2 / 6],
        [0, _B / 6, 0],
        [0, 0, 1],
    ]
)
_spread_input = sandwich(_INPUT_PARTS, _PAIRS @ _SLOPES)  # Bᵀ d B
_spread_weight = sandwich(_WEIGHT_PARTS, _PAIRS)  # G w Gᵀ
_gather_output = checked_sandwich(_PAIRS, _OUTPUT_PARTS)  # Aᵀ m A
_spread_gradient = sandwich(_OUTPUT_PARTS.T, _PAIRS)  # A g Aᵀ
_gather_weight = checked_sandwich(_PAIRS, _WEIGHT_PARTS.T)  # Gᵀ s G


@inlined
def _fill(buffer, x, image, y, lines, line, left, channels, deep, height, width):  # type: ignore[no-untyped-def]
    """buffer[r, p, c] = x[image, c, y + r, p - left], 0 outside of the image."""
    plane, size = height * width, line * deep
    first = min(line, max(0, left))
    last = max(first, min(line, left + width))
    top, bottom = max(0, min(lines, -y)), max(0, min(lines, height - y))
    whole = channels - channels % LANES
    start = (image * channels * height + y) * width - left
    for c in range(0, channels, LANES):
        for r in range(top, bottom):
            source, target = start + c * plane + r * width, r * size + c
            p = first
            if c < whole:
                # The last eight may reach over the end of the line, where zeros come afterwards.
                while p < last and p + LANES <= line:
                    if source + p + (LANES - 1) * plane + LANES > x.size:
                        break
                    turn(x, source + p, plane, buffer, target + p * deep, deep)
                    p += LANES
            while p < last:
                for k in range(min(LANES, channels - c)):
                    buffer[target + p * deep + k] = x[source + k * plane + p]
                p += 1
    for r in range(lines):
        if r < top or r >= bottom:
            clear(buffer, r * size, size)
        else:
            clear(buffer, r * size, first * deep)
            clear(buffer, r * size + last * deep, size - last * deep)


@inlined
def _spread_rows(x, spread, s, first, last, base, of_gradient):  # type: ignore[no-untyped-def]
    """Bᵀ d B, or A g Aᵀ, of some rows of tiles; the row `base` comes first in `spread`.

    Channels of d lie together, those of g in lines of 16.
    """
    lines, line, left, top, channels, deep = IN, s.line, s.left, s.top, s.channels, s.deep
    height, width, step = s.height, s.width, s.spread_step
    if of_gradient:
        lines, line, left, top, channels = OUT, OUT * s.across, 0, 0, s.columns
        deep, height, width = s.product_deep, s.out_height, s.out_width
        step = s.product_step
    buffer = np.empty(lines * line * deep, np.float32)
    for i in range(first, last):
        image, y = i // s.tile_rows, OUT * (i % s.tile_rows) - top
        _fill(buffer, x, image, y, lines, line, left, channels, deep, height, width)
        for tile in range(s.across):
            at, place = (i - base) * s.across + tile, OUT * tile * deep
            for c in range(0, channels, LANES):
                if of_gradient:
                    to = (at + c // COLUMNS * s.tiles) * COLUMNS + c % COLUMNS
                    _spread_gradient(
                        *(buffer, place + c, line * deep, deep), *(spread, to, IN * step, step)
                    )
                else:
                    to = at * deep + c
                    _spread_input(
                        *(buffer, place + c, line * deep, deep), *(spread, to, IN * step, step)
                    )


@kernel(written_out=True)
def _pack(first, last, w, packed, sizes):  # type: ignore[no-untyped-def]
    """packed[i·6 + j, panel, c, :] of w: 16 columns for each channel of some panels."""
    s = sizes[0]
    lines = np.zeros(9 * COLUMNS, np.float32)
    step = s.packed_step
    for item in range(first * s.channels, last * s.channels):
        panel, c = item // s.channels, item % s.channels
        columns = min(COLUMNS, s.columns - panel * COLUMNS)
        source = c * s.weight_channel + panel * COLUMNS * s.weight_column
        for k in range(9):
            at = source + (8 - k if s.turned else k)
            for j in range(columns):
                lines[k * COLUMNS + j] = w[at + j * s.weight_column]
        for half in range(0, COLUMNS, LANES):
            out = item * COLUMNS + half
            _spread_weight(lines, half, 3 * COLUMNS, COLUMNS, packed, out, IN * step, step)


@inlined
def _put(lines, turned, y, onto, s, image, row, column, columns):  # type: ignore[no-untyped-def]
    """Writes four lines of 8 columns where they belong, in one piece for each column.

    What is there in `onto` is added, if it has numbers.
    """
    size, plane = OUT * s.wide, s.out_height * s.out_width
    for p in range(0, size, LANES):
        turn(lines, p * LANES, LANES, turned, p, size)
    count = min(OUT, s.out_height - row * OUT)
    at = (image * s.columns + column) * plane + row * OUT * s.out_width
    for k in range(columns):
        source, to, high, wide = k * size, at + k * plane, count, s.out_width
        if s.wide == s.out_width:
            high, wide = 1, count * s.wide
        for r in range(high):
            begin, end = source + r * s.wide, to + r * wide
            if onto.size > 0:
                add_line(onto, end, wide, np.float32(1), turned, begin, True)
            copy(turned, begin, y, end, wide)


@inlined
def _multiply(spread, packed, products, s, rows, terms, first, last, tiles):  # type: ignore[no-untyped-def]
    """products[place, panel, tile, :] = spread[place, tile, :] @ packed[place, panel]."""
    for place in range(first, last):
        a = spread[place * s.spread_step :]
        for k in range(0, s.channels, _TERMS):
            for panel in range(s.panels):
                b_at = place * s.packed_step + (panel * s.channels + k) * COLUMNS
                for tile in range(0, tiles, ROWS):
                    out_at = place * s.product_step + (panel * s.tiles + tile) * COLUMNS
                    count = min(_TERMS, s.channels - k)
                    multiply_tile(
                        a, rows, tile, terms, k, count, packed, b_at, products, out_at, k > 0
                    )


@inlined
def _tell(seen, count, flaw):  # type: ignore[no-untyped-def]
    """Threads may meet here: whoever writes, writes NaN."""
    for k in range(count):
        if seen[k] != seen[k]:
            flaw[0] = np.nan


@inlined
def _gather_rows(products, bias, y, onto, flaw, s, first, last, base):  # type: ignore[no-untyped-def]
    """Aᵀ m A of some rows of tiles."""
    lines = np.empty(OUT * s.wide * LANES, np.float32)
    turned = np.empty(OUT * s.wide * LANES, np.float32)
    step, seen = s.product_step, np.zeros(LANES, np.float32)
    for i in range(first, last):
        image, row = i // s.tile_rows, i % s.tile_rows
        for column in range(0, s.columns, LANES):
            at = column // COLUMNS * s.tiles * COLUMNS + column % COLUMNS
            at += (i - base) * s.across * COLUMNS
            for tile in range(s.across):
                _gather_output(
                    *(products, at + tile * COLUMNS, IN * step, step),
                    *(lines, tile * OUT * LANES, s.wide * LANES, LANES),
                    *(bias, column, seen),
                )
            count = min(LANES, s.columns - column)
            _put(lines, turned, y, onto, s, image, row, column, count)
    _tell(seen, LANES, flaw)


@kernel(written_out=True)
def _convolve_items(  # type: ignore[no-untyped-def]
    first, last, x, bias, y, onto, packed, flaw, spread, products, sizes, rows, terms
):
    """A step for some rows of tiles or some of the 36 places, or all steps for some rows."""
    s = sizes[0]
    step, base = last - first, s.first_row
    if s.step == ALL:
        step = s.in_block
        spread = np.empty(PLACES * s.spread_step, np.float32)
        products = np.empty(PLACES * s.product_step, np.float32)
    for i in range(first, last, step):
        stop, place, end, tiles = min(last, i + step), i, last, (s.last_row - base) * s.across
        if s.step == ALL:
            base, place, end, tiles = i, 0, PLACES, (stop - i) * s.across
        if s.step & SPREAD:
            _spread_rows(x, spread, s, s.first_row + i, s.first_row + stop, base, False)
        if s.step & MULTIPLY:
            _multiply(spread, packed, products, s, rows, terms, place, end, tiles)
        if s.step & GATHER:
            low, high = s.first_row + i, s.first_row + stop
            _gather_rows(products, bias, y, onto, flaw, s, low, high, base)


@inlined
def _sum(spread, gradient, sums, at, s, rows, terms, first, last, tiles, add):  # type: ignore[no-untyped-def]
    """sums[panel, c // 6, place, c % 6, :] (+)= Σ of the tiles' products, for some places."""
    for place in range(first, last):
        a = spread[place * s.spread_step :]
        for k in range(0, tiles, _TERMS):
            count, more = min(_TERMS, tiles - k), add or k > 0
            for panel in range(s.panels):
                b_at = place * s.product_step + (panel * s.tiles + k) * COLUMNS
                for six in range(s.sixes):
                    out = at + ((panel * s.sixes + six) * PLACES + place) * _SIX
                    c = six * ROWS
                    multiply_tile(a, terms, c, rows, k, count, gradient, b_at, sums, out, more)


@kernel(written_out=True)
def _weight_items(first, last, x, g, sums, spread, gradient, sizes, rows, terms):  # type: ignore[no-untyped-def]
    """A step for some rows of tiles or some of the 36 places, or all steps for some blocks."""
    s, base, at = sizes[0], sizes[0].first_row, 0
    apart, share = s.step == ALL, (s.rows + s.blocks - 1) // s.blocks
    if apart:
        spread = np.empty(PLACES * s.spread_step + ROWS, np.float32)
        gradient = np.empty(PLACES * s.product_step, np.float32)
    for block in range(first, last if apart else first + 1):
        begin, end, step, place, to = first, last, last - first, first, last
        if apart:
            begin, end, step = block * share, min(s.rows, (block + 1) * share), s.in_block
            at, place, to = block * s.panels * s.sixes * PLACES * _SIX, 0, PLACES
        for i in range(begin, end, step):
            stop, tiles, add = min(end, i + step), (s.last_row - base) * s.across, base > 0
            if apart:
                base, tiles, add = i, (stop - i) * s.across, i > begin
            if s.step & SPREAD:
                for of_gradient in range(2):
                    a, out = (g, gradient) if of_gradient else (x, spread)
                    low, high = s.first_row + i, s.first_row + stop
                    _spread_rows(a, out, s, low, high, base, of_gradient)
            if s.step & MULTIPLY:
                _sum(spread, gradient, sums, at, s, rows, terms, place, to, tiles, add)


@kernel(written_out=True)
def _gather_weights(first, last, sums, dw, zeros, flaw, sizes):  # type: ignore[no-untyped-def]
    """The gradient of the weights of six channels and 16 columns at a time: Gᵀ s G."""
    s, part = sizes[0], PLACES * _SIX
    lines = np.empty(ROWS * 9 * COLUMNS, np.float32)
    seen = np.zeros(s.panels * COLUMNS, np.float32)
    for item in range(first * s.panels, last * s.panels):
        six, panel = item // s.panels, item % s.panels
        at = (panel * s.sixes + six) * part
        for block in range(1, s.blocks):
            more = at + block * s.panels * s.sixes * part
            add_line(sums, more, part, np.float32(1), sums, at, True)
        count = min(ROWS, s.channels - six * ROWS)
        for k in range(0, count * COLUMNS, LANES):
            half, to = k % COLUMNS, k // COLUMNS * 9 * COLUMNS + k % COLUMNS
            _gather_weight(
                *(sums, at + k, IN * _SIX, _SIX, lines, to, 3 * COLUMNS, COLUMNS),
                *(zeros, 0, seen[panel * COLUMNS + half :]),
            )
        to, step = (panel * COLUMNS * s.channels + six * ROWS) * 9, s.channels * 9
        columns = min(COLUMNS, s.columns - panel * COLUMNS)
        put_columns(lines, 0, dw, to, count * 9, step, columns)
    _tell(seen, s.columns, flaw)  # what lies behind the columns is nobody's


def _flat(a: Any) -> Any:
    return np.ascontiguousarray(a).reshape(-1)


_NONE = np.empty(0, np.float32)


def _convolve(x: Any, w: Any, bias: Any, onto: Any, plan: Plan) -> Any:
    """The target added to `onto`, or None if it has a number that is not finite."""
    f, rows, terms = plan.facts, plan.rows, plan.terms
    y, packed = np.empty(f.target, np.float32), np.empty(f.packed, np.float32)
    _pack(f.panels, _flat(w), packed, plan.sizes)
    added = plan.zeros
    if bias is not None:
        added = added.copy()
        added[: len(bias)] = bias
    flaw, spread, products = np.zeros(1, np.float32), _NONE, _NONE
    if not f.at_once:
        spread, products = np.empty(f.spread, np.float32), np.empty(f.product, np.float32)
    given = (_flat(x), added, y.reshape(-1), onto, packed, flaw, spread, products)
    for items, sizes in plan.steps:
        _convolve_items(items, *given, sizes, rows, terms)
    return y if flaw.item() == 0 else None


def forward(x: Any, weight: Any, bias: Any, window: Any) -> Any:
    """y_NOHW of x_NCHW, or None if it has a number that is not finite."""
    plan = plan_tiles(x.shape, len(weight), window.low, window.output(*x.shape[2:]), "output")
    return _convolve(x, weight, bias, _NONE, plan)


def input_gradient(g: Any, weight: Any, window: Any, size: tuple[int, ...], onto: Any) -> Any:
    """The gradient of x_NCHW of the given size, or None if it has a number that is not finite.

    Added to the numbers of `onto`, a line that may be empty.
    """
    top, left = window.low
    plan = plan_tiles(g.shape, weight.shape[1], (2 - top, 2 - left), size, "input")
    return _convolve(g, weight, None, onto, plan)


def weight_gradient(g: Any, x: Any, window: Any) -> Any:
    """The gradient of the weight, or None if it has a number that is not finite."""
    plan = plan_tiles(x.shape, g.shape[1], window.low, g.shape[2:], "weight")
    f = plan.facts
    sums = np.empty(f.sums, np.float32)
    dw = np.empty((g.shape[1], x.shape[1], 3, 3), np.float32)
    flaw, spread, product = np.zeros(1, np.float32), _NONE, _NONE
    if not f.at_once:
        spread, product = np.empty(f.spread, np.float32), np.empty(f.product, np.float32)
    given = (_flat(x), _flat(g), sums, spread, product)
    for items, sizes in plan.steps:
        _weight_items(items, *given, sizes, plan.rows, plan.terms)
    _gather_weights(f.sixes, sums, dw.reshape(-1), plan.zeros, flaw, plan.sizes)
    return dw if flaw.item() == 0 else None
