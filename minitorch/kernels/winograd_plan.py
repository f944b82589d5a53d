"""How a convolution by 3 × 3 is divided into tiles of four by four outputs, and whether to do so.

Work is shared out by rows of tiles. Where there are few weights, all steps are done for a few rows
at once, and what is between the steps stays in the second cache; otherwise each step is done for
many rows before the next one, so that the weights are read once. All follows from the shapes alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

LANES, _COLUMNS, _ROWS = 8, 16, 6  # of the products
OUT, IN = 4, 6  # places of a tile on each axis
PLACES = IN * IN
SPREAD, MULTIPLY, GATHER = 1, 2, 4  # steps
ALL = 7

_PIECES = 16  # into which a kernel's items are cut
_NUMBERS = 3072  # tiles times channels of a task, about: what the second cache holds
_SUM_BLOCKS = 8
_KEPT = 3 << 20  # numbers of transformed tiles that are kept between steps
_WEIGHTS = 1 << 13  # channels times columns up to which a task does all steps
_SUMS = 1 << 12  # likewise for the weight's gradient
_TRANSFORMS, _PACKING = 704, 40  # what transforms cost, in products and in tiles; both measured
_PACKING_MANY = 90  # likewise, for weights that do not stay in any cache

_NAMES = """
images channels columns height width top left out_height out_width deep panels tile_rows across
rows tiles line wide packed_step spread_step product_step
sixes product_deep in_block first_row last_row blocks step weight_column weight_channel turned
""".split()
SIZES = np.dtype([(name, np.int64) for name in _NAMES])
"""images, channels, columns: Of the batch, of the source and of the target.
height, width: Of the source; top, left: padding before it. out_height, out_width: Of the target.
deep: Numbers from one place of the source to the next where channels lie together.
panels: Blocks of 16 columns. tile_rows, across: Tiles of an image on each axis.
rows: Of tiles, of all images. in_block: That go through a step together; tiles: of these, a
multiple of 6. first_row, last_row: Those of the present block. blocks: Sums that are formed apart
from each other (weight's gradient). step: What is to be done.
line: Places in a line of the source with its padding. wide: In one of the target, a multiple of 8.
packed_step, spread_step, product_step: From one of the 36 places to the next.
sixes: Blocks of six channels. product_deep: As deep, of the target.
weight_column, weight_channel: From a weight to that of the next column or channel.
turned: Whether the weights are taken in reverse order."""


class Facts(NamedTuple):
    """What the caller of the kernels needs to know; arrays by the number of their elements.

    Attributes:
        target: Shape of the result, of output and input.
        at_once: Whether a task does all steps.
        rows: Of tiles.
        panels: Blocks of 16 columns.
        blocks: Sums that are formed apart from each other (weight's gradient).
        sixes: Blocks of six channels.
        packed: Transformed weights.
        spread: Transformed tiles, with what may be read behind them.
        product: Their products, or the transformed gradient.
        sums: Of the weight's gradient.
    """

    target: tuple[int, ...]
    at_once: bool
    rows: int
    panels: int
    blocks: int
    sixes: int
    packed: int
    spread: int
    product: int
    sums: int


class Plan(NamedTuple):
    """What the kernels are given besides arrays.

    Attributes:
        sizes: SIZES[1].
        rows, terms: int32: where the tiles and the channels of a product lie.
        zeros: For all columns.
        facts: As above.
        steps: The calls that make the result, one after the other: items and their sizes.
    """

    sizes: np.ndarray
    rows: np.ndarray
    terms: np.ndarray
    zeros: np.ndarray
    facts: Facts
    steps: tuple[tuple[int, np.ndarray], ...]


def _spaced(size: int) -> int:
    """From one place of a tile to the next, so that the 36 do not meet in the same cache lines."""
    return size + (80 - size) % 128


def _deep(channels: int) -> int:
    """From one place to the next where channels lie together; likewise."""
    deep = -(-channels // LANES) * LANES
    return deep + LANES * (deep % 32 == 0)


@functools.lru_cache(maxsize=256)
def plan_tiles(
    x_shape: tuple[int, ...],
    columns: int,
    low: tuple[int, ...],
    outputs: tuple[int, ...],
    use: str,
) -> Plan:
    """`use`: "output", "input" or "weight": what is computed."""
    images, channels, height, width = x_shape
    tile_rows, across = (-(-n // OUT) for n in outputs)
    deep, panels, rows = _deep(channels), -(-columns // _COLUMNS), images * tile_rows
    weights, together, blocks = channels * columns, deep + panels * _COLUMNS, 1
    if weights <= (_SUMS if use == "weight" else _WEIGHTS):
        step, piece = ALL, -(-rows // (_SUM_BLOCKS if use == "weight" else _PIECES))
        in_block = max(1, min(piece, round(_NUMBERS / (deep * across))))
        in_block = -(-piece // -(-piece // in_block))
        blocks = -(-rows // piece) if use == "weight" else 1
    else:
        step, in_block = 0, max(1, min(rows, _KEPT // (PLACES * across * together)))
        in_block = -(-rows // -(-rows // in_block))
    tiles = -(-in_block * across // _ROWS) * _ROWS
    g = dict(images=images, channels=channels, columns=columns, height=height, width=width)
    g |= dict(top=low[0], left=low[1], out_height=outputs[0], out_width=outputs[1], deep=deep)
    g |= dict(panels=panels, tile_rows=tile_rows, across=across, rows=rows, tiles=tiles)
    g |= dict(in_block=in_block, product_deep=_deep(columns))
    g |= dict(line=OUT * across + IN - OUT, wide=-(-across // 2) * 2 * OUT)
    g |= dict(packed_step=_spaced(panels * channels * _COLUMNS), spread_step=_spaced(tiles * deep))
    g |= dict(product_step=_spaced(panels * tiles * _COLUMNS))
    g |= dict(sixes=-(-channels // _ROWS))
    g |= dict(first_row=0, last_row=rows, blocks=blocks, step=step, turned=use == "input")
    steps = (9, 9 * columns) if use == "input" else (9 * channels, 9)
    g |= dict(weight_column=steps[0], weight_channel=steps[1])
    sizes = np.array([tuple(g[name] for name in _NAMES)], SIZES)
    terms = np.arange(g["sixes"] * _ROWS, dtype=np.int32)
    facts = Facts(
        *((images, columns, *outputs), step == ALL, rows, panels, blocks, g["sixes"]),
        *(PLACES * g["packed_step"], PLACES * (g["spread_step"] + 1)),
        *(PLACES * g["product_step"], blocks * PLACES * panels * terms.size * _COLUMNS),
    )
    places, zeros = np.arange(tiles, dtype=np.int32) * deep, np.zeros(panels * _COLUMNS, np.float32)
    return Plan(sizes, places, terms, zeros, facts, tuple(_steps(sizes, facts, use)))


def _steps(sizes: np.ndarray, facts: Facts, use: str) -> Iterator[tuple[int, np.ndarray]]:
    """All at once, or each step for a block of rows of tiles before the next block."""
    if facts.at_once:
        yield (facts.blocks if use == "weight" else facts.rows), sizes
        return
    in_block = int(sizes[0]["in_block"])
    for first in range(0, facts.rows, in_block):
        last = min(facts.rows, first + in_block)
        steps = [(SPREAD, last - first), (MULTIPLY, PLACES), (GATHER, last - first)]
        for step, items in steps[: 2 if use == "weight" else 3]:
            told = sizes.copy()
            told["first_row"], told["last_row"], told["step"] = first, last, step
            yield items, told


def tiles_cost(images: int, channels: int, columns: int, outputs: tuple[int, ...]) -> int:
    """In multiplications, for many channels: transformed weights that do not stay in a cache."""
    tiles = images * math.prod(-(-n // OUT) for n in outputs)
    return PLACES * (tiles + _PACKING_MANY) * channels * columns


@functools.lru_cache(maxsize=256)
def tiles_pay(
    images: int, channels: int, columns: int, outputs: tuple[int, ...], window: Any, groups: int
) -> bool:
    """Whether `winograd` is expected to be quicker than sums for each place."""
    if len(outputs) != 2 or groups != 1 or tuple(window.kernel) != (3, 3):
        return False
    if set(window.stride) != {1} or set(window.dilation) != {1} or not channels or not columns:
        return False
    tiles = images * math.prod(-(-n // OUT) for n in outputs)
    transforms = _TRANSFORMS * tiles * (1 / channels + 1 / columns)
    plain = 9 * images * math.prod(outputs)
    return PLACES * (tiles + _PACKING) + transforms < plain
