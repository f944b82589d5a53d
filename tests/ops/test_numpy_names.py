"""`axis` and `keepdims` mean `dim` and `keepdim`."""

from __future__ import annotations

from typing import Any

import pytest

import minitorch as mt

REDUCTIONS = "sum mean var std max min argmax argmin amax amin prod all any median nansum".split()
ALONG = (
    "cumsum cumprod softmax log_softmax logsumexp squeeze unsqueeze sort argsort unbind cummax "
    "cummin logcumsumexp diff mode nanmean count_nonzero"
).split()


def _values(result: Any) -> Any:
    if isinstance(result, tuple):
        return [_values(part) for part in result]
    return result.tolist()


def _x() -> Any:
    return mt.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    x = _x()
    want = _values(getattr(x, name)(dim=1, keepdim=True))
    assert _values(getattr(x, name)(axis=1, keepdims=True)) == want
    assert _values(getattr(mt, name)(x, axis=1, keepdim=True)) == want


@pytest.mark.parametrize("name", ALONG)
def test_along_an_axis(name: str) -> None:
    x = _x()
    assert _values(getattr(mt, name)(x, axis=0)) == _values(getattr(x, name)(dim=0))


def test_joining() -> None:
    x = _x()
    assert mt.cat([x, x], axis=1).shape == (2, 6)
    assert mt.stack([x, x], axis=1).shape == (2, 2, 3)
    assert mt.sum(x, axis=0, dtype=mt.float64).dtype is mt.float64


@pytest.mark.parametrize("call", [lambda x: x.sum(axes=1), lambda x: x.argmax(dims=1)])
def test_other_names_are_refused(call: Any) -> None:
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument .* It takes input, "):
        call(_x())


def test_an_axis_is_a_number() -> None:
    with pytest.raises(TypeError, match="cumsum: dim must be a whole number. Got None"):
        _x().cumsum()
