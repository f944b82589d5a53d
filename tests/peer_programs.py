"""Small programs that run with `minitorch` or with torch in place of `T`, and their comparison.

A program is a function of the namespace that returns nested lists, dicts, strings and numbers.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt

Program = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Tensors as lists, everything else as it is."""
    if hasattr(value, "detach"):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def agree(ours: Any, theirs: Any, path: str = "result") -> None:
    """Asserts that two results are equal, floats to 1e-5."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for key in theirs:
            agree(ours[key], theirs[key], f"{path}[{key!r}]")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), path
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            agree(a, b, f"{path}[{i}]")
    elif isinstance(theirs, float):
        assert math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-5), f"{path}: {ours} {theirs}"
    else:
        assert ours == theirs, path


def compare(program: Program) -> None:
    """Runs a program with both and compares what it returns."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():  # torch's notes on what will change there
        warnings.simplefilter("ignore")
        theirs = plain(program(torch))
    agree(plain(program(mt)), theirs)


def filled(T: Any, *shape: int, start: float = -1.0, step: float = 0.37) -> Any:
    """The same numbers in both: a wave, so that nothing is symmetric."""
    n = math.prod(shape)
    return T.tensor([math.sin(1.3 * (start + step * i)) for i in range(n)]).reshape(shape)


def fill(T: Any, module: Any) -> Any:
    """`module` with parameters that are the same in both."""
    with T.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(filled(T, *parameter.shape, start=float(i)))
    return module
