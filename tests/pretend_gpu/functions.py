"""CuPy's functions by way of NumPy's, checked against CuPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import indexing, surface
from .arrays import garbage, ndarray, open_capsule
from .boundary import (
    Array,
    Diverged,
    argument,
    arrays_in,
    check_dtype,
    check_on_current_device,
    copy_to_current_device,
    quietly,
    upload,
    wrap,
)
from .counting import counters
from .surface import Signature


def bind(signature: Signature, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments by CuPy's names.

    Raises:
        TypeError: CuPy's function has no such argument.
    """
    names = signature.positional + signature.options
    if len(args) > len(names):
        raise TypeError(
            f"{signature.name}() takes {len(names)} positional arguments but {len(args)} were given"
        )
    bound = dict(zip(names, args, strict=False))
    for name, value in options.items():
        if name not in names or name in bound:
            raise TypeError(f"{signature.name}() got an unexpected keyword argument {name!r}")
        bound[name] = value
    return bound


def _check(signature: Signature, bound: dict[str, Any]) -> None:
    for name, value in bound.items():
        if name in signature.arrays and not isinstance(value, Array):
            raise TypeError(
                f"{signature.name}: {name} must be an array. Unsupported type {type(value)}"
            )
        if name in signature.sequences:
            for item in value:
                if not isinstance(item, Array):
                    raise TypeError(f"{signature.name}: Unsupported type {type(item)}")
        if name == "out" and value is not None and not isinstance(value, Array):
            raise TypeError(f"{signature.name}: out: Unsupported type {type(value)}")
        if name == "dtype" and value is not None:
            check_dtype(value)
        if name == "kind" and value not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
    if isinstance(bound.get("repeats"), Array):
        raise ValueError("cupy.ndarray cannot be specified as `repeats` argument.")


def adapt(signature: Signature, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, a NumPy function, as CuPy's function of that signature."""

    def function(*args: Any, **options: Any) -> Any:
        bound = bind(signature, args, options)
        _check(signature, bound)
        sources = arrays_in(bound)
        host = {
            name: argument(value, on_device=not (signature.views or signature.on_host))
            for name, value in bound.items()
        }
        given = [host.pop(name) for name in signature.positional if name in host]
        if signature.waits:
            counters.record("synchronisations")
        try:
            result = quietly(call, *given, **host)
        except np.linalg.LinAlgError as error:
            raise Diverged(f"CuPy gives NaN in silence where NumPy says: {error}") from error
        return result if signature.on_host else wrap(result, sources)

    function.__name__ = function.__qualname__ = signature.name
    return function


def _stable(call: Callable[..., Any]) -> Callable[..., Any]:
    def sorting(*args: Any, kind: Any = None, **options: Any) -> Any:
        return call(*args, kind="stable", **options)

    return sorting


def _writable(call: Callable[..., Any]) -> Callable[..., Any]:
    """CuPy's diagonals can be written, NumPy's cannot."""

    def view(*args: Any, **options: Any) -> Any:
        result = call(*args, **options)
        result.flags.writeable = True
        return result

    return view


def _method(signature: Signature) -> Callable[..., Any]:
    name = signature.name
    call: Callable[..., Any] = getattr(np.ndarray, name, None) or getattr(np, name)
    taking_self = Signature(
        name,
        ("self", *signature.positional),
        signature.options,
        signature.arrays,
        signature.sequences,
        signature.waits,
        signature.views,
        False,
    )
    if name in ("sort", "argsort"):
        call = _stable(call)
    return adapt(taking_self, _writable(call) if name == "diagonal" else call)


def _variadic(name: str) -> Callable[..., Any]:
    call = getattr(np, name)

    def function(*args: Any, **options: Any) -> Any:
        sources = arrays_in([args, options])
        on_host = name in ("result_type", "common_type")
        host = [argument(value, on_device=not on_host) for value in args]
        result = quietly(call, *host, **{key: argument(value) for key, value in options.items()})
        return result if on_host else wrap(result, sources)

    function.__name__ = function.__qualname__ = name
    return function


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> Any:
    """A device array of a device array, a host array, or nested sequences."""
    order = order or "K"
    if dtype is not None:
        dtype = check_dtype(dtype)
    if isinstance(obj, Array):
        result = _from_device(obj, dtype, bool(copy), order)
    elif arrays_in(obj):
        result = _joined(obj)
        result = result if dtype is None else result.astype(dtype, copy=False)
    else:
        result = upload(_host_array(obj, dtype, order))
    if result.ndim < ndmin:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    return result


def _from_device(source: Any, dtype: Any, copy: bool, order: str) -> Any:
    target = source.dtype if dtype is None else dtype
    here = wrap(source, [source])
    try:
        check_on_current_device(source)
    except ValueError:
        here, copy = copy_to_current_device(source, order), False
    return here.astype(target, order=order, copy=copy)


def _joined(obj: Any) -> Any:
    if isinstance(obj, Array):
        return obj
    if not isinstance(obj, list | tuple):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )
    parts = [_joined(item) for item in obj]
    return wrap(np.stack([argument(part) for part in parts]))


