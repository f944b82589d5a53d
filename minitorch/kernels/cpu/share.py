"""Blocks that the threads of a kernel take one by one."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _take_number(typing_context, counter):  # type: ignore[no-untyped-def]
    """The number in `counter`, an int64 array, which then grows by one; no two threads get it.

    With it a thread that is slow, since its core has other work too, takes fewer blocks.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", array.data, one, "seq_cst")

    return types.int64(counter), generate


take_number: Any = intrinsic(_take_number)
