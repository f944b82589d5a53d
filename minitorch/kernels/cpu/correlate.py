"""Convolution of float32 without patches: products of 6 × 16 sums over a small padded copy.

Each part of the batch (see `conv_plan`) is copied once with its padding and stays in the cache of
the core that works on it. Output and both gradients are sums of products of numbers from there with
numbers in lines of 16: weights, or the gradient of the outputs turned around. One pool of threads
does all of it, and the order of every sum follows from the shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import threads
from ..conv_plan import Plan, backward_plan, forward_plan, weight_plan
from ..winograd_plan import tiles_pay
from . import winograd
from .kernel import FAST, inlined, kernel
from .memory import copy
from .vector import (
    COLUMNS,
    ROWS,
    multiply_tile,
    put_columns,
    turn,
    turn_apart,
    turn_apart_onto,
)

_BLOCK = 96  # rows of the result that stay in the first cache, a multiple of ROWS and of 8
_TERMS = 192  # terms whose weights stay in the first cache
_SHARED_FROM = 1 << 19  # multiplications or numbers from which a second thread pays


@inlined
def _fill(buffer, x, s, image, count, group, start):  # type: ignore[no-untyped-def]
    """Copies lines from `start` on of some images with their padding."""
    for i in range(count * s.channels):
        m, c = i // s.channels, i % s.channels
        plane = ((image + m) * s.groups + group) * s.channels + c
        for z in range(s.span):
            depth = start + z - s.front
            for r in range(s.rows):
                row = r - s.top
                at = i * s.plane + (z * s.rows + r) * s.line
                out = buffer[at : at + s.line]
                if depth < 0 or depth >= s.depth or row < 0 or row >= s.height:
                    out[:] = 0
                    continue
                source = ((plane * s.depth + depth) * s.height + row) * s.width
                first = max(0, min(s.line, s.left))
                last = max(first, min(s.line, s.left + s.width))
                for k in range(first):
                    out[k] = 0
                middle, values = out[first:last], x[source + first - s.left :]
                for k in range(len(middle)):
                    middle[k] = values[k]
                for k in range(last, s.line):
                    out[k] = 0


@inlined
def _put_apart(lines, y, onto, place, step, places, first, count, columns, odd):  # type: ignore[no-untyped-def]
    """y[place + j·step + places[first + l]] = lines[l, j], most of which are two apart.

    The numbers of `onto` are added, if it has any.
    """
    whole, done, adds = columns - columns % 8, 0, onto.size > 0
    while done < count:
        run = 1
        while run < min(8, count - done):
            if places[first + done + run] != places[first + done] + 2 * run:
                break
            run += 1
        start, single = done + run - 8, whole
        if start < 0 or places[first + start] != places[first + start + 7] - 14:
            single = 0
        at = place + places[first + max(0, start)] - odd
        for j in range(0, single, 8):
            source, to = start * COLUMNS + j, at + j * step
            if adds:
                turn_apart_onto(lines, source, COLUMNS, y, to, step, odd, onto)
            else:
                turn_apart(lines, source, COLUMNS, y, to, step, odd)
        for k in range(done, done + run):
            for j in range(single, columns):
                to = place + j * step + places[first + k]
                value = lines[k * COLUMNS + j]
                y[to] = value + onto[to] if adds else value
        done += run


@inlined
def _put(lines, y, onto, s, place, first, count, per, phase, places, columns):  # type: ignore[no-untyped-def]
    """Writes the lines of the places from `first` on; `per` places belong to an image."""
    if s.apart:
        odd = phase % 2
        _put_apart(lines, y, onto, place, s.target, places, first, count, columns, odd)
        return
    if not s.dense:
        for j in range(columns):
            for p in range(count):
                y[place + j * s.target + places[first + p]] = lines[p * COLUMNS + j]
        return
    done = 0
    while done < count:
        image, rest = (first + done) // per, (first + done) % per
        now = min(count - done, per - rest)
        at = place + image * s.groups * s.columns * s.target + rest
        put_columns(lines, done * COLUMNS, y, at, now, s.target, columns)
        done += now


@inlined
def _pack_block(w, packed, block, s, taps):  # type: ignore[no-untyped-def]
    """Weights of a block of columns as a line of 16 for each term."""
    group, panel = block // s.panels, block % s.panels
    out, step = block * s.terms * COLUMNS, s.weight_step
    base = group * s.weight_group + panel * COLUMNS * step
    columns = min(COLUMNS, s.columns - panel * COLUMNS)
    for k in range(s.terms):
        line, source = packed[out + k * COLUMNS : out + (k + 1) * COLUMNS], base + taps[k]
        for j in range(columns):
            line[j] = w[source + j * step]
        for j in range(columns, COLUMNS):
            line[j] = 0


@inlined
def _correlate_part(  # type: ignore[no-untyped-def]
    task, x, bias, y, onto, packed, s, buffer, lines, phases, positions, places, shifts
):
    chunk, rest = task % s.chunks, task // s.chunks
    band, rest = rest % s.bands, rest // s.bands
    group, image = rest % s.groups, rest // s.groups * s.together
    images, q = min(s.together, s.images - image), band * s.band
    _fill(buffer, x, s, image, images, group, q * s.step)
    for phase in range(len(phases)):
        f = phases[phase]
        per = max(0, min(s.band, f.deep - q)) * f.across
        for panel in range(chunk * s.chunk, min(s.panels, (chunk + 1) * s.chunk)):
            column = group * s.columns + panel * COLUMNS
            columns = min(COLUMNS, s.columns - panel * COLUMNS)
            weights = ((group * s.panels + panel) * s.terms + f.shifts) * COLUMNS
            place = (image * s.groups * s.columns + column) * s.target
            place += (q * s.stride + f.line) * s.across
            for l0 in range(0, images * per, _BLOCK):
                n = min(_BLOCK, images * per - l0)
                given = bias.size > 0 or f.terms == 0
                if given:
                    for j in range(COLUMNS):
                        there = j < min(columns, bias.size)
                        lines[j] = bias[column + j] if there else np.float32(0)
                    done = 1
                    while done < n:
                        now = min(done, n - done)
                        copy(lines, 0, lines, done * COLUMNS, now * COLUMNS)
                        done += now
                for t in range(0, f.terms, _TERMS):
                    now, add = min(_TERMS, f.terms - t), given or t > 0
                    b_at = weights + t * COLUMNS
                    for p in range(0, n, ROWS):
                        a_at, out_at = f.positions + l0 + p, p * COLUMNS
                        multiply_tile(
                            *(buffer, positions, a_at, shifts, f.shifts + t, now),
                            *(packed, b_at, lines, out_at, add),
                        )
                _put(lines, y, onto, s, place, l0, n, per, phase, places[f.positions :], columns)


@kernel(written_out=True)
def _pack(first, last, w, packed, sizes, taps):  # type: ignore[no-untyped-def]
    for block in range(first, last):
        _pack_block(w, packed, block, sizes[0], taps)


@kernel(written_out=True)
def _correlate(first, last, x, bias, y, onto, packed, sizes, phases, positions, places, shifts):  # type: ignore[no-untyped-def]
    s = sizes[0]
    buffer = np.empty(s.together * s.channels * s.plane, np.float32)
    lines = np.empty(_BLOCK * COLUMNS, np.float32)
    for task in range(first, last):
        _correlate_part(
            task, x, bias, y, onto, packed, s, buffer, lines, phases, positions, places, shifts
        )


@inlined
def _turn_around(g, lines, at, place, s, count, columns):  # type: ignore[no-untyped-def]
    """lines[at + l, j] = g[place + j·target + l], in lines of 16."""
    for j in range(0, COLUMNS, 8):
        done = 0
        if j + 8 <= columns:
            while done + 8 <= count:
                source = place + j * s.target + done
                turn(g, source, s.target, lines, (at + done) * COLUMNS + j, COLUMNS)
                done += 8
        for k in range(j, j + 8):
            for p in range(done, count):
                value = g[place + k * s.target + p] if k < columns else np.float32(0)
                lines[(at + p) * COLUMNS + k] = value


@inlined
def _add_part(x, g, sums, sizes, buffer, lines, piece, at, phases, positions, shifts):  # type: ignore[no-untyped-def]
    """Adds to `sums` what a part gives; `at`: group, first and last block of columns."""
    s, f = sizes[0], phases[0]
    group, start, stop = at
    band, image = piece % s.bands, piece // s.bands * s.together
    images, q = min(s.together, s.images - image), band * s.band
    _fill(buffer, x, s, image, images, group, q * s.step)
    per = min(s.band, f.deep - q) * f.across
    for panel in range(start, stop):
        column = group * s.columns + panel * COLUMNS
        columns = min(COLUMNS, s.columns - panel * COLUMNS)
        for m in range(images):
            place = ((image + m) * s.groups * s.columns + column) * s.target + q * s.across
            _turn_around(g, lines, m * per, place, s, per, columns)
        for k in range(0, s.terms, ROWS):
            out_at = ((panel - start) * (s.terms + ROWS) + k) * COLUMNS
            multiply_tile(
                buffer, shifts, k, positions, 0, images * per, lines, 0, sums, out_at, True
            )


@inlined
def _weight_part(task, x, g, sums, sizes, buffer, lines, phases, positions, shifts):  # type: ignore[no-untyped-def]
    """The sums of one block of parts for some blocks of columns."""
    s = sizes[0]
    chunk, rest = task % s.chunks, task // s.chunks
    group, block = rest % s.groups, rest // s.groups
    at = (group, chunk * s.chunk, min(s.panels, (chunk + 1) * s.chunk))
    size = (s.terms + ROWS) * COLUMNS
    begin = ((block * s.groups + group) * s.panels + at[1]) * size
    mine = sums[begin : begin + (at[2] - at[1]) * size]
    mine[:] = 0
    parts = (s.images + s.together - 1) // s.together * s.bands
    share = (parts + s.blocks - 1) // s.blocks
    for piece in range(block * share, min(parts, (block + 1) * share)):
        _add_part(x, g, mine, sizes, buffer, lines, piece, at, phases, positions, shifts)


@inlined
def _finish_block(place, sums, dw, s):  # type: ignore[no-untyped-def]
    """Adds the sums of all blocks and turns them: dw[j, k] of lines of 16 for each k."""
    group, panel = place // s.panels, place % s.panels
    columns, terms = min(COLUMNS, s.columns - panel * COLUMNS), s.terms
    out = (group * s.columns + panel * COLUMNS) * terms
    size = (terms + ROWS) * COLUMNS
    total = sums[place * size : (place + 1) * size]
    for block in range(1, s.blocks):
        more = sums[(block * s.groups * s.panels + place) * size :]
        for i in range(len(total)):
            total[i] += more[i]
    put_columns(total, 0, dw, out, terms, terms, columns)


@kernel(written_out=True)
def _weight_sums(first, last, x, g, sums, sizes, phases, positions, shifts):  # type: ignore[no-untyped-def]
    s, f = sizes[0], phases[0]
    buffer = np.empty(s.together * s.channels * s.plane, np.float32)
    lines = np.empty(s.together * min(s.band, f.deep) * f.across * COLUMNS, np.float32)
    for task in range(first, last):
        _weight_part(task, x, g, sums, sizes, buffer, lines, phases, positions, shifts)


@kernel(written_out=True)
def _finish(first, last, sums, dw, sizes):  # type: ignore[no-untyped-def]
    for place in range(first, last):
        _finish_block(place, sums, dw, sizes[0])


@kernel(fastmath=FAST)
def _plane_sums(first, last, g, sums):  # type: ignore[no-untyped-def]
    for p in range(first, last):
        total = np.float32(0)
        for k in range(g.shape[1]):
            total += g[p, k]
        sums[p] = total


_NONE = np.empty(0, np.float32)


def _flat(a: Any) -> Any:
    return np.ascontiguousarray(a).reshape(-1)


def _workers(work: int) -> int:
    return threads.count() if work >= _SHARED_FROM else 0


def _correlation(x: Any, w: Any, bias: Any, y: Any, plan: Plan, onto: Any = _NONE) -> Any:
    packed = np.empty(plan.packed, np.float32)
    _pack.share(_workers(plan.packed), plan.blocks, _flat(w), packed, plan.sizes, plan.taps)
    tables = (plan.sizes, plan.phases, plan.positions, plan.places, plan.shifts)
    bias = _NONE if bias is None else _flat(bias)
    given = (_flat(x), bias, y.reshape(-1), onto, packed, *tables)
    _correlate.share(_workers(plan.work), plan.tasks, *given)
    return y


def forward(x: Any, weight: Any, bias: Any, window: Any, groups: int) -> Any:
    """y_NO… of x_NC…, with two or three axes."""
    outputs = window.output(*x.shape[2:])
    if tiles_pay(x.shape[0], x.shape[1], len(weight), outputs, window, groups):
        y = winograd.forward(x, weight, bias, window)
        if y is not None:
            return y
    plan = forward_plan(x.shape, weight.shape, window, groups)
    y = np.empty((len(x), len(weight), *outputs), np.float32)
    return _correlation(x, weight, bias, y, plan)


def input_gradient(
    g: Any, weight: Any, window: Any, groups: int, size: tuple[int, ...], onto: Any = None
) -> Any:
    """The gradient of x_NC…, of the given size, added to `onto`."""
    flat = _NONE if onto is None else _flat(onto)
    if tiles_pay(g.shape[0], g.shape[1], weight.shape[1], size, window, groups):
        dx = winograd.input_gradient(g, weight, window, size, flat)
        if dx is not None:
            return dx
    plan = backward_plan(g.shape, weight.shape, window, groups, size)
    dx = np.empty((len(g), weight.shape[1] * groups, *size), np.float32)
    adds = plan.sizes[0]["apart"]
    _correlation(g, weight, None, dx, plan, flat if adds else _NONE)
    return dx if onto is None or adds else np.add(dx, onto, out=dx)


def weight_gradient(g: Any, x: Any, weight: Any, window: Any, groups: int) -> Any:
    """The gradient of the weight."""
    if tiles_pay(x.shape[0], x.shape[1], len(weight), g.shape[2:], window, groups):
        dw = winograd.weight_gradient(g, x, window)
        if dw is not None:
            return dw
    plan = weight_plan(x.shape, weight.shape, window, groups)
    sums, dw = np.empty(plan.sums, np.float32), np.empty(weight.shape, np.float32)
    tables = (plan.sizes, plan.phases, plan.positions, plan.shifts)
    _weight_sums.share(_workers(plan.work), plan.tasks, _flat(x), _flat(g), sums, *tables)
    _finish.share(_workers(plan.sums), plan.blocks, sums, dw.reshape(-1), plan.sizes)
    return dw


def bias_gradient(g: Any) -> Any:
    """The sums of the channels of g_NO…."""
    n, o = g.shape[:2]
    sums = np.empty(n * o, np.float32)
    _plane_sums(n * o, np.ascontiguousarray(g).reshape(n * o, -1), sums)
    return np.add.reduce(sums.reshape(n, o), 0)
