"""Custom operations and the gradient checkers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import Function, gradcheck, gradgradcheck


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class Both(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, scale: float) -> Any:
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale, x + y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ctx.scale + h, g * x * ctx.scale + h, None


class WithSetup(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x


class Argmaxed(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        index = x.argmax(-1)
        ctx.mark_non_differentiable(index)
        return x * 2, index

    @staticmethod
    def backward(ctx: Any, g: Any, unused: Any) -> Any:
        return g * 2


def inputs(n: int) -> tuple[Any, ...]:
    return tuple(mt.rand(2, 3, dtype=mt.float64).requires_grad_() for _ in range(n))


@pytest.mark.parametrize(
    ("call", "n"),
    [
        (Exp.apply, 1),
        (lambda x, y: Both.apply(x, y, 3.0), 2),
        (lambda x, y: Both.apply(x, y, 3.0)[0], 2),
        (lambda x: Both.apply(x, x, 3.0)[1] * x, 1),
        (WithSetup.apply, 1),
        (lambda x: Argmaxed.apply(x)[0], 1),
    ],
)
def test_custom_operations(call: Any, n: int) -> None:
    assert gradcheck(call, inputs(n))
    assert gradgradcheck(call, inputs(n))
    assert gradcheck(call, inputs(n), fast_mode=True)


def test_needs_input_grad() -> None:
    seen = []

    class Probe(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    Probe.apply(mt.ones(1, requires_grad=True), mt.ones(1))
    assert seen == [(True, False)]


def test_a_saved_tensor_that_was_changed_is_noticed() -> None:
    x = mt.ones(2, requires_grad=True)
    y = x * 1
    z = WithSetup.apply(y)
    y.mul_(2)
    with pytest.raises(mt.GraphError, match="WithSetup needs a value"):
        z.sum().backward()


def _bad(result: Any, save: Any = None) -> type[Function]:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            if save is not None:
                ctx.save_for_backward(save)
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return result(g)

    return Bad


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: g, "one gradient per input of forward is needed, 2. Got 1"),
        (lambda g: (g, 1.0), "gradients must be Tensors. Got float for input 1"),
        (lambda g: (g, g[:1]), r"gradient of input 1 must have its shape \(2,\)"),
    ],
)
def test_wrong_backwards(result: Any, message: str) -> None:
    x, y = (mt.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(mt.GraphError, match=message):
        _bad(result).apply(x, y).sum().backward()


def test_only_tensors_are_saved() -> None:
    with pytest.raises(mt.GraphError, match="save_for_backward: only tensors"):
        _bad(lambda g: (g, g), save=3).apply(mt.ones(1, requires_grad=True), mt.ones(1))


class Wrong(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_finds_a_wrong_rule(fast_mode: bool) -> None:
    (x,) = inputs(1)
    with pytest.raises(mt.GraphError, match=r"gradient of output 0 by input 0 .* is wrong"):
        gradcheck(Wrong.apply, x, fast_mode=fast_mode)
    assert gradcheck(Wrong.apply, x, raise_exception=False, fast_mode=fast_mode) is False


def test_gradcheck_wants_float64_and_a_graph() -> None:
    with pytest.raises(mt.ArgumentError, match="inputs must be float64"):
        gradcheck(Exp.apply, mt.ones(1, requires_grad=True))
    with pytest.raises(mt.ArgumentError, match="at least one input must require grad"):
        gradcheck(Exp.apply, mt.ones(1))


def test_gradcheck_finds_chance() -> None:
    (x,) = inputs(1)
    with pytest.raises(mt.GraphError, match="two backward passes gave different gradients"):
        gradcheck(lambda t: t * mt.rand(2, 3, dtype=mt.float64), x)


def test_a_saved_output_among_several_has_second_derivatives() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y, x * 2

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * ctx.saved_tensors[0] + 2 * h

    kind = type("Both", (Function,), {})
    kind.forward, kind.backward = staticmethod(forward), staticmethod(backward)
    x = mt.tensor([2.0, -2.5, 0.4], requires_grad=True)
    a, b = kind.apply(x)
    (g,) = mt.autograd.grad((a * b).sum(), x, create_graph=True)
    g.sum().backward()
    wanted = (2 * x + 4) * x.exp()
    np.testing.assert_allclose(x.grad.numpy(), wanted.numpy(force=True), rtol=1e-5)
