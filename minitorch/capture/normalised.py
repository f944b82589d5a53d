"""batch_norm as steps of a kernel: what comes after it then takes no pass over memory of its own.

Its forward call becomes two: one for what backward keeps, and one for the normalised numbers, which
elementwise calls may be joined with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import load_for
from ..ops.norm import batch_norm_op
from .symbols import Expression, applied, reshaped
from .tape import Call, Ref, Tape


def parts_of_norm(tape: Tape, call: Call, least: int) -> list[Call]:
    """The calls that give what a call of batch_norm gives; others stay as they are.

    Args:
        tape: Where the values come from.
        call: Any call.
        least: Elements from which it is worth a kernel.
    """
    if call.body is not batch_norm_op.forward or not isinstance(call.outs, tuple):
        return [call]
    y, (rstd,) = call.outs
    x = tape.array_of(call.args[0])
    if x.ndim < 3 or x.dtype.char not in "fd" or x.size < least:
        return [call]
    again = _roots_of(*(None if a is None else tape.array_of(a) for a in call.args), **call.kwargs)
    if rstd is None or again is None or again.tobytes() != tape.array_of(rstd).tobytes():
        return [call]
    return [
        Call(_roots_of, call.args, call.kwargs, rstd),
        Call(normalised, call.args, {**call.kwargs, "roots": rstd}, y, op=call.op),
    ]


def normalised(*arrays: Any, roots: Any, **params: Any) -> Any:
    """The first result of batch_norm."""
    return batch_norm_op.forward(*arrays, **params)[0]


def _roots_of(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, *, eps: float, training: bool
) -> Any:
    """The second one, `1 / sqrt(var + eps)` as the kernel rounds it; None without the kernel."""
    kernels = load_for("batch_norm", x, weight, bias, mean, var)
    if kernels is None:
        return None
    return kernels.normalise(x.reshape(*x.shape[:2], -1)[:1, :, :0], weight, bias, mean, var, eps)[
        1
    ]


def expression_of_norm(call: Call, leaf: Callable[[Ref], Expression]) -> Expression:
    """What `normalised` computes, rounded as its kernel rounds it.

    Args:
        call: The call.
        leaf: The expression of a value.
    """
    x = leaf(call.args[0])
    seen = (x.shape[1], *[1] * (len(x.shape) - 2))
    lines = (*call.args[1:4], call.kwargs["roots"])
    weight, bias, mean, roots = (r if r is None else reshaped(leaf(r), seen) for r in lines)
    dtype = np.dtype(x.dtype)

    def make(op: str, *args: Any) -> Expression:
        return applied(op, dtype, *args)

    scale = roots if weight is None else make("mul", roots, weight)
    shift = make("mul", make("neg", mean), scale)
    shift = shift if bias is None else make("add", shift, bias)
    return make("fma", x, scale, shift)
