"""Attention on float32, block of rows by block of rows; the scores of one block exist at a time.

The scores of a block lie turned, a line of numbers for each key, so that softmax is vector code
(`softmax_lines.py`), and each product consists of tiles of 6 × 16 (`vector.py`) whose right matrix
is copied in panels of 16 columns, that of a head once for its blocks. Causal attention computes no
tile that no row sees. The backward pass computes the weights again from the largest score of each
row and its factor, one by the sum of `exp(score - largest)`.

What is copied and multiplied follows from shapes and strides: a plan has a line for each copy and
each product, so that one piece of machine code does all of them, forward and backward.

Source: Dao et al., FlashAttention, 2022, for what is kept and what is computed again.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import threads
from .kernel import inlined, kernel
from .memory import address, word, words_of
from .panels import pack
from .softmax_lines import find_slopes, find_tops, find_weights
from .vector import COLUMNS, ROWS, copy_line, fetch_lines, multiply_six

_F, _F32 = np.float32, np.dtype(np.float32)
_ITEMSIZE = 4
_LINE = _ITEMSIZE * COLUMNS
_ROWS, _FEW_ROWS, _LONG = 48, 16, 4096  # of a block: whole tiles and panels; fewer with many keys
_TERMS = 256  # of the right panels, which stay in the first cache for all rows
_SHARED_FROM = 1 << 14  # scores from which a second thread pays

# Sizes of a block, by which a line of the plan says how much it takes.
_SEEN, _HEIGHT, _PADDED, _WIDTH, _OUT_WIDTH, _SIZES = range(6)
# Arrays: those that come in, constants, then parts of the memory of a thread: copies of a block of
# rows, of the keys of a head, and lines of numbers for each key.
_Q, _K, _V, _X, _DQ, _DK, _DV, _BIAS, _DROP, _ONES = range(10)
_TURNED_Q, _TURNED_X, _OF_Q, _OF_X, _OF_KEYS, _SCORES, _SLOPES = range(10, 17)
_BIASES, _DROPS, _END = range(17, 20)
# What causality hides of a product: columns of the result, or terms behind or before others.
_COLUMNS, _BEHIND, _BEFORE = range(3)

# The first line of a plan. Those with the strides of arrays follow, then the places of parts.
(_HEADS, _LENGTH, _KEYS, _WIDE, _OUT_WIDE, _BLOCKS, _MOST, _STEP, _CAUSAL, _BIASED) = range(10)
_DROPPING, _COPIES, _PRODUCTS = range(10, 13)
_STRIDES, _PLACES = 1, 10
_WORK = 11  # the first line of the copies, then products
# A line of a copy: whether once for a head, what, where to, and how much.
(_ONCE, _FROM, _FROM_START, _FROM_STEP, _APART, _TO, _TO_PANEL, _COPIED, _COUNT) = range(9)
# A line of a product: the left and the right matrix, the result, sizes, and what is particular.
(_A, _A_START, _ACROSS, _ALONG, _B, _PANEL, _OUT, _OUT_START, _OUT_STEP) = range(9)
(_M, _T, _N, _HIDES, _ADDS) = range(9, 14)
_FIELDS = _END + 1

# A line of ones; then what is added to scores of rows 0 to 15 for key 0, for key 1 …
_constants = np.zeros((COLUMNS + 1, COLUMNS), _F)
_constants[0] = 1
_constants[1:][np.tril_indices(COLUMNS, -1)] = -np.inf


@inlined
def _copy(s, at, size, start):  # type: ignore[no-untyped-def]
    source = at[s[_FROM]] + start * s[_FROM_START]
    terms, count = size[s[_COPIED]], size[s[_COUNT]]
    pack(source, s[_FROM_STEP], s[_APART], at[s[_TO]], COLUMNS, s[_TO_PANEL], terms, count)


@inlined
def _multiply(s, at, size, start, causal, more, zeros):  # type: ignore[no-untyped-def]
    """A product, tile by tile, without what causality hides; `more` if it may be added to."""
    rows, terms, columns = size[s[_M]], size[s[_T]], size[s[_N]]
    across, along, out_step = s[_ACROSS], s[_ALONG], s[_OUT_STEP]
    a, b = at[s[_A]] + start * s[_A_START], at[s[_B]]
    out = at[s[_OUT]] + start * s[_OUT_START]
    for begin in range(0, terms, _TERMS):
        adds = begin > 0 or (more and s[_ADDS])
        for r in range(0, rows, ROWS):
            low, high, left = begin, min(begin + _TERMS, terms), 0
            if causal:
                if s[_HIDES] == _COLUMNS:
                    left = max(0, r - start) // COLUMNS * COLUMNS
                elif s[_HIDES] == _BEHIND:
                    high = min(high, start + r + ROWS)
                else:
                    low = max(low, r - start)
            if high <= low:
                continue
            if s[_HIDES] == _COLUMNS:
                for i in range(ROWS):
                    fetch_lines(a + (r + ROWS + i) * across + low * along)
            for j in range(left, columns, COLUMNS):
                to = out + r * out_step + _ITEMSIZE * j
                old, old_step = (to, out_step) if adds else (zeros, 0)
                multiply_six(
                    *(a + r * across + low * along, across, along),
                    *(b + j // COLUMNS * s[_PANEL] + low * _LINE, high - low),
                    *(old, old_step, to, out_step, rows - r, columns - j),
                )


@inlined
def _weigh(z, at, top, factor, start, height, seen, scale, back):  # type: ignore[no-untyped-def]
    """The weights of a block of rows, and the gradients of their products."""
    zeros, step, panel = at[_ONES] + _LINE, z[_STEP], _LINE * (z[_KEYS] + 1)
    for p in range(0, height, COLUMNS):
        many, drop, drop_step = seen, at[_ONES], 0
        if z[_DROPPING]:
            drop, drop_step = at[_DROPS] + p // COLUMNS * panel, _LINE
        bias, still, bias_step = zeros, many, 0
        if z[_CAUSAL]:
            many = min(seen, start + p + COLUMNS)
            still, bias_step = start + p, _LINE
        elif z[_BIASED]:
            bias = at[_BIASES] + p // COLUMNS * panel
            still, bias_step = 0, _LINE
        w, d = at[_SCORES] + _ITEMSIZE * p, at[_SLOPES] + _ITEMSIZE * p
        tops, factors = top + _ITEMSIZE * p, factor + _ITEMSIZE * p
        if back:
            find_slopes(
                *(w, d, step, many, bias, still, bias_step),
                *(drop, drop_step, scale, tops, factors),
            )
        else:
            find_tops(w, step, many, bias, still, bias_step, scale, tops)
            find_weights(w, step, many, drop, drop_step, tops, factors)
        for j in range(many, min(seen, many + ROWS)):  # what tiles take beside what rows see
            copy_line(zeros, w + j * step)
            if back:
                copy_line(zeros, d + j * step)


@kernel(written_out=True)
def _attend(first, last, rows, places, plan, factor_of_scores, back):  # type: ignore[no-untyped-def]
    z, scale = plan[0], _F(factor_of_scores)
    room = np.empty(plan[_PLACES, _END], _F)
    at, size = np.empty(_END, np.int64), np.empty(_SIZES, np.int64)
    size[_WIDTH], size[_OUT_WIDTH], at[_ONES] = z[_WIDE], z[_OUT_WIDE], address(word(places, _ONES))
    for i in range(_TURNED_Q, _END):
        at[i] = (room.ctypes.data + _LINE - 1) // _LINE * _LINE + plan[_PLACES, i]
    packed, blocks = -1, z[_BLOCKS]
    for number in range(first, last):
        n = number if back else number // blocks
        for i in range(_ONES):
            s = plan[_STRIDES + i]
            at[i] = address(word(places, i)) + n // z[_HEADS] * s[0] + n % z[_HEADS] * s[1]
        for turn in range(blocks if back else 1):  # the last block sees the most keys
            start = (blocks - 1 - (turn if back else number % blocks)) * z[_MOST]
            height = min(z[_MOST], z[_LENGTH] - start)
            seen = min(z[_KEYS], start + height) if z[_CAUSAL] else z[_KEYS]
            size[_SEEN], size[_HEIGHT] = seen, height
            size[_PADDED] = (height + COLUMNS - 1) // COLUMNS * COLUMNS
            for c in range(z[_COPIES]):
                if n != packed or not plan[_WORK + c, _ONCE]:
                    _copy(plan[_WORK + c], at, size, start)
            packed = n
            for product in range(z[_PRODUCTS]):
                s = plan[_WORK + z[_COPIES] + product]
                _multiply(s, at, size, start, z[_CAUSAL], turn > 0, at[_ONES] + _LINE)
                if product == (1 if back else 0):
                    top = rows.ctypes.data + _ITEMSIZE * (n * rows.shape[2] + start)
                    factor = top + _ITEMSIZE * rows.shape[1] * rows.shape[2]
                    _weigh(z, at, top, factor, start, height, seen, scale, back)


Shape = tuple[int, ...]


class _Plan:
    """What `_attend` does for arrays of these shapes and strides.

    Args:
        shapes: Of q_BHLD, k_BHSD and v_BHSE.
        strides: Of these, of the result or its gradient, and of the gradients if there are any.
        bias, drop: Shape and strides of what is added to the scores, and of what weights are
            multiplied by, or None.
        causal: Row i sees keys up to i.

    Attributes:
        table: The lines.
        items: What threads take one by one.
        rows: Shape of what is kept of each row.
        shared: Whether a second thread pays.
    """

    def __init__(
        self,
        shapes: tuple[Shape, Shape, Shape],
        strides: tuple[Shape, ...],
        bias: tuple[Shape, Shape] | None,
        drop: tuple[Shape, Shape] | None,
        causal: bool,
    ) -> None:
        (batch, heads, length, width), keys, out_width = shapes[0], shapes[1][2], shapes[2][3]
        back = len(strides) > _DQ
        most = min(_ROWS if keys <= _LONG else _FEW_ROWS, -(-length // COLUMNS) * COLUMNS)
        blocks = -(-length // most)
        step = _LINE * (most // COLUMNS | 1)  # odd, so that a column is in all sets of the cache
        self.rows = (2, batch * heads, -(-length // COLUMNS) * COLUMNS)
        self.items = batch * heads * (1 if back else blocks)
        self.shared = batch * heads * length * keys >= _SHARED_FROM
        head = [heads, length, keys, width, out_width, blocks, most, step, causal]
        none = (0, 0, 0, 0)
        steps = [*strides, *[none] * (_BIAS - len(strides))]
        steps += [none if x is None else _repeated(*x) for x in (bias, drop)]
        copies = _copies(steps, keys, most, width, out_width, back)
        copies += [
            _turned(steps, array, to, keys)
            for array, to, x in ((_BIAS, _BIASES, bias), (_DROP, _DROPS, drop))
            if x is not None
        ]
        products = _products(steps, step, keys, most, width, out_width, back)
        head += [bias is not None, drop is not None, len(copies), len(products)]
        places = _parts(step, keys, most, width, out_width)
        lines = [head, *steps, places, *copies, *products]
        self.table = np.zeros((len(lines), _FIELDS), np.int64)
        for line, numbers in zip(self.table, lines, strict=True):
            line[: len(numbers)] = numbers


def _panel(terms: int) -> int:
    """Bytes from one panel to the next, which then do not begin in the same set of the cache."""
    return _LINE * (terms + 1)


def _repeated(shape: Shape, strides: Shape) -> Shape:
    """The strides of an array that is read as often as its axes of size 1 ask for."""
    return tuple([0 if n == 1 else step for n, step in zip(shape, strides, strict=True)])


def _copies(
    steps: Sequence[Shape], keys: int, most: int, width: int, out_width: int, back: bool
) -> list[tuple[int, ...]]:
    """Lines of the copies."""
    (q, along_q), (k, along_k), (v, along_v), (x, along_x) = (s[2:] for s in steps[:4])
    turned_q = (0, _Q, q, along_q, q, _TURNED_Q, _panel(width), _WIDTH, _HEIGHT)
    turned_x = (0, _X, x, along_x, x, _TURNED_X, _panel(out_width), _OUT_WIDTH, _HEIGHT)
    of_v = (1, _V, 0, v, along_v, _OF_KEYS, _panel(keys), _SEEN, _OUT_WIDTH)
    of_k = (1, _K, 0, k, along_k, _OF_KEYS, _panel(keys), _SEEN, _WIDTH)
    of_q = (0, _Q, q, q, along_q, _OF_Q, _panel(most), _HEIGHT, _WIDTH)
    of_x = (0, _X, x, x, along_x, _OF_X, _panel(most), _HEIGHT, _OUT_WIDTH)
    return [of_k, turned_q, turned_x, of_q, of_x] if back else [of_v, turned_q]


def _turned(steps: Sequence[Shape], array: int, to: int, keys: int) -> tuple[int, ...]:
    """The line of a copy of what there is for each row and key."""
    row, along = steps[array][2:]
    return (0, array, row, along, row, to, _panel(keys), _SEEN, _HEIGHT)


def _products(
    steps: Sequence[Shape], step: int, keys: int, most: int, width: int, out_width: int, back: bool
) -> list[tuple[int, ...]]:
    """Lines of the products: scores first, then their gradients, then results."""
    (k, along_k), (v, along_v), (x, _) = (s[2:] for s in steps[1:4])
    dq, dk, dv = (s[2] for s in steps[_DQ : _DV + 1])
    scores, slopes = (_SCORES, 0, step), (_SLOPES, 0, step)
    rows, columns = (0, _ITEMSIZE, step), (0, step, _ITEMSIZE)  # of scores, for rows and for keys
    sums = (_HEIGHT, _SEEN), (_SEEN, _HEIGHT)
    lines = [
        (_K, 0, k, along_k, _TURNED_Q, _panel(width), *scores, _SEEN, _WIDTH, _PADDED, _COLUMNS)
    ]
    if not back:
        out = (_X, x, x, *sums[0], _OUT_WIDTH, _BEHIND)
        return [*lines, (_SCORES, *rows, _OF_KEYS, _panel(keys), *out)]
    given = (_TURNED_X, _panel(out_width), *slopes, _SEEN, _OUT_WIDTH, _PADDED, _COLUMNS)
    of_q = (_OF_Q, _panel(most), _DK, 0, dk, *sums[1], _WIDTH, _BEFORE, 1)
    of_x = (_OF_X, _panel(most), _DV, 0, dv, *sums[1], _OUT_WIDTH, _BEFORE, 1)
    of_k = (_OF_KEYS, _panel(keys), _DQ, dq, dq, *sums[0], _WIDTH, _BEHIND)
    return [
        *lines,
        (_V, 0, v, along_v, *given),
        (_SLOPES, *rows, *of_k),
        (_SLOPES, *columns, *of_q),
        (_SCORES, *columns, *of_x),
    ]


def _parts(step: int, keys: int, most: int, width: int, out_width: int) -> list[int]:
    """Where the parts of the memory of a thread lie, in bytes, and how many numbers all take."""
    many, wide = -(-most // COLUMNS), [-(-n // COLUMNS) for n in (width, out_width)]
    sizes = [
        *(many * _panel(width), many * _panel(out_width), *[n * _panel(most) for n in wide]),
        *(max(wide) * _panel(keys), *[step * (keys + ROWS)] * 2, *[many * _panel(keys)] * 2),
    ]
    places = [0] * _TURNED_Q
    at = 0
    for size in sizes:
        places.append(at)
        at += size
    return [*places, at // _ITEMSIZE + COLUMNS]


_plan = functools.lru_cache(512)(_Plan)


def _four(a: Any) -> Any:
    """a_…LD as a_BHLD."""
    if a.ndim != 4:
        a = a.reshape(-1, *a.shape[-3:]) if a.ndim > 2 else a[None, None]
    return a if a.strides[3] == _ITEMSIZE else np.ascontiguousarray(a)


def _of(a: Any) -> Any:
    return None if a is None else (a.shape, a.strides)


_pack = struct.Struct(f"{_ONES + 1}q").pack
_NONE = id(_constants)


def _call(
    plan: _Plan, rows: Any, places: Sequence[int], bias: Any, drop: Any, scale: float, back: bool
) -> None:
    """Calls the body with the arrays by their ids, and the constants for those not there."""
    others = [_NONE if a is None else id(a) for a in (bias, drop)]
    packed = _pack(*places, *others, _NONE)
    workers = threads.count() if plan.shared else 0
    _attend.share(workers, plan.items, rows, words_of(packed), plan.table, scale, back)


def forward(
    q: Any, k: Any, v: Any, bias: Any, drop: Any, scale: float, causal: bool
) -> tuple[Any, Any]:
    """The result, and the largest score and the factor of each row.

    Args:
        q: f32[…, L, D].
        k: f32[…, S, D].
        v: f32[…, S, E].
        bias: What is added to the scores, f32[B or 1, H or 1, L or 1, S or 1], or None.
        drop: What weights are multiplied by, likewise.
        scale: Factor of the scores.
        causal: Row i sees keys up to i; only without a bias.
    """
    lead = q.shape[:-1]
    q, k, v = _four(q), _four(k), _four(v)
    (b, h, length, _), width = q.shape, v.shape[3]
    out = np.empty((b, length, h, width), _F32).transpose(0, 2, 1, 3)
    steps = (q.strides, k.strides, v.strides, out.strides)
    plan = _plan((q.shape, k.shape, v.shape), steps, _of(bias), _of(drop), causal)
    rows = np.empty(plan.rows, _F32)
    places = (id(q), id(k), id(v), id(out), _NONE, _NONE, _NONE)
    _call(plan, rows, places, bias, drop, scale, False)
    return (out if len(lead) == 3 else out.reshape(*lead, width)), rows


def _gradients(q: Any, k: Any, v: Any) -> Sequence[Any]:
    """New memory for the gradients, side by side where the arrays are parts of one.

    Each lies as BLHD, as the layer around will want it.
    """
    shape, strides = q.shape, q.strides
    b, h, length, width = shape
    if (
        q.base is not None
        and q.base is k.base is v.base
        and shape == k.shape == v.shape
        and strides == k.strides == v.strides
        and strides[1:] == (_ITEMSIZE * width, 3 * _ITEMSIZE * h * width, _ITEMSIZE)
    ):
        together: Any = np.empty((b, length, 3, h, width), _F32).transpose(2, 0, 3, 1, 4)
        return together
    shapes = (shape, k.shape, v.shape)
    return [np.empty((b, n, h, d), _F32).transpose(0, 2, 1, 3) for b, h, n, d in shapes]


def backward(
    g: Any, q: Any, k: Any, v: Any, bias: Any, drop: Any, rows: Any, scale: float, causal: bool
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v; `rows` is what `forward` gave of them."""
    given = q.shape, k.shape, v.shape
    q, k, v, g = _four(q), _four(k), _four(v), _four(g)
    shapes = (q.shape, k.shape, v.shape)
    dq, dk, dv = _gradients(q, k, v)
    if causal and shapes[0][2] < shapes[1][2]:
        for d in (dk, dv):
            d[:, :, shapes[0][2] :] = 0  # keys that no row sees
    arrays = (q, k, v, g, dq, dk, dv)
    steps = tuple([a.strides for a in arrays])
    plan = _plan(shapes, steps, _of(bias), _of(drop), causal)
    _call(plan, rows, list(map(id, arrays)), bias, drop, scale, True)
    if len(given[0]) != 4:
        dq, dk, dv = dq.reshape(given[0]), dk.reshape(given[1]), dv.reshape(given[2])
    return dq, dk, dv


__all__ = ["backward", "forward"]