def _host_array(obj: Any, dtype: Any, order: Any) -> np.ndarray:
    _check_host(obj)
    if isinstance(obj, np.ndarray) and dtype is None:
        check_dtype(obj.dtype)
    return np.array(obj, dtype=dtype, order=order)


def _check_host(obj: Any) -> None:
    if isinstance(obj, list | tuple):
        for item in obj:
            _check_host(item)
    elif not isinstance(obj, np.ndarray | np.generic | bool | int | float | complex | range):
        raise TypeError(f"Unsupported type {type(obj)}")


def asarray(a: Any, dtype: Any = None, order: Any = None, *, blocking: bool = False) -> Any:
    """A device array: the same one where nothing has to change, else a counted transfer."""
    return array(a, dtype, copy=False, order=order)


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """A device array in C order with at least one axis."""
    return array(a, dtype, copy=False, order="C", ndmin=1)


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """A device array in Fortran order."""
    return array(a, dtype, copy=False, order="F")


def copy(a: Any, order: str = "K") -> Any:
    """A copy of a device array on the current device."""
    return array(a, order=order)


def asnumpy(
    a: Any, stream: Any = None, order: Any = "C", out: Any = None, *, blocking: bool = True
) -> np.ndarray:
    """A host array: counted, and waits."""
    if isinstance(a, Array):
        return a.get(stream, order, out, blocking)
    if out is not None:
        out[...] = a
        return out
    return np.asarray(a, order=order)


def empty(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """Memory with values that no one expects."""
    return wrap(garbage(shape, float if dtype is None else dtype, order or "C"))


def empty_like(
    prototype: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> Any:
    """Like `empty`, with the shape and dtype of a device array."""
    if not isinstance(prototype, Array):
        raise TypeError(f"Unsupported type {type(prototype)}")
    memory = np.empty_like(prototype._memory, dtype=dtype, order=order, shape=shape)
    memory[...] = garbage((), memory.dtype)
    return wrap(memory)


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = None) -> None:
    """Writes `src` into `dst`; a whole array may come from another device."""
    if not isinstance(dst, Array):
        raise TypeError(f"Unsupported type {type(dst)}")
    if isinstance(src, Array) and src._device != dst._device:
        if where is not None:
            raise ValueError("copyto: where is not supported between devices")
        counters.record("device_to_device", src._memory.nbytes)
        np.copyto(dst._memory, src._memory, casting=casting)
        return
    if isinstance(src, np.ndarray):
        raise TypeError(f"Unsupported type {type(src)}")
    check_on_current_device(dst)
    mask = True if where is None else argument(where)
    np.copyto(dst._memory, argument(src), casting=casting, where=mask)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Any:
    """Elements at `indices` along an axis."""
    if not isinstance(a, Array):
        raise TypeError(f"Unsupported type {type(a)}")
    return indexing.take(a, indices, axis, out)


def size(a: Any, axis: Any = None) -> int:
    """Number of elements, along an axis or in all."""
    return int(a.size if axis is None else a.shape[axis])


def get_array_module(*args: Any) -> Any:
    """The pretend GPU's namespace if one argument is a device array, else NumPy."""
    import sys

    return sys.modules[__package__] if any(isinstance(one, Array) for one in args) else np


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> Any:
    """A view of an array that offers DLPack."""
    return open_capsule(array)


def _build(table: dict[str, Signature], host: Any) -> dict[str, Callable[..., Any]]:
    built = {}
    for name, signature in table.items():
        call = getattr(host, name)
        built[name] = adapt(signature, _stable(call) if name in ("sort", "argsort") else call)
    return built


ALL: dict[str, Any] = {
    **_build(surface.FUNCTIONS, np),
    **{name: _variadic(name) for name in surface.VARIADIC},
    **{
        call.__name__: call
        for call in (
            array,
            asarray,
            ascontiguousarray,
            asfortranarray,
            asnumpy,
            copy,
            copyto,
            empty,
            empty_like,
            from_dlpack,
            get_array_module,
            size,
            take,
        )
    },
    "asanyarray": asarray,
}

linalg = SimpleNamespace(**_build(surface.LINALG, np.linalg), LinAlgError=np.linalg.LinAlgError)
fft = SimpleNamespace(**_build(surface.FFT, np.fft))

for _name, _signature in surface.METHODS.items():
    setattr(ndarray, _name, _method(_signature))
