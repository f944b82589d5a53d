"""The families of elementwise operations: promotion, placement and broadcasting, said once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import backend, dtypes
from ..autograd.mode import state
from ..autograd.node import observe
from ..errors import DivisionByZeroError, DtypeError, ShapeError, describe
from . import primitive
from .arithmetic import LARGE, shared_out
from .primitive import (
    NO_PARAMS,
    Method,
    Op,
    Primitive,
    cast,
    finish,
    finish_one,
    finish_two,
    input_edge,
    new_node,
    raise_devices,
    version_of,
    wrap,
)

if TYPE_CHECKING:
    from ..tensor import Tensor
else:
    Tensor = None  # set by tensor.py, as in primitive.py

ndarray = np.ndarray
_FLOAT16 = np.dtype(np.float16)
_new = object.__new__


class Unary(Primitive):
    """An elementwise operation of one tensor.

    Args:
        name: Its name.
        body: `body(array)`; a NumPy ufunc is found by name in the namespace of the array.
        vjp: `rule(g, *saved)`.
        saves: (0,), (OUT,), both or neither.
        floating: Integers are converted to the default floating dtype first.
        accepts_bool: False for operations that PyTorch refuses on bool.
    """

    def __init__(
        self,
        name: str,
        body: str | Callable[..., Any],
        vjp: Callable[..., Any] | None,
        saves: tuple[int, ...] = (),
        *,
        floating: bool = False,
        accepts_bool: bool = True,
    ) -> None:
        super().__init__(name, _body(name, body), (vjp,), saves)
        self.floating = floating
        self.accepts_bool = accepts_bool

    def half_forward(self, a: Any, **params: Any) -> Any:
        """The body for half types: in float32 and rounded once; on a GPU, whose operations do so,
        bfloat16 is widened."""
        wide = a.astype(np.float32) if type(a) is ndarray else a
        return self.forward(wide, **params).astype(a.dtype, copy=False)

    def __call__(self, input: Any, **params: Any) -> Any:
        """Computes the operation; `params` go to the body and the rule."""
        x = input
        if not isinstance(x, Tensor):
            return self.forward(x, **params) if hasattr(x, "dtype") else self(_number(x), **params)
        a = x._array
        dtype = a.dtype
        kind = dtype.kind
        if kind == "V" or dtype is _FLOAT16:
            return finish_one(self, self.half_forward(a, **params), x, params or NO_PARAMS)
        if kind == "c":
            need_real(self.name, x)
        elif kind != "f":
            if self.floating:
                x = cast(x, dtypes.get_default_dtype().numpy)
                a = x._array
            elif kind == "b" and not self.accepts_bool:
                raise DtypeError(
                    f"{self.name}: bool tensors are not accepted. Got {describe(x)}. "
                    "Use logical_not or ~, or convert with .to(dtype)."
                )
        return finish_one(self, self.forward(a, **params), x, params or NO_PARAMS)


# What is defined for complex numbers; everything else refuses them.
_COMPLEX_TOO = frozenset(
    "add sub mul div pow square neg abs reciprocal exp exp2 expm1 log log2 log10 log1p sqrt rsqrt "
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid sinc".split()
)


def need_real(name: str, x: Any) -> None:
    """Raises if `name` has no meaning for the complex tensor or array `x`.

    Raises:
        DtypeError: `x` is complex.
    """
    if getattr(x, "_array", x).dtype.kind == "c" and name not in _COMPLEX_TOO:
        raise DtypeError(
            f"{name}: complex tensors are not accepted. Got {describe(x)}. "
            "Use .real, .imag or .abs(); sgn for the direction."
        )


def _number(x: Any) -> Tensor:
    if isinstance(x, bool | int | float | complex):
        return wrap(np.asarray(x, dtypes.result_type(x).numpy))
    raise DtypeError(
        f"operation: expected a tensor or a number. Got {type(x).__name__}. "
        "Convert it with minitorch.tensor(...)."
    )


# Functions with poles or a bounded domain, at which NumPy would warn where PyTorch is silent.
_POLES = frozenset(
    "true_divide power fmod remainder floor_divide logaddexp exp exp2 expm1 log log2 log10 log1p "
    "sqrt tan arcsin arccos sinh cosh arccosh arctanh square reciprocal rsqrt pow".split()
)


def _body(name: str, body: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function on arrays that `body` names; silent where it has poles."""
    if not isinstance(body, str):
        return _silenced(body) if name in _POLES else body
    on_numpy = getattr(np, body)

    def call(*arrays: Any) -> Any:
        if type(arrays[0]) is ndarray or type(arrays[-1]) is ndarray:
            return on_numpy(*arrays)
        return getattr(backend.namespace(arrays[0]), body)(*arrays)

    return _silenced(call) if body in _POLES else call


