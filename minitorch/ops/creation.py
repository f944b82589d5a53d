"""New tensors from values, shapes and ranges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..device import CPU, device, get_default_device
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import primitive, shape
from .primitive import wrap
from .recording import constant, unrecordable


def _placed(array: Any, where: Any, requires_grad: bool) -> Any:
    """A leaf around `array` on the device `where`."""
    t = constant(wrap(array if where is None else backend.transfer(array, device(where))))
    if requires_grad:
        unrecordable("a leaf that requires gradients is made")
        t.requires_grad_()
    return t


def _namespace(where: Any) -> Any:
    """The array library of the device `where`."""
    return backend.get((get_default_device() if where is None else device(where)).type).xp


def _empty(sizes: Any, dtype: Any, where: Any, fill: Any) -> Any:
    """An array filled with `fill` (None: whatever was in memory), made on its device."""
    xp = _namespace(where)
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    if min(sizes, default=0) < 0:
        raise ShapeError(f"creation: sizes must not be negative. Got {tuple(sizes)}.")
    if fill is None or fill == 0:
        array = (xp.empty if fill is None else xp.zeros)(sizes, dtype=d.numpy)
    else:
        array = xp.full(sizes, fill, dtype=d.numpy)
    return backend.transfer(array, get_default_device() if where is None else device(where))


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new leaf with a copy of `data`.

    Args:
        data: Number, nested lists, array or Tensor. Python floats become the default dtype, whole
            numbers int64; arrays keep their dtype.
        dtype: Convert to this dtype.
        device: Where to put it. Default: the CPU, or the device of a GPU array.
        requires_grad: Record operations on it.

    Raises:
        ShapeError: Nested lists of different lengths.
        DtypeError: Values that are no numbers.
    """
    array = _copied(data, dtype)
    if device is None and type(array) is np.ndarray and get_default_device() is not CPU:
        device = get_default_device()
    return _placed(array, device, requires_grad)


def _copied(data: Any, dtype: Any) -> Any:
    wanted = None if dtype is None else dtypes.of(dtype).numpy
    if not isinstance(data, bool | int | float | list | tuple):
        unrecordable("the values of an array become a tensor")
    if isinstance(data, primitive.Tensor):
        data = data._array
    if backend.is_array(data) or isinstance(data, np.generic):
        dtypes.of(data.dtype)
        if not isinstance(data, np.ndarray | np.generic):
            return data.astype(wanted or data.dtype, copy=True)
        return np.array(data, dtype=wanted, copy=True, order="C", subok=False)
    if hasattr(data, "__array__") and not isinstance(data, list | tuple):
        return _copied(np.asarray(data), dtype)
    return _from_python(data, wanted)


def _from_python(data: Any, wanted: Any) -> Any:
    try:
        array = np.array(_plain(data))
    except ValueError as error:
        raise ShapeError(
            f"tensor: nested lists must have equal lengths at every level ({error}). "
            "Pad the shorter ones."
        ) from None
    if array.dtype.kind not in "biufcV":
        if array.dtype == object and array.size and _is_whole(array):
            raise DtypeError("tensor: a whole number is too large for int64. Use a float.")
        raise DtypeError(
            f"tensor: values must be numbers. Got {type(data).__name__} of {array.dtype}. "
            "Encode text and objects as numbers first."
        )
    if wanted is None:
        if array.size == 0 and array.dtype == np.float64 or _holds_floats(data, array):
            wanted = dtypes.get_default_dtype().numpy
        elif array.dtype == np.complex128:
            wanted = np.dtype(np.complex64)
    if wanted is not None and array.dtype.kind == "i" and wanted.kind in "iu" and array.size:
        info = np.iinfo(wanted)
        if array.min() < info.min or array.max() > info.max:
            raise DtypeError(
                f"tensor: values must fit into {wanted.name} ({info.min} to {info.max}). "
                f"Got {array.min()} to {array.max()}. Use a wider dtype."
            )
    return array if wanted is None else array.astype(wanted)


def _is_whole(array: Any) -> bool:
    return all(isinstance(x, int) for x in array.reshape(-1)[:1])


def _holds_floats(data: Any, array: Any) -> bool:
    """True if float64 came from Python floats and not from NumPy scalars or arrays."""
    if array.dtype != np.float64:
        return False
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return not isinstance(data, np.generic | np.ndarray)


