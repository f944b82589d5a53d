"""In-place writes: the memory changes, and the graph learns of it or the write is refused.

Every write raises the version of the memory, which all tensors that see it share, so that backward
notices when a saved value was overwritten. A recorded write gives the tensor a new history; a view
hands the news to its base, and other views of the base renew their history when they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import backend, dtypes
from ..autograd.mode import state
from ..autograd.node import writes
from ..errors import DtypeError, GraphError, ShapeError, describe
from . import at_once, primitive
from .primitive import Op, cast, input_edge, new_node, version_of, wrap
from .recording import copied


def bump(t: Any, name: str) -> None:
    """Notes that `name` wrote into the memory of `t`."""
    version = version_of(t)
    version[0] += 1
    version[1] = name
    writes.note()


def _is_recorded(*tensors: Any) -> bool:
    """True if a write that these take part in is recorded; views learn of their bases first."""
    for x in tensors:
        if x._view is not None:
            x._sync_view()
    return bool(state.recording) and any(x._rg for x in tensors)


def check_writable(t: Any, name: str, recorded: bool) -> None:
    """Raises where a write would give wrong gradients or hit shared elements.

    Raises:
        GraphError: The tensor is a leaf that requires grad, or a view of one.
        ShapeError: Several elements share one place in memory.
    """
    if t._view is not None:
        t._sync_view()
    if recorded:
        base = t._view.base if t._view is not None else t
        if base._rg and base._node is None:
            what = "a leaf that requires grad" if base is t else "a view of such a leaf"
            raise GraphError(
                f"{name}: {what} cannot be changed in place while operations are recorded. "
                f"Got {describe(t)}. Write it under no_grad, or use the out-of-place form."
            )
    if state.recording and t._view is not None and t._view.base._rg and not t._rg:
        raise GraphError(
            f"{name}: this view of a tensor that requires grad was made under no_grad and cannot "
            f"be changed while operations are recorded. Got {describe(t)}. Make the view outside "
            "of no_grad, or write it under no_grad."
        )
    flags = t._array.flags
    if not getattr(flags, "writeable", True) or repeats_memory(t._array):
        raise ShapeError(
            f"{name}: several elements of this expanded tensor share one place in memory. "
            f"Got {describe(t)}. Call .clone() first."
        )


def repeats_memory(array: Any) -> bool:
    """True if several elements share one place; NumPy gives axes of length 1 the stride 0, too."""
    pairs = zip(array.strides, array.shape, strict=True)
    return array.size > 1 and any(stride == 0 and size > 1 for stride, size in pairs)


def written(
    t: Any,
    name: str,
    write: Callable[[Any], None],
    op: Op,
    inputs: tuple[Any, ...],
    params: dict[str, Any],
) -> Any:
    """Runs `write(array)`, and records `op` of the old `t` and the other inputs.

    Args:
        t: The tensor to change.
        name: The operation's name for messages.
        write: Writes into the array it is given.
        op: Its rule gives the gradients of the old tensor and of the other inputs.
        inputs: `t` and the other inputs.
        params: Options of `op`.

    Returns:
        `t`.
    """
    recorded = _is_recorded(*inputs)
    check_writable(t, name, recorded)
    if primitive.tape is not None:
        primitive.tape.broken(f"{name} changes a tensor in place")
    node = None
    if recorded:
        node = new_node(op, tuple([input_edge(x) for x in inputs]), params)
        node.shapes = tuple(x._array.shape for x in inputs)
    write(t._array)
    bump(t, name)
    if node is not None:
        rebase(t, node)
    return t


def count_up(t: Any) -> None:
    """Adds 1 to a tensor of one number, for which a ufunc takes longer than all of this."""
    a = t._array
    plain = type(a) is primitive.ndarray and not a.ndim and a.dtype.kind == "i"
    if plain and a.flags.writeable and primitive.tape is None and t._view is None:
        a.fill(a.item() + 1)
        bump(t, "add_")
    else:
        t.add_(1)


def apply_(t: Any, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`t.name_(…)`: computes `function(t, …)` and puts the result into the memory of `t`.

    Raises:
        DtypeError: The result's dtype cannot be written into the dtype of `t`.
        ShapeError: The result has another shape than `t`.
    """
    others = [x for x in (*args, *options.values()) if isinstance(x, primitive.Tensor)]
    recorded = _is_recorded(t, *others)
    check_writable(t, name, recorded)
    tape = primitive.tape
    if tape is not None and not recorded:
        kind = tape.changes(t, name)
        return tape.opaque(apply_, (t, name, function, *args), options, kind)
    if not recorded and name in at_once.NAMES and at_once.write(t._array, name, args, options):
        bump(t, name)
        return t
    # The recorded operation may save the old values, which the write is about to replace.
    old = _shadow(t) if recorded else t
    args = tuple(old if x is t else x for x in args)
    result = function(old, *args, **options)
    _check_result(t, name, result)
    new = cast(result, t._array.dtype)
    t._array[...] = new._array
    bump(t, name)
    if tape is not None:
        tape.write(t, new._array, name)
    if recorded:
        rebase(t, new._node)
    return t


