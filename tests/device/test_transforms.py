"""Transforms, checkpoints, hooks and reparametrisations on the device: the CPU's numbers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import func, nn
from minitorch.autograd import functional, graph
from minitorch.nn.utils import parametrizations, prune
from minitorch.utils.checkpoint import checkpoint

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def layer(where: str) -> nn.Linear:
    mt.manual_seed(0)
    return nn.Linear(3, 2).to(where)


def transforms(x: Any, where: str) -> Any:
    def f(a: Any) -> Any:
        return (a.sin() * a).sum()

    return [
        func.grad(f)(x),
        func.vmap(func.grad(f))(x),
        func.jacrev(lambda a: a**2)(x),
        func.jacfwd(lambda a: a**2)(x),
        func.jvp(f, (x,), (x,)),
        func.vmap(lambda a: a)(x[:0]),
        func.jacfwd(lambda a: a * 2)(x[:0]),
        functional.hessian(f, x[0]),
        functional.jacobian(lambda a: a[:0], x),
    ]


def per_sample(x: Any, where: str) -> Any:
    net = layer(where)
    params = {k: v.detach() for k, v in net.named_parameters()}

    def loss(p: Any, one: Any) -> Any:
        return func.functional_call(net, p, (one,)).square().sum()

    return list(func.vmap(func.grad(loss), (None, 0))(params, x).values())


def checkpoints(x: Any, where: str) -> Any:
    net, x = layer(where), x.clone().requires_grad_()
    checkpoint(lambda a: nn.functional.dropout(net(a).tanh(), 0.5), x).sum().backward()
    with graph.save_on_cpu():
        y = (x.exp() * x).sum()
    y.backward()
    return [x.grad, net.weight.grad]


def batched(x: Any, where: str) -> Any:
    x = x[0].clone().requires_grad_()
    y, eye = x**3, mt.eye(3, device=where)
    return mt.autograd.grad(y, x, eye, is_grads_batched=True)


def reparametrised(x: Any, where: str) -> Any:
    out = []
    for make in (
        nn.utils.weight_norm,
        nn.utils.spectral_norm,
        parametrizations.weight_norm,
        parametrizations.spectral_norm,
    ):
        net = make(layer("cpu")).to(where)
        out += [net(x), net(x)]
    net = layer(where)
    prune.l1_unstructured(net, "weight", 2)
    prune.ln_structured(net, "weight", 1, n=2, dim=1)
    flat = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(flat * 2, net.parameters())
    return [*out, net(x), flat, net.weight_mask]


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [part for item in value for part in plain(item)]
    return [value.detach().cpu().numpy()]


@pytest.mark.parametrize("program", [transforms, per_sample, checkpoints, batched, reparametrised])
def test_program(program: Callable[..., Any], pretend_gpu: ModuleType) -> None:
    results = []
    for where in ("cpu", "cuda"):
        mt.manual_seed(1)
        results.append(plain(program(mt.tensor(X, device=where), where)))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
