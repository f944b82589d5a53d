"""Vector code that numba does not make of loops by itself, written as LLVM instructions.

`multiply_tile` and `multiply_six` are the inner loops of every product here: sums of 6 rows and 16
columns stay in registers while the terms go by, which on two 256-bit multipliers takes nine tenths
of what they can do as long as the numbers come from the first cache. They differ in where the left
numbers lie: at positions from two tables, or a step apart. `turn` transposes 8 × 8 numbers. All
take float32; nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from .instructions import (
    FLOAT,
    FUSED,
    INT32,
    INT64,
    address_of,
    call_intrinsic,
    gep,
    load_index,
    repeat,
    spread,
)
from .kernel import inlined, intrinsic

ROWS = 6
FEW_ROWS = 4  # of the tile for what is left of the rows
COLUMNS = 16
WIDE = 64  # columns that are summed side by side
FETCHED = 8
_AHEAD = 8  # lines by which memory is read ahead of sums
_UNROLLED = 4  # terms that are written out in a loop over them
WIDTH = 8
_VECTORS = COLUMNS // WIDTH
_ITEMSIZE = 4

_BYTES = ir.IntType(8).as_pointer()
VECTOR = ir.VectorType(FLOAT, WIDTH)
_ZERO = ir.Constant(VECTOR, [0.0] * WIDTH)


def load(builder: Any, pointer: Any) -> Any:
    """Eight numbers."""
    vector = builder.load(builder.bitcast(pointer, VECTOR.as_pointer()))
    vector.align = _ITEMSIZE
    return vector


def store(builder: Any, vector: Any, pointer: Any) -> None:
    """Writes eight numbers."""
    builder.store(vector, builder.bitcast(pointer, VECTOR.as_pointer())).align = _ITEMSIZE


def _shuffle(builder: Any, a: Any, b: Any, *places: int) -> Any:
    mask = ir.Constant(ir.VectorType(INT32, WIDTH), list(places))
    return builder.shuffle_vector(a, b, mask)


def _more_terms(
    builder: Any,
    bases: list[Any],
    step: Callable[..., Any],
    first: Any,
    b: Any,
    count: Any,
    sums: list[Any],
) -> Any:
    """The sums, a vector for each half of each row, after `count` more terms.

    Args:
        builder: LLVM's.
        bases: Where each row begins.
        step: From a place, the distance of a left number from `bases`, and the next place.
        first: The place of the first term.
        b: The first line of 16.
        count: How many terms.
        sums: The sums before.
    """

    def term(place: Any, line: Any, *sums: Any) -> list[Any]:
        distance, place = step(place)
        right = [load(builder, gep(builder, line, v * WIDTH)) for v in range(_VECTORS)]
        news = []
        for r, base in enumerate(bases):
            left = spread(builder, builder.load(gep(builder, base, distance)), WIDTH)
            for v, old in enumerate(sums[r * _VECTORS : (r + 1) * _VECTORS]):
                product = builder.fmul(left, right[v], flags=FUSED)
                news.append(builder.fadd(product, old, flags=FUSED))
        return [place, gep(builder, line, COLUMNS), *news]

    def terms(*values: Any) -> list[Any]:
        news = list(values)
        for _ in range(_UNROLLED):
            news = term(*news)
        return news

    many = builder.ashr(count, INT64(_UNROLLED.bit_length() - 1))
    rest = builder.and_(count, INT64(_UNROLLED - 1))
    values = repeat(builder, many, [first, b, *sums], terms)
    return repeat(builder, rest, values, term)[2:]


@intrinsic
def multiply_tile(  # type: ignore[no-untyped-def]
    context, a, rows, row, shifts, shift, count, b, b_at, out, out_at, add
):
    """out[r, :] (+)= Σ_t a[rows[row + r] + shifts[shift + t]] · b[t, :] for six r and 16 columns.

    Args:
        context: numba's.
        a: float32, read at the sum of two positions.
        rows: int32 positions of the rows of the product; `row` is the first of the six.
        shifts: int32 positions of the terms of the sums; `shift` is the first of `count`.
        b: float32 with a line of 16 for each term, the first at `b_at`.
        out: float32, six lines of 16 from `out_at` on.
        add: Whether to add to `out` or to write.
    """
    n = types.int64
    signature = types.void(a, rows, n, shifts, n, n, b, n, out, n, types.boolean)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds = signature.args
        _, _, row, _, shift, count, _, b_at, _, out_at, add = args

        def pointer(i: int, position: Any) -> Any:
            return address_of(context, builder, kinds[i], args[i], position)

        def step(place: Any) -> tuple[Any, Any]:
            return load_index(builder, place, 0), gep(builder, place, 1)

        start, lines = pointer(0, INT64(0)), pointer(1, row)
        bases = [gep(builder, start, load_index(builder, lines, r)) for r in range(ROWS)]
        target = pointer(8, out_at)
        places = [gep(builder, target, i * WIDTH) for i in range(ROWS * _VECTORS)]
        sums = [builder.select(add, load(builder, p), _ZERO) for p in places]
        first, b = pointer(3, shift), pointer(6, b_at)
        sums = _more_terms(builder, bases, step, first, b, count, sums)
        for total, place in zip(sums, places, strict=True):
            store(builder, total, place)
        return context.get_dummy_value()

    return signature, code


def _turned(builder: Any, lines: list[Any]) -> list[Any]:
    """The columns of eight vectors of eight."""
    pairs = [(lines[i], lines[i + 1]) for i in (0, 2, 4, 6)]
    low = [_shuffle(builder, *p, 0, 8, 1, 9, 4, 12, 5, 13) for p in pairs]
    high = [_shuffle(builder, *p, 2, 10, 3, 11, 6, 14, 7, 15) for p in pairs]
    four = []
    for i in (0, 2):
        for half in (low, high):
            four.append(_shuffle(builder, *half[i : i + 2], 0, 1, 8, 9, 4, 5, 12, 13))
            four.append(_shuffle(builder, *half[i : i + 2], 2, 3, 10, 11, 6, 7, 14, 15))
    ends = [(four[i], four[i + 4]) for i in range(4)]
    columns = [_shuffle(builder, *e, 0, 1, 2, 3, 8, 9, 10, 11) for e in ends]
    return columns + [_shuffle(builder, *e, 4, 5, 6, 7, 12, 13, 14, 15) for e in ends]


def _turned_at(context: Any, builder: Any, kind: Any, args: Any) -> list[Any]:
    """The columns of the eight lines from args[1] of the array args[0] on, args[2] apart."""
    first = address_of(context, builder, kind, args[0], args[1])
    lines = [builder.mul(args[2], INT64(i)) for i in range(WIDTH)]
    return _turned(builder, [load(builder, gep(builder, first, line)) for line in lines])


@intrinsic
def turn(context, source, source_at, source_step, target, target_at, target_step):  # type: ignore[no-untyped-def]
    """target[j, i] = source[i, j] for i, j < 8, float32; lines are `…_step` apart."""
    n = types.int64
    signature = types.void(source, n, n, target, n, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds = signature.args
        columns = _turned_at(context, builder, kinds[0], args)
        first = address_of(context, builder, kinds[3], args[3], args[4])
        for j, column in enumerate(columns):
            store(builder, column, gep(builder, first, builder.mul(args[5], INT64(j))))
        return context.get_dummy_value()

    return signature, code


def _apart(builder: Any, columns: list[Any], odd: Any, place: Any, step: Any, onto: Any) -> None:
    parity = ir.Constant(ir.VectorType(INT64, WIDTH), [0, 1] * (WIDTH // 2))
    ours = builder.icmp_signed("==", parity, spread(builder, odd, WIDTH))
    for j, column in enumerate(columns):
        for half in range(2):
            twice = [half * WIDTH // 2 + i // 2 for i in range(WIDTH)]
            order = ir.Constant(ir.VectorType(INT32, WIDTH), twice)
            numbers = builder.shuffle_vector(column, column, order)
            at = builder.add(builder.mul(step, INT64(j)), INT64(half * WIDTH))
            if onto is not None:
                numbers = builder.fadd(numbers, load(builder, gep(builder, onto, at)))
            end = gep(builder, place, at)
            store(builder, builder.select(ours, numbers, load(builder, end)), end)


@intrinsic
def turn_apart(context, source, at, step, target, to, target_step, odd):  # type: ignore[no-untyped-def]
    """target[j, 2·i + odd] = source[i, j] for i, j < 8; the numbers between these stay."""
    n = types.int64
    signature = types.void(source, n, n, target, n, n, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds = signature.args
        columns = _turned_at(context, builder, kinds[0], args)
        first = address_of(context, builder, kinds[3], args[3], args[4])
        _apart(builder, columns, args[6], first, args[5], None)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def turn_apart_onto(context, source, at, step, target, to, target_step, odd, onto):  # type: ignore[no-untyped-def]
    """As `turn_apart`, with the numbers at the same places of `onto` added."""
    n = types.int64
    signature = types.void(source, n, n, target, n, n, n, onto)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds = signature.args
        columns = _turned_at(context, builder, kinds[0], args)
        first = address_of(context, builder, kinds[3], args[3], args[4])
        more = address_of(context, builder, kinds[7], args[7], args[4])
        _apart(builder, columns, args[6], first, args[5], more)
        return context.get_dummy_value()

    return signature, code


@inlined
def put_columns(lines, at, y, to, count, step, columns):  # type: ignore[no-untyped-def]
    """y[to + j·step + l] = lines[at + 16·l + j]: `count` places of some columns."""
    for j in range(0, columns, WIDTH):
        done = 0
        if j + WIDTH <= columns:
            while done + WIDTH <= count:
                turn(lines, at + done * COLUMNS + j, COLUMNS, y, to + j * step + done, step)
                done += WIDTH
            if done < count and count >= WIDTH:
                last = count - WIDTH
                turn(lines, at + last * COLUMNS + j, COLUMNS, y, to + j * step + last, step)
                done = count
        for k in range(j, min(j + WIDTH, columns)):
            for p in range(done, count):
                y[to + k * step + p] = lines[at + p * COLUMNS + k]


# ---- on addresses --------------------------------------------------------------------------------
# Addresses and steps count bytes, so that one piece of code serves arrays of any strides.


def _mask(builder: Any, columns: Any, first: int) -> Any:
    """Which of eight columns from `first` on are among the first `columns`."""
    kind = ir.VectorType(INT64, WIDTH)
    places = ir.Constant(kind, list(range(first, first + WIDTH)))
    return builder.icmp_signed("<", places, spread(builder, columns, WIDTH))


def _load_some(builder: Any, pointer: Any, mask: Any) -> Any:
    """The numbers that the mask allows, zeros for the others."""
    pointer = builder.bitcast(pointer, VECTOR.as_pointer())
    args = [pointer, INT32(_ITEMSIZE), mask, _ZERO]
    return call_intrinsic(builder, "llvm.masked.load.v8f32.p0", VECTOR, args)


def _store_some(builder: Any, vector: Any, pointer: Any, mask: Any) -> None:
    pointer = builder.bitcast(pointer, VECTOR.as_pointer())
    args = [vector, pointer, INT32(_ITEMSIZE), mask]
    call_intrinsic(builder, "llvm.masked.store.v8f32.p0", ir.VoidType(), args)


def _floats(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, FLOAT.as_pointer())


def _lines(builder: Any, address: Any, step: Any, lines: int, given: Any = None) -> list[Any]:
    """Where lines begin that are `step` apart; those from `given` on are the last one again."""
    numbers = [INT64(r) for r in range(lines)]
    if given is not None:
        last = builder.sub(given, INT64(1))
        numbers = [builder.select(builder.icmp_signed("<", last, r), last, r) for r in numbers]
    return [_floats(builder, builder.add(address, builder.mul(step, r))) for r in numbers]


def _halves(builder: Any, lines: list[Any]) -> list[Any]:
    return [gep(builder, line, v * WIDTH) for line in lines for v in range(_VECTORS)]


def _prefetch(builder: Any, place: Any, write: int, locality: int) -> None:
    """Brings what lies at a place into the first cache (locality 3) or the second one (2)."""
    args = [builder.bitcast(place, _BYTES), *map(INT32, (write, locality, 1))]
    call_intrinsic(builder, "llvm.prefetch.p0", ir.VoidType(), args)


def _fetch(builder: Any, line: Any) -> None:
    """Brings a line into the first cache, since it will be written."""
    for place in (0, COLUMNS - 1):
        _prefetch(builder, gep(builder, line, place), 1, 3)


def _write_sums(
    builder: Any, starts: list[Any], sums: list[Any], places: list[Any], masks: list[Any] | None
) -> None:
    """places = starts + sums, where the masks allow it.

    All loads come before the stores: where rows lie whole pages apart, a processor takes a load for
    one of the stores before it, and waits.
    """
    if masks is None:
        olds = [load(builder, start) for start in starts]
    else:
        olds = [_load_some(builder, *at) for at in zip(starts, masks, strict=True)]
    news = [builder.fadd(*pair) for pair in zip(olds, sums, strict=True)]
    # Where the last row is written several times, its own numbers come last.
    for i in reversed(range(len(news))):
        if masks is None:
            store(builder, news[i], places[i])
        else:
            _store_some(builder, news[i], places[i], masks[i])


@intrinsic
def fetch_lines(context, source):  # type: ignore[no-untyped-def]
    """Brings FETCHED lines of 16 numbers into the second cache, since they will be read soon."""
    signature = types.void(types.int64)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        for i in range(FETCHED):
            place = builder.add(args[0], INT64(i * COLUMNS * _ITEMSIZE))
            _prefetch(builder, _floats(builder, place), 0, 2)
        return context.get_dummy_value()

    return signature, code


def _multiply_rows(rows: int) -> Any:
    """`multiply_six` for another number of rows."""

    def multiply(  # type: ignore[no-untyped-def]
        context, a, across, along, b, count, start, start_step, out, out_step, given, columns
    ):
        signature = types.void(*[types.int64] * 11)

        def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
            a, across, along, b, count, start, start_step, out, out_step, given, columns = args

            def step(place: Any) -> tuple[Any, Any]:
                return place, builder.add(place, steps)

            steps = builder.ashr(along, INT64(2))
            whole = builder.icmp_signed(">=", columns, INT64(COLUMNS))
            whole = builder.and_(whole, builder.icmp_signed(">=", given, INT64(rows)))
            targets = _lines(builder, out, out_step, rows)
            for line in targets:
                _fetch(builder, line)
            bases, line = _lines(builder, a, across, rows, given), _floats(builder, b)
            sums = [_ZERO] * (rows * _VECTORS)
            sums = _more_terms(builder, bases, step, INT64(0), line, count, sums)
            with builder.if_else(whole) as (all_of_it, some):
                with all_of_it:
                    starts = _halves(builder, _lines(builder, start, start_step, rows))
                    _write_sums(builder, starts, sums, _halves(builder, targets), None)
                with some:
                    masks = [_mask(builder, columns, v * WIDTH) for v in range(_VECTORS)] * rows
                    starts = _halves(builder, _lines(builder, start, start_step, rows, given))
                    places = _halves(builder, _lines(builder, out, out_step, rows, given))
                    _write_sums(builder, starts, sums, places, masks)
            return context.get_dummy_value()

        return signature, code

    multiply.__doc__ = f"""out[r, j] = start[r, j] + Σ_t a[r, t] · b[t, j] for up to {rows} rows.

    Args:
        context: numba's.
        a: Address of the left numbers.
        across: From one row of `a` to the next.
        along: From one term of `a` to the next.
        b: Address of a line of 16 for each term.
        count: How many terms.
        start: Address of what the sums are added to; may be `out`.
        start_step: From one row of it to the next.
        out: Address of the result.
        out_step: From one row of it to the next.
        given: How many of the rows there are.
        columns: How many of the 16 columns there are.
    """
    return intrinsic(multiply)


multiply_six, multiply_four = _multiply_rows(ROWS), _multiply_rows(FEW_ROWS)


@intrinsic
def turn_lines(context, source, step, given, target, target_step):  # type: ignore[no-untyped-def]
    """target[t, i] = source[i, t] for eight of each; lines from `given` on are the last one again.

    The eight lines are written in order, so that they may be less than eight numbers apart.
    """
    signature = types.void(*[types.int64] * 5)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source, step, given, target, target_step = args
        lines = [load(builder, p) for p in _lines(builder, source, step, WIDTH, given)]
        for t, column in enumerate(_turned(builder, lines)):
            place = builder.add(target, builder.mul(target_step, INT64(t)))
            store(builder, column, _floats(builder, place))
        return context.get_dummy_value()

    return signature, code


def _copy(*parts: int) -> Any:
    """target[i] = source[i] for as many numbers as the parts have together."""

    def copy(context, source, target):  # type: ignore[no-untyped-def]
        signature = types.void(types.int64, types.int64)

        def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
            for i, n in enumerate(parts):
                kind, before = ir.VectorType(FLOAT, n).as_pointer(), _ITEMSIZE * sum(parts[:i])
                start, end = [
                    builder.inttoptr(builder.add(address, INT64(before)), kind) for address in args
                ]
                numbers = builder.load(start)
                numbers.align = _ITEMSIZE
                builder.store(numbers, end).align = _ITEMSIZE
            return context.get_dummy_value()

        return signature, code

    return intrinsic(copy)


copy_one, copy_six, copy_line = _copy(1), _copy(4, 2), _copy(8, 8)


@intrinsic
def sum_lines(context, source, step, count, out, columns):  # type: ignore[no-untyped-def]
    """out[j] = Σ_i source[i, j] for up to 16 columns and `count` lines that are `step` apart."""
    signature = types.void(*[types.int64] * 5)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source, step, count, out, columns = args
        masks = [_mask(builder, columns, v * WIDTH) for v in range(_VECTORS)]

        def body(line: Any, *sums: Any) -> list[Any]:
            places = _halves(builder, [_floats(builder, line)])
            pairs = zip(places, masks, strict=True)
            more = [_load_some(builder, place, mask) for place, mask in pairs]
            news = [builder.fadd(a, b) for a, b in zip(sums, more, strict=True)]
            return [builder.add(line, step), *news]

        _, *sums = repeat(builder, count, [source, *[_ZERO] * _VECTORS], body)
        places = _halves(builder, [_floats(builder, out)])
        for total, place, mask in zip(sums, places, masks, strict=True):
            _store_some(builder, total, place, mask)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def sum_wide_lines(context, source, step, count, out):  # type: ignore[no-untyped-def]
    """As `sum_lines`, for WIDE columns, whose sums do not wait for each other."""
    signature = types.void(*[types.int64] * 4)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source, step, count, out = args
        starts = range(0, WIDE, WIDTH)

        def body(line: Any, *sums: Any) -> list[Any]:
            ahead = _floats(builder, builder.add(line, builder.mul(step, INT64(_AHEAD))))
            for start in range(0, WIDE, COLUMNS):
                _prefetch(builder, gep(builder, ahead, start), 0, 3)
            numbers = _floats(builder, line)
            more = [load(builder, gep(builder, numbers, start)) for start in starts]
            news = [builder.fadd(a, b) for a, b in zip(sums, more, strict=True)]
            return [builder.add(line, step), *news]

        _, *sums = repeat(builder, count, [source, *[_ZERO] * len(starts)], body)
        for start, total in zip(starts, sums, strict=True):
            store(builder, total, gep(builder, _floats(builder, out), start))
        return context.get_dummy_value()

    return signature, code