def in_place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The method `name` of Tensor that puts the result of `function` into the tensor's memory."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return apply_(self, name, function, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of `{name.rstrip('_')}`."
    return method


def _shadow(t: Any) -> Any:
    """A Tensor with a copy of the values of `t` and its place in the graph."""
    old = wrap(copied(t._array))
    old._node, old._rg = t._node, t._rg
    return old


def _check_result(t: Any, name: str, result: Any) -> None:
    if result._array.shape != t._array.shape:
        raise ShapeError(
            f"{name}: the result must have the shape of the tensor it is written to. "
            f"Got {describe(result)} for {describe(t)}. Use the out-of-place form."
        )
    if not dtypes.can_cast(result.dtype, t.dtype):
        raise DtypeError(
            f"{name}: a result of {result.dtype.name} cannot be written into {describe(t)}. "
            "Convert the tensor first, or use the out-of-place form."
        )


class _ViewWrite(Op):
    """A base after one of its views was overwritten with new values."""

    name = "view_write"

    def backward(self, node: Any, g: Any, saved: Any) -> Any:
        replay = node.params["view"].replay
        region = primitive.as_seen(replay(primitive.as_seen(g)))
        if node.edges[0] is None:
            return None, region
        return _erased(g, **node.params), region


def _erase(g: Any, *, view: Any, order: tuple[int, ...]) -> Any:
    """`g` with 0 where the view looks; laid out like the base, or the view would be a copy."""
    out = backend.namespace(g).empty(tuple(g.shape[i] for i in order), g.dtype)
    out = out.transpose(sorted(range(g.ndim), key=order.__getitem__))
    out[...] = g
    region = view.replay(out)
    if not primitive.shares_memory(region, out):
        raise GraphError(
            "backward: a view was changed in place whose place in the base cannot be found again. "
            "Use the out-of-place form, or make the base contiguous first."
        )
    region[...] = 0
    return out


_erased = primitive.Primitive(
    "erase_view", _erase, (lambda g, *, view, order: _erased(g, view=view, order=order),)
)
_VIEW_WRITE = _ViewWrite()


def rebase(t: Any, node: Any) -> None:
    """Gives `t` the new history `node`; a view passes the news on to its base."""
    version = version_of(t)
    version[2] += 1
    view = t._view
    if view is None:
        t._node, t._rg = node, node is not None
        return
    base = view.base
    if base._view is not None:
        base._sync_view()
    strides = base._array.strides
    order = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))
    write = new_node(_VIEW_WRITE, (input_edge(base), node), {"view": view, "order": order})
    base._node, base._rg = write, True
    t._sync_view()


def copy_(t: Any, src: Any, non_blocking: bool = False) -> Any:
    """Writes the values of `src`, broadcast and converted, into `t`; across devices as well."""
    if not isinstance(src, primitive.Tensor):
        src = wrap(backend.namespace(t._array).asarray(src))
    where = backend.device_of(t._array)

    def moved(old: Any) -> Any:
        from .shape import broadcast_to

        same = src if backend.device_of(src._array) == where else src.to(where)
        return broadcast_to(cast(same, t._array.dtype), t._array.shape)

    recorded = _is_recorded(t, src)
    check_writable(t, "copy_", recorded)
    tape = primitive.tape
    if tape is not None and not recorded:
        return tape.opaque(copy_, (t, src), {}, tape.changes(t, "copy_"))
    new = moved(t)
    t._array[...] = new._array
    bump(t, "copy_")
    if tape is not None:
        tape.write(t, new._array, "copy_")
    if recorded:
        rebase(t, new_node(_COPY, (input_edge(t), input_edge(new)), {}))
    return t


class _Copy(Op):
    """The old values go, so that their gradient is 0; that of the source passes."""

    name = "copy"
    vjps = (lambda g: g * 0, lambda g: g)


_COPY = _Copy()


def fill_(t: Any, value: Any) -> Any:
    """Sets every element to a number or 0-d tensor."""
    if isinstance(value, primitive.Tensor):
        return copy_(t, value)
    recorded = _is_recorded(t)
    check_writable(t, "fill_", recorded)
    tape = primitive.tape
    if tape is not None and not recorded:
        return tape.opaque(fill_, (t, value), {}, tape.changes(t, "fill_"))
    if tape is not None:
        tape.broken("fill_ changes a tensor in place while gradients are recorded")
    t._array[...] = value
    bump(t, "fill_")
    if recorded:
        forget(t)
    return t


def forget(t: Any) -> None:
    """Notes that every value of `t` was replaced by one that depends on nothing."""
    rebase(t, new_node(_FILLED, (input_edge(t),), {}))


def zero_(t: Any) -> Any:
    """Sets every element to 0."""
    return fill_(t, 0)


class _Filled(Op):
    """The old values go, so that their gradient is 0."""

    name = "fill"
    vjps = (lambda g: g * 0,)


_FILLED = _Filled()
