"""Softmax down the columns of a panel: 16 rows of scores beside each other, a line for each key.

Eight rows are one vector, so that maxima and sums need nothing across a vector. What is added to
the scores, and by what weights are multiplied, are lines as well: `still` lines take the first of
them, the others go on by `…_step`. Where -inf is added, a weight is 0, whatever the score is.
Addresses and steps count bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types

from .instructions import FLOAT, FUSED, INT32, INT64, gep, repeat, spread
from .kernel import intrinsic
from .vector import COLUMNS, VECTOR, WIDTH, load, store

_VECTORS = COLUMNS // WIDTH
_INTS = ir.VectorType(INT32, WIDTH)
_N, _F = types.int64, types.float32
_PART = INT64(32)  # lines whose sum is one
_SHIFTER = 1.5 * 2.0**23  # added to a small number, it leaves the nearest whole one in the low bits
# Coefficients of exp on half of ln 2 to either side of 0, as `scalars.py` has them.
_TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1)
_LAST_TERM = 5.0000001201e-1


def _all(number: float) -> Any:
    return ir.Constant(VECTOR, [number] * WIDTH)


_ZERO, _ONE, _NEVER = _all(0.0), _all(1.0), _all(float("-inf"))


def _plus(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c."""
    return builder.fadd(builder.fmul(a, b, flags=FUSED), c, flags=FUSED)


def _pointers(builder: Any, address: Any) -> list[Any]:
    start = builder.inttoptr(address, FLOAT.as_pointer())
    return [gep(builder, start, v * WIDTH) for v in range(_VECTORS)]


def _line(builder: Any, address: Any) -> list[Any]:
    return [load(builder, pointer) for pointer in _pointers(builder, address)]


def _write(builder: Any, vectors: Sequence[Any], address: Any) -> None:
    for vector, pointer in zip(vectors, _pointers(builder, address), strict=True):
        store(builder, vector, pointer)


def _exponential(builder: Any, x: Any) -> Any:
    """exp of numbers that are at most 0, to 2 units in the last place; 0 from -88 on, NaN of NaN.

    Source: S. L. Moshier, Cephes Mathematical Library, expf, 1992.
    """
    least = _all(-88.0)  # whose power of two is 2⁻¹²⁷, or 0 as the bits have it
    x = builder.select(builder.fcmp_ordered("<", x, least), least, x)
    shifted = _plus(builder, x, _all(1.44269504), _all(_SHIFTER))
    n = builder.fsub(shifted, _all(_SHIFTER))
    r = _plus(builder, n, _all(2.12194440e-4), _plus(builder, n, _all(-0.693359375), x))
    y = _all(_TERMS[0])
    for term in (*_TERMS[1:], _LAST_TERM):
        y = _plus(builder, y, r, _all(term))
    y = builder.fadd(_plus(builder, builder.fmul(y, r), r, r), _ONE)
    power = builder.shl(builder.bitcast(shifted, _INTS), ir.Constant(_INTS, [23] * WIDTH))
    power = builder.add(power, ir.Constant(_INTS, [127 << 23] * WIDTH))
    return builder.fmul(y, builder.bitcast(power, VECTOR))


def _score(builder: Any, product: Any, scale: Any, bias: Any) -> tuple[Any, Any]:
    """The score, and whether it is hidden."""
    hidden = builder.fcmp_ordered("==", bias, _NEVER)
    return builder.select(hidden, _NEVER, _plus(builder, product, scale, bias)), hidden


def _next_bias(builder: Any, bias: Any, still: Any, step: Any) -> list[Any]:
    """The line that is added next, and for how many more lines it stays."""
    moves = builder.icmp_signed("<=", still, INT64(0))
    step = builder.select(moves, step, INT64(0))
    return [builder.add(bias, step), builder.sub(still, INT64(1))]


def _summed(builder: Any, count: Any, places: list[Any], body: Callable[..., Any]) -> list[Any]:
    """Sums over `count` lines, those of some lines at a time, which rounds less.

    Args:
        builder: LLVM's.
        count: How many lines.
        places: What changes from line to line; comes first for `body`, and first from it.
        body: Takes and gives places and a sum for each vector.
    """
    held = len(places)

    def part(left: Any, *olds: Any) -> list[Any]:
        some = builder.select(builder.icmp_signed("<", left, _PART), left, _PART)
        news = repeat(builder, some, [*olds[:held], *[_ZERO] * _VECTORS], body)
        totals = [builder.fadd(*pair) for pair in zip(olds[held:], news[held:], strict=True)]
        return [builder.sub(left, _PART), *news[:held], *totals]

    parts = builder.sdiv(builder.add(count, builder.sub(_PART, INT64(1))), _PART)
    return repeat(builder, parts, [count, *places, *[_ZERO] * _VECTORS], part)[1 + held :]


@intrinsic
def find_tops(context, lines, step, count, bias, still, bias_step, scale, tops):  # type: ignore[no-untyped-def]
    """Makes scores of `count` lines of products, and finds the largest of each column.

    NaN is passed over.
    """

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lines, step, count, bias, still, bias_step, scale, tops = args
        scale = spread(builder, scale, WIDTH)

        def turn(line: Any, bias: Any, still: Any, *olds: Any) -> list[Any]:
            pairs = zip(_line(builder, line), _line(builder, bias), strict=True)
            scores = [_score(builder, product, scale, more)[0] for product, more in pairs]
            _write(builder, scores, line)
            news = [
                builder.select(builder.fcmp_ordered(">", new, old), new, old)
                for new, old in zip(scores, olds, strict=True)
            ]
            more = _next_bias(builder, bias, still, bias_step)
            return [builder.add(line, step), *more, *news]

        state = [lines, bias, still, *[_NEVER] * _VECTORS]
        _write(builder, repeat(builder, count, state, turn)[3:], tops)
        return context.get_dummy_value()

    return types.void(*[_N] * 6, _F, _N), code


