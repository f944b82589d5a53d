"""Clipping of gradients by their norm and by value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import backend, kernels
from ...errors import ArgumentError, GraphError, describe
from ...ops.primitive import wrap
from ...optim.flat import PACKED_DTYPES, Run, gradient_runs, runs_of
from ...tensor import Tensor

# Below this many elements in all, compiling or loading the kernels costs more than they save.
KERNELS_FROM = 65536
LANES = 16


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
    compiled = _compiled(runs)
    finite = True
    for run in runs:
        array = run.array
        if compiled is not None and _is_flat(array):
            finite &= bool(compiled.scale(array.reshape(-1), array.dtype.type(factor)))
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


def _compiled(runs: list[Run]) -> Any:
    """The kernels, if there is enough to do for them."""
    total = sum(run.array.size for run in runs if type(run.array) is np.ndarray)
    return kernels.load("optim") if total >= KERNELS_FROM else None


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
    compiled = _compiled(runs) if order == 2.0 else None
    parts: list[np.ndarray] = []
    for run in runs:
        flat = np.ascontiguousarray(run.array).reshape(-1)
        if compiled is not None and flat.dtype in PACKED_DTYPES:
            out = np.empty(run.starts.size)
            compiled.sum_squares(flat, run.starts, run.stops, out)
            parts.append(out)
        else:
            parts.append(_block_sums(flat, run, order))
    total = _exact_sum(np.concatenate(parts).tolist())
    return math.sqrt(total) if order == 2.0 else float(np.float64(total) ** (1.0 / order))


def _block_sums(flat: np.ndarray, run: Run, order: float) -> np.ndarray:
    """The sum over each block of the elements' magnitudes to the power `order`."""
    out = np.empty(run.starts.size)
    for i, (low, high) in enumerate(zip(run.starts.tolist(), run.stops.tolist(), strict=True)):
        block = flat[low:high].astype(np.float64)
        out[i] = _sum_squares(block) if order == 2.0 else (abs(block) ** order).sum()
    return out


def _sum_squares(x: np.ndarray) -> float:
    """What the kernel of this name computes: `LANES` running sums, added pairwise."""
    lanes = np.zeros((-(-x.size // LANES), LANES))
    lanes.reshape(-1)[: x.size] = x
    sums = np.add.reduce(lanes * lanes, axis=0)
    while sums.size > 1:
        half = sums.size // 2
        sums = sums[:half] + sums[half:]
    return float(sums[0])


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
