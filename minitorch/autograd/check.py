"""Gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError, GraphError, describe
from ..ops import primitive
from ..ops.primitive import wrap
from . import engine


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = False,
) -> bool:
    """Compares the gradients of `func` with central differences, element by element.

    `∂f/∂x_i ≈ (f(x + ε e_i) - f(x - ε e_i)) / 2ε`; complex elements count as two real ones.

    Args:
        func: Gives a Tensor or a tuple of them.
        inputs: A Tensor or a tuple; those that require grad must be float64 or complex128.
        eps: The step ε.
        atol: Absolute tolerance.
        rtol: Relative tolerance.
        raise_exception: Raise instead of returning False.
        nondet_tol: How much two evaluations of the gradient may differ.
        fast_mode: Compare `vᵀ J u` for a random direction `u` of each input and `v` of each
            output instead of every element of the Jacobian `J`: three calls of `func` per input.

    Returns:
        True if all gradients agree.

    Raises:
        ArgumentError: An input that requires grad is neither float64 nor complex128.
        GraphError: A gradient is wrong, or an output lost its graph; the message names output,
            input and values.
    """
    inputs = (inputs,) if isinstance(inputs, primitive.Tensor) else tuple(inputs)
    checked = [
        (i, x) for i, x in enumerate(inputs) if isinstance(x, primitive.Tensor) and x.requires_grad
    ]
    if not checked:
        raise ArgumentError("gradcheck: at least one input must require grad.")
    for i, x in checked:
        if x._array.dtype not in (np.float64, np.complex128):
            raise ArgumentError(
                f"gradcheck: inputs must be float64 or complex128, or rounding hides errors. "
                f"Input {i} is {describe(x)}. Convert it with .double()."
            )
    outputs = engine.listed(func(*inputs))
    for k, y in enumerate(outputs):
        if not y.requires_grad:
            message = _lost(func, inputs, checked, k, y, eps, atol)
            if message:
                return _failed(raise_exception, message)
            continue
        if fast_mode:
            message = _directional(func, inputs, checked, k, y, eps, atol, rtol)
            if message:
                return _failed(raise_exception, message)
            continue
        analytic = _analytic(y, [x for _, x in checked])
        again = _analytic(engine.listed(func(*inputs))[k], [x for _, x in checked])
        for (i, x), a, b in zip(checked, analytic, again, strict=True):
            if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
                return _failed(
                    raise_exception,
                    f"gradcheck: two backward passes gave different gradients of input {i}. "
                    "Make the function deterministic, or pass nondet_tol.",
                )
            numeric = _numeric(func, inputs, x, k, eps)
            if not np.allclose(a, numeric, rtol=rtol, atol=atol, equal_nan=True):
                worst = np.unravel_index(np.argmax(np.abs(a - numeric)), a.shape)
                return _failed(
                    raise_exception,
                    f"gradcheck: the gradient of output {k} by input {i} ({describe(x)}) is wrong. "
                    f"The rule gives {a[worst]:.6g}, central differences {numeric[worst]:.6g} "
                    f"(output element {worst[0]}, input element {worst[1]}).",
                )
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = False,
) -> bool:
    """`gradcheck` of the gradients of `func`: checks second derivatives.

    Args:
        grad_outputs: The incoming gradients; random ones by default.

    Other arguments, returns and errors are those of `gradcheck`.
    """
    inputs = (inputs,) if isinstance(inputs, primitive.Tensor) else tuple(inputs)
    outputs = [y for y in engine.listed(func(*inputs)) if y.requires_grad]
    if grad_outputs is None:
        rng = np.random.Generator(np.random.Philox(0))
        grad_outputs = [
            wrap(backend.from_host(_random(rng, y._array), y.device)).requires_grad_()
            for y in outputs
        ]
    elif isinstance(grad_outputs, primitive.Tensor):
        grad_outputs = [grad_outputs]
    n = len(inputs)

    def gradients(*args: Any) -> tuple[Any, ...]:
        xs, gs = args[:n], args[n:]
        ys = [y for y in engine.listed(func(*xs)) if y.requires_grad]
        wanted = [x for x in xs if isinstance(x, primitive.Tensor) and x.requires_grad]
        found = engine.grad(ys, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None and g.requires_grad)

    return gradcheck(
        gradients,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        fast_mode=fast_mode,
    )


def _failed(raise_exception: bool, message: str) -> bool:
    if raise_exception:
        raise GraphError(message)
    return False


def _lost(
    func: Callable[..., Any],
    inputs: Any,
    checked: Sequence[tuple[int, Any]],
    k: int,
    y: Any,
    eps: float,
    atol: float,
) -> str:
    """What is wrong with an output without a graph, which must not depend on the inputs."""
    if y._array.dtype.kind not in "fVc":
        return ""
    for i, x in checked:
        numeric = _numeric(func, inputs, x, k, eps)
        if numeric.size and not np.abs(numeric).max() <= atol:
            return (
                f"gradcheck: output {k} must require grad, since it changes with input {i} "
                f"({describe(x)}): {np.abs(numeric).max():.6g} by central differences. Got an "
                "output without a graph. Leave detach(), numpy() and no_grad() out of func."
            )
    return ""


def _directional(
    func: Callable[..., Any],
    inputs: Any,
    checked: Sequence[tuple[int, Any]],
    k: int,
    y: Any,
    eps: float,
    atol: float,
    rtol: float,
) -> str:
    """What is wrong with `vᵀ J u` for random directions, or an empty text."""
    rng = np.random.Generator(np.random.Philox(1))
    v = _random(rng, y._array).astype(y._array.dtype)
    seed = wrap(backend.from_host(np.asarray(v), y.device))
    found = engine.grad(y, [x for _, x in checked], seed, retain_graph=True, allow_unused=True)
    for (i, x), g in zip(checked, found, strict=True):
        u = _random(rng, x._array)
        analytic = 0.0 if g is None else _inner(u, g)
        numeric = _along(func, inputs, x, k, backend.from_host(u, x.device), v, eps)
        if not np.isclose(analytic, numeric, rtol=rtol, atol=atol, equal_nan=True):
            return (
                f"gradcheck: the gradient of output {k} by input {i} ({describe(x)}) is wrong. "
                f"Along a random direction the rule gives {analytic:.6g}, central differences "
                f"{numeric:.6g}. Leave fast_mode out to see the element."
            )
    return ""


def _along(
    func: Callable[..., Any], inputs: Any, x: Any, k: int, u: Any, v: np.ndarray, eps: float
) -> float:
    """The central difference of `vᵀ f` along the direction `u` of input `x`."""
    before = x._array.copy()
    values = []
    try:
        for step in (eps, -eps):
            x._array[...] = before + step * u
            values.append(_inner(v, engine.listed(func(*inputs))[k]))
    finally:
        x._array[...] = before
    return (values[0] - values[1]) / (2 * eps)


def _random(rng: np.random.Generator, like: Any) -> np.ndarray:
    """Standard normal numbers, float64 or complex128, in the shape of an array."""
    values = np.asarray(rng.standard_normal(like.shape))
    return values + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else values


def _inner(v: np.ndarray, y: Any) -> float:
    """`Re Σ conj(v) y`."""
    return float((v.conj() * backend.to_host(y._array)).real.sum())


def _parts(array: Any) -> list[Any]:
    """The array, or the views of its real and imaginary parts."""
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def _real_vector(array: Any) -> np.ndarray:
    """The values as float64[elements], for complex ones float64[2 * elements]."""
    parts = [part.astype(np.float64).reshape(-1) for part in _parts(backend.to_host(array))]
    return np.concatenate(parts)


def _analytic(y: Any, xs: Sequence[Any]) -> list[np.ndarray]:
    """For each input the Jacobian, float64[outputs, inputs]."""
    rows: list[list[np.ndarray]] = [[] for _ in xs]
    host = y._array
    for unit in (1, 1j) if host.dtype.kind == "c" else (1,):
        for j in range(host.size):
            seed = np.zeros(host.size, dtype=host.dtype)
            seed[j] = unit
            g = wrap(backend.from_host(seed.reshape(host.shape), y.device))
            found = engine.grad(y, xs, g, retain_graph=True, allow_unused=True)
            for row, x, d in zip(rows, xs, found, strict=True):
                row.append(_real_vector(np.zeros_like(x._array) if d is None else d._array))
    sizes = [sum(part.size for part in _parts(x._array)) for x in xs]
    return [np.array(row).reshape(len(row), size) for row, size in zip(rows, sizes, strict=True)]


def _numeric(func: Callable[..., Any], inputs: Any, x: Any, k: int, eps: float) -> np.ndarray:
    """The Jacobian of output `k` by `x` from central differences."""
    columns = []
    for part in _parts(x._array):
        for i in range(part.size):
            place = np.unravel_index(i, part.shape)
            before = part[place].item()
            values = []
            try:
                for step in (eps, -eps):
                    part[place] = before + step
                    values.append(_real_vector(engine.listed(func(*inputs))[k]._array).copy())
            finally:
                part[place] = before
            columns.append((values[0] - values[1]) / (2 * eps))
    size = _real_vector(engine.listed(func(*inputs))[k]._array).size
    return np.array(columns).reshape(len(columns), size).T
