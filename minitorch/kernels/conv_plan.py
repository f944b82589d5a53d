"""How a convolution is divided: parts that fit a core's cache, and where their numbers lie.

A part is some images, or some rows of one image, of one group of channels. Its input is copied
with its padding into a small buffer; there the number that output l needs for term k of its sum (a
channel and an element of the window) lies at `positions[l] + shifts[k]`, whatever stride and
dilation are. The gradient of the input is the same with the roles of input and output exchanged:
the outputs of a phase (their places modulo the stride) see the same elements of the window.

Everything follows from the shapes alone, so that results do not depend on the machine.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .winograd_plan import tiles_cost, tiles_pay

SMALL = 1 << 13  # numbers of patches from which kernels pay
_BUFFER = 49152  # numbers in the buffer of a part: 192 KB, less than half of a usual second cache
_OUTPUTS = 240  # places from which a part is worth its overhead
_TASKS = 8  # parts that a convolution has if it can, to be shared out
_COLUMNS, _ROWS = 16, 6  # of the products
_CHUNK = 4  # blocks of 16 columns that a task of the weight's gradient has
_MANY = 400_000  # weights, which do not stay in the cache of a core
# In multiplications: what it costs to read such a weight, to make and use a number of patches, and
# to put a number of an image beside those of the other images and back; all measured.
_READ, _PATCH, _BESIDE = 7, 40, 40

Three = tuple[int, int, int]


_SIZES = """
images groups channels columns depth height width front top left span rows line plane together band
bands step stride target across panels chunk chunks blocks tasks terms weight_step
weight_group dense apart
""".split()
_PHASE = "terms shifts deep across positions line".split()
SIZES = np.dtype([(name, np.int64) for name in _SIZES])
"""What the kernels are told, in one record; `channels` are summed over and `columns` come out.

