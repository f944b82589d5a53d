"""Where the numbers of planes lie while a convolution or pooling goes plane by plane.

A plane is copied with its padding into a buffer, divided by the places modulo the stride: there the
number that output (a, b) needs for a tap lies at `a · line + b + shift`, whatever stride and
dilation are, so that neighbouring outputs need neighbouring numbers. Outputs are computed at that
distance as well, with some between the lines that nobody needs.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from .conv_plan import Axis, backward_axis, forward_axis

_TILE = 64  # outputs that are computed at once, at most
TAPS = 9  # that are summed at once for the weight's gradient
_HIGH = 512  # outputs, about, that are computed before they are copied
_CHUNK = 8192  # numbers of the source that are looked at together, about
_TERMS = 1 << 16  # products that are added in float32, about
_TASKS = 8  # that a convolution has if it can

_SIZES = """
images channels source step_across line plane buffer chunk
targets target target_height target_width stride_down stride_across lines all_lines beside
groups together sources source_step weight_target weight_source taps share blocks
""".split()
SIZES = np.dtype([(name, np.int64) for name in _SIZES])
"""images, channels, source: In the batch, in an image, numbers of a channel. step_across: From one
place of the target to the next. line: Places in a line of the buffer; plane: in all of a channel.
buffer: Numbers of the channels that are there at the same time, chunk.
targets, target, target_height, target_width: Channels of the target and their size. stride_down,
stride_across: From one place of a phase to the next there. beside: Phases that share a line.
lines: Numbers of a phase that are computed before they are copied; all_lines: of all phases.
groups: Of targets that are made of the same sources: `together` of them of `sources` sources, the
first of which is source_step behind that of the group before.
weight_target, weight_source: From a weight to that of the next target or source.
taps: Of the window, a multiple of 9. share, blocks: Images whose products are added up in float32,
and how many such blocks there are (gradient of the weight)."""
BAND = np.dtype(
    [(n, np.int64) for n in "taps first at count to place rows width wider complete".split()]
)
"""Some lines of a phase. taps: For each source; first: where the terms start in the tables. at,
count: Its places in the buffer. to: Where the sums go.
complete: Whether the phases beside it are there as well, so that all can be copied; place: where
the first line belongs; rows: lines; width: places in a line of the first phases, as many as
`wider`, of which the others have one less."""


class Plan(NamedTuple):
    """What the kernels are given besides arrays.

    Attributes:
        sizes: SIZES[1].
        bands: BAND[B].
        shifts: int32: where a term lies; those of one source of a chunk after the other.
        elements: int32: which weight behind the first a term has.
        moves: int32[M, 3]: from where in a source to where in the buffer how many numbers go.
    """

    sizes: np.ndarray
    bands: np.ndarray
    shifts: np.ndarray
    elements: np.ndarray
    moves: np.ndarray


class _Channels(NamedTuple):
    """How sources and targets belong together; as in SIZES."""

    channels: int
    targets: int
    groups: int
    together: int
    sources: int
    source_step: int
    weight_target: int
    weight_source: int


def _size(axis: Axis) -> int:
    """Places in a line of the buffer."""
    ends = [p.size + max((s // axis.step for _, s in p.taps), default=0) for p in axis.phases]
    return max(ends)


def _moves(axes: list[Axis], rows: int, line: int) -> np.ndarray:
    """The copies of a plane, divided by its places modulo the step."""
    y, x = axes
    moves = []
    for down, across in itertools.product(range(y.step), range(x.step)):
        lines = range((down - y.pad) % y.step, y.source, y.step)
        begin = max(0, -x.pad)
        begin += (across - begin - x.pad) % x.step
        place = (begin + x.pad) // x.step
        count = min(-(-(x.source - begin) // x.step), line - place)
        for row in lines:
            r = (row + y.pad - down) // y.step
            if 0 <= r < rows and count > 0:
                to = (down * x.step + across) * rows * line + r * line + place
                moves.append((row * x.source + begin, to, count))
    return np.array(moves, np.int32).reshape(-1, 3)


def _terms(axes: list[Axis], across: int, rows: int, line: int, chunk: range) -> Any:
    """Taps and first term of each phase, and the tables of shifts and elements.

    `chunk`: where the weights of its sources begin.
    """
    y, x = axes
    phases: list[tuple[int, int]] = []
    shifts: list[int] = []
    elements: list[int] = []
    for py, px in itertools.product(y.phases, x.phases):
        taps = list(itertools.product(py.taps, px.taps))
        phases.append((len(taps), len(shifts)))
        for source, begin in enumerate(chunk):
            for (i, a), (j, b) in taps:
                part = (source * y.step + a % y.step) * x.step + b % x.step
                shifts.append((part * rows + a // y.step) * line + b // x.step)
                elements.append(begin + i * across + j)
    return phases, shifts, elements


def _bands(axes: list[Axis], terms: Any, high: int, line: int, lines: int) -> np.ndarray:
    """Bands of up to `high` lines, those of phases beside each other one after the other."""
    y, x = axes
    bands, beside = [], len(x.phases)
    width = x.phases[0].size
    wider = sum(p.size == width for p in x.phases)
    for i, py in enumerate(y.phases):
        for a in range(0, py.size, high):
            rows = min(high, py.size - a)
            place = (py.first + a * y.stride) * x.target
            for j in range(beside):
                number = i * beside + j
                head = (*terms[number], a * line, rows * line, number * lines)
                bands.append((*head, place, rows, width, wider, j == beside - 1))
    return np.array(bands, BAND)


def _plan(axes: list[Axis], kernel: tuple[int, ...], images: int, c: _Channels) -> Plan:
    y, x = axes
    rows, line = _size(y), _size(x)
    plane = y.step * x.step * rows * line
    chunk = max(1, min(c.sources, _CHUNK // max(1, plane)))
    high = y.size if chunk < c.sources else min(y.size, max(1, _HIGH // line))
    starts = range(0, chunk * c.weight_source, c.weight_source)
    terms, shifts, elements = _terms(axes, kernel[1], rows, line, starts)
    lines = -(-high * line // _TILE) * _TILE
    taps = -(-len(shifts) // TAPS) * TAPS
    share = max(1, min(images, _TERMS // max(1, y.size * line)))
    g = c._asdict() | dict(images=images, source=y.source * x.source, line=line, plane=plane)
    g |= dict(step_across=x.step, buffer=chunk * plane + line + _TILE, chunk=chunk)
    g |= dict(target=y.target * x.target, target_height=y.target, target_width=x.target)
    g |= dict(stride_down=y.stride, stride_across=x.stride, beside=len(x.phases), lines=lines)
    g |= dict(all_lines=len(terms) * lines, taps=taps, share=share, blocks=-(-images // share))
    sizes = np.array([tuple(g[name] for name in _SIZES)], SIZES)
    shifts += [0] * (taps - len(shifts))
    lies, weights = (np.array(table, np.int32) for table in (shifts, elements))
    bands, moves = _bands(axes, terms, high, line, lines), _moves(axes, rows, line)
    return Plan(sizes, bands, lies, weights, moves)


def _of_channels(
    images: int, channels: int, targets: int, groups: int, steps: tuple[int, int]
) -> _Channels:
    sources, together = channels // groups, targets // groups
    if groups == 1:
        # All targets are made of the same sources, and are shared out.
        together = -(-targets // max(1, min(targets, _TASKS // max(1, images))))
        groups = -(-targets // together)
    step = 0 if sources == channels else sources
    return _Channels(channels, targets, groups, together, sources, step, *steps)


@functools.lru_cache(maxsize=256)
def forward_plan(x_shape: tuple[int, ...], outputs: int, window: Any, groups: int) -> Plan:
    """The plan for y_NOHW of x_NCHW, and for the gradient of the weight of each channel."""
    (n, c, *size), (kernel, stride, low, _, dilation) = x_shape, window
    numbers = zip(size, window.output(*size), kernel, stride, low, dilation, strict=True)
    axes, elements = [forward_axis(*axis) for axis in numbers], math.prod(kernel)
    steps = (c // groups * elements, elements)
    return _plan(axes, kernel, n, _of_channels(n, c, outputs, groups, steps))


@functools.lru_cache(maxsize=256)
def backward_plan(
    g_shape: tuple[int, ...], channels: int, size: tuple[int, ...], window: Any, groups: int
) -> Plan:
    """The plan for dx_NCHW of the given size, of g_NOHW."""
    (n, o, *outputs), (kernel, stride, low, _, dilation) = g_shape, window
    numbers = zip(outputs, size, kernel, stride, low, dilation, strict=True)
    axes, elements = [backward_axis(*axis) for axis in numbers], math.prod(kernel)
    # A weight has o, then a channel of its group, before the places of the window.
    steps = (elements, channels // groups * elements)
    if groups == channels:
        steps = (o // groups * elements, elements)
    return _plan(axes, kernel, n, _of_channels(n, o, channels, groups, steps))


@functools.lru_cache(maxsize=256)
def pool_plan(x_shape: tuple[int, ...], window: Any) -> tuple[Plan, np.ndarray]:
    """The plan for maxima over the windows of x_NCHW, and the first element of each, int32."""
    plan = forward_plan(x_shape, x_shape[1], window, x_shape[1])
    s = plan.sizes[0]
    height, line = int(s["target_height"]), int(s["line"])
    starts = np.zeros(-(-height * line // _TILE) * _TILE, np.int32)
    first = [
        np.maximum(0, -(-(low - np.arange(count) * step) // gap))
        for low, count, step, gap in zip(
            window.low, window.output(*x_shape[2:]), window.stride, window.dilation, strict=True
        )
    ]
    grid = starts[: height * line].reshape(height, line)
    grid[:, : len(first[1])] = first[0][:, None] * window.kernel[1] + first[1]
    return plan, starts