def _plain(data: Any) -> Any:
    """Nested lists with arrays in place of Tensors."""
    if not isinstance(data, bool | int | float | list | tuple):
        unrecordable("values in a list become a tensor")
    if isinstance(data, primitive.Tensor):
        return data.item() if data._array.size == 1 else backend.to_host(data._array)
    if isinstance(data, list | tuple):
        if data and isinstance(data[0], bool | int | float):
            return data
        return [_plain(x) for x in data]
    return data


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`data` itself if it is a Tensor with that dtype and device, else a new tensor."""
    if isinstance(data, primitive.Tensor):
        return data.to(device=device, dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray) -> Any:
    """A tensor with a copy of `array`; a later write to the array cannot corrupt a graph.

    Raises:
        DtypeError: It is no NumPy array, or its dtype has no tensor.
    """
    if not isinstance(array, np.ndarray):
        raise DtypeError(
            f"from_numpy: a numpy.ndarray is needed. Got {type(array).__name__}. Use tensor(...)."
        )
    return tensor(array, device=CPU)


def zeros(
    *args: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """Zeros of the given shape."""
    return _placed(_empty(shape.sizes_of(args, size), dtype, device, 0), None, requires_grad)


def ones(
    *args: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """Ones of the given shape."""
    return _placed(_empty(shape.sizes_of(args, size), dtype, device, 1), None, requires_grad)


def empty(
    *args: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor of the given shape with arbitrary values."""
    return _placed(_empty(shape.sizes_of(args, size), dtype, device, None), None, requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """A tensor filled with one value, in the dtype of the value."""
    if isinstance(fill_value, primitive.Tensor):
        fill_value = fill_value.item()
    d = dtypes.result_type(fill_value) if dtype is None else dtypes.of(dtype)
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return _placed(_empty(sizes, d, device, fill_value), None, requires_grad)


def _like(name: str, input: Any, options: dict[str, Any]) -> dict[str, Any]:
    unknown = set(options) - {
        "dtype",
        "device",
        "requires_grad",
        "memory_format",
        "layout",
        "pin_memory",
    }
    if unknown:
        raise TypeError(f"{name}: unknown option {sorted(unknown)[0]!r}.")
    dtype, where = options.get("dtype"), options.get("device")
    return {
        "dtype": input.dtype if dtype is None else dtype,
        "device": input.device if where is None else where,
        "requires_grad": options.get("requires_grad", False),
    }


def zeros_like(input: Any, **options: Any) -> Any:
    """Zeros with the shape, dtype and device of `input`."""
    return zeros(input.shape, **_like("zeros_like", input, options))


def ones_like(input: Any, **options: Any) -> Any:
    """Ones with the shape, dtype and device of `input`."""
    return ones(input.shape, **_like("ones_like", input, options))


def empty_like(input: Any, **options: Any) -> Any:
    """Arbitrary values with the shape, dtype and device of `input`."""
    return empty(input.shape, **_like("empty_like", input, options))


def full_like(input: Any, fill_value: Any, **options: Any) -> Any:
    """One value with the shape, dtype and device of `input`."""
    return full(input.shape, fill_value, **_like("full_like", input, options))


def arange(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """`start, start + step, …` below `end`; int64 if all three are whole, else floating.

    Raises:
        ArgumentError: The step is 0 or leads away from the end.
    """
    if end is None:
        start, end = 0, start
    start, end, step = (
        x.item() if isinstance(x, primitive.Tensor) else x for x in (start, end, step)
    )
    if step == 0 or (end - start) / step < 0:
        raise ArgumentError(
            f"arange: the step must lead from start to end. Got arange({start}, {end}, {step})."
        )
    floating = any(isinstance(x, float) for x in (start, end, step))
    d = (
        dtypes.of(dtype)
        if dtype is not None
        else (dtypes.get_default_dtype() if floating else dtypes.int64)
    )
    count = math.ceil((end - start) / step)
    values = (
        _namespace(device).arange(count, dtype=np.float64 if floating else np.int64) * step + start
    )
    return _placed(values.astype(d.numpy), device, requires_grad)


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """`steps` evenly spaced values from `start` to `end`, both included."""
    if steps < 0:
        raise ArgumentError(f"linspace: steps must not be negative. Got {steps}.")
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    values = _namespace(device).linspace(float(start), float(end), steps)
    return _placed(values.astype(d.numpy), device, requires_grad)


def logspace(start: float, end: float, steps: int, base: float = 10.0, **options: Any) -> Any:
    """`base` to the power of evenly spaced exponents."""
    return base ** linspace(start, end, steps, **options)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """Ones on the main diagonal of an n×m matrix, zeros elsewhere."""
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    return _placed(_namespace(device).eye(n, m, dtype=d.numpy), device, requires_grad)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """The coordinates of a grid spanned by vectors, one tensor per axis.

    Raises:
        ArgumentError: `indexing` is neither `"ij"` nor `"xy"`.
    """
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f"meshgrid: indexing must be 'ij' or 'xy'. Got {indexing!r}.")
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tuple(tensors[0])
    for x in tensors:
        if x.ndim > 1:
            raise ShapeError(f"meshgrid: only vectors are allowed. Got {describe(x)}.")
    n = len(tensors)
    sizes = [x.numel() for x in tensors]
    grids = tuple(
        shape.broadcast_to(shape.reshape(x, (1,) * i + (-1,) + (1,) * (n - i - 1)), sizes)
        for i, x in enumerate(tensors)
    )
    if indexing == "xy" and n > 1:
        return tuple(shape.transpose(g, 0, 1) for g in grids)
    return grids


def from_dlpack(source: Any) -> Any:
    """A tensor from any object that speaks DLPack; CPU memory is copied, GPU memory is shared.

    Args:
        source: An array of NumPy, CuPy, PyTorch, JAX, …
    """
    kind, index = source.__dlpack_device__()
    if kind == 1:
        return wrap(np.array(np.from_dlpack(source), copy=True))
    xp = backend.get("cuda").xp
    return wrap(xp.from_dlpack(source))
