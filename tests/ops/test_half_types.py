"""Half types are widened before they are squared, and the result is rounded once."""

import pytest
import torch

import minitorch as mt

CALLS = {
    "rms_norm": lambda m, x: m.nn.functional.rms_norm(x, (4,), eps=1e-5),
    "rms_norm weight": lambda m, x: m.nn.functional.rms_norm(x, (4,), x[0] / 100, 1e-5),
    "norm": lambda m, x: x.norm(),
    "norm axis": lambda m, x: x.norm(3, 1, True),
    "std": lambda m, x: x.std(),
    "std 1": lambda m, x: x.std(1),
    "var zero": lambda m, x: (x * 0).var(),
    "var": lambda m, x: (x / 10).var(0),
    "cosine": lambda m, x: m.nn.functional.cosine_similarity(x, x.flip(1)),
    "normalize": lambda m, x: m.nn.functional.normalize(x),
    "normalize zero": lambda m, x: m.nn.functional.normalize(x * 0),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_large_values(name, dtype):
    values = [[300.0, -300, 301, 299], [300, 30, -600, 900]]
    x = mt.tensor(values, dtype=getattr(mt, dtype), requires_grad=True)
    y = CALLS[name](mt, x)
    assert y.dtype is x.dtype
    if "zero" not in name:
        y.sum().backward()
        assert x.grad.isfinite().all()
    exact = CALLS[name](torch, torch.tensor(x.double().tolist()))
    assert y.double().flatten().tolist() == pytest.approx(
        exact.flatten().tolist(), rel=8e-3, abs=1e-2
    )


def test_a_norm_in_another_dtype_keeps_it():
    x = mt.full((4,), 300.0, dtype=mt.float16)
    assert x.norm(dtype=mt.float32).dtype is mt.float32
    assert x.norm().item() == 600


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_gradient_of_a_broadcast_is_summed_in_float32(dtype):
    half = getattr(mt, dtype)
    bias = mt.zeros(4, dtype=half, requires_grad=True)
    (mt.zeros(4096, 4, dtype=half) + bias).backward(mt.ones(4096, 4, dtype=half))
    assert bias.grad.tolist() == [4096.0] * 4
