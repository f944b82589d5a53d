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

from .. import backend
from ..autograd.mode import state
from ..autograd.node import Node, next_sequence, observe
from ..errors import DeviceError, describe

if TYPE_CHECKING:
    from ..tensor import Tensor
else:
    Tensor = None  # set by tensor.py, which cannot be imported before this module

ndarray = np.ndarray
_new = object.__new__
# What a captured step is recorded on (`minitorch.capture`), while one is.
tape: Any = None
OUT = -1  # in `saves`: the output itself
NO_PARAMS: dict[str, Any] = {}


class Method:
    """A callable object that binds like a function where it is an attribute of a class."""

    __call__: Callable[..., Any]

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else partial(self, instance)


class Op(Method):
    """What a Node holds of its operation: the name and the backward rule."""

    name: str = "op"
    # A rule gets the gradient of the output and the saved values, and gives one gradient per
    # array input. `vjps` has one function per input; an input without gradient costs nothing.
    vjps: tuple[Callable[..., Any] | None, ...] | None = None
    saves: tuple[int, ...] = ()
    # False where a rule may hand out arrays that somebody else holds, such as a user's own.
    owns_gradients: bool = True
    # True where the output is the part `params["index"]` of the input, of shape `params["source"]`.
    selects: bool = False
    # True where the rule may get gradients of parts of the output, `Parts`, before they are joined.
    takes_parts: bool = False
    # True where `backward_onto` adds the gradient of the first input to what has flowed there.
    adds_onto: bool = False
    # True for products: each rule needs the other operand only.
    crosswise: bool = False
    # True where a gradient beyond those of the inputs may follow, which goes to `behind(node)`.
    passes_by: bool = False

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The gradients of all inputs at once, for operations without `vjps`."""
        raise NotImplementedError(f"{self.name} has no backward rule")

    def backward_onto(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """As `backward`, where `adds_onto`: the first gradient is None if it was added."""
        raise NotImplementedError(f"{self.name} adds to no gradient")


def raw(x: Any) -> Any:
    """The array of a Tensor; an array itself."""
    return getattr(x, "_array", x)


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


def input_edge(t: Tensor) -> Node | Tensor | None:
    """`edge_of` for the input of a new operation: None for what lies behind the horizon."""
    node = t._node
    if node is not None:
        inside = node.sequence > state.horizon or node.sequence < state.origin
        return node if inside else None
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
        observe(node)
    return node


def save(node: Node, op: Op, inputs: Sequence[Tensor], arrays: Sequence[Any], out: Tensor) -> None:
    """Stores in `node` what `op.saves` names, with the versions of the memory."""
    saved: list[Any] = []
    versions: list[Any] = []
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
    if state.recording > 1:
        observe(node)


def finish(op: Op, y: Any, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Tensor:
    """Wraps the array `y` and records `op` if an input requires grad."""
    out = wrap(y)
    if tape is not None:
        tape.note(op, out._array, inputs, params)
    record = False
    for t in inputs:
        if t._view is not None:
            t._sync_view()
        record = record or t._rg
    if record and state.recording:
        node = new_node(op, tuple([input_edge(t) for t in inputs]), params)
        if op.saves:
            save(node, op, inputs, [t._array for t in inputs], out)
        out._node = node
        out._rg = True
    return out


def finish_one(op: Op, y: Any, x: Tensor, params: dict[str, Any] = NO_PARAMS) -> Tensor:
    """`finish` for one input, written out because most operations of a model pass here."""
    if type(y) is not ndarray and not backend.is_array(y):
        y = np.asarray(y)
    if tape is not None:
        tape.note(op, y, (x,), params)
    t = _new(Tensor)
    t._array = y
    t._grad = t._version = t._view = t._hooks = t._grad_slot = None
    if x._view is not None:
        x._sync_view()
    if not (x._rg and state.recording):
        t._node = None
        t._rg = False
        return t
    node = _new(Node)
    node.op = op
    before = x._node
    node.edges = (x,) if before is None else (input_edge(x),)
    node.params = params
    node.shapes = node.meta = None
    node.sequence = next_sequence()
    saves = op.saves
    if not saves:
        node.saved = node.versions = ()
    elif saves == _ONLY_OUT:
        version = t._version = [0, "", 0]
        node.saved = (y,)
        node.versions = (version, 0)
    else:
        save(node, op, (x,), (x._array,), t)
    if state.recording > 1:
        observe(node)
    t._node = node
    t._rg = True
    return t


def finish_two(op: Op, y: Any, a: Tensor, b: Tensor, params: dict[str, Any] = NO_PARAMS) -> Tensor:
    """`finish` for two inputs, written out for the same reason; notes broadcast shapes."""
    if type(y) is not ndarray and not backend.is_array(y):
        y = np.asarray(y)
    if tape is not None:
        tape.note(op, y, (a, b), params)
    t = _new(Tensor)
    t._array = y
    t._grad = t._version = t._view = t._hooks = t._grad_slot = None
    if a._view is not None:
        a._sync_view()
    if b._view is not None:
        b._sync_view()
    if not ((a._rg or b._rg) and state.recording):
        t._node = None
        t._rg = False
        return t
    node = _new(Node)
    node.op = op
    node.edges = (
        input_edge(a) if a._node is not None else a if a._rg else None,
        input_edge(b) if b._node is not None else b if b._rg else None,
    )
    node.params = params
    xa, xb = a._array, b._array
    shape_a, shape_b = xa.shape, xb.shape
    node.shapes = None if shape_a == shape_b else (shape_a, shape_b)
    node.meta = None
    node.sequence = next_sequence()
    saves = op.saves
    if not saves:
        node.saved = node.versions = ()
    elif saves == _BOTH:
        if op.crosswise and not (a._rg and b._rg):
            kept, keeper = (xb, b) if a._rg else (xa, a)
            version = version_of(keeper)
            node.saved = (None, kept) if a._rg else (kept, None)
            node.versions = (version, version[0])
        else:
            version_a = a._version
            if version_a is None:
                version_a = a._version = [0, "", 0]
            version_b = b._version
            if version_b is None:
                version_b = b._version = [0, "", 0]
            node.saved = (xa, xb)
            node.versions = (version_a, version_a[0], version_b, version_b[0])
    else:
        save(node, op, (a, b), (xa, xb), t)
    if state.recording > 1:
        observe(node)
    t._node = node
    t._rg = True
    return t


_ONLY_OUT = (OUT,)
_BOTH = (0, 1)


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
        if len(inputs) == 1:
            x = inputs[0]
            if not isinstance(x, Tensor):
                return self.forward(x, **params)
            a = x._array
            out = finish_one(self, self.forward(a, **params), x, params)
            if self.view:
                y = out._array
                if y is a or (y.base is not None and (y.base is a or y.base is a.base)):
                    mark_view(out, x, self, params)
            return out
        for x in inputs:
            if isinstance(x, Tensor):
                break
        else:
            return self.forward(*inputs, **params)
        tensors = tuple([x if isinstance(x, Tensor) else wrap(x) for x in inputs])
        check_same_device(self.name, tensors)
        y = self.forward(*[t._array for t in tensors], **params)
        return finish(self, y, tensors, params)


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

    base: Tensor
    steps: tuple[tuple[Primitive, dict[str, Any]], ...]
    generation: int

    def replay(self, x: Any) -> Any:
        """The view of `x`, an array or a Tensor, that has the base's shape."""
        for op, params in self.steps:
            x = op(x, **params)
        return x


