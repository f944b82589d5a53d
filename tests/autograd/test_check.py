"""gradcheck finds lost graphs, and leaves its inputs as they were."""

from __future__ import annotations

import pytest

import minitorch as mt
from minitorch.autograd import gradcheck


def _x() -> mt.Tensor:
    return mt.tensor([1.0, 2.0, 3.0], dtype=mt.float64, requires_grad=True)


@pytest.mark.parametrize("fast", [False, True])
def test_an_output_that_lost_its_graph_is_found(fast: bool) -> None:
    with pytest.raises(mt.GraphError, match=r"output 1 must require grad.*input 0 \(f64\[3\]"):
        gradcheck(lambda x: (x * 2, (x * x).detach()), _x(), fast_mode=fast)
    assert not gradcheck(lambda x: x.detach() * 2, _x(), fast_mode=fast, raise_exception=False)


def test_outputs_that_do_not_depend_on_the_input_need_no_graph() -> None:
    assert gradcheck(lambda x: (x * 2, mt.ones(2), x.argmax(), (x > 0)), _x())


@pytest.mark.parametrize("fast", [False, True])
def test_inputs_are_put_back_when_the_function_fails(fast: bool) -> None:
    calls = []

    def function(x: mt.Tensor) -> mt.Tensor:
        calls.append(1)
        if len(calls) == (3 if fast else 4):
            raise KeyError
        return x * x

    x = _x()
    with pytest.raises(KeyError):
        gradcheck(function, x, fast_mode=fast)
    assert x.tolist() == [1, 2, 3]
