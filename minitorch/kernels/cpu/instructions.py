"""LLVM instructions that the vector code of kernels is made of: places, vectors, loops.

`vector.py` has float32 in eights, `Vectors` either type of float in 256 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

VECTOR_BYTES = 32
FLOAT, INT32, INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
FUSED = ("contract",)  # a product and a sum may become one instruction


def gep(builder: Any, pointer: Any, position: Any) -> Any:
    """The address that lies so many numbers behind another one."""
    if isinstance(position, int):
        position = INT64(position)
    return builder.gep(pointer, [position])


def address_of(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    """The address of an element of a one-dimensional array."""
    data = context.data_model_manager[kind].get_field_position("data")
    return gep(builder, builder.extract_value(array, data), position)


def load_index(builder: Any, pointer: Any, position: Any) -> Any:
    """A number of a table of int32, as int64."""
    return builder.sext(builder.load(gep(builder, pointer, position)), INT64)


def spread(builder: Any, number: Any, count: int) -> Any:
    """A vector of one number."""
    none = ir.Constant(ir.VectorType(number.type, count), ir.Undefined)
    first = builder.insert_element(none, number, INT32(0))
    order = ir.Constant(ir.VectorType(INT32, count), [0] * count)
    return builder.shuffle_vector(first, none, order)


def repeat(builder: Any, times: Any, values: list[Any], body: Callable[..., list[Any]]) -> Any:
    """What becomes of `values` when `body` has been applied `times` times."""
    entry = builder.block
    loop, done = builder.append_basic_block("round"), builder.append_basic_block("rounds.done")
    builder.cbranch(builder.icmp_signed(">", times, INT64(0)), loop, done)
    builder.position_at_end(loop)
    left, *olds = [builder.phi(v.type) for v in (times, *values)]
    news = body(*olds)
    less, end = builder.sub(left, INT64(1)), builder.block
    for old, start, new in zip((left, *olds), (times, *values), (less, *news), strict=True):
        old.add_incoming(start, entry)
        old.add_incoming(new, end)
    builder.cbranch(builder.icmp_signed(">", less, INT64(0)), loop, done)
    builder.position_at_end(done)
    results = []
    for start, new in zip(values, news, strict=True):
        results.append(builder.phi(start.type))
        results[-1].add_incoming(start, entry)
        results[-1].add_incoming(new, end)
    return results


def call_intrinsic(builder: Any, name: str, result: Any, args: list[Any]) -> Any:
    """A function of LLVM's own."""
    kind = ir.FunctionType(result, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


class Vectors:
    """Instructions for vectors of 256 bits of an array's numbers, float32 or float64.

    Attributes:
        count: Numbers in a vector.
        itemsize: Bytes of one.
        kind: LLVM's type of a vector.
        zero: One of zeros.
    """

    def __init__(self, builder: Any, kind: Any) -> None:
        self.builder, self.itemsize = builder, kind.dtype.bitwidth // 8
        self.count = VECTOR_BYTES // self.itemsize
        self.number = ir.FloatType() if self.itemsize == 4 else ir.DoubleType()
        self.kind = ir.VectorType(self.number, self.count)
        self.zero = ir.Constant(self.kind, [0.0] * self.count)

    def load(self, pointer: Any, kind: Any = None) -> Any:
        """Those at a place, or as many of another kind."""
        kind = kind or self.kind
        vector = self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()))
        vector.align = self.itemsize if kind is self.kind else kind.element.width // 8
        return vector

    def store(self, vector: Any, pointer: Any) -> None:
        """Writes them to a place."""
        place = self.builder.bitcast(pointer, self.kind.as_pointer())
        self.builder.store(vector, place).align = self.itemsize

    def many(self, number: Any) -> Any:
        """A vector of one number."""
        return spread(self.builder, number, self.count)

    def plus_product(self, total: Any, a: Any, b: Any) -> Any:
        """total + a · b, rounded once where the processor can."""
        return self.builder.fadd(self.builder.fmul(a, b, flags=FUSED), total, flags=FUSED)
