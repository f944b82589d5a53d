"""Complex leaves: values, gradients and gradient checks of operations, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")


def _written_parts(m: Any, a: Any) -> Any:
    y = a * 1
    y.imag.mul_(2)
    y.real.add_(a.imag)
    m.view_as_real(y)[..., 1].mul_(a.real)
    return y * y


def _written_pairs(m: Any, a: Any) -> Any:
    pairs = m.view_as_real(a) * 1
    m.view_as_complex(pairs).mul_(1 + 2j)
    return pairs * pairs


UNARY = (
    "exp log log2 log10 log1p expm1 sqrt rsqrt reciprocal square sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sigmoid abs angle sgn neg prod sum mean norm"
)
CASES: dict[str, Callable[..., Any]] = {
    **{name: lambda m, a, name=name: getattr(m, name)(a) for name in UNARY.split()},
    "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / b,
    "pow": lambda m, a, b: a**b,
    "float_power": lambda m, a, b: m.float_power(a, b.real),
    "pow 2": lambda m, a: a**2,
    "pow 2.5": lambda m, a: a**2.5,
    "conj": lambda m, a: m.conj(a) * a,
    "real": lambda m, a: a.real * 2,
    "imag": lambda m, a: a.imag * 2,
    "matmul": lambda m, a, b: a @ b,
    "H": lambda m, a: a.H @ a,
    "complex number": lambda m, a: a * (2 + 1j) - 1,
    "real with complex": lambda m, a, b: a.real * b + b.imag,
    "where": lambda m, a, b: m.where(a.real > 0, a, b),
    "cumsum": lambda m, a: m.cumsum(a, 0),
    "cumprod": lambda m, a: m.cumprod(a, 0),
    "var": lambda m, a: m.var(a),
    "std": lambda m, a: m.std(a, 0),
    "norm 1": lambda m, a: m.norm(a, 1, 0),
    "cat": lambda m, a, b: m.cat([a, b.real]),
    "lerp": lambda m, a, b: m.lerp(a, b, 0.3),
    "index": lambda m, a: a[0] * a[1],
    "complex": lambda m, a, b: m.complex(a.imag, b.real),
    "polar": lambda m, a: m.polar(a.real.abs() + 1, a.imag),
    "written parts": _written_parts,
    "written pairs": _written_pairs,
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    call = CASES[name]
    rng = np.random.default_rng(len(name))
    count = call.__code__.co_argcount - 1 - len(call.__defaults__ or ())
    arrays = [rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2)) for _ in range(count)]
    ours = [mt.tensor(a).requires_grad_() for a in arrays]
    theirs = [torch.tensor(a).requires_grad_() for a in arrays]
    y, t = call(mt, *ours), call(torch, *theirs)
    assert str(y.dtype).split(".")[1] == str(t.dtype).split(".")[1]
    np.testing.assert_allclose(y.detach().numpy(), t.detach().resolve_conj().numpy(), rtol=1e-9)
    seed = rng.standard_normal(y.shape) + (
        1j * rng.standard_normal(y.shape) if y.is_complex() else 0
    )
    found = mt.autograd.grad(y, ours, mt.tensor(seed))
    expected = torch.autograd.grad(t, theirs, torch.tensor(seed))
    for g, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.numpy(), e.resolve_conj().numpy(), rtol=1e-8, atol=1e-10)
    assert gradcheck(lambda *xs: call(mt, *xs), ours)
    assert gradgradcheck(lambda *xs: call(mt, *xs), ours, fast_mode=True)


def _leaf(*values: complex) -> Any:
    return mt.tensor(list(values), dtype=mt.complex128, requires_grad=True)


def test_the_gradient_points_uphill_in_both_parts() -> None:
    z = _leaf(3 + 4j)
    (z.abs() ** 2).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [6 + 8j])
    (2 * z.imag).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [6 + 10j])


def test_hooks_and_functions_see_what_users_see() -> None:
    seen = []

    class Twice(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(g.numpy())
            return g * 2

    z = _leaf(1 + 1j)
    z.register_hook(lambda g: seen.append(g.numpy()))
    y = Twice.apply(z)
    y.register_hook(lambda g: seen.append(g.numpy()))
    y.imag.sum().backward()
    np.testing.assert_allclose(seen, [[1j], [1j], [2j]])
    np.testing.assert_allclose(z.grad.numpy(), [2j])


def test_a_hook_may_replace_the_gradient() -> None:
    z = _leaf(1 + 1j)
    z.register_hook(lambda g: g * 1j)
    z.real.sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [1j])


def test_what_is_real_gets_a_real_gradient() -> None:
    x = mt.tensor([1.0, 2.0], requires_grad=True)
    y = (x * mt.tensor([1 + 1j, 2j])).abs().sum()
    y.backward()
    assert x.grad.dtype is mt.float32
    np.testing.assert_allclose(x.grad.numpy(), [2**0.5, 2.0], rtol=1e-6)


def test_parts_can_be_assigned() -> None:
    z = mt.tensor([1 + 2j])
    z.real = mt.tensor([5.0])
    z.imag = mt.tensor([7.0])
    assert z.tolist() == [5 + 7j]


def test_random_numbers_have_the_moments_of_torchs() -> None:
    z = mt.randn(4000, dtype=mt.cfloat)
    assert z.dtype is mt.complex64
    assert abs(z.abs().square().mean().item() - 1) < 0.1
    assert abs(z.real.square().mean().item() - 0.5) < 0.05
    u = mt.rand(3, 4, dtype=mt.cdouble)
    assert u.shape == (3, 4)
    assert bool(((u.real >= 0) & (u.imag < 1)).all())
    assert mt.randn_like(u).dtype is mt.complex128


def test_conversions() -> None:
    x = mt.ones(2)
    assert x.cfloat().dtype is mt.cfloat
    assert x.cdouble().dtype is mt.cdouble
    with pytest.warns(Warning, match="discards the imaginary part"):
        assert (x * (2 + 1j)).float().tolist() == [2.0, 2.0]


def test_printing() -> None:
    assert repr(mt.tensor([1 + 2j, 3 - 1j])) == "tensor([1.+2.j, 3.-1.j])"
    assert repr(mt.tensor([0.5 + 2j])) == "tensor([0.5000+2.0000j])"
    assert "dtype=minitorch.complex128" in repr(_leaf(1j))
    assert "e+06" in repr(mt.tensor([1.5e6 + 0.25j]))


REFUSED = (
    "sign relu round floor erf erfc erfinv digamma lgamma amax amin argmax argmin max min median "
    "sort argsort msort aminmax"
)
REFUSED_TWO = "maximum minimum atan2 fmod remainder floor_divide hypot fmax logaddexp"


@pytest.mark.parametrize("name", REFUSED.split())
def test_what_needs_an_order_refuses_complex_tensors(name: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match="complex tensors are not accepted"):
        getattr(mt, name)(mt.tensor([1 + 1j, 2j]))


@pytest.mark.parametrize("name", REFUSED_TWO.split())
def test_what_needs_an_order_refuses_two_complex_tensors(name: str) -> None:
    z = mt.tensor([1 + 1j, 2j])
    with pytest.raises((RuntimeError, TypeError), match="complex tensors are not accepted"):
        getattr(mt, name)(z, z)


WRONG = [
    (lambda: mt.complex(_leaf(1j), _leaf(1j)), "complex: complex tensors are not accepted"),
    (lambda: mt.polar(_leaf(1j), _leaf(1j)), "polar: complex tensors are not accepted"),
    (lambda: _leaf(1j).clamp(0, 1), "clamp: complex tensors are not accepted"),
    (
        lambda: mt.complex(mt.ones(2), mt.ones(2).double()),
        "complex: both parts must have one dtype",
    ),
    (lambda: mt.complex(mt.ones(2).half(), mt.ones(2).half()), "parts must be float32 or float64"),
    (lambda: mt.polar(mt.ones(2), mt.ones(2).double()), "polar: both arguments must have one"),
    (lambda: mt.imag(mt.ones(2)), "imag: only complex tensors"),
    (lambda: mt.view_as_real(mt.ones(2)), "view_as_real: the tensor must be complex"),
    (lambda: mt.view_as_complex(mt.ones(3)), "view_as_complex: the last axis must hold 2 parts"),
    (lambda: mt.ones(2, 2, 2).H, "H: 0 or 2 axes are needed"),
    (lambda: _leaf(1j) < _leaf(2j), "lt: complex numbers have no order"),
    (lambda: _leaf(1j).sum().backward(), "a gradient is implied only for real outputs"),
    (lambda: mt.arange(3).requires_grad_(), "only floating and complex tensors have gradients"),
    (
        lambda: gradcheck(lambda z: z, [mt.tensor([1j], requires_grad=True)]),
        "inputs must be float64 or complex128",
    ),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_messages(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=text):
        call()


def test_gradcheck_finds_a_missing_conjugate() -> None:
    class Wrong(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            return z * (1 + 2j)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (1 + 2j)

    for fast in (False, True):
        with pytest.raises(RuntimeError, match="is wrong"):
            gradcheck(Wrong.apply, [_leaf(1 + 1j, 2j)], fast_mode=fast)
