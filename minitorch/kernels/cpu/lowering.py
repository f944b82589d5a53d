"""How the statements of a body become LLVM instructions: numba's way, with fewer detours.

numba writes every array, range and pair to memory and reads its parts from there, clears what is
not used any more, and asks for negative indices also where the index is a known number. LLVM
removes all that, but most of a compilation is Python that writes it down. Here numbers stay values:
elements of arrays, loops over a `range`, quotients by known numbers; the rest is left to numba.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core import ir as numba_ir
from numba.core.errors import new_error_context  # type: ignore[attr-defined]
from numba.core.lowering import Lower
from numba.core.typing import signature

_INDEX = ir.IntType(64)
_MOST = (1 << 63) - 1
_ALIGNED = 32  # bytes, as numba has new arrays
_INTEGERS = signature(types.int64, types.int64, types.int64)
_MEMBERS = {"size": "nitems", "itemsize": "itemsize", "shape": "shape"}
_QUOTIENTS = {operator.floordiv, operator.mod, operator.ifloordiv, operator.imod}


def part(builder: Any, whole: Any, position: int) -> Any:
    """An element of a struct or tuple, without an instruction where it has just been put there."""
    while isinstance(whole, ir.instructions.InsertValue) and len(whole.indices) == 1:
        if whole.indices[0] == position:
            return whole.value
        whole = whole.aggregate
    return builder.extract_value(whole, position)


def _together(builder: Any, kind: Any, values: list[Any]) -> Any:
    """A struct of these values."""
    whole = ir.Constant(kind, ir.Undefined)
    for i, value in enumerate(values):
        whole = builder.insert_value(whole, value, i)
    return whole


def _known(value: Any) -> int | None:
    """The number that a constant is."""
    number = value.constant if isinstance(value, ir.Constant) else None
    return number if isinstance(number, int) else None


def _each(kind: Any) -> list[Any]:
    """The types in that of a tuple; else the type."""
    kinds: Any = kind
    return list(kinds) if isinstance(kind, types.BaseTuple) else [kind]


def known_call(function: Any, args: tuple[Any, ...]) -> Any:
    """The signature of a call that is written here, for which numba would compile functions.

    Args:
        function: What is called.
        args: Types.

    Returns:
        The signature; None for calls that are left to numba.
    """
    if len(args) != 2:
        return None
    first, second = args
    if function in (min, max):
        numbers = (types.unliteral(kind) for kind in args)
        return _INTEGERS if all(kind == types.int64 for kind in numbers) else None
    if function in (np.empty, np.zeros) and isinstance(second, types.NumberClass | types.DType):
        sizes = _each(first)
        if all(isinstance(kind, types.Integer) for kind in sizes):
            return signature(types.Array(second.dtype, len(sizes), "C"), *args)
    return None


_NEEDED = (
    "_lower_call_normal",
    "_cast_var",
    "lower_getitem",
    "lower_setitem",
    "storevar",
    "delvar",
)
if lacking := [name for name in _NEEDED if not hasattr(Lower, name)]:
    raise ImportError(f"numba's Lower lacks {', '.join(lacking)}")


class BodyLower(Lower):
    """numba's class for the statements of a function, see the top."""

    # ---- variables -------------------------------------------------------------------------------

    def lower(self) -> None:
        """References are counted only in a body that makes arrays; others live with its caller."""
        whole = self.context
        if not any(isinstance(kind, types.Array) for kind in self._made()):
            self.context = whole.subtarget(enable_nrt=False)
        try:
            super().lower()
        finally:
            self.context = whole

    def _made(self) -> Iterator[Any]:
        """The types of what calls of functions return."""
        for block in self.blocks.values():
            for call in block.find_exprs(op="call"):
                yield self.fndesc.calltypes[call].return_type

    def _counted(self, kind: Any) -> bool:
        """Whether values have counts of references in them."""
        model = self.context.data_model_manager[kind]
        return bool(self.context.enable_nrt and model.contains_nrt_meminfo())

    def incref(self, typ: Any, val: Any) -> None:
        """Counts a reference."""
        if self._counted(typ):
            super().incref(*self._count_of(typ, val))

    def decref(self, typ: Any, val: Any) -> None:
        """Counts one less."""
        if self._counted(typ):
            super().decref(*self._count_of(typ, val))

    def _count_of(self, kind: Any, value: Any) -> tuple[Any, Any]:
        """What has the count; numba takes an array apart to find it."""
        if not isinstance(kind, types.Array):
            return kind, value
        own = self.context.data_model_manager[kind].get_type("meminfo")
        return own, self._member(kind, value, "meminfo")

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """A number needs no look at what the variable was before."""
        if argidx is not None or self._counted(self.typeof(name)):
            super().storevar(value, name, argidx)
        elif name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """A number that is not used any more may stay where it is."""
        if self._counted(self.typeof(name)):
            super().delvar(name)
        elif name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)  # deleted before it is assigned

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """As numba, without what debuggers want to know."""
        return cgutils.alloca_once(self.builder, lltype, name=name)

    # ---- statements ------------------------------------------------------------------------------

    def lower_block(self, block: Any) -> None:
        """As numba, which prepares for an error at each statement."""
        self.pre_block(block)
        for inst in block.body:
            self.loc = inst.loc
            try:
                self.lower_inst(inst)
            except Exception:
                with new_error_context('lowering "{inst}" at {loc}', inst=inst, loc=self.loc):
                    raise
        self.post_block(block)

    def lower_inst(self, inst: Any) -> None:
        """As numba, without the text of each statement."""
        if isinstance(inst, numba_ir.Assign) and not isinstance(inst.value, numba_ir.Arg):
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        elif isinstance(inst, numba_ir.Del):
            self.delvar(inst.value)
        elif isinstance(inst, numba_ir.StaticSetItem) and inst.index_var is not None:
            kinds = self.fndesc.calltypes[inst]
            self.lower_setitem(inst.target, inst.index_var, inst.value, kinds)
        else:
            super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """As numba, but for elements at known places, and ranges."""
        builder, op = self.builder, expr.op
        if op == "static_getitem" and expr.index_var is not None:
            if isinstance(self.typeof(expr.value.name), types.Array):
                kinds = self.fndesc.calltypes[expr]
                return self.lower_getitem(resty, expr, expr.value, expr.index_var, kinds)
        elif op == "getattr" and expr.attr in _MEMBERS:
            array = self.typeof(expr.value.name)
            if isinstance(array, types.Array):
                return self._member(array, self.loadvar(expr.value.name), _MEMBERS[expr.attr])
        elif op in ("pair_first", "pair_second") and not self._counted(resty):
            return part(builder, self.loadvar(expr.value.name), int(op == "pair_second"))
        elif op == "getiter" and isinstance(self.typeof(expr.value.name), types.RangeType):
            begun = self._begin(resty, self.loadvar(expr.value.name))
            if begun is not None:
                return begun
        elif op == "iternext" and isinstance(self.typeof(expr.value.name), types.RangeIteratorType):
            return self._next(resty, self.loadvar(expr.value.name))
        return super().lower_expr(resty, expr)

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        function, builder = getattr(fnty, "typing_key", None), self.builder
        kinds = [self.typeof(var.name) for var in expr.args]
        if expr.kws or expr.vararg or not kinds:
            pass
        elif function is len and isinstance(kinds[0], types.Array):
            return self._member(kinds[0], self.loadvar(expr.args[0].name), "shape", 0)
        elif function in (range, slice):
            if len(kinds) < 4 - (function is slice) and signature.return_type != types.slice3_type:
                return self._span(function, expr.args, signature)
        elif signature is _INTEGERS:
            a, b = (self._cast_var(var, types.int64) for var in expr.args)
            other = builder.icmp_signed("<" if function is min else ">", b, a)
            return builder.select(other, b, a)
        elif function in (np.empty, np.zeros) and known_call(function, signature.args):
            return self._new(signature, expr.args[0], function is np.zeros)
        return super()._lower_call_normal(fnty, expr, signature)

    def _span(self, function: Any, given: Any, signature: Any) -> Any:
        """A range or a slice: start, stop, step."""
        kind = self.context.get_value_type(signature.return_type)
        number = kind.elements[0]
        start, stop, step = number(0), number(_MOST), number(1)
        pairs = list(zip(given, signature.args, strict=True))
        values = [None if k is types.none else self._cast_var(var, k) for var, k in pairs]
        if len(values) == 1:
            values.insert(0, None)
        chosen = zip(values + [None] * (3 - len(values)), (start, stop, step), strict=True)
        both = [other if value is None else value for value, other in chosen]
        return _together(self.builder, kind, both)

    def _new(self, signature: Any, shape: Any, clear: bool) -> Any:
        """A new array."""
        builder, kind, given = self.builder, signature.return_type, self.typeof(shape.name)
        kinds, sizes = _each(given), [self.loadvar(shape.name)]
        if isinstance(given, types.BaseTuple):
            sizes = [part(builder, sizes[0], i) for i in range(len(kinds))]
        pairs = zip(sizes, kinds, strict=True)
        sizes = [self.context.cast(builder, size, k, types.intp) for size, k in pairs]
        number = self.context.get_data_type(kind.dtype)
        count, itemsize = sizes[0], _INDEX(self.context.get_abi_sizeof(number))
        strides = [itemsize]
        for size in sizes[:0:-1]:
            strides.insert(0, builder.mul(strides[0], size))
        for size in sizes[1:]:
            count = builder.mul(count, size)
        room, counted = builder.mul(count, itemsize), self.context.nrt
        owner = counted.meminfo_alloc_aligned(builder, room, _ALIGNED)
        data = builder.bitcast(counted.meminfo_data(builder, owner), number.as_pointer())
        if clear:
            cgutils.memset(builder, data, room, 0)
        shapes = (_together(builder, ir.ArrayType(_INDEX, len(s)), s) for s in (sizes, strides))
        new = dict(zip(("shape", "strides"), shapes, strict=True))
        new |= {"data": data, "nitems": count, "itemsize": itemsize, "meminfo": owner}
        whole, model = self.context.get_value_type(kind), self.context.data_model_manager[kind]
        pairs = zip(model._fields, whole.elements, strict=True)
        values = [new.get(name, ir.Constant(element, None)) for name, element in pairs]
        return _together(builder, whole, values)

    # ---- ranges ----------------------------------------------------------------------------------

    def _begin(self, resty: Any, given: Any) -> Any:
        """The state of a loop over a range whose step is a known number above 0."""
        builder = self.builder
        start, stop, step = (part(builder, given, i) for i in range(3))
        by = _known(step)
        if by is None or by < 1:
            return None
        count = span = builder.sub(stop, start)
        zero = span.type(0)
        if by > 1:
            count = builder.sdiv(builder.add(span, span.type(by - 1)), step)
        count = builder.select(builder.icmp_signed(">", span, zero), count, zero)
        places = [cgutils.alloca_once(builder, span.type) for _ in range(2)]
        for value, place in zip((start, count), places, strict=True):
            builder.store(value, place)
        kind = self.context.get_value_type(resty)
        return _together(builder, kind, [places[0], stop, step, places[1]])

    def _next(self, resty: Any, state: Any) -> Any:
        """The next number, and whether there is one."""
        builder = self.builder
        here, step, left = (part(builder, state, i) for i in (0, 2, 3))
        count, number = builder.load(left), builder.load(here)
        valid = builder.icmp_signed(">", count, count.type(0))
        with builder.if_then(valid):
            builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
            builder.store(builder.add(number, step), here)
        return _together(builder, self.context.get_value_type(resty), [number, valid])

    # ---- arrays ----------------------------------------------------------------------------------

    def _member(self, array: Any, whole: Any, name: str, axis: int | None = None) -> Any:
        """A member of the struct of an array, or an element of it."""
        position = self.context.data_model_manager[array].get_field_position(name)
        found = part(self.builder, whole, position)
        return found if axis is None else part(self.builder, found, axis)

    def _index(self, number: Any, kind: Any, size: Callable[[], Any]) -> Any:
        """A place along an axis, which may be given from the end."""
        place = self.context.cast(self.builder, number, kind, types.intp)
        known = _known(place)
        if not kind.signed or (known is not None and known >= 0):
            return place
        from_end = self.builder.add(place, size())
        negative = self.builder.icmp_signed("<", place, _INDEX(0))
        return self.builder.select(negative, from_end, place)

    def _bound(self, number: Any, size: Any) -> Any:
        """The end of a slice, inside of its axis."""
        builder, known = self.builder, _known(number)
        if known == 0:
            return number
        if known == _MOST:
            return size
        if known is None or known < 0:
            number = self._index(number, types.intp, lambda: size)
            below = builder.icmp_signed("<", number, _INDEX(0))
            number = builder.select(below, _INDEX(0), number)
        return builder.select(builder.icmp_signed(">=", number, size), size, number)

    def _indices(self, array: Any, index_var: Any) -> list[tuple[Any, Any]] | None:
        """The indices with their types; None if there are others than whole numbers and slices."""
        index, given = self.typeof(index_var.name), self.loadvar(index_var.name)
        several = isinstance(index, types.BaseTuple)
        kinds = _each(index)
        for kind in kinds:
            if kind != types.slice2_type and not isinstance(kind, types.Integer):
                return None
        if not isinstance(array, types.Array) or array.layout not in "CA":
            return None
        if len(kinds) > array.ndim or isinstance(array.dtype, types.NestedArray):
            return None
        parts = [part(self.builder, given, i) for i in range(len(kinds))] if several else [given]
        return list(zip(parts, kinds, strict=True))

    def _find(
        self, array: Any, whole: Any, indices: list[tuple[Any, Any]]
    ) -> tuple[Any, list[Any], list[Any]]:
        """The address of an element or part of an array, and its shape and strides."""
        builder = self.builder
        places: list[Any] = []
        shape, strides = [], []
        for axis in range(array.ndim):
            number, kind = indices[axis] if axis < len(indices) else (None, None)
            size_of = functools.partial(self._member, array, whole, "shape", axis)
            if isinstance(kind, types.Integer):
                places.append(self._index(number, kind, size_of))
                continue
            size = size_of()
            start, length = None, size
            if kind is not None:
                start, stop = (self._bound(part(builder, number, i), size) for i in range(2))
                length = builder.sub(stop, start) if _known(start) != 0 else stop
                empty = builder.icmp_signed("<=", length, _INDEX(0))
                length = builder.select(empty, _INDEX(0), length)
            places.append(start)
            shape.append(length)
            strides.append(self._member(array, whole, "strides", axis))
        return self._address(array, whole, places), shape, strides

    def _address(self, array: Any, whole: Any, places: list[Any]) -> Any:
        """That of the element at these places, of which None is the first one of an axis."""
        builder, data = self.builder, self._member(array, whole, "data")
        total: Any = None
        for axis, place in enumerate(places):
            if array.layout == "C" and total is not None:
                total = builder.mul(total, self._member(array, whole, "shape", axis))
            if place is None or _known(place) == 0:
                continue
            if array.layout == "A":
                place = builder.mul(self._member(array, whole, "strides", axis), place)
            total = place if total is None else builder.add(total, place)
        if total is None:
            return data
        if array.layout == "A":
            return cgutils.pointer_add(builder, data, total)
        return builder.gep(data, [total])

    def _view(self, array: Any, whole: Any, kind: Any, found: tuple[Any, Any, Any]) -> Any:
        """The struct of a part of an array."""
        builder, (address, *sizes) = self.builder, found
        shape, strides = (_together(builder, ir.ArrayType(_INDEX, len(s)), s) for s in sizes)
        count = found[1][0]
        for size in found[1][1:]:
            count = builder.mul(count, size, flags=["nsw"])
        new = {"data": address, "shape": shape, "strides": strides, "nitems": count}
        model, values = self.context.data_model_manager[kind], []
        for name in model._fields:
            values.append(new[name] if name in new else self._member(array, whole, name))
        view = _together(builder, self.context.get_value_type(kind), values)
        self.incref(kind, view)
        return view

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """An element or part of an array; else as numba."""
        array = self.typeof(value.name)
        indices = self._indices(array, index) if isinstance(array, types.Array) else None
        if indices is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        whole, kind = self.loadvar(value.name), signature.return_type
        found = self._find(array, whole, indices)
        if isinstance(kind, types.Array):
            result = self._view(array, whole, kind, found)
        else:
            align = None if array.aligned else 1
            result = self.context.unpack_value(self.builder, array.dtype, found[0], align=align)
        return self.context.cast(self.builder, result, kind, resty)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> Any:
        """To an element of an array; else as numba."""
        array, indices = self.typeof(target.name), None
        if isinstance(self.typeof(value.name), types.Number | types.Boolean):
            indices = self._indices(array, index) if isinstance(array, types.Array) else None
        whole = [kind for _, kind in indices or () if isinstance(kind, types.Integer)]
        if not indices or len(whole) < array.ndim:
            return super().lower_setitem(target, index, value, signature)
        place, _, _ = self._find(array, self.loadvar(target.name), indices)
        number, align = self._cast_var(value, array.dtype), None if array.aligned else 1
        self.context.pack_value(self.builder, array.dtype, number, place, align=align)
        return None

    # ---- quotients -------------------------------------------------------------------------------

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Quotients and remainders of whole numbers by known ones; else as numba."""
        signature = self.fndesc.calltypes[expr]
        integers = all(isinstance(kind, types.Integer) for kind in signature.args)
        if op in _QUOTIENTS and integers and signature.return_type == types.int64:
            by = self._cast_var(expr.rhs, types.int64)
            if (_known(by) or 0) > 0 and signature.args[0].signed:
                return self._divided(op, self._cast_var(expr.lhs, types.int64), by)
        return super().lower_binop(resty, expr, op)

    def _divided(self, op: Any, number: Any, by: Any) -> Any:
        """Rounded down, as in Python."""
        builder = self.builder
        rest = builder.srem(number, by)
        below = builder.icmp_signed("<", rest, _INDEX(0))
        if op in (operator.mod, operator.imod):
            return builder.select(below, builder.add(rest, by), rest)
        return builder.add(builder.sdiv(number, by), builder.sext(below, _INDEX))