def mark_view(out: Tensor, source: Tensor, op: Primitive, params: dict[str, Any]) -> None:
    """Notes that `out` shares the memory of `source`."""
    version = source._version
    if version is None:
        version = source._version = [0, "", 0]
    out._version = version
    view = out._view = _new(ViewInfo)
    parent = source._view
    view.base = source if parent is None else parent.base
    view.steps = ((op, params),) if parent is None else (*parent.steps, (op, params))
    view.generation = version[2]


class _Cast(Op):
    """Changes the dtype; the gradient goes back in the old one."""

    name = "to"

    @staticmethod
    def forward(a: Any, *, source: Any, target: Any) -> Any:
        """`a`, an array of the dtype `source`, in the dtype `target`."""
        return a.astype(target)

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        return (_narrowed(g, node.params["source"]),)


_CAST = _Cast()


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """`x`, an array or Tensor, with another dtype; itself if it has it already."""
    if not isinstance(x, Tensor):
        return x if x.dtype == dtype else x.astype(dtype)
    source = x._array.dtype
    if source == dtype:
        return x
    params = {"source": source, "target": dtype}
    y = _CAST.forward(x._array, **params)
    if dtype.kind in "iub" or source.kind in "iub":
        if tape is not None:
            tape.note(_CAST, y, (x,), params)
        return wrap(y)
    return finish(_CAST, y, (x,), params)


def _narrowed(g: Any, dtype: np.dtype[Any]) -> Any:
    """A gradient in `dtype`; what is real depends on the real part only."""
    if dtype.kind != "c" and raw(g).dtype.kind == "c":
        g = _complex_numbers().real(g)
    return cast(g, dtype)


def as_seen(g: Any) -> Any:
    """The gradient that users see for the one that flows, and back: complex ones conjugated."""
    return _complex_numbers().conj(g) if raw(g).dtype.kind == "c" else g


def fitted(g: Any, dtype: np.dtype[Any]) -> Any:
    """The gradient that users see, in the dtype of its tensor."""
    return as_seen(_narrowed(g, dtype))


def _complex_numbers() -> Any:
    from . import complex_numbers

    return complex_numbers
