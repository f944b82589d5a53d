"""In-place operations that write straight into the memory give what the plain forms give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.ops import at_once

UNARY = sorted(at_once._UNARY)
BINARY = sorted(at_once._BINARY)


def _pair(dtype: str, shape: tuple[int, ...] = (3, 4)) -> tuple[Any, Any]:
    rng = np.random.Generator(np.random.Philox(1))
    return tuple(  # type: ignore[return-value]
        mt.tensor(rng.uniform(1, 9, shape)).to(getattr(mt, dtype)) for _ in range(2)
    )


def _plain(name: str) -> Callable[..., Any]:
    return getattr(mt, name.rstrip("_"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str, dtype: str) -> None:
    x, _ = _pair(dtype)
    want = _plain(name)(x)
    memory = x._array
    assert getattr(x, name)() is x
    assert x._array is memory
    assert x.dtype is want.dtype
    np.testing.assert_allclose(x.double().numpy(), want.double().numpy(), rtol=1e-3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("other", ["tensor", "row", "0-d", "wide", "int", "float"])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, other: str, dtype: str) -> None:
    x, y = _pair(dtype)
    operand = {
        "tensor": y,
        "row": y[0],
        "0-d": y[0, 0],
        "wide": y.double(),
        "int": 2,
        "float": 1.5,
    }[other]
    try:
        want = _plain(name)(x, operand)
    except (RuntimeError, TypeError):
        with pytest.raises((RuntimeError, TypeError)):
            getattr(x, name)(operand)
        return
    if not mt.can_cast(want.dtype, x.dtype):
        with pytest.raises(mt.DtypeError, match="cannot be written into"):
            getattr(x, name)(operand)
        return
    getattr(x, name)(operand)
    assert x.tolist() == want.to(x.dtype).tolist()


def test_alpha_and_rounding() -> None:
    x, y = _pair("float32")
    want, cut = mt.add(x, y, alpha=0.3), mt.div(x, y, rounding_mode="floor")
    assert x.clone().add_(y, alpha=0.3).tolist() == want.tolist()
    assert x.clone().div_(y, rounding_mode="floor").tolist() == cut.tolist()
    whole = mt.arange(3)
    assert whole.add_(whole.clone(), alpha=3).tolist() == [0, 4, 8]


OVERLAPS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "itself": (lambda x: x.mul_(x), lambda x: x * x),
    "transposed": (lambda x: x.add_(x.t()), lambda x: x + x.t()),
    "flipped view": (lambda x: x[1:].sub_(x[:-1]), lambda x: x[1:] - x[:-1]),
    "shifted": (lambda x: x[:, 1:].add_(x[:, :-1]), lambda x: x[:, 1:] + x[:, :-1]),
    "a row": (lambda x: x.div_(x[0]), lambda x: x / x[0]),
    "one element": (lambda x: x.mul_(x[1, 1]), lambda x: x * x[1, 1]),
    "with alpha": (lambda x: x.add_(x.t(), alpha=0.5), lambda x: x + 0.5 * x.t()),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_operands_that_share_memory(name: str) -> None:
    write, plain = OVERLAPS[name]
    start = mt.arange(16.0).reshape(4, 4) + 1
    want = plain(start.clone())
    got = write(start.clone())
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


def test_views_and_bases_see_the_write() -> None:
    x = mt.zeros(3, 4)
    column, back = x.t()[1], x.view(-1)
    column.add_(2)
    back[:4].mul_(3)
    assert x[:, 1].tolist() == [6.0, 2.0, 2.0]


def test_the_write_is_noticed_and_recorded_where_it_counts() -> None:
    x = mt.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.detach().add_(1)
    with pytest.raises(mt.GraphError, match="saved in the forward pass, but add_ changed it"):
        z.sum().backward()
    w = x * 1
    w.mul_(3)
    w.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0] * 3
    with mt.no_grad():
        x.mul_(2)
    assert x.tolist() == [2.0] * 3


def test_shared_elements_and_other_shapes_are_refused() -> None:
    with pytest.raises(mt.ShapeError, match="share one place in memory"):
        mt.ones(1, 3).expand(2, 3).add_(1)
    with pytest.raises(mt.ShapeError, match="must have the shape of the tensor"):
        mt.ones(3).add_(mt.ones(2, 3))
