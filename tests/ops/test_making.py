"""Tensors from memory and distributions, older constructors, questions, and in-place shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt


def test_memory() -> None:
    t = mt.empty_strided((2, 3), (1, 2))
    assert t.stride() == (1, 2)
    assert mt.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3)
    x = mt.arange(6).reshape(2, 3)
    assert x[1].storage_offset() == 3
    assert mt.frombuffer(b"\x01\x00\x02\x00", dtype=mt.int16).tolist() == [1, 2]
    assert x.as_strided((2, 2), (1, 3)).tolist() == [[0, 3], [1, 4]]
    x.as_strided((2,), (4,)).zero_()
    assert x.tolist() == [[0, 1, 2], [3, 0, 5]]


def test_kinds_of_arrays_become_plain_ones(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "numbers", np.float32, "w+", shape=(2, 3))
    for array in (mapped, np.ones((2, 3)).view(np.matrix), np.ma.ones((2, 3))):
        for x in (mt.from_numpy(array), mt.tensor(array), mt.tensor(array, dtype=mt.float64)):
            assert type(x.numpy()) is np.ndarray
            assert x.tolist() == array.tolist()


def test_formats_and_layouts_are_accepted() -> None:
    options: dict[str, Any] = {"layout": mt.strided, "pin_memory": False}
    for made in (mt.zeros(2, **options), mt.rand(2, **options), mt.arange(2, **options)):
        assert made.shape == (2,)
    x = mt.zeros_like(mt.ones(2), memory_format=mt.preserve_format)
    assert (
        x.contiguous(memory_format=mt.channels_last).clone(memory_format=mt.channels_last) is not x
    )


def test_bytes_read_as_another_dtype() -> None:
    x = mt.ones(2)
    bits = x.view(mt.int32)
    assert bits.tolist() == [0x3F800000] * 2
    bits.zero_()
    assert x.tolist() == [0.0, 0.0]
    with pytest.raises(mt.ShapeError, match="hold whole elements of minitorch.float64"):
        mt.ones(3).view(mt.float64)


def test_values() -> None:
    assert mt.scalar_tensor(2).dtype is mt.float32
    x = mt.ones(2)
    assert mt.asarray(x) is x
    assert mt.asarray(x, copy=True) is not x
    assert mt.asarray([1, 2], dtype=mt.float64, requires_grad=True).requires_grad
    assert mt.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]
    assert mt.vander(mt.tensor([2, 3])).tolist() == [[2, 1], [3, 1]]


def test_draws_have_their_moments_and_repeat() -> None:
    rates = mt.full((4000,), 3.0)
    drawn = mt.poisson(rates)
    assert abs(drawn.mean().item() - 3) < 0.2
    assert abs(mt.binomial(rates.new_full((4000,), 10), rates / 10).mean().item() - 3) < 0.2
    assert abs(mt.empty(4000).log_normal_(0, 0.5).log().std().item() - 0.5) < 0.05
    assert abs(mt.empty(4000).cauchy_(2).median().item() - 2) < 0.2
    assert abs(mt.empty(4000).geometric_(0.25).mean().item() - 4) < 0.5
    g = mt.Generator()
    again = [mt.poisson(rates, generator=g.manual_seed(5)).tolist() for _ in range(2)]
    assert again[0] == again[1]


def test_older_constructors() -> None:
    assert mt.FloatTensor([1, 2]).dtype is mt.float32
    assert mt.LongTensor(2, 3).shape == (2, 3)
    assert isinstance(mt.ones(1).byte(), mt.ByteTensor)
    assert not isinstance(mt.ones(1), mt.LongTensor)
    x = mt.ones(2, dtype=mt.float64)
    assert x.new(3).shape == (3,)
    assert x.new([1, 2]).dtype is mt.float64
    assert x.new(x.shape).shape == (2,)
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert x.type() == "torch.DoubleTensor"
    assert x.type(mt.IntTensor).dtype is mt.int32
    assert x.type("torch.LongTensor").dtype is mt.int64
    assert x.type(mt.float16).dtype is mt.float16


def test_questions() -> None:
    x = mt.ones(2, 3)
    assert x.is_same_size(mt.zeros(2, 3))
    assert mt.is_nonzero(mt.tensor(3))
    assert x.is_signed()
    assert not mt.is_signed(x.byte())
    assert x.ndimension() == 2
    assert mt.get_device(x) == -1
    assert mt.can_cast(mt.int64, mt.float32)
    assert not mt.can_cast(mt.float32, mt.int64)
    assert mt.typename(x) == "torch.FloatTensor"
    assert mt.typename(3) == "int"
    assert x.layout is mt.strided
    assert x.is_cpu
    assert not any([x.is_sparse, x.is_inference(), x.is_pinned(), mt.is_storage(x)])
    image = mt.ones(1, 4, 4, 3).permute(0, 3, 1, 2)
    assert image.is_contiguous(memory_format=mt.channels_last)
    assert x.share_memory_() is x
    assert mt.detach(x.requires_grad_()).requires_grad is False
    assert not x.is_contiguous(memory_format=mt.channels_last)
    assert x.contiguous().is_contiguous(memory_format=mt.contiguous_format)


def test_the_default_device_is_kept() -> None:
    assert str(mt.get_default_device()) == "cpu"
    with mt.device("cpu") as where:
        assert where == mt.get_default_device()
    mt.set_default_device("cpu")
    assert str(mt.ones(1).device) == "cpu"


def test_another_shape_in_place() -> None:
    x = mt.arange(6.0).reshape(2, 3)
    assert x.t_() is x
    assert x.shape == (3, 2)
    assert x.unsqueeze_(0).squeeze_().transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    x[0, 0] = 9
    assert x.sum().item() == 24
    w = mt.ones(2, 3, requires_grad=True)
    y = w * mt.arange(6.0).reshape(2, 3)
    y.t_()
    (y * mt.ones(3, 2)).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_resizing_keeps_the_first_elements() -> None:
    x = mt.arange(4)
    assert x.resize_(2, 1).tolist() == [[0], [1]]
    assert x.resize_(4).tolist()[:2] == [0, 1]
    assert x.resize_as_(mt.ones(1, 2)).shape == (1, 2)
    assert mt.ones(2).set_(mt.zeros(3)).tolist() == [0.0] * 3


def test_diagonals_and_maps_in_place() -> None:
    assert mt.zeros(3, 2).fill_diagonal_(1).tolist() == [[1, 0], [0, 1], [0, 0]]
    assert mt.zeros(5, 2).fill_diagonal_(1, wrap=True)[:, 0].tolist() == [1, 0, 0, 1, 0]
    assert mt.tensor([1, 2]).map_(mt.tensor([3, 4]), lambda a, b: a * b).tolist() == [3, 8]


FORMS: dict[str, Any] = {
    "index_add_": lambda x: x.index_add_(0, mt.tensor([1]), mt.ones(1, 3)),
    "index_copy_": lambda x: x.index_copy_(0, mt.tensor([1]), mt.ones(1, 3)),
    "index_fill_": lambda x: x.index_fill_(1, mt.tensor([0]), 7.0),
    "index_put_": lambda x: x.index_put_((mt.tensor([0]),), mt.zeros(3)),
    "scatter_reduce_": lambda x: x.scatter_reduce_(
        0, mt.tensor([[1, 0, 1]]), mt.ones(1, 3), "prod"
    ),
    "masked_scatter_": lambda x: x.masked_scatter_(x > 2, mt.zeros(6)),
    "put_": lambda x: x.put_(mt.tensor([0]), mt.ones(1)),
    "renorm_": lambda x: x.renorm_(2, 0, 1.0),
    "asin_": lambda x: x.mul_(0.1).asin_(),
    "atan2_": lambda x: x.atan2_(mt.ones(3)),
    "eq_": lambda x: x.eq_(2),
    "logical_or_": lambda x: x.logical_or_(mt.zeros(3)),
    "cumsum_": lambda x: x.cumsum_(1),
    "lerp_": lambda x: x.lerp_(mt.ones(3), 0.5),
    "addcmul_": lambda x: x.addcmul_(x, x, value=2),
    "lgamma_": lambda x: x.add_(1).lgamma_(),
    "nan_to_num_": lambda x: x.div_(x - 2).nan_to_num_(posinf=1.0),
    "copysign_": lambda x: x.copysign_(-1.0),
    "xlogy_": lambda x: x.xlogy_(mt.full((3,), math.e)),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_in_place(name: str) -> None:
    x = mt.arange(6.0).reshape(2, 3)
    memory = x._array
    assert FORMS[name](x) is x
    assert x._array is memory
    torch = pytest.importorskip("torch", reason="compares with torch, which is not installed")
    want = torch.arange(6.0).reshape(2, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "mt", torch)
        FORMS[name](want)
    assert x.reshape(-1).tolist() == pytest.approx(want.reshape(-1).tolist(), rel=1e-5)


def test_functions_in_place() -> None:
    x = mt.full((2,), 4.0)
    assert mt.sqrt_(x) is x
    assert mt.clamp_(x, max=1.0).tolist() == [1.0, 1.0]
    assert mt.fill_(x, 3.0).tolist() == [3.0, 3.0]
    assert mt.zero_(x).tolist() == [0.0, 0.0]
    with pytest.raises(AttributeError, match="no attribute 'nope_'"):
        _ = mt.ops.forms.nope_


@pytest.mark.parametrize(
    "f",
    [
        lambda x, d: x.sum(d),
        lambda x, d: x.amax(d),
        lambda x, d: x.var(d),
        lambda x, d: x.squeeze(d),
        lambda x, d: x.roll(d, d),
        lambda x, d: x.argmax(d),
        lambda x, d: mt.linalg.norm(x, dim=d),
        lambda x, d: mt.fft.fftn(x, dim=d).abs(),
        lambda x, d: mt.fft.fftshift(x, d),
    ],
)
def test_axes_are_numpy_numbers_too(f: Callable[[mt.Tensor, Any], mt.Tensor]) -> None:
    x = mt.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(f(x, np.int64(1)).numpy(), f(x, 1).numpy())
