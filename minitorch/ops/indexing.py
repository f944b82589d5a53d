"""Reading and writing parts of tensors by position, index or mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..autograd.mode import state
from ..errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from . import joining, primitive, shape
from .numpy_names import renamed
from .primitive import Op, Primitive, check_same_device, raw, wrap
from .recording import copied

_PARTS = (list, tuple, range, slice, type(None), type(Ellipsis))
_BASIC = (int, slice, type(None), type(Ellipsis), np.integer)


def raw_index(index: Any, like: Any) -> tuple[Any, bool]:
    """`index` with arrays for Tensors and lists; and whether it is basic (gives a view)."""
    if isinstance(index, list) and any(
        isinstance(p, _PARTS) or isinstance(p, primitive.Tensor) for p in index
    ):
        index = tuple(index)  # as in PyTorch: a list of lists has one list for each axis
    parts = index if isinstance(index, tuple) else (index,)
    out: list[Any] = []
    basic = True
    for part in parts:
        if _is_position(part):
            part = int(part)  # so that x[i] is a view for a tensor i, too
        if isinstance(part, bool) or not isinstance(part, _BASIC):
            basic = False
            part = _raw_part(part, like)
        elif isinstance(part, slice):
            part = slice(
                *[None if n is None else _whole(n) for n in (part.start, part.stop, part.step)]
            )
            if part.step is not None and part.step < 0:
                raise ArgumentError(
                    f"index: a slice's step must be positive. Got {part.step}. Use flip(dims)."
                )
        out.append(part)
    if basic and Ellipsis not in out:
        out.append(Ellipsis)  # NumPy then gives a 0-d view instead of a scalar
    return tuple(out), basic


def _is_position(part: Any) -> bool:
    """True for a 0-d integer tensor on the host."""
    return (
        isinstance(part, primitive.Tensor)
        and type(part._array) is np.ndarray
        and part._array.ndim == 0
        and part._array.dtype.kind in "iu"
        and part._array.dtype != np.uint8
    )


def kept(index: Any, *tensors: Any) -> Any:
    """An index for backward: a copy where it is recorded, since the caller may write his."""
    if not state.recording or not any(t._rg for t in tensors):
        return index
    if isinstance(index, tuple):
        return tuple(copied(part) if backend.is_array(part) else part for part in index)
    return copied(index)


def _whole(n: Any) -> int:
    return int(n.item()) if isinstance(n, primitive.Tensor) else int(n)


def _raw_part(part: Any, like: Any) -> Any:
    if isinstance(part, primitive.Tensor):
        part = part._array
        if part.dtype == np.uint8:
            part = part.astype(bool)
    elif isinstance(part, list | tuple | range):
        part = np.asarray(_without_tensors(part))
        if part.size == 0:
            part = part.astype(np.int64)
    elif isinstance(part, bool):
        return part
    if not backend.is_array(part) or part.dtype.kind not in "iub":
        raise DtypeError(
            f"index: integers, slices, None, ..., bool masks and integer tensors are allowed. "
            f"Got {describe(part)}. Convert with .long()."
        )
    if type(part) is not type(like):
        if part.ndim == 0 and part.dtype.kind in "iu":
            return int(part)
        part = backend.transfer(part, backend.device_of(like))
    return part


def _without_tensors(part: Any) -> Any:
    if isinstance(part, primitive.Tensor):
        return part.tolist()
    return [_without_tensors(p) for p in part] if isinstance(part, list | tuple) else part


def _read(a: Any, *, index: Any, source: Any) -> Any:
    return a[index]


class _GetItem(Primitive):
    """Reads by index; the gradient is written back to where the values came from."""

    def __init__(self, name: str, *, view: bool) -> None:
        super().__init__(
            name,
            _read,
            (lambda g, *, index, source: put_back(g, index=index, source=source),),
            view=view,
        )
        self.selects = view


SLICE = _GetItem("slice", view=True)
_INDEX = _GetItem("index", view=False)


def _put_back_forward(g: Any, *, index: Any, source: Any) -> Any:
    xp = backend.namespace(g)
    out = xp.zeros(source, dtype=g.dtype)
    if all(isinstance(part, _BASIC) and not isinstance(part, bool) for part in index):
        out[index] = g
    elif len(index) == 1 and getattr(index[0], "dtype", None) == np.bool_:
        out[index] = g
    else:
        scatter_add_array(out, index, g)
    return out


def scatter_add_array(out: Any, index: Any, values: Any) -> None:
    """`out[index] += values` where an element may be named several times.

    Rows named by one integer array are sorted and summed, which is far quicker than `add.at`.
    """
    xp = backend.namespace(out)
    if (
        xp is np
        and len(index) == 1
        and isinstance(index[0], np.ndarray)
        and index[0].ndim
        and index[0].dtype.kind in "iu"
        and out.ndim > 1
        and index[0].size > 64
    ):
        rows = index[0].reshape(-1)
        rows = np.where(rows < 0, rows + out.shape[0], rows)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        flat = values.reshape(rows.size, -1)[order]
        sums = np.add.reduceat(flat, first, axis=0)
        out.reshape(out.shape[0], -1)[ordered[first]] += sums
        return
    _add_at(out, index, values)


put_back = Primitive(
    "put_back",
    _put_back_forward,
    (lambda g, *, index, source: _INDEX(g, index=index, source=g.shape),),
)


def _apart(index: Any) -> bool:
    """True if numbers and index arrays stand apart, where NumPy takes numbers for arrays."""
    if not isinstance(index, tuple):
        return False
    places = [i for i, part in enumerate(index) if part is not None and not _is_basic(part)]
    numbers = [i for i, part in enumerate(index) if isinstance(part, int | np.integer)]
    if not places or not numbers or any(isinstance(part, bool) for part in index):
        return False
    both = sorted(places + numbers)
    return both[-1] - both[0] >= len(both)


def _is_basic(part: Any) -> bool:
    return isinstance(part, _BASIC) and not isinstance(part, bool)


def _two_steps(index: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The basic part of an index, and what its index arrays select from that view."""
    first: list[Any] = []
    then: list[Any] = []
    for part in index:
        if _is_basic(part):
            first.append(part)
            if not isinstance(part, int | np.integer):
                then.append(part if part is Ellipsis else slice(None))
        else:
            axes = part.ndim if getattr(part, "dtype", None) == np.bool_ else 1
            first += [slice(None)] * axes
            then.append(part)
    return tuple(first), tuple(then)


