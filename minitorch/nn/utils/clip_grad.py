"""Clipping of gradients by their norm and by value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import backend
from ...errors import ArgumentError, GraphError, describe
from ...ops.primitive import wrap
from ...optim.flat import PACKED_DTYPES, Run, compiled, gradient_runs, runs_of
from ...tensor import Tensor

LANES = 16
# So many blocks are summed at once without kernels; bounds the memory that it takes.
BLOCKS_AT_ONCE = 64


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients by one factor so that their common norm is at most `max_norm`.

    `g *= min(1, max_norm / (norm + 1e-6))`. If the norm is not finite the gradients stay as they
    are; in PyTorch one infinite gradient turns itself into NaN and all others into 0.

    Args:
        parameters: A parameter or an iterable of them; those without gradient are left out.
        max_norm: The largest norm allowed.
        norm_type: Order of the norm: a number above 0, or infinity.
        error_if_nonfinite: Raise where the norm is infinite or NaN.
        foreach: Accepted for PyTorch's signature.

    Returns:
        The norm before clipping, a 0-d tensor.

    Raises:
        ArgumentError: `parameters` is a generator that was used before, or an option is out of
            range.
        GraphError: The norm is not finite and `error_if_nonfinite` is set.

    >>> w = mt.ones(2, requires_grad=True)
    >>> (w * mt.tensor([3.0, 4.0])).sum().backward()
    >>> mt.nn.utils.clip_grad_norm_([w], max_norm=1.0).item()
    5.0
    >>> [round(x, 3) for x in w.grad.tolist()]
    [0.6, 0.8]
    """
    params = _listed("clip_grad_norm_", parameters)
    limit = _number("clip_grad_norm_", "max_norm", max_norm)
    runs = gradient_runs(params)
    total = _total(runs, _order(norm_type))
    if error_if_nonfinite:
        check_finite(total, norm_type, [p.grad for p in params if p.grad is not None])
    _shrink(params, runs, limit, total, "clip_grad_norm_")
    return wrap(total)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of the gradients to `-clip_value … clip_value`, in place.

    Args:
        parameters: A parameter or an iterable of them; those without gradient are left out.
        clip_value: The limit.
        foreach: Accepted for PyTorch's signature.

    Raises:
        ArgumentError: `parameters` is a generator that was used before, or the limit is negative.
    """
    params = _listed("clip_grad_value_", parameters)
    limit = _number("clip_grad_value_", "clip_value", clip_value)
    for run in gradient_runs(params):
        array = run.array
        array[...] = backend.namespace(array).clip(array, -limit, limit)
    for p in params:
        if p.grad is not None:
            p.grad._bump("clip_grad_value_")


def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of the tensors together.

    Args:
        tensors: A tensor or an iterable of them.
        norm_type: Order of the norm: a number above 0, or infinity.
        error_if_nonfinite: Raise where the norm is infinite or NaN.
        foreach: Accepted for PyTorch's signature.

    Returns:
        The norm, a 0-d tensor of float32, or of float64 if one of the tensors is.

    Raises:
        ArgumentError: `tensors` is a generator that was used before, or the order is none.
        GraphError: The norm is not finite and `error_if_nonfinite` is set.
    """
    listed = _listed("get_total_norm", tensors)
    total = _total(runs_of(t._array for t in listed), _order(norm_type))
    if error_if_nonfinite:
        check_finite(total, norm_type, listed)
    return wrap(total)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scales all gradients by `min(1, max_norm / (total_norm + 1e-6))`.

    Args:
        parameters: A parameter or an iterable of them; those without gradient are left out.
        max_norm: The largest norm allowed.
        total_norm: The norm, as `get_total_norm` returns it. If it is not finite, gradients stay.
        foreach: Accepted for PyTorch's signature.

    Raises:
        ArgumentError: `parameters` is a generator that was used before.
    """
    params = _listed("clip_grads_with_norm_", parameters)
    limit = _number("clip_grads_with_norm_", "max_norm", max_norm)
    total = total_norm._array if isinstance(total_norm, Tensor) else np.array(float(total_norm))
    _shrink(params, gradient_runs(params), limit, total, "clip_grads_with_norm_")


def _shrink(params: list[Any], runs: list[Run], limit: float, total: Any, name: str) -> None:
    """Scales gradients so that a norm of `total` becomes at most `limit`; waits for no device."""
    host = [run for run in runs if type(run.array) is np.ndarray]
    if isinstance(total, np.ndarray):
        factor = limit / (float(total) + 1e-6)
        if not math.isfinite(total) or factor >= 1.0:
            return
        scale_runs(host, factor)
        for run in runs:
            if type(run.array) is not np.ndarray:
                run.array *= factor
    else:
        xp = backend.namespace(total)
        factors = xp.where(xp.isfinite(total), xp.minimum(limit / (total + 1e-6), 1.0), 1.0)
        for run in runs:
            there = backend.transfer(factors, backend.device_of(run.array))
            run.array *= there.astype(run.array.dtype)
    for p in params:
        if p.grad is not None:
            p.grad._bump(name)


def scale_runs(runs: list[Run], factor: float) -> bool:
    """Multiplies gradients in place.

    Args:
        runs: Arrays on the CPU.
        factor: A finite number.

    Returns:
        True if every product is finite.
    """
    fast = _kernels(runs)
    finite = True
    for run in runs:
        array = run.array
        if fast is not None and _is_flat(array):
            finite &= bool(fast.scale(array.reshape(-1), array.dtype.type(factor)))
            continue
        with np.errstate(all="ignore"):
            array *= array.dtype.type(factor)
        finite &= bool(np.isfinite(array).all())
    return finite


def check_finite(total: Any, norm_type: float, tensors: list[Any]) -> None:
    """Raises if a norm is infinite or NaN.

    Raises:
        GraphError: Names the tensors that are not finite.
    """
    if math.isfinite(total):
        return
    bad = [
        f"gradient {i} ({describe(t)})"
        for i, t in enumerate(tensors)
        if not bool(backend.namespace(t._array).isfinite(t._array).all())
    ]
    where = ", ".join(bad) if bad else "no single gradient: the sum overflowed"
    raise GraphError(
        f"clip_grad_norm_: the norm of order {norm_type} must be finite. Got {float(total)}, from "
        f"{where}. Skip this update, or lower the learning rate or the loss scale."
    )


def _listed(name: str, tensors: Any) -> list[Any]:
    """The tensors as a list; an iterator that gives nothing was used up before."""
    if isinstance(tensors, Tensor):
        return [tensors]
    listed = list(tensors)
    if not listed and isinstance(tensors, Iterator):
        raise ArgumentError(
            f"{name}: the generator of parameters gave nothing. One that was used before is "
            "empty; call model.parameters() again."
        )
    return listed


def _number(name: str, option: str, value: Any) -> float:
    number = float(value)
    if not number >= 0:
        raise ArgumentError(f"{name}: {option} must be a number, at least 0. Got {value!r}.")
    return number


def _order(norm_type: Any) -> float:
    order = float(norm_type)
    if not order > 0:
        raise ArgumentError(
            f"clip_grad_norm_: norm_type must be above 0, or infinity. Got {norm_type!r}."
        )
    return order


def _is_flat(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype in PACKED_DTYPES and array.flags.c_contiguous


def _kernels(runs: list[Run]) -> Any:
    """The kernels, if there is enough to do for them."""
    return compiled(sum(run.array.size for run in runs if type(run.array) is np.ndarray))


def _total(runs: list[Run], order: float) -> Any:
    """The norm over all runs: a 0-d array on the device of the first."""
    if not runs:
        return np.array(0.0, np.float32)
    wide = any(run.array.dtype == np.float64 for run in runs)
    dtype = np.dtype(np.float64 if wide else np.float32)
    with np.errstate(all="ignore"):
        if all(type(run.array) is np.ndarray for run in runs):
            return np.array(_host_norm(runs, order), dtype)
        return _device_norm(runs, order).astype(dtype)


def _host_norm(runs: list[Run], order: float) -> float:
    """The norm on the CPU, in float64.

    Sums are taken over blocks that begin at each parameter and are added exactly, so that the
    result depends neither on threads nor on what lies side by side.
    """
    if math.isinf(order):
        tops = [float(abs(r.array).max()) for r in runs if r.array.size]
        return float(np.max(tops)) if tops else 0.0
    if order != 2.0:
        total = _exact_sum([_power_sum(b, order) for run in runs for b in _blocks(run)])
        return float(np.float64(total) ** (1.0 / order))
    fast = _kernels(runs)
    sums: list[float] = []
    slow: list[np.ndarray] = []
    for run in runs:
        if fast is not None and _is_flat(run.array):
            out = np.empty(run.starts.size)
            fast.sum_squares(run.array.reshape(-1), run.starts, run.stops, out)
            sums += out.tolist()
        else:
            slow += _blocks(run)
    return math.sqrt(_exact_sum(sums + sums_of_squares(slow)))


def _blocks(run: Run) -> list[np.ndarray]:
    """The blocks of a run as flat arrays."""
    flat = np.ascontiguousarray(run.array).reshape(-1)
    return [
        flat[low:high] for low, high in zip(run.starts.tolist(), run.stops.tolist(), strict=True)
    ]


def _power_sum(block: np.ndarray, order: float) -> float:
    return float((abs(block.astype(np.float64)) ** order).sum())


def sums_of_squares(blocks: list[np.ndarray]) -> list[float]:
    """What the kernel `sum_squares` computes: for each block `LANES` running sums, added in pairs.

    Args:
        blocks: Flat arrays.

    Returns:
        The float64 sum of squares of each, those of one size together.
    """
    sums: list[float] = []
    by_size: dict[int, list[np.ndarray]] = {}
    for block in blocks:
        by_size.setdefault(block.size, []).append(block)
    for size, alike in by_size.items():
        rows = -(-size // LANES)
        for first in range(0, len(alike), BLOCKS_AT_ONCE):
            some = alike[first : first + BLOCKS_AT_ONCE]
            padded = np.zeros((len(some), rows * LANES))
            for place, block in zip(padded, some, strict=True):
                place[:size] = block
            padded *= padded
            lanes = np.add.reduce(padded.reshape(len(some), rows, LANES), axis=1)
            while lanes.shape[1] > 1:
                half = lanes.shape[1] // 2
                lanes = lanes[:, :half] + lanes[:, half:]
            sums += lanes[:, 0].tolist()
    return sums


def _exact_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _device_norm(runs: list[Run], order: float) -> Any:
    """The norm on the device of the first array, without waiting for it."""
    first = runs[0].array
    target = backend.device_of(first)
    xp = backend.namespace(first)
    parts = []
    for run in runs:
        magnitude = abs(run.array).astype(np.float64)
        inner = backend.namespace(magnitude)
        part = inner.max(magnitude) if math.isinf(order) else inner.sum(magnitude**order)
        parts.append(backend.transfer(part, target))
    joined = xp.stack(parts)
    return xp.max(joined) if math.isinf(order) else xp.sum(joined) ** (1.0 / order)
