"""Operations: what they are, how a call is recorded, and how gradients come from one definition.

A *primitive* has a forward body on arrays and one gradient rule per array input. The rules are
written with operators and operations that work on arrays and on Tensors alike, so the same text
gives fast first gradients on raw arrays and, on Tensors, gradients of any order.
A *composite* is a plain function of primitives and needs no rule.
A *fused* operation is a composite with a fast body; the composite stays its definition.

Called with raw arrays, every operation returns raw arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backend, dtypes
from ..autograd.mode import state
from ..autograd.node import Node, next_sequence, note_line
from ..errors import DeviceError, DtypeError, ShapeError, describe

if TYPE_CHECKING:
    from ..tensor import Tensor
else:
    Tensor = None  # set by tensor.py, which cannot be imported before this module

ndarray = np.ndarray
_new = object.__new__
OUT = -1  # in `saves`: the output itself


class Method:
    """A callable object that binds like a function where it is an attribute of a class."""

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else partial(self, instance)  # type: ignore[operator]


class Op(Method):
    """What a Node holds of its operation: the name and the backward rule."""

    name: str = "op"
    # A rule gets the gradient of the output and the saved values, and gives one gradient per
    # array input. `vjps` has one function per input; an input without gradient costs nothing.
    vjps: tuple[Callable[..., Any] | None, ...] | None = None
    saves: tuple[int, ...] = ()

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The gradients of all inputs at once, for operations without `vjps`."""
        raise NotImplementedError(f"{self.name} has no backward rule")


def wrap(array: Any) -> Tensor:
    """A Tensor around an array that no graph knows of."""
    if type(array) is not ndarray and not backend.is_array(array):
        array = np.asarray(array)
    t = _new(Tensor)
    t._array = array
    t._rg = False
    t._grad = t._node = t._version = t._view = t._hooks = t._grad_slot = None
    return t


def version_of(t: Tensor) -> list[Any]:
    """The version of the memory that `t` sees; made on first use."""
    version = t._version
    if version is None:
        version = t._version = [0, "", 0]
    return version


def edge_of(t: Tensor) -> Node | Tensor | None:
    """Where a gradient of `t` goes."""
    if t._node is not None:
        return t._node
    return t if t._rg else None


def new_node(op: Op, edges: tuple[Any, ...], params: dict[str, Any]) -> Node:
    """A Node that saves nothing yet."""
    node = _new(Node)
    node.op = op
    node.edges = edges
    node.saved = ()
    node.versions = ()
    node.params = params
    node.shapes = None
    node.sequence = next_sequence()
    node.meta = None
    if state.recording > 1:
        note_line(node)
    return node


def save(node: Node, op: Op, inputs: Sequence[Tensor], arrays: Sequence[Any], out: Tensor) -> None:
    """Stores in `node` what `op.saves` names, with the versions of the memory."""
    saved, versions = [], []
    for i in op.saves:
        if i != OUT and inputs[i] is None:
            saved.append(None)
            continue
        source = out if i == OUT else inputs[i]
        version = version_of(source)
        saved.append(source._array if i == OUT else arrays[i])
        versions += (version, version[0])
    node.saved = tuple(saved)
    node.versions = tuple(versions)


class Primitive(Op):
    """An operation with a forward body on arrays and one gradient rule per array input.

    Args:
        name: The name in messages and in `grad_fn`.
        forward: `forward(*arrays, **params)` to an array. It finds its namespace with
            `backend.namespace(array)`.
        vjps: For each array input `rule(g, *saved, **params)`, or None where there is no gradient.
        saves: Positions of the inputs that the rules need, and OUT for the output.
        view: The output shares the memory of input 0.
    """

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjps: tuple[Callable[..., Any] | None, ...],
        saves: tuple[int, ...] = (),
        *,
        view: bool = False,
    ) -> None:
        self.name = name
        self.forward = forward
        self.vjps = vjps
        self.saves = saves
        self.view = view

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Computes the operation on Tensors (recorded) or on raw arrays (not recorded)."""
        for x in inputs:
            if isinstance(x, Tensor):
                break
        else:
            return self.forward(*inputs, **params)
        tensors = [x if isinstance(x, Tensor) else wrap(x) for x in inputs]
        record = False
        for t in tensors:
            if t._view is not None:
                t._sync_view()
            record = record or t._rg
        arrays = [t._array for t in tensors]
        check_same_device(self.name, tensors)
        out = wrap(self.forward(*arrays, **params))
        if record and state.recording:
            node = new_node(self, tuple([edge_of(t) for t in tensors]), params)
            if self.saves:
                save(node, self, tensors, arrays, out)
            out._node = node
            out._rg = True
        if self.view and shares_memory(out._array, arrays[0]):
            mark_view(out, tensors[0], self, params)
        return out


def shares_memory(a: Any, b: Any) -> bool:
    """True if `a` was made as a view of `b` (or of what `b` views)."""
    if a is b:
        return True
    base = a.base
    return base is not None and (base is b or base is b.base)


def check_same_device(name: str, tensors: Sequence[Tensor]) -> None:
    """Raises if the operands live on different devices.

    Raises:
        DeviceError: Names both devices and both operands.
    """
    first = tensors[0]._array
    if type(first) is ndarray:
        for t in tensors:
            if type(t._array) is not ndarray:
                raise_devices(name, tensors)
        return
    where = backend.device_of(first)
    for t in tensors:
        if backend.device_of(t._array) != where:
            raise_devices(name, tensors)


def raise_devices(name: str, tensors: Sequence[Tensor]) -> None:
    """Raises the error of operands on different devices."""
    shown = ", ".join(f"{describe(t)} on {backend.device_of(t._array)}" for t in tensors)
    raise DeviceError(
        f"{name}: all operands must be on one device. Got {shown}. "
        "Move them with .to(device), or create them with device=..."
    )


class ViewInfo:
    """How a view comes from its base, so that its history can be computed again."""

    __slots__ = ("base", "generation", "steps")

    def __init__(self, base: Tensor, steps: tuple[Any, ...], generation: int) -> None:
        self.base = base
        self.steps = steps
        self.generation = generation

    def replay(self, x: Any) -> Any:
        """The view of `x`, an array or a Tensor, that has the base's shape."""
        for op, params in self.steps:
            x = op(x, **params)
        return x


