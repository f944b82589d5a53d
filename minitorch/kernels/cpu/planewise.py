"""Convolution plane by plane: of each channel on its own, or to few channels; no patches are made.

A plane is copied with its padding to where neighbouring outputs need neighbouring numbers (see
`plane_plan`); outputs are then sums over the taps of vectors, whatever stride and dilation are.
The gradient of the input is the same with the roles of input and output exchanged, phase by phase
of the stride; that of the weight sums products of the two planes for nine taps at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import threads
from ..plane_plan import Plan, backward_plan, forward_plan
from .instructions import VECTOR_BYTES
from .kernel import PARALLEL_FROM, inlined, kernel
from .lines import put_pairs
from .memory import clear, copy
from .planes import fill
from .taps import TAPS, VECTORS, sum_over_taps, sums_of_taps


@inlined
def _put(lines, source, y, to, band, s):  # type: ignore[no-untyped-def]
    """Writes the outputs of a band, or of two beside each other, where they belong."""
    lanes = VECTOR_BYTES // y.itemsize
    for _ in range(band.rows):
        done = 0
        if s.stride_across == 1:
            copy(lines, source, y, to, band.width)
            done = band.width
        elif s.beside == 2:
            while done + lanes <= band.width - (band.wider < 2):
                put_pairs(lines, source + done, source + s.lines + done, y, to + 2 * done)
                done += lanes
        for p in range(s.beside):
            for b in range(done, band.width - (p >= band.wider)):
                y[to + p + b * s.stride_across] = lines[source + p * s.lines + b]
        source += s.line
        to += s.stride_down * s.target_width


@kernel()
def _correlate(first, last, x, w, bias, y, sizes, bands, shifts, elements, moves):  # type: ignore[no-untyped-def]
    s = sizes[0]
    buffer, lines = np.empty(s.buffer, x.dtype), np.empty(s.together * s.all_lines, x.dtype)
    factors, tile = np.empty(len(elements), x.dtype), VECTORS * VECTOR_BYTES // x.itemsize
    clear(buffer, 0, s.buffer)
    for item in range(first, last):
        group, image = item % s.groups, item // s.groups
        for k in range(s.sources):
            of_chunk = k % s.chunk
            channel = image * s.channels + group * s.source_step + k
            fill(x, channel * s.source, buffer, of_chunk * s.plane, moves, s.step_across)
            if of_chunk < s.chunk - 1 and k < s.sources - 1:
                continue
            # The chunk is complete: add what it gives to all targets.
            for t in range(min(s.together, s.targets - group * s.together)):
                target, before = group * s.together + t, k - of_chunk
                weights = target * s.weight_target + before * s.weight_source
                for i in range(len(elements)):
                    factors[i] = w[min(weights + elements[i], w.size - 1)]
                start = bias[target] if bias.size else bias.dtype.type(0)
                for b in range(len(bands)):
                    band, to = bands[b], t * s.all_lines + bands[b].to
                    terms = band.taps * (of_chunk + 1)
                    for q in range(0, band.count, tile):
                        at, end, adds = band.at + q, to + q, before > 0
                        sum_over_taps(
                            buffer, at, shifts, band.first, terms, factors, start, lines, end, adds
                        )
                    if k == s.sources - 1 and band.complete:
                        begin = (image * s.targets + target) * s.target + band.place
                        _put(lines, to - (s.beside - 1) * s.lines, y, begin, band, s)


@kernel()
def _weight_sums(first, last, x, g, sums, sizes, shifts, moves):  # type: ignore[no-untyped-def]
    s, lanes = sizes[0], VECTOR_BYTES // x.itemsize
    vectors = (s.target_height * s.line + lanes - 1) // lanes
    buffer, lines = np.empty(s.buffer, x.dtype), np.empty(vectors * lanes, x.dtype)
    parts = np.empty(s.taps * lanes, x.dtype)
    clear(buffer, 0, s.buffer)
    clear(lines, 0, vectors * lanes)
    for item in range(first, last):
        target, block = item // s.blocks, item % s.blocks
        clear(parts, 0, s.taps * lanes)
        for image in range(block * s.share, min(s.images, (block + 1) * s.share)):
            channel = image * s.channels + target // s.together
            fill(x, channel * s.source, buffer, 0, moves, s.step_across)
            at = (image * s.targets + target) * s.target
            for a in range(s.target_height):
                copy(g, at + a * s.target_width, lines, a * s.line, s.target_width)
            for t in range(0, s.taps, TAPS):
                sums_of_taps(buffer, shifts, t, lines, vectors, parts, t * lanes)
        for t in range(sums.shape[2]):
            total = 0.0
            for k in range(lanes):
                total += parts[t * lanes + k]
            sums[block, target, t] = total


def _flat(a: Any) -> Any:
    return np.ascontiguousarray(a).reshape(-1)


def _workers(x: Any) -> int:
    return threads.count() if x.size >= PARALLEL_FROM else 0


def _correlation(x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    s = plan.sizes[0]
    images, targets = int(s["images"]), int(s["targets"])
    y = np.empty((images, targets, int(s["target_height"]), int(s["target_width"])), x.dtype)
    bias = np.empty(0, x.dtype) if bias is None else _flat(bias)
    given = (_flat(x), _flat(w), bias, y.reshape(-1), *plan)
    _correlate.share(_workers(x), images * int(s["groups"]), *given)
    return y


def forward(x: Any, weight: Any, bias: Any, window: Any, groups: int) -> Any:
    """y_NOHW."""
    return _correlation(x, weight, bias, forward_plan(x.shape, len(weight), window, groups))


def input_gradient(g: Any, weight: Any, window: Any, groups: int, size: tuple[int, ...]) -> Any:
    """The gradient of x_NCHW of the given size."""
    channels = weight.shape[1] * groups
    return _correlation(g, weight, None, backward_plan(g.shape, channels, size, window, groups))


def weight_gradient(g: Any, x: Any, window: Any) -> Any:
    """The gradient of the weight, w_O1KK, or None if it has a number that is not finite."""
    plan = forward_plan(x.shape, g.shape[1], window, x.shape[1])
    blocks = int(plan.sizes[0]["blocks"])
    sums = np.empty((blocks, g.shape[1], len(plan.elements)), np.float64)
    given = (_flat(x), _flat(g), sums, plan.sizes, plan.shifts, plan.moves)
    _weight_sums.share(_workers(x), g.shape[1] * blocks, *given)
    dw = sums.sum(0).astype(x.dtype).reshape(g.shape[1], 1, *window.kernel)
    return dw if np.isfinite(dw).all() else None
