"""Sums, differences, products and quotients of large arrays, with the bits of NumPy's.

An operand that is shorter than the result is read again from its start when it ends: a line beside
rows of its length, or a number, which is written out to a line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from .instructions import INT64, Vectors, address_of, gep, repeat
from .kernel import intrinsic, kernel

_BLOCK = 4096
_NUMBERS = 1024  # of a line that holds one number
_OPERATIONS = {"add": 0, "sub": 1, "mul": 2, "div": 3}


@intrinsic
def _combine(context, operation, a, i, b, k, y, at, count):  # type: ignore[no-untyped-def]
    """y[at + j] = a[i + j] ∘ b[k + j] for j < count, where ∘ is one of `_OPERATIONS`."""
    n = types.int64
    signature = types.void(n, a, n, b, n, y, n, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[1])
        starts = [address_of(context, builder, kinds[p], *args[p : p + 2]) for p in (1, 3, 5)]
        instructions = (builder.fadd, builder.fsub, builder.fmul, builder.fdiv)
        for name, instruction in enumerate(instructions):
            with builder.if_then(builder.icmp_signed("==", args[0], INT64(name))):
                _write(builder, lanes, instruction, starts, args[7])
        return context.get_dummy_value()

    return signature, code


def _write(builder: Any, lanes: Vectors, instruction: Any, starts: list[Any], count: Any) -> None:
    """The loops of one operation: over vectors, then over what is left."""
    width = INT64(lanes.count)
    times = builder.sdiv(count, width)

    def vector(a: Any, b: Any, y: Any) -> list[Any]:
        lanes.store(instruction(lanes.load(a), lanes.load(b)), y)
        return [gep(builder, place, lanes.count) for place in (a, b, y)]

    def number(a: Any, b: Any, y: Any) -> list[Any]:
        builder.store(instruction(builder.load(a), builder.load(b)), y)
        return [gep(builder, place, 1) for place in (a, b, y)]

    rest = repeat(builder, times, starts, vector)
    repeat(builder, builder.sub(count, builder.mul(times, width)), rest, number)


@kernel(written_out=True)
def _pair(first, last, y, a, b, operation):  # type: ignore[no-untyped-def]
    at, stop = first * _BLOCK, min(last * _BLOCK, len(y))
    while at < stop:
        i, k = at % len(a), at % len(b)
        count = min(stop - at, len(a) - i, len(b) - k)
        _combine(operation, a, i, b, k, y, at, count)
        at += count


def _flat(x: Any, dtype: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.reshape(-1)
    line = np.empty(_NUMBERS, dtype)
    line.fill(x)
    return line


def pair(name: str, a: Any, b: Any, out: Any) -> Any:
    """`out = a ∘ b`; `out` may be one of them.

    Args:
        name: add, sub, mul or div.
        a: A contiguous array of the dtype of `out` whose shape ends that of `out`, or a number.
        b: Likewise.
        out: A contiguous array, not empty.
    """
    blocks = -(-out.size // _BLOCK)
    flat = out.reshape(-1), _flat(a, out.dtype), _flat(b, out.dtype)
    _pair(blocks, *flat, _OPERATIONS[name])
    return out
