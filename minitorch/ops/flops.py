"""Floating-point operations of products: a multiplication and an addition count as two.

Only products of matrices count, as everywhere: elementwise work is bounded by memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

from .observing import Call
from .primitive import raw

Shape = tuple[int, ...]


def _matmul(shapes: list[Any], out: Shape) -> int:
    return 2 * math.prod(out) * int(shapes[0][-1])


def _convolution(shapes: list[Any], out: Shape) -> int:
    return 2 * math.prod(out) * math.prod(shapes[1][1:])


def _transposed(shapes: list[Any], out: Shape) -> int:
    return 2 * math.prod(shapes[0]) * math.prod(shapes[1][1:])


def _attention(shapes: list[Any], out: Shape) -> int:
    q, k, v = shapes[:3]
    return 2 * math.prod(out[:-1]) * int(k[-2]) * int(q[-1] + v[-1])


def _recurrent(shapes: list[Any], out: Shape) -> int:
    rows, weights = shapes[0][0], [*shapes[3:5], *shapes[7:8]]
    return 2 * int(rows) * sum(math.prod(w) for w in weights if w is not None)


FORMULAS: dict[str, Callable[[list[Any], Shape], int]] = {
    "matmul": _matmul,
    "linear": _matmul,
    "convolution": _convolution,
    "transposed_convolution": _transposed,
    "scaled_dot_product_attention": _attention,
    "recurrent": _recurrent,
}
_TWICE = frozenset(("scaled_dot_product_attention", "recurrent"))
_PER_FACTOR = frozenset(("linear", "convolution", "transposed_convolution"))


def forward_flops(call: Call) -> int:
    """FLOPs of a call that is over; 0 for what is no product."""
    formula = FORMULAS.get(call.name) if call.op is not None and call.node is None else None
    if formula is None or call.output is None:
        return 0
    return formula([_shape(x) for x in call.inputs], _shape(call.output) or ())


def backward_flops(call: Call) -> int:
    """FLOPs of a visit of backward that begins; 0 where its products are calls of their own.

    The gradient of a factor costs what the product cost; so do both together for attention's two
    products, of which each has two factors.
    """
    node = call.node
    if node is None or node.op.name not in _TWICE | _PER_FACTOR:
        return 0
    shapes = [_shape(x) for x in node.saved[: node.op.arity]]
    flops = FORMULAS[node.op.name](shapes, _shape(call.inputs[0]) or ())
    if node.op.name in _TWICE:
        return 2 * flops
    return flops * sum(edge is not None for edge in (node.edges or ())[:2])


def inside_product(call: Call, names: Collection[str] = FORMULAS.keys()) -> bool:
    """Whether a call whose FLOPs are counted as a whole runs around this one."""
    outer = call.parent
    while outer is not None:
        if outer.notes.get("flops"):
            return True
        if outer.op is not None and outer.node is None and outer.name in names:
            return True
        outer = outer.parent
    return False


def _shape(x: Any) -> Shape | None:
    shape = getattr(raw(x), "shape", None)
    if shape is None and hasattr(x, "unpacked"):
        shape = raw(x.unpacked()).shape
    return None if shape is None else tuple(shape)