def _silenced(body: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arrays: Any, **params: Any) -> Any:
        if state.quiet:
            return body(*arrays, **params)
        with np.errstate(all="ignore"):
            return body(*arrays, **params)

    return call


def _owned(x: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a 0-d array (wrapped around where it does not fit), or a copy of an array.

    A copy, because the caller may write his array before backward needs it.
    """
    if backend.is_array(x):
        return x.copy()
    try:
        return np.asarray(x, dtype)
    except OverflowError:
        return np.asarray(x).astype(dtype)


def operands(name: str, *xs: Any, floating: bool = False) -> list[Tensor]:
    """The operands of an elementwise operation as Tensors of one dtype on one device.

    Args:
        name: The operation, for messages.
        xs: Tensors, arrays and Python numbers; at least one is a Tensor.
        floating: Integers become the default floating dtype.

    Raises:
        DeviceError: They live on different devices and are not 0-d.
        DtypeError: One of them is no tensor, array or number.
    """
    target = dtypes.result_type(*xs)
    if floating and not (target.is_floating_point or target.is_complex):
        target = dtypes.get_default_dtype()
    out: list[Tensor] = []
    for x in xs:
        if not isinstance(x, Tensor):
            number = not backend.is_array(x)
            x = wrap(_owned(x, target.numpy))
            if number and primitive.tape is not None:
                primitive.tape.constant(x._array)
        out.append(cast(x, target.numpy))
    anchor = next((t for t in out if t._array.ndim), out[0])._array
    if type(anchor) is ndarray:
        # A 0-d operand elsewhere decides the device only if all on the host are numbers or 0-d.
        elsewhere = next((t._array for t in out if type(t._array) is not ndarray), None)
        if elsewhere is None:
            return out
        if anchor.ndim == 0:
            anchor = elsewhere
    where = backend.device_of(anchor)
    for i, t in enumerate(out):
        if backend.device_of(t._array) == where:
            continue
        if t._array.ndim == 0 and type(t._array) is ndarray:
            moved = wrap(backend.from_host(t._array, where))
            out[i] = moved if not t._rg else _moved(t, where)
        else:
            raise_devices(name, out)
    return out


def _moved(t: Tensor, where: Any) -> Tensor:
    return t.to(where)


class Binary(Primitive):
    """An elementwise operation of two tensors with broadcasting and promotion.

    Args:
        name: Its name.
        body: `body(a, b)`, or the name of a NumPy ufunc.
        vjps: A rule for each operand; the engine sums over broadcast axes.
        saves: Which of 0, 1 and OUT the rules need.
        floating: Integers are converted to the default floating dtype first.
        accepts_bool: False for operations that PyTorch refuses on bool.
        numbers: The rules also work with a Python number in place of one operand.

    Attributes:
        made: All of them, for those who observe operations.
    """

    made: ClassVar[list[Binary]] = []

    def __init__(
        self,
        name: str,
        body: str | Callable[..., Any],
        vjps: tuple[Callable[..., Any] | None, Callable[..., Any] | None],
        saves: tuple[int, ...] = (),
        *,
        floating: bool = False,
        accepts_bool: bool = True,
        numbers: bool = False,
    ) -> None:
        super().__init__(name, shared_out(name, _body(name, body)), vjps, saves)
        self.numbers = numbers
        self.fast = (
            getattr(np, body) if isinstance(body, str) and body not in _POLES else self.forward
        )
        self.floating = floating
        self.accepts_bool = accepts_bool
        self.function = _binary_function(self)
        self.operator = _binary_function(self, is_operator=True)
        self.made.append(self)


def _binary_function(op: Binary, *, is_operator: bool = False) -> Callable[[Any, Any], Any]:
    """The function that users call: a fast path for two float CPU tensors of one dtype.

    As one of Python's operators it gives NotImplemented for operands that are no numbers.
    """
    fast, name = op.fast, op.name
    plain = not op.floating and op.accepts_bool and name in _COMPLEX_TOO

    def call(input: Any, other: Any) -> Any:
        a, b = input, other
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            if is_operator and not is_operand(b):
                return NotImplemented
            if isinstance(a, Tensor) or isinstance(b, Tensor):
                return _binary_with_number(op, a, b)
            return op.forward(a, b)
        xa, xb = a._array, b._array
        if (
            type(xa) is not ndarray
            or type(xb) is not ndarray
            or xa.dtype is not xb.dtype
            or not (plain or xa.dtype.kind == "f")
        ):
            return _binary_slow(op, a, b)
        try:
            y = fast(xa, xb) if xa.size < LARGE else op.forward(xa, xb)
        except ValueError:
            raise_broadcast(name, a, b)
        return finish_two(op, y, a, b)

    call.__name__ = call.__qualname__ = name
    return call


def is_operand(x: Any) -> bool:
    """True for Tensors, arrays and Python numbers."""
    return isinstance(x, Tensor | bool | int | float | complex) or hasattr(x, "dtype")


def _binary_with_number(op: Binary, a: Any, b: Any) -> Any:
    """One operand is a Tensor, the other a number or array."""
    x, number = (a, b) if isinstance(a, Tensor) else (b, a)
    array = x._array
    if op.numbers and type(number) in _NUMBERS and type(array) is ndarray and array.ndim:
        # NumPy keeps the array's dtype when a Python number joins, as PyTorch does.
        if array.dtype.kind in "fV":
            return _finish_number(op, x, a, b)
    return _binary_slow(op, a, b)


_NUMBERS = frozenset((int, float))


def _half_with_number(xa: Any, xb: Any, *, op: Binary) -> Any:
    """In float32, and rounded once; factors are not, as in PyTorch."""
    first = hasattr(xa, "dtype")
    array, number = (xa, xb) if first else (xb, xa)
    wide, dtype = array.astype(np.float32), array.dtype
    if op.name != "mul" and not (op.name == "div" and first):
        number = np.float32(np.asarray(number, dtype))
    return (op.forward(wide, number) if first else op.forward(number, wide)).astype(dtype)


class _HalfWithNumber:
    """What a captured step calls for an operation of a half type and a number."""

    def __init__(self, op: Binary) -> None:
        self.name = op.name
        self.forward = partial(_half_with_number, op=op)


def _finish_number(op: Binary, x: Tensor, a: Any, b: Any) -> Tensor:
    """Records an operation of the tensor `x` and a number; the number is saved as it is."""
    xa, xb = (x._array, b) if a is x else (a, x._array)
    half = x._array.dtype.itemsize == 2
    if half:
        y = _half_with_number(xa, xb, op=op)
    else:
        y = op.fast(xa, xb) if x._array.size < LARGE else op.forward(xa, xb)
    if primitive.tape is not None:
        noted = _HalfWithNumber(op) if half else op
        primitive.tape.note(noted, y, (a, b), NO_PARAMS)
    t = _new(Tensor)
    t._array = y
    t._grad = t._version = t._view = t._hooks = t._grad_slot = None
    if x._view is not None:
        x._sync_view()
    if not (x._rg and state.recording):
        t._node = None
        t._rg = False
        return t
    edge = input_edge(x)
    node = new_node(op, (edge, None) if a is x else (None, edge), NO_PARAMS)
    if op.saves:
        # The rule of a product or quotient by a number needs the number alone.
        if op.crosswise or (op.name == "div" and a is x):
            node.saved = (None, xb) if a is x else (xa, None)
        else:
            version = version_of(x)
            node.saved = (xa, xb)
            node.versions = (version, version[0])
        if state.recording > 1:
            observe(node)
    t._node = node
    t._rg = True
    return t


def _finish_broadcast(op: Op, y: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    out = finish(op, y, inputs, NO_PARAMS)
    if out._node is not None:
        shapes = tuple(t._array.shape for t in inputs)
        if any(shape != out._array.shape for shape in shapes):
            out._node.shapes = shapes
    return out


def _is_bool(x: Any) -> bool:
    return type(x) is bool or (isinstance(x, Tensor) and x._array.dtype.kind == "b")


_ONLY_FLOATS = frozenset(("hypot", "logaddexp", "logaddexp2"))
_DIVISIONS = frozenset(("floor_divide", "remainder", "fmod"))


def _binary_slow(op: Binary, a: Any, b: Any) -> Tensor:
    """Promotes, places and checks the operands, then computes."""
    if op.name in _ONLY_FLOATS and dtypes.result_type(a, b).numpy.kind in "iub":
        raise DtypeError(
            f"{op.name}: the operands must be floating. Got {describe(a)} and {describe(b)}. "
            "Convert with .float()."
        )
    x, y = operands(op.name, a, b, floating=op.floating)
    if not op.accepts_bool and (
        x._array.dtype.kind == "b" or (op.name == "sub" and (_is_bool(a) or _is_bool(b)))
    ):
        raise DtypeError(
            f"{op.name}: bool tensors are not accepted. Got {describe(a)} and {describe(b)}. "
            "Use logical_xor or ^, or convert with .to(dtype)."
        )
    need_real(op.name, x)
    divisor = y._array  # looked at on the host only: elsewhere that would wait for the device
    if (
        op.name in _DIVISIONS
        and divisor.dtype.kind in "iu"
        and type(divisor) is ndarray
        and not divisor.all()
    ):
        raise DivisionByZeroError(
            f"{op.name}: whole numbers cannot be divided by 0. Got {describe(x)} and "
            f"{describe(y)} with a 0 in it. Convert with .float() for inf and nan."
        )
    try:
        result = op.forward(x._array, y._array)
    except ValueError:
        raise_broadcast(op.name, x, y)
    if result.dtype != x._array.dtype and result.dtype.kind not in "b":
        result = result.astype(x._array.dtype)
    return _finish_broadcast(op, result, (x, y))


def raise_broadcast(name: str, *xs: Any) -> None:
    """Raises the error of shapes that cannot be broadcast, or the error in flight."""
    shapes = [x._array.shape for x in xs]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(describe(x) for x in xs)
        raise ShapeError(
            f"{name}: shapes must be equal or 1 in each axis, counted from the right. Got {shown}. "
            "Use unsqueeze, reshape or .T so that the axes meet."
        ) from None
    raise


def _comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """The operands; a narrow integer tensor is widened where the number does not fit into it."""
    for x, number in ((a, b), (b, a)):
        if isinstance(x, Tensor) and type(number) is int and x._array.dtype.kind in "iu":
            info = np.iinfo(x._array.dtype)
            if not info.min <= number <= info.max:
                wide = cast(x, dtypes.int64.numpy)
                return (wide, b) if x is a else (a, wide)
    return a, b


_ORDERS = frozenset(("lt", "le", "gt", "ge"))


class Comparison(Method):
    """An elementwise operation that gives bool (or has no gradient at all)."""

    def __init__(self, name: str, ufunc: str) -> None:
        self.name = name
        self.forward = _body(name, ufunc)

    def __call__(self, input: Any, other: Any) -> Any:
        """Computes the comparison with broadcasting and promotion."""
        a, b = input, other
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            return self.forward(a, b)
        if not is_operand(a) or not is_operand(b):
            return NotImplemented
        x, y = operands(self.name, *_comparable(a, b))
        if x._array.dtype.kind == "c" and self.name in _ORDERS:
            raise DtypeError(
                f"{self.name}: complex numbers have no order. Got {describe(a)} and {describe(b)}. "
                "Compare .abs(), .real or .imag."
            )
        try:
            out = wrap(self.forward(x._array, y._array))
        except ValueError:
            raise_broadcast(self.name, x, y)
            raise
        if primitive.tape is not None:
            primitive.tape.note(self, out._array, (x, y), NO_PARAMS)
        return out


def nondiff(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors without gradient: unwraps, computes, wraps."""

    def call(input: Any, **params: Any) -> Any:
        if not isinstance(input, Tensor):
            return forward(input, **params)
        out = wrap(forward(input._array, **params))
        if primitive.tape is not None:
            primitive.tape.call(forward, (input._array,), params, out._array)
        return out

    call.__name__ = call.__qualname__ = name
    return call
