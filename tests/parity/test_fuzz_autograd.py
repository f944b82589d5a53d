"""Random functions under every transform, against torch: 2 000 calls."""

import random

import numpy as np
import pytest

import minitorch as mt
from minitorch.utils.checkpoint import checkpoint

PROGRAMS, SIZE = 300, 3
UNARY = ["sin", "tanh", "exp", "sigmoid", "square", "neg", "cos", "abs"]


def draw(rng):
    """Steps of a random function of a vector `x` and a matrix `w`, as data."""
    steps = []
    for _ in range(rng.randint(1, 5)):
        kind = rng.choice(
            ["unary", "unary", "mul", "add", "matmul", "cumsum", "flip", "index", "div"]
        )
        steps.append((kind, rng.choice(UNARY), rng.randrange(SIZE)))
    return steps


def function(steps):
    """The function of `x` and `w` that the steps describe."""

    def run(x, w):
        y = x
        for kind, name, i in steps:
            if kind == "unary":
                y = getattr(y, name)()
            elif kind == "mul":
                y = y * x
            elif kind == "add":
                y = y + w[i]
            elif kind == "matmul":
                y = (w @ y).tanh()
            elif kind == "cumsum":
                y = y.cumsum(0)
            elif kind == "flip":
                y = y.flip(0)
            elif kind == "index":
                y = y[i] * y
            else:
                y = y / (1 + x[i] ** 2)
        return y.tanh()

    return run


def results(T, steps, x, w, v):
    """What all transforms make of the function."""
    f, F, A = function(steps), T.func, T.autograd.functional

    def total(x, w):
        return f(x, w).sum()

    rows = T.stack([x, v])
    out = {
        "grad": F.grad(total, argnums=(0, 1))(x, w),
        "jvp": F.jvp(lambda a: f(a, w), (x,), (v,)),
        "vjp": F.vjp(f, x, w)[1](v),
        "jacrev": F.jacrev(f)(x, w),
        "hvp": A.hvp(lambda a: total(a, w), x, v)[1],
        "vmap": T.vmap(F.grad(total), in_dims=(0, None))(rows, w),
        "hessian": F.jacrev(F.grad(total))(x, w),
    }
    return {name: value if isinstance(value, tuple) else (value,) for name, value in out.items()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch itself
@pytest.mark.parametrize("block", range(10))
def test_random_functions(block):
    torch = pytest.importorskip("torch")
    rng = random.Random(block)
    numbers = np.random.default_rng(block)
    for _ in range(PROGRAMS // 10):
        steps = draw(rng)
        x, w, v = (numbers.normal(size=n) for n in (SIZE, (SIZE, SIZE), SIZE))
        ours = results(mt, steps, *(mt.tensor(a) for a in (x, w, v)))
        theirs = results(torch, steps, *(torch.tensor(a) for a in (x, w, v)))
        for name, values in theirs.items():
            for a, b in zip(ours[name], values, strict=True):
                np.testing.assert_allclose(
                    a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11, err_msg=f"{name} of {steps}"
                )
        leaf, again = (mt.tensor(x, requires_grad=True) for _ in range(2))
        function(steps)(leaf, mt.tensor(w)).sum().backward()
        checkpoint(function(steps), again, mt.tensor(w)).sum().backward()
        assert leaf.grad.tolist() == again.grad.tolist()