images, groups: In the batch; groups of channels.
channels, columns: Of the source and of the target, in each group.
depth, height, width: Size of the source. front, top, left: Padding before it.
span, rows, line: Size of a full part in the buffer. plane: From one channel to the next there.
together: Images in a part. band: Places of its first axis, which are all where images are together.
bands: Parts along the first axis.
step, stride: Lines of source and target from one place of the first axis to the next.
target, across: Places in a channel of the target and in a line of its first axis.
panels: Blocks of 16 columns in a group. chunk: Of these in a task. chunks: Such tasks.
blocks: Sums that are formed apart from each other (weight's gradient). tasks: All there are.
terms: Of all phases. weight_step: From the weight of a column to that of the next one.
weight_group: Weights in a group. dense: Whether places and target have the same order.
apart: Whether phases share lines of the target two by two, all of it.
"""
PHASE = np.dtype([(name, np.int64) for name in _PHASE])
"""terms: In a sum. shifts: Where they start in the table. deep, across: Places on the first axis
and on the others. positions: Where they start in the table. line: The first line of the target."""


class Plan(NamedTuple):
    """What the kernels are given besides arrays.

    Attributes:
        sizes: SIZES[1].
        phases: PHASE[P].
        positions: int32: where the places of a part lie in the buffer, for one phase after the
            other, each with a few more for the last rows of the last product.
        places: int32: where they lie in the target.
        shifts: int32: what the terms add to the positions.
        taps: int32: where the weight of a term and the first column lies.
        work: Multiplications.
        blocks: Blocks of 16 columns of all groups.
        packed: Weights in these.
        tasks: All there are.
        sums: Of the weight's gradient.
    """

    sizes: np.ndarray
    phases: np.ndarray
    positions: np.ndarray
    places: np.ndarray
    shifts: np.ndarray
    taps: np.ndarray
    work: int
    blocks: int
    packed: int
    tasks: int
    sums: int = 0


class _Phase(NamedTuple):
    """Of one axis: outputs `first + stride·q` for q < size see `taps`: (element, shift)."""

    first: int
    size: int
    taps: tuple[tuple[int, int], ...]


class Axis(NamedTuple):
    source: int
    target: int
    pad: int
    step: int
    stride: int
    phases: tuple[_Phase, ...]

    @property
    def size(self) -> int:
        return max(phase.size for phase in self.phases)

    @property
    def reach(self) -> int:
        return 1 + max((s for phase in self.phases for _, s in phase.taps), default=0)


def forward_axis(source: int, target: int, k: int, s: int, low: int, d: int) -> Axis:
    taps = tuple((i, i * d) for i in range(k))
    return Axis(source, target, low, s, 1, (_Phase(0, target, taps),))


def backward_axis(source: int, target: int, k: int, s: int, low: int, d: int) -> Axis:
    found = []
    for first in range(min(s, target)):
        shifts = [(i, first + low - i * d) for i in range(k)]
        taps = tuple((i, shift // s) for i, shift in shifts if shift % s == 0)
        found.append(_Phase(first, -(-(target - first) // s), taps))
    pad = -min((shift for phase in found for _, shift in phase.taps), default=0)
    phases = tuple(p._replace(taps=tuple((i, j + pad) for i, j in p.taps)) for p in found)
    return Axis(source, target, pad, 1, s, phases)


def _three(values: tuple[int, ...], filler: int) -> Three:
    """Numbers of two axes as those of three: the first, a filler and the last."""
    return (values[0], filler, values[1]) if len(values) == 2 else values  # type: ignore[return-value]


def _divide(axes: list[Axis], images: int, channels: int, panels: int, groups: int) -> dict:
    """How the batch is divided."""
    first, *others = axes
    rows, line = ((a.size - 1) * a.step + a.reach for a in others)
    across = math.prod(a.size for a in others)

    def buffer(band: int) -> int:
        return channels * ((band - 1) * first.step + first.reach) * rows * line

    band, together = first.size, 1
    if buffer(band) <= _BUFFER:
        room = _BUFFER // max(1, buffer(band))
        together = max(1, min(images, room, -(-_OUTPUTS // (band * across))))
        together = min(together, max(1, images * groups // _TASKS))
    else:
        while band > 1 and buffer(band) > _BUFFER:
            band -= 1
    while together == 1 and band > 1:
        tasks = images * groups * -(-first.size // band)
        if tasks >= _TASKS // 2 or band * across < 2 * _OUTPUTS:
            break
        band = (band + 1) // 2
    bands = -(-first.size // band)
    band = -(-first.size // bands)
    tasks = -(-images // together) * groups * bands
    chunk = -(-panels // min(panels, max(1, _TASKS // 2 // max(1, tasks))))
    chunks = -(-panels // chunk)
    span = (band - 1) * first.step + first.reach
    plane = span * rows * line
    plane += 16 * (plane % 32 == 0)  # else channels would meet in the same lines of the cache
    sizes = dict(span=span, rows=rows, line=line, plane=plane, together=together, band=band)
    return sizes | dict(bands=bands, chunk=chunk, chunks=chunks, blocks=1, tasks=tasks * chunks)


def _table(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts).astype(np.int32)


def _plan(
    axes: list[Axis],
    kernel: Three,
    images: int,
    groups: int,
    channels: int,
    columns: int,
    steps: Three,
) -> Plan:
    """`steps`: from the weight of one channel, column and element of the window to the next."""
    z, y, x = axes
    panels = -(-columns // _COLUMNS)
    g = _divide(axes, images, channels, panels, groups)
    across, target = x.target * y.target, x.target * y.target * z.target
    phases, positions, places, shifts, taps = [], [], [], [], []
    places_before = terms_before = work = 0
    channel, lead = np.arange(channels)[:, None], np.arange(g["together"])[:, None]
    for pz, py, px in itertools.product(z.phases, y.phases, x.phases):
        inside = list(itertools.product(pz.taps, py.taps, px.taps))
        near = [(a[1] * g["rows"] + b[1]) * g["line"] + c[1] for a, b, c in inside]
        elements = [(a[0] * kernel[1] + b[0]) * kernel[2] + c[0] for a, b, c in inside]
        terms, wide = channels * len(inside), py.size * px.size
        phases.append((terms, terms_before, pz.size, wide, places_before, pz.first))
        shifts.append((channel * g["plane"] + np.array(near, int)).ravel())
        taps.append((channel * steps[0] + steps[2] * np.array(elements, int)).ravel())
        counts = min(g["band"], pz.size), py.size, px.size
        q = np.ix_(*(np.arange(n) for n in counts))
        at = (q[0] * z.step * g["rows"] + q[1] * y.step) * g["line"] + q[2] * x.step
        to = q[0] * z.stride * across + (py.first + q[1] * y.stride) * x.target
        to = to + px.first + q[2] * x.stride
        extra = np.zeros(_ROWS, int)
        positions += [(lead * channels * g["plane"] + at.ravel()).ravel(), extra]
        places += [(lead * groups * columns * target + to.ravel()).ravel(), extra]
        places_before += len(positions[-2]) + _ROWS
        terms_before += terms
        work += images * groups * columns * terms * pz.size * wide
    shifts.append(np.zeros(_ROWS, int))
    g |= dict(images=images, groups=groups, channels=channels, columns=columns, panels=panels)
    g |= dict(depth=z.source, height=y.source, width=x.source, front=z.pad, top=y.pad, left=x.pad)
    g |= dict(step=z.step, stride=z.stride, target=target, across=across, terms=terms_before)
    g |= dict(weight_step=steps[1], weight_group=max(channels * steps[0], columns * steps[1]))
    g["dense"] = len(phases) == 1 and all(a.stride == 1 for a in axes)
    g["apart"] = x.stride == 2 and x.target % 2 == 0
    sizes = np.array([tuple(g[name] for name in _SIZES)], SIZES)
    lies, goes, adds, weights = map(_table, (positions, places, shifts, taps))
    blocks, tasks = groups * panels, int(g["tasks"])
    packed, told = blocks * terms_before * _COLUMNS, np.array(phases, PHASE)
    return Plan(sizes, told, lies, goes, adds, weights, work, blocks, packed, tasks)


def _axes(
    make: Callable[..., Axis], source: tuple[int, ...], target: tuple[int, ...], window: Any
) -> tuple[list[Axis], Three]:
    kernel, stride, low, _, dilation = window
    columns = (source, target, kernel, stride, low, dilation)
    threes = [_three(v, f) for v, f in zip(columns, (1, 1, 1, 1, 0, 1), strict=True)]
    return [make(*numbers) for numbers in zip(*threes, strict=True)], threes[2]


@functools.lru_cache(maxsize=256)
def forward_plan(
    x_shape: tuple[int, ...], weight_shape: tuple[int, ...], window: Any, groups: int
) -> Plan:
    """The plan for y_NO… of x_NC… and w_OC…."""
    size = tuple(x_shape[2:])
    axes, kernel = _axes(forward_axis, size, window.output(*size), window)
    (o, c), elements = weight_shape[:2], math.prod(kernel)
    steps = (elements, c * elements, 1)
    return _plan(axes, kernel, x_shape[0], groups, c, o // groups, steps)


@functools.lru_cache(maxsize=256)
def backward_plan(
    g_shape: tuple[int, ...],
    weight_shape: tuple[int, ...],
    window: Any,
    groups: int,
    size: tuple[int, ...],
) -> Plan:
    """The plan for dx_NC… of the given size, of g_NO… and w_OC…."""
    axes, kernel = _axes(backward_axis, tuple(g_shape[2:]), size, window)
    (o, c), elements = weight_shape[:2], math.prod(kernel)
    steps = (c * elements, elements, 1)
    return _plan(axes, kernel, g_shape[0], groups, o // groups, c, steps)


@functools.lru_cache(maxsize=256)
def weight_plan(
    x_shape: tuple[int, ...], weight_shape: tuple[int, ...], window: Any, groups: int
) -> Plan:
    """The plan for dw_OC… of g_NO… and x_NC…."""
    plan = forward_plan(x_shape, weight_shape, window, groups)
    sizes = plan.sizes.copy()
    s = sizes[0]
    s["chunk"] = min(s["panels"], _CHUNK)
    s["chunks"] = -(-s["panels"] // s["chunk"])
    parts = -(-s["images"] // s["together"]) * s["bands"]
    apart = groups * s["chunks"]
    s["blocks"] = max(1, min(parts, -(-_TASKS // apart)))
    s["tasks"] = s["blocks"] * apart
    sums = int(s["blocks"]) * plan.blocks * (int(s["terms"]) + _ROWS) * _COLUMNS
    return plan._replace(sizes=sizes, tasks=int(s["tasks"]), sums=sums)


def is_plain(window: Any) -> bool:
    """Whether the patches are the images themselves."""
    edges = (*window.low, *window.high)
    return math.prod(window.kernel) == 1 == math.prod(window.stride) and not any(edges)


def one_matrix_pays(images: int, channels: int, columns: int, places: int) -> bool:
    """Whether 1 × 1 is quicker with all images in one matrix than with a matrix for each.

    Their columns fill panels of 16; the images are copied twice.
    """
    spare = -places % _COLUMNS * channels * columns
    return images > 1 and spare > _BESIDE * places * (channels + columns)


def one_sum_pays(images: int, channels: int, columns: int, places: int) -> bool:
    """Likewise for the weight's gradient, which has a sum for each image otherwise."""
    return images > 1 and 2 * channels * columns > 3 * places * (channels + columns)


def _one_product_pays(
    x_shape: tuple[int, ...], weight_shape: tuple[int, ...], window: Any, groups: int
) -> bool:
    """Whether one product with the patches of the batch is expected to be quicker than parts."""
    images, outputs = x_shape[0], window.output(*x_shape[2:])
    weights, places = math.prod(weight_shape), images * math.prod(outputs)
    if groups != 1 or len(outputs) != 2 or weights < _MANY or not places:
        return False
    s = forward_plan(x_shape, weight_shape, window, groups).sizes[0]
    parts = int(s["bands"]) * -(-images // int(s["together"]))
    best = weights * (places + _READ * parts)
    if tiles_pay(images, x_shape[1], weight_shape[0], outputs, window, groups):
        best = min(best, tiles_cost(images, x_shape[1], weight_shape[0], outputs))
    return weights * places * (1 + _PATCH / weight_shape[0]) < best


@functools.lru_cache(maxsize=256)
def direct_family(
    x_shape: tuple[int, ...], weight_shape: tuple[int, ...], window: Any, groups: int
) -> str:
    """Which family of kernels is expected to be quickest for float32; none for few numbers."""
    outputs = window.output(*x_shape[2:])
    if math.prod(x_shape[:2]) * math.prod(window.kernel) * math.prod(outputs) < SMALL:
        return ""
    if groups == 1 and tuple(window.kernel) == (1, 1):
        return "pointwise"
    return "im2col" if _one_product_pays(x_shape, weight_shape, window, groups) else "correlate"