def mark_view(out: Tensor, source: Tensor, op: Primitive, params: dict[str, Any]) -> None:
    """Notes that `out` shares the memory of `source`."""
    version = version_of(source)
    out._version = version
    step = ((op, params),)
    parent = source._view
    if parent is None:
        out._view = ViewInfo(source, step, version[2])
    else:
        out._view = ViewInfo(parent.base, parent.steps + step, version[2])


def finish(op: Op, y: Any, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Tensor:
    """Wraps the array `y` and records `op` if an input requires grad."""
    out = wrap(y)
    record = False
    for t in inputs:
        if t._view is not None:
            t._sync_view()
        record = record or t._rg
    if record and state.recording:
        node = new_node(op, tuple([edge_of(t) for t in inputs]), params)
        if op.saves:
            save(node, op, inputs, [t._array for t in inputs], out)
        out._node = node
        out._rg = True
    return out


NO_PARAMS: dict[str, Any] = {}


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
        super().__init__(name, _body(body), (vjp,), saves)
        self.floating = floating
        self.accepts_bool = accepts_bool

    def __call__(self, x: Any, **params: Any) -> Any:
        """Computes the operation; `params` go to the body and the rule."""
        if not isinstance(x, Tensor):
            return self.forward(x, **params) if hasattr(x, "dtype") else self(_number(x), **params)
        a = x._array
        if a.dtype.kind in "iub":
            if self.floating:
                x = cast(x, dtypes.get_default_dtype().numpy)
                a = x._array
            elif a.dtype.kind == "b" and not self.accepts_bool:
                raise DtypeError(
                    f"{self.name}: bool tensors are not accepted. Got {describe(x)}. "
                    "Use logical_not or ~, or convert with .to(dtype)."
                )
        return finish(self, self.forward(a, **params), (x,), params or NO_PARAMS)


def _number(x: Any) -> Tensor:
    if isinstance(x, bool | int | float | complex):
        return wrap(np.asarray(x, dtypes.result_type(x).numpy))
    raise DtypeError(
        f"operation: expected a tensor or a number. Got {type(x).__name__}. "
        "Convert it with minitorch.tensor(...)."
    )


def _body(body: str | Callable[..., Any]) -> Callable[..., Any]:
    """The function on arrays that `body` names."""
    if not isinstance(body, str):
        return body
    name, on_numpy = body, getattr(np, body)

    def call(*arrays: Any) -> Any:
        if type(arrays[0]) is ndarray:
            return on_numpy(*arrays)
        return getattr(backend.namespace(arrays[0]), name)(*arrays)

    return call


def _cast_forward(a: Any, *, dtype: Any) -> Any:
    return a.astype(dtype)


class _Cast(Op):
    """Changes the dtype; the gradient goes back in the old one."""

    name = "to"

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        return (cast(g, node.params["source"]),)


_CAST = _Cast()


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """`x`, an array or Tensor, with another dtype; itself if it has it already."""
    if not isinstance(x, Tensor):
        return x if x.dtype == dtype else x.astype(dtype)
    source = x._array.dtype
    if source == dtype:
        return x
    y = _cast_forward(x._array, dtype=dtype)
    if dtype.kind in "iub" or source.kind in "iub":
        return wrap(y)
    return finish(_CAST, y, (x,), {"source": source})


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
            x = wrap(np.asarray(x, target.numpy) if not backend.is_array(x) else x)
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
    """

    def __init__(
        self,
        name: str,
        body: str | Callable[..., Any],
        vjps: tuple[Callable[..., Any] | None, Callable[..., Any] | None],
        saves: tuple[int, ...] = (),
        *,
        floating: bool = False,
        accepts_bool: bool = True,
    ) -> None:
        super().__init__(name, _body(body), vjps, saves)
        self.fast = getattr(np, body) if isinstance(body, str) else body
        self.floating = floating
        self.accepts_bool = accepts_bool
        self.function = _binary_function(self)


def _binary_function(op: Binary) -> Callable[[Any, Any], Any]:
    """The function that users call: a fast path for two float CPU tensors of one dtype."""
    fast, saves = op.fast, op.saves
    saves_a, saves_b, saves_out = 0 in saves, 1 in saves, OUT in saves
    plain = not op.floating and op.accepts_bool
    name = op.name

    def call(a: Any, b: Any) -> Any:
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
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
            y = fast(xa, xb)
        except ValueError:
            raise_broadcast(name, a, b)
        if type(y) is not ndarray:
            y = np.asarray(y)
        t = _new(Tensor)
        t._array = y
        t._grad = t._version = t._view = t._hooks = t._grad_slot = None
        if a._view is not None:
            a._sync_view()
        if b._view is not None:
            b._sync_view()
        if (a._rg or b._rg) and state.recording:
            node = _new(Node)
            node.op = op
            node.edges = (
                a._node or (a if a._rg else None),
                b._node or (b if b._rg else None),
            )
            node.saved = node.versions = ()
            node.params = NO_PARAMS
            shape_a, shape_b = xa.shape, xb.shape
            node.shapes = None if shape_a == shape_b else (shape_a, shape_b)
            node.sequence = next_sequence()
            node.meta = None
            t._node = node
            t._rg = True
            if saves:
                if saves_a:
                    version_a = a._version
                    if version_a is None:
                        version_a = a._version = [0, "", 0]
                if saves_b:
                    version_b = b._version
                    if version_b is None:
                        version_b = b._version = [0, "", 0]
                    if saves_a and not saves_out:
                        node.saved = (xa, xb)
                        node.versions = (version_a, version_a[0], version_b, version_b[0])
                if not node.saved:
                    save(node, op, (a, b), (xa, xb), t)
            if state.recording > 1:
                note_line(node)
        else:
            t._node = None
            t._rg = False
        return t

    call.__name__ = call.__qualname__ = name
    return call


def _binary_with_number(op: Binary, a: Any, b: Any) -> Any:
    """One operand is a Tensor, the other a number or array."""
    x, number, flipped = (a, b, False) if isinstance(a, Tensor) else (b, a, True)
    array = x._array
    if (
        type(array) is ndarray
        and array.dtype.kind == "f"
        and (type(number) is float or type(number) is int)
        and array.ndim
    ):
        # NumPy keeps the array's dtype when a Python number joins, as PyTorch does.
        other = wrap(np.asarray(number, array.dtype))
        y = op.fast(number, array) if flipped else op.fast(array, number)
        return _finish_broadcast(op, y, (other, x) if flipped else (x, other))
    if not isinstance(number, bool | int | float | complex) and not hasattr(number, "dtype"):
        return NotImplemented if not hasattr(number, "__array__") else _binary_slow(op, a, b)
    return _binary_slow(op, a, b)


def _finish_broadcast(op: Op, y: Any, inputs: tuple[Tensor, ...]) -> Tensor:
    out = finish(op, y, inputs, NO_PARAMS)
    if out._node is not None:
        shapes = tuple(t._array.shape for t in inputs)
        if any(shape != out._array.shape for shape in shapes):
            out._node.shapes = shapes
    return out


def _binary_slow(op: Binary, a: Any, b: Any) -> Tensor:
    """Promotes, places and checks the operands, then computes."""
    x, y = operands(op.name, a, b, floating=op.floating)
    if not op.accepts_bool and x._array.dtype.kind == "b":
        raise DtypeError(
            f"{op.name}: bool tensors are not accepted. Got {describe(a)} and {describe(b)}. "
            "Use logical_xor or ^, or convert with .to(dtype)."
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


class Comparison(Method):
    """An elementwise operation that gives bool (or has no gradient at all)."""

    def __init__(self, name: str, ufunc: str) -> None:
        self.name = name
        self.forward = _body(ufunc)

    def __call__(self, a: Any, b: Any) -> Any:
        """Computes the comparison with broadcasting and promotion."""
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            return self.forward(a, b)
        for x in (a, b):
            if not isinstance(x, Tensor | bool | int | float | complex) and not (
                hasattr(x, "dtype")
            ):
                return NotImplemented
        x, y = operands(self.name, a, b)
        try:
            return wrap(self.forward(x._array, y._array))
        except ValueError:
            raise_broadcast(self.name, x, y)
            raise


def nondiff(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors without gradient: unwraps, computes, wraps."""

    def call(*inputs: Any, **params: Any) -> Any:
        arrays = [x._array if isinstance(x, Tensor) else x for x in inputs]
        out = forward(*arrays, **params)
        return wrap(out) if any(isinstance(x, Tensor) for x in inputs) else out

    call.__name__ = call.__qualname__ = name
    return call
