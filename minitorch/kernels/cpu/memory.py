"""Memory in bodies: where arrays lie, room of a call, copies and zeros.

Copies and zeros are calls of the C library: a loop would be compiled to several hundred
instructions for each place where it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from ...backend.memory import HEAD, READABLE
from .instructions import FLOAT, INT64, address_of
from .kernel import intrinsic


def _check_addresses() -> None:
    if not READABLE:
        raise RuntimeError(
            f"kernels: NumPy {np.__version__} keeps the addresses of arrays elsewhere than the "
            "versions that are known here. Install one of those, or set MINITORCH_KERNELS=off."
        )


_check_addresses()


@intrinsic
def address(typing_context, array):  # type: ignore[no-untyped-def]
    """Where the numbers of an array begin that is given by its `id`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.add(args[0], INT64(HEAD))
        return builder.load(builder.inttoptr(place, INT64.as_pointer()))

    return types.int64(types.int64), code


# A `bytes` object holds what it was made of behind its head, and a zero at the end.
_BYTES_HEAD = bytes.__basicsize__ - 1


def words_of(packed: bytes) -> int:
    """Where the words of packed memory begin, as `word` takes it; valid while `packed` lives."""
    return id(packed) + _BYTES_HEAD


@intrinsic
def word(typing_context, words, number):  # type: ignore[no-untyped-def]
    """One of the int64 that lie at an address."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.gep(builder.inttoptr(args[0], INT64.as_pointer()), [args[1]]))

    return types.int64(types.int64, types.int64), code


def stack(numbers: int) -> Any:
    """A function that gives the address of so many float32, which last until its caller returns."""

    def memory(context):  # type: ignore[no-untyped-def]
        def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
            with builder.goto_entry_block():
                room = builder.alloca(ir.ArrayType(FLOAT, numbers))
            return builder.ptrtoint(room, INT64)

        return types.int64(), code

    return intrinsic(memory)


def _bytes(context: Any, builder: Any, kind: Any, count: Any) -> Any:
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    return builder.mul(count, context.get_constant(types.int64, size))


@intrinsic
def clear(typing_context, array, at, count):  # type: ignore[no-untyped-def]
    """array[at : at + count] = 0, for a contiguous array with one axis; nothing is checked."""
    n = types.int64
    signature = types.void(array, n, n)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        target = address_of(context, builder, kind, *args[:2])
        cgutils.memset(builder, target, _bytes(context, builder, kind, args[2]), 0)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def copy(typing_context, source, at, target, to, count):  # type: ignore[no-untyped-def]
    """target[to : to + count] = source[at : at + count], likewise, of arrays that lie apart."""
    n = types.int64
    signature = types.void(source, n, target, n, n)

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        begin = address_of(context, builder, kinds[0], *args[:2])
        end = address_of(context, builder, kinds[2], *args[2:4])
        size = _bytes(context, builder, kinds[0], args[4])
        cgutils.raw_memcpy(builder, end, begin, size, 1, align=1)
        return context.get_dummy_value()

    return signature, code