@intrinsic
def find_weights(context, lines, step, count, drop, drop_step, tops, factors):  # type: ignore[no-untyped-def]
    """Makes weights of scores: exp(score - top) · drop, divided by the sum without `drop`.

    `factors` become 1 / sum, or 0 where a row may attend nowhere, whose top becomes 0.
    """

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lines, step, count, drop, drop_step, at_tops, at_factors = args
        tops = [
            builder.select(builder.fcmp_ordered("==", top, _NEVER), _ZERO, top)
            for top in _line(builder, at_tops)
        ]
        _write(builder, tops, at_tops)

        def turn(line: Any, drop: Any, *sums: Any) -> list[Any]:
            scores, drops = _line(builder, line), _line(builder, drop)
            found = [
                _exponential(builder, builder.fsub(score, top))
                for score, top in zip(scores, tops, strict=True)
            ]
            news = [builder.fadd(old, e) for old, e in zip(sums, found, strict=True)]
            kept = [builder.fmul(e, d) for e, d in zip(found, drops, strict=True)]
            _write(builder, kept, line)
            return [builder.add(line, step), builder.add(drop, drop_step), *news]

        sums = _summed(builder, count, [lines, drop], turn)
        factors = [
            builder.select(
                builder.fcmp_ordered("==", total, _ZERO), _ZERO, builder.fdiv(_ONE, total)
            )
            for total in sums
        ]
        _write(builder, factors, at_factors)

        def divide(line: Any) -> list[Any]:
            pairs = zip(_line(builder, line), factors, strict=True)
            _write(builder, [builder.fmul(w, factor) for w, factor in pairs], line)
            return [builder.add(line, step)]

        repeat(builder, count, [lines], divide)
        return context.get_dummy_value()

    return types.void(*[_N] * 7), code


def _weighed(builder: Any, parts: Sequence[Any], scale: Any, top: Any, factor: Any) -> Any:
    """Weights of products, and the gradients of weights that were multiplied by `drop`."""
    product, slope, bias, drop = parts
    score, hidden = _score(builder, product, scale, bias)
    e = _exponential(builder, builder.fsub(score, top))
    slope = builder.select(hidden, _ZERO, builder.fmul(slope, drop))
    return builder.fmul(e, factor), slope


def _slope(builder: Any, w: Any, slope: Any, dot: Any, scale: Any) -> Any:
    """w · (slope - dot) · scale; 0 for a weight of 0, also where a sum is not finite."""
    found = builder.fmul(builder.fmul(w, scale), builder.fsub(slope, dot))
    return builder.select(builder.fcmp_ordered("==", w, _ZERO), _ZERO, found)


@intrinsic
def find_slopes(  # type: ignore[no-untyped-def]
    context,
    lines,
    slopes,
    step,
    count,
    bias,
    still,
    bias_step,
    drop,
    drop_step,
    scale,
    tops,
    factors,
):
    """Makes weights of lines of products, and gradients of the products of those of the weights.

    With weights w and gradients dw of what is left of them, `w · (dw - Σ dw·w) · scale`.

    Args:
        context: numba's.
        lines: The products; become the weights times `drop`.
        slopes: Gradients of these; become those of the products.
        step: From one line to the next, of both.
        count: How many lines.
        bias, still, bias_step: What is added.
        drop, drop_step: By what weights are multiplied.
        scale: By what products are multiplied.
        tops, factors: Of the columns.
    """

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lines, slopes, step, count, bias, still, bias_step, drop, drop_step = args[:9]
        scale = spread(builder, args[9], WIDTH)
        of_columns = [_line(builder, at) for at in args[10:]]

        def weigh(line: Any, slope: Any, bias: Any, still: Any, drop: Any, *dots: Any) -> list[Any]:
            columns = zip(*(_line(builder, at) for at in (line, slope, bias, drop)), strict=True)
            found = [
                _weighed(builder, parts, scale, top, factor)
                for parts, top, factor in zip(columns, *of_columns, strict=True)
            ]
            for i, place in enumerate((line, slope)):
                _write(builder, [pair[i] for pair in found], place)
            pairs = zip(found, dots, strict=True)
            news = [_plus(builder, w, d, dot) for (w, d), dot in pairs]
            moved = [builder.add(line, step), builder.add(slope, step)]
            moved += _next_bias(builder, bias, still, bias_step)
            return [*moved, builder.add(drop, drop_step), *news]

        dots = _summed(builder, count, [lines, slopes, bias, still, drop], weigh)

        def finish(line: Any, slope: Any, drop: Any) -> list[Any]:
            weights, more, drops = (_line(builder, at) for at in (line, slope, drop))
            triples = zip(weights, more, dots, strict=True)
            _write(builder, [_slope(builder, w, d, dot, scale) for w, d, dot in triples], slope)
            kept = [builder.fmul(w, d) for w, d in zip(weights, drops, strict=True)]
            _write(builder, kept, line)
            return [
                builder.add(at, by) for at, by in ((line, step), (slope, step), (drop, drop_step))
            ]

        repeat(builder, count, [lines, slopes, drop], finish)
        return context.get_dummy_value()

    return types.void(*[_N] * 9, _F, _N, _N), code