def getitem(input: Any, index: Any) -> Any:
    """`input[index]`: integers, slices, None, Ellipsis, bool masks, integer tensors, lists.

    Basic indices give views; masks and integer tensors give copies.

    Raises:
        IndexRangeError: A position is outside, or there are too many indices.
    """
    a = input._array
    if type(index) is int:
        raw, basic = (index, Ellipsis), True
    elif type(index) is slice and index.step is None:
        raw, basic = raw_index((index,), a)
    else:
        raw, basic = raw_index(index, a)
    if not basic:
        if _apart(raw):
            first, then = _two_steps(raw)
            return getitem(getitem(input, first), then)
        raw = kept(raw, input)
    try:
        return (SLICE if basic else _INDEX)(input, index=raw, source=a.shape)
    except IndexError as error:
        raise IndexRangeError(
            f"index: every position must lie inside the tensor. Got {describe(input)}"
            f"[{_shown(index)}]: {error}."
        ) from None


def _shown(index: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    return ", ".join(
        describe(p) if hasattr(p, "shape") else ("..." if p is Ellipsis else repr(p)) for p in parts
    )


class _SetItem(Op):
    """The tensor after `old[index] = value`."""

    name = "setitem"

    def backward(self, node: Any, g: Any, saved: Any) -> Any:
        index = node.params["index"]
        source = raw(g).shape
        region = _INDEX(g, index=index, source=source)
        old = None
        if node.edges[0] is not None:
            old = erase(g, index=index)
        return old, region


def _erase_forward(g: Any, *, index: Any) -> Any:
    out = g.copy()
    out[index] = backend.namespace(out).zeros((), dtype=out.dtype)
    return out


erase = Primitive("erase", _erase_forward, (lambda g, *, index: erase(g, index=index),))
_SETITEM = _SetItem()


def setitem(input: Any, index: Any, value: Any) -> None:
    """`input[index] = value`, recorded if either requires grad."""
    from .inplace import written

    a = input._array
    raw, _ = raw_index(index, a)
    if _apart(raw):
        first, then = _two_steps(raw)
        return setitem(getitem(input, first), then, value)
    if isinstance(value, primitive.Tensor):
        if value._array.ndim:
            check_same_device("setitem", [input, value])
        value = primitive.cast(value, a.dtype)
        v = backend.transfer(value._array, backend.device_of(a))
    else:
        v = (
            value
            if type(a) is np.ndarray and isinstance(value, bool | int | float | complex)
            else (backend.from_host(np.asarray(value, dtype=a.dtype), backend.device_of(a)))
        )
        value = None
    inputs = (input,) if value is None else (input, value)
    raw = kept(raw, *inputs)

    def write(out: Any) -> None:
        try:
            out[raw] = v
        except (ValueError, IndexError) as error:
            kind = IndexRangeError if isinstance(error, IndexError) else ShapeError
            raise kind(
                f"setitem: the value must broadcast to the selected region. "
                f"Got {describe(v)} for {describe(input)}[{_shown(index)}]: {error}."
            ) from None

    written(input, "setitem", write, _SETITEM, inputs, {"index": raw})


# ---- gather and scatter --------------------------------------------------------------------------


def _gather_forward(a: Any, *, axis: int, index: Any, source: Any) -> Any:
    grid = open_grid(a, axis, index)
    return a[grid]


def open_grid(a: Any, axis: int, index: Any) -> tuple[Any, ...]:
    """Open index arrays that select `index` along `axis` and the position itself elsewhere."""
    xp = backend.namespace(a)
    return tuple(
        index
        if i == axis
        else xp.arange(index.shape[i]).reshape((1,) * i + (-1,) + (1,) * (index.ndim - i - 1))
        for i in range(index.ndim)
    )


def _scatter_sum(g: Any, *, axis: int, index: Any, source: Any) -> Any:
    out = backend.namespace(g).zeros(source, dtype=g.dtype)
    _add_at(out, open_grid(out, axis, index), g)
    return out


def _add_at(out: Any, index: Any, values: Any) -> None:
    """`add.at`; CuPy has it for int64 only under the name of uint64, which adds the same bits."""
    xp = backend.namespace(out)
    if xp is not np and out.dtype == np.int64:
        xp.add.at(out.view(np.uint64), index, values.view(np.uint64))
    else:
        xp.add.at(out, index, values)


gather_primitive = Primitive(
    "gather",
    _gather_forward,
    (
        lambda g, *, axis, index, source: scatter_sum_primitive(
            g, axis=axis, index=index, source=source
        ),
    ),
)
scatter_sum_primitive = Primitive(
    "scatter_sum",
    _scatter_sum,
    (lambda g, *, axis, index, source: gather_primitive(g, axis=axis, index=index, source=source),),
)


def index_array(name: str, input: Any, axis: int, index: Any, *, limit: int) -> Any:
    """The array of `index`, checked for dtype, rank and range."""
    i = index._array
    if i.dtype.kind not in "iu":
        raise DtypeError(
            f"{name}: the index must be int64. Got {describe(index)}. Convert with .long()."
        )
    check_same_device(name, [input, index])
    if i.size and type(i) is np.ndarray and not (0 <= i.min() and i.max() < limit):
        raise IndexRangeError(
            f"{name}: every index must be from 0 to {limit - 1}, the length of axis {axis} of "
            f"{describe(input)}. Got {int(i.min())} to {int(i.max())}."
        )
    return i


def gather(input: Any, dim: int, index: Any) -> Any:
    """`out[i][j] = input[index[i][j]][j]` for dim 0, and so on for other axes.

    Args:
        input: Tensor.
        dim: The axis that `index` runs along.
        index: int64, as many axes as `input`.

    Returns:
        Tensor of the shape of `index`.

    Raises:
        ShapeError: The ranks differ, or an index is outside.
    """
    if not input._array.ndim:
        return gather(input.reshape(1), 0, index.reshape(1)).reshape(index._array.shape)
    axis = shape.axis_of("gather", input._array.ndim, dim)
    if index._array.ndim != input._array.ndim:
        raise ShapeError(
            f"gather: index must have as many axes as the input. Got {describe(index)} for "
            f"{describe(input)}."
        )
    i = index_array("gather", input, axis, index, limit=input._array.shape[axis])
    check_extent("gather", input._array.shape, i.shape, axis)
    return gather_primitive(input, axis=axis, index=kept(i, input), source=input._array.shape)


def check_extent(name: str, shape: Any, index: Any, axis: int) -> None:
    """The index may be shorter than the tensor off the axis, never longer."""
    if len(index) != len(shape) or any(
        n > m for k, (m, n) in enumerate(zip(shape, index, strict=True)) if k != axis
    ):
        raise ShapeError(
            f"{name}: the index must have as many axes as the tensor and be no longer off axis "
            f"{axis}. Got an index of shape {tuple(index)} for {tuple(shape)}."
        )


def take_along_dim(input: Any, indices: Any, dim: int | None = None, **names: Any) -> Any:
    """`gather` that broadcasts; without an axis, from the flat tensor."""
    if names:
        return renamed(take_along_dim, locals())
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    axis = shape.axis_of("take_along_dim", input.ndim, dim)
    common = [
        max(m, n) if k != axis else 0
        for k, (m, n) in enumerate(zip(input.shape, indices.shape, strict=True))
    ]
    x = shape.broadcast_to(
        input, [n if k != axis else input.shape[k] for k, n in enumerate(common)]
    )
    i = shape.broadcast_to(
        indices, [n if k != axis else indices.shape[k] for k, n in enumerate(common)]
    )
    return gather(x, axis, i)


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """A copy of `input` with `src` added at the places that `index` names along `dim`."""
    axis = shape.axis_of("scatter_add", input.ndim, dim)
    i = index_array("scatter_add", input, axis, index, limit=input._array.shape[axis])
    check_same_device("scatter_add", [input, src])
    check_extent("scatter_add", input._array.shape, i.shape, axis)
    part = src[tuple(slice(n) for n in i.shape)] if src._array.shape != i.shape else src
    i = kept(i, input, src)
    return input + scatter_sum_primitive(part, axis=axis, index=i, source=input._array.shape)


def scatter(
    input: Any,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Any:
    """A copy of `input` with `src` (or a number) written where `index` names along `dim`.

    `reduce="add"` and `"multiply"` join the values with what is there.
    """
    src = value if src is None else src
    if reduce is not None:
        return _joined(input, dim, index, src, reduce)
    axis = shape.axis_of("scatter", input.ndim, dim)
    i = index_array("scatter", input, axis, index, limit=input._array.shape[axis])
    check_extent("scatter", input._array.shape, i.shape, axis)
    out = input.clone()
    grid = open_grid(input._array, axis, i)
    if isinstance(src, primitive.Tensor) and src._array.ndim:
        src = src[tuple(slice(n) for n in i.shape)] if src._array.shape != i.shape else src
    out[tuple(wrap(part) for part in grid)] = src
    return out


def _joined(input: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    from .scattering import scatter_reduce

    if reduce not in ("add", "multiply"):
        raise ArgumentError(f"scatter: reduce must be 'add' or 'multiply'. Got {reduce!r}.")
    if not isinstance(src, primitive.Tensor):
        src = input.new_full(index.shape, src)
    return scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod")


def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of `input` at the positions `index` (int64[n]) along `dim`."""
    axis = shape.axis_of("index_select", input.ndim, dim)
    i = index_array("index_select", input, axis, index, limit=input._array.shape[axis])
    if i.ndim > 1:
        raise ShapeError(f"index_select: index must have one axis. Got {describe(index)}.")
    return input[(slice(None),) * axis + (wrap(i.reshape(-1)),)]


def masked_select(input: Any, mask: Any) -> Any:
    """The elements where `mask` is true, as one axis."""
    common = shape.broadcast_shapes(input.shape, mask.shape)
    return shape.broadcast_to(input, common)[shape.broadcast_to(mask, common)]


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The positions of elements that are not 0: int64[n, ndim], or one tensor per axis."""
    a = input._array
    found = tuple(wrap(part) for part in (a if a.ndim else a.reshape(1)).nonzero())
    if as_tuple:
        return found
    return joining.stack(found, 1) if a.ndim else found[0].unsqueeze(1)[:, :0]
