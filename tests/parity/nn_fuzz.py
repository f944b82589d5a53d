"""Random calls of a family against torch: values, first gradients, dtypes, error-or-not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import minitorch as mt

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError)

# Some of torch's backends give an empty result where the others raise; here all raise.
STRICTER = ("at least 1 element on each axis", "output_padding must be smaller")
# Where torch reads or writes outside of the image.
REFUSED = ("every window must have an element",)


class Call(NamedTuple):
    """One call: its text for messages, `call(m, F, *tensors)`, and the arrays of the tensors."""

    text: str
    call: Callable[..., Any]
    arrays: list[np.ndarray]


def array(rng: np.random.Generator, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
    """Values of a range, of a random floating dtype."""
    dtype = np.float64 if rng.random() < 0.7 else np.float32
    return rng.uniform(low, high, shape).astype(dtype)


def one_of(rng: np.random.Generator, *values: Any) -> Any:
    """One of the values."""
    return values[int(rng.integers(len(values)))]


def sizes(rng: np.random.Generator, axes: int, low: int, high: int) -> Any:
    """A number, or one for each axis; rarely a tuple of the wrong length."""
    if rng.random() < 0.5:
        return int(rng.integers(low, high + 1))
    count = axes if rng.random() < 0.98 else axes + 1
    return tuple(int(n) for n in rng.integers(low, high + 1, count))


def image(rng: np.random.Generator, axes: int, channels: int, largest: int = 7) -> tuple[int, ...]:
    """A shape [N, C, …] or [C, …]; rarely with an axis too many or an empty batch."""
    spatial = [int(n) for n in rng.integers(1, largest + 1, axes)]
    if rng.random() < 0.02:
        spatial.append(2)
    batch = [[], [1], [2], [3], [0]][int(rng.choice(5, p=[0.2, 0.25, 0.3, 0.2, 0.05]))]
    return (*batch, channels, *spatial)


def _run(m: Any, call: Call) -> list[Any]:
    """The outputs and the gradients of their weighted sum, as arrays."""
    xs = [m.tensor(a.copy()) for a in call.arrays]
    floating = [x for x in xs if x.is_floating_point()]
    for x in floating:
        x.requires_grad_()
    y = call.call(m, m.nn.functional, *xs)
    outputs = list(y) if isinstance(y, tuple) else [y]
    first = outputs[0]
    grads: list[Any] = []
    if first.requires_grad:
        weights = np.linspace(0.5, 1.5, max(first.numel(), 1))[: first.numel()]
        weights = weights.reshape(tuple(first.shape))
        (first * m.tensor(weights, dtype=first.dtype)).sum().backward()
        grads = [x.grad for x in floating]
    # Tensors that the call changes, such as running statistics, are compared as well.
    changed = [x.detach() for x in xs]
    return [None if t is None else t.detach().numpy() for t in (*outputs, *grads, *changed)]


@np.errstate(all="ignore")
def difference(call: Call) -> str | None:
    """What differs between minitorch and torch, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got: Any = _run(mt, call)
        except ERRORS as error:
            got = error
        if isinstance(got, Exception) and any(text in str(got) for text in REFUSED):
            return None
        try:
            expected: Any = _run(torch, call)
        except ERRORS as error:
            expected = error
    if isinstance(got, Exception):
        stricter = any(text in str(got) for text in STRICTER)
        if isinstance(expected, Exception) or (stricter and expected[0].size == 0):
            return None
        return f"{call.text}: only minitorch raises {type(got).__name__}: {got}"
    if isinstance(expected, Exception):
        return f"{call.text}: only torch raises {type(expected).__name__}: {expected}"
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if (a is None) != (b is None):
            return f"{call.text}: value {i} is None in one of them only"
        if a is None:
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{call.text}: value {i} is {a.dtype}{a.shape}, expected {b.dtype}{b.shape}"
        close = (1e-9, 1e-9) if a.dtype == np.float64 else (5e-4, 2e-4)
        if not np.allclose(a, b, *close, equal_nan=True):
            far = float(np.nanmax(np.abs(a.astype(float) - b.astype(float))))
            return f"{call.text}: value {i} differs by {far:.3g}"
    return None


def run(make: Callable[[np.random.Generator], Call], seed: int, count: int) -> list[str]:
    """The differences of `count` random calls."""
    rng = np.random.Generator(np.random.Philox(seed))
    found = (difference(make(rng)) for _ in range(count))
    return [text for text in found if text is not None]


def shown(call: str, arrays: list[np.ndarray], *args: Any, **options: Any) -> str:
    """The text of a call."""
    parts = [f"{a.dtype}{list(a.shape)}" for a in arrays] + [repr(a) for a in args]
    parts += [f"{key}={value!r}" for key, value in options.items()]
    return f"{call}({', '.join(parts)})"


def named(name: str, arrays: list[np.ndarray], *args: Any, **options: Any) -> Call:
    """The call of the function `name` of nn.functional on the arrays, then `args`, `options`."""

    def call(m: Any, F: Any, *xs: Any) -> Any:
        return getattr(F, name)(*xs, *args, **options)

    return Call(shown(name, arrays, *args, **options), call, arrays)
