"""Writes in place: right gradients, or an error that names both operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt


def base() -> Any:
    return mt.tensor([1.0, 2.0, 3.0], requires_grad=True)


WRITES: dict[str, Callable[[Any], Any]] = {
    "add_": lambda y: y.add_(1),
    "operator": lambda y: y.__iadd__(1),
    "setitem": lambda y: y.__setitem__(0, 5.0),
    "copy_": lambda y: y.copy_(mt.zeros(3)),
    "zero_": lambda y: y.zero_(),
    "view": lambda y: y[:2].mul_(3),
    "reshaped": lambda y: y.reshape(3, 1)[0].fill_(0.0),
    "detached": lambda y: y.detach().mul_(2),
    "data": lambda y: y.data.mul_(2),
    "data slice": lambda y: y.data[1:].zero_(),
    "no_grad": lambda y: mt.no_grad()(lambda: y.add_(1))(),
    "uniform_": lambda y: y.detach().uniform_(),
}

SAVERS: dict[str, Callable[[Any], Any]] = {
    "exp output": lambda y: y.exp_() if False else y * y,
    "mul input": lambda y: y * y,
    "pow input": lambda y: y**3,
    "matmul input": lambda y: y @ y,
    "div input": lambda y: 1.0 / y,
}


@pytest.mark.parametrize("saver", SAVERS)
@pytest.mark.parametrize("write", WRITES)
def test_a_saved_value_that_was_overwritten_is_noticed(write: str, saver: str) -> None:
    y = base() * 1
    z = SAVERS[saver](y)
    WRITES[write](y)
    with pytest.raises(mt.GraphError, match=r"saved in the forward pass, but \w+ changed it"):
        z.sum().backward()


@pytest.mark.parametrize("write", WRITES)
def test_a_saved_output_that_was_overwritten_is_noticed(write: str) -> None:
    y = base().exp()
    WRITES[write](y)
    with pytest.raises(mt.GraphError, match=r"backward: exp needs .* changed it in place"):
        (y if y.requires_grad else y + base()).sum().backward()


@pytest.mark.parametrize(
    "write", [lambda x: x.add_(1), lambda x: x[0].mul_(2), lambda x: x.__setitem__(0, 1.0)]
)
def test_leaves_are_refused_while_recording(write: Any) -> None:
    with pytest.raises(mt.GraphError, match="a leaf that requires grad|a view of such a leaf"):
        write(base())


def test_leaves_are_written_under_no_grad() -> None:
    x = base()
    with mt.no_grad():
        x -= 0.5
        x[0] = 7.0
    assert x.tolist() == [7.0, 1.5, 2.5]
    assert x.is_leaf
    assert x.requires_grad


def test_expanded_memory_is_refused() -> None:
    y = mt.ones(1, 3).expand(2, 3)
    with pytest.raises(mt.ShapeError, match="share one place in memory"):
        y.add_(1)


@pytest.mark.parametrize("dtype", [mt.int64, mt.bool_])
def test_a_wider_result_is_refused(dtype: Any) -> None:
    with pytest.raises(mt.DtypeError, match="cannot be written into"):
        mt.ones(3, dtype=dtype).mul_(1.5)


def test_a_larger_result_is_refused() -> None:
    with pytest.raises(mt.ShapeError, match="must have the shape of the tensor"):
        mt.ones(3).add_(mt.ones(2, 3))


def test_views_see_writes_and_bases_see_writes_of_views() -> None:
    y = mt.zeros(2, 3)
    view = y.T
    y[0, 1] = 5.0
    view[2, 1] = 7.0
    assert view[1, 0].item() == 5.0
    assert y[1, 2].item() == 7.0


def test_a_fresh_buffer_takes_rows_that_require_grad() -> None:
    x = base()
    out = mt.zeros(2, 3)
    out[0] = x * 2
    out[1] = x * x
    out.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0, 8.0]


def test_arrays_behind_tensors_cannot_be_written() -> None:
    source = np.ones(3, dtype=np.float32)
    t = mt.from_numpy(source)
    source[0] = 9.0
    assert t.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        t.numpy()[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(t)[0] = 9.0
    t.numpy(force=True)[0] = 9.0
    assert t[0].item() == 1.0


def test_dlpack_in_copies() -> None:
    source = np.arange(3.0)
    t = mt.from_dlpack(source)
    source[0] = 9.0
    assert t.tolist() == [0.0, 1.0, 2.0]


def test_dlpack_out_gives_the_values() -> None:
    assert np.from_dlpack(mt.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(mt.GraphError, match="dlpack"):
        np.from_dlpack(base())
