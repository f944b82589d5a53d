"""Copies and zeros of contiguous numbers, as calls of the C library.

A loop would be compiled to several hundred instructions for each place where it stands.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from .instructions import address_of
from .kernel import intrinsic


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
