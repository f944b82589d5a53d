"""Random calls of one family against torch: values, first gradients, dtype, and error or not."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Rng = np.random.Generator
ERRORS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError, NotImplementedError)


@dataclass
class Call:
    """One random call.

    Attributes:
        text: What is called, for the message of a failure.
        call: `call(m, *tensors)`, with minitorch or torch as m.
        arrays: Inputs; floating ones require grad.
    """

    text: str
    call: Callable[..., Any]
    arrays: list[np.ndarray] = field(default_factory=list)


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [item for part in result for item in _flat(part)]
    return [] if result is None else [result]


def _outcome(m: Any, one: Call) -> tuple[list[Any], list[Any]] | Exception:
    try:
        xs = [m.tensor(a) for a in one.arrays]
        leaves = [x.requires_grad_() for x in xs if x.is_floating_point()]
        outs = _flat(one.call(m, *xs))
        parts = [y for y in outs if getattr(y, "requires_grad", False)]
        if parts:
            weighted = []
            for k, y in enumerate(parts):
                w = np.cos(np.arange(max(y.numel(), 1)) + k)[: y.numel()].reshape(tuple(y.shape))
                weighted.append((y * m.tensor(w, dtype=y.dtype)).sum())
            sum(weighted[1:], weighted[0]).backward()
        return [y.detach() for y in outs], [x.grad for x in leaves]
    except ERRORS as error:
        return error


def _close(ours: Any, theirs: Any, what: str) -> None:
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1], what
    assert tuple(ours.shape) == tuple(theirs.shape), what
    wide = theirs.dtype.itemsize == 8
    rtol, atol = (1e-7, 1e-9) if wide else (2e-4, 2e-5)
    # torch's gradients may be symbolic zeros, which only `force` makes real.
    ours, theirs = ours.numpy(), theirs.numpy(force=True)
    np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=what)


def check(ours: Any, theirs: Any, one: Call) -> bool:
    """Checks one call of both libraries; True if it succeeded in both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = _outcome(ours, one), _outcome(theirs, one)
    shapes = [(x.shape, x.dtype.name) for x in one.arrays]
    what = f"{one.text} of {shapes}"
    if isinstance(b, Exception) or isinstance(a, Exception):
        assert isinstance(b, Exception), f"{what}: torch accepts it. Ours: {a!r}"
        assert isinstance(a, Exception), f"{what}: torch refuses it: {b!r}"
        return False
    assert len(a[0]) == len(b[0]), what
    for i, (x, y) in enumerate(zip(a[0], b[0], strict=True)):
        _close(x, y, f"{what}: result {i}")
    for i, (x, y) in enumerate(zip(a[1], b[1], strict=True)):
        if y is None or x is None:
            assert y is None or not np.any(y.numpy()), f"{what}: gradient {i} is missing"
            assert x is None or not np.any(x.numpy()), f"{what}: gradient {i} is not in torch's"
            continue
        _close(x, y, f"{what}: gradient {i}")
    return True


def run(ours: Any, theirs: Any, make: Callable[[Rng], Call], count: int, seed: int) -> None:
    """Checks `count` calls; at least half of them must have succeeded in both."""
    rng = np.random.Generator(np.random.Philox(seed))
    succeeded = sum(check(ours, theirs, make(rng)) for _ in range(count))
    assert succeeded > count / 2, f"only {succeeded} of {count} calls were valid"
