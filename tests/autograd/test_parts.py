"""Gradients of slices are put together in one buffer: the same as of full gradients, added up."""

import numpy as np
import pytest

import minitorch
from minitorch.autograd import parts
from minitorch.backend import memory

F32, F64 = minitorch.float32, minitorch.float64


def _split_used_twice(x):
    a, b, c = x.split([2, 1, 3], dim=1)
    return (a * a).sum() + (b * c[:, :1]).sum() + (a * c[:, 1:]).sum()


def _overlapping(x):
    return sum((x[:, i : i + 3] ** 2).sum() * (i + 1.0) for i in range(4))


def _many_overlapping(x):
    return sum((x[i : i + 3] ** 2).sum() * (j + 1.0) for i in range(2) for j in range(9))


def _whole_between(x):
    return (x[0] * x[1]).sum() + (x * x).sum() + (x[:2] ** 3).sum() + x.sum()


def _through_a_product(x):
    q, k, v = (x * 2).chunk(3, dim=-1)
    return ((q @ k.T) @ v).sum()


def _other_dtype(x):
    y = x * 2
    return (y[0].double() ** 2).sum() + (y[1] ** 2).sum() + (y.double() ** 3).sum()


PROGRAMS = {
    "split": _split_used_twice,
    "chunk": _through_a_product,
    "unbind": lambda x: sum((row * (i + 1.0)).sum() for i, row in enumerate(x.unbind(0))),
    "unbind the last axis": lambda x: sum((c**2).sum() for c in x.unbind(-1)),
    "unused pieces": lambda x: (x.split(2, dim=1)[1] ** 2).sum(),
    "two of three": lambda x: x.split(2, dim=1)[2].sum() + (x.split(2, dim=1)[0] ** 2).sum(),
    "overlapping": _overlapping,
    "more than the tensor holds": _many_overlapping,
    "steps": lambda x: (x[:, ::2] ** 2).sum() + (x[:, 1::2] ** 3).sum(),
    "negative": lambda x: (x[-1] * x[-2]).sum() + (x[:, -2:] ** 2).sum(),
    "two axes": lambda x: (x[:2, :3] ** 2).sum() + (x[2:, 3:] ** 3).sum(),
    "new axis": lambda x: (x[None, 1] ** 2).sum() + (x[:, None] * x[:, :, None]).sum(),
    "ellipsis": lambda x: (x[..., 0] * x[..., 1]).sum() + (x[...] ** 2).sum(),
    "one number": lambda x: x[0, 0] * x[1, 2] + x[0, 0],
    "empty": lambda x: x[:, 2:2].sum() + (x[:, :2] ** 2).sum(),
    "the whole": lambda x: (x[:] ** 2).sum(),
    "whole between slices": _whole_between,
    "slices of slices": lambda x: (x[1:][:, 2:][0] ** 2).sum() + (x[1:][1] ** 3).sum(),
    "the same slice twice": lambda x: (x[1] * x[1]).sum(),
    "dtypes": _other_dtype,
}


def _x(dtype=F64):
    return minitorch.tensor(np.random.default_rng(0).normal(size=(4, 6)), dtype=dtype)


@pytest.mark.parametrize("between", [False, True], ids=["leaf", "inside"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_a_recorded_backward(name, between):
    program = PROGRAMS[name]
    x = _x().requires_grad_()
    value = program(x * 1 if between else x)
    (wanted,) = minitorch.autograd.grad(value, x, create_graph=True)
    value.backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-12)
    assert x.grad.dtype == F64


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_pytorch(name):
    torch = pytest.importorskip("torch")
    x = _x().requires_grad_()
    PROGRAMS[name](x).backward()
    theirs = torch.tensor(x.detach().numpy(), requires_grad=True)
    PROGRAMS[name](theirs).backward()
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives(name):
    def slope(x):
        (g,) = minitorch.autograd.grad(PROGRAMS[name](x), x, create_graph=True)
        return (g * g).sum()

    assert minitorch.autograd.gradcheck(slope, (_x().requires_grad_(),))


@pytest.mark.parametrize("name", PROGRAMS)
def test_accumulation_and_a_second_run(name):
    x = _x(F32).requires_grad_()
    value = PROGRAMS[name](x)
    value.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    value.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * once, rtol=1e-5)


def test_hooks_see_whole_gradients_and_may_change_them():
    x = _x().requires_grad_()
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.numpy().copy()) or g * 2)
    a, b = y.split(3, dim=1)
    b.register_hook(lambda g: g * 10)
    (a.sum() + b.sum()).backward()
    wanted = np.concatenate([np.ones((4, 3)), np.full((4, 3), 10.0)], axis=1)
    np.testing.assert_array_equal(seen, [wanted])
    np.testing.assert_array_equal(x.grad.numpy(), 2 * wanted)


def test_hooks_of_a_slice_node_are_called_with_its_gradients():
    x = _x().requires_grad_()
    a, b = x[:2], x[2:]
    shapes = []
    a.grad_fn.register_hook(lambda inputs, outputs: shapes.append(inputs[0].shape))
    (a.sum() + b.sum() * 2).backward()
    assert shapes == [(4, 6)]
    np.testing.assert_array_equal(x.grad.numpy()[:, 0], [1, 1, 2, 2])


def test_the_gradient_of_a_leaf_is_memory_of_its_own():
    x = _x().requires_grad_()
    g = minitorch.ones(4, 6, dtype=F64)
    x[:].backward(g)
    x.grad.mul_(3)
    assert float(g.sum()) == 24


def test_gradients_of_named_inputs_only():
    x = _x().requires_grad_()
    y = x * 2
    a, b = y[:1], y[1:]
    found = minitorch.autograd.grad((a * a).sum() + b.sum(), [y, a])
    assert [tuple(g.shape) for g in found] == [(4, 6), (1, 6)]
    np.testing.assert_array_equal(found[0].numpy()[1:], np.ones((3, 6)))
    assert x.grad is None


def test_a_node_between_keeps_what_flows_beside_it():
    x = _x().requires_grad_()
    y = x + 0
    z = y + 0  # the gradient of z is y's as well, which parts must not change
    (z[0].sum() + z.sum() + y.sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy()[:, 0], [3, 2, 2, 2])


CUTS = [
    ([(slice(0, 2), ...), (slice(2, 4), ...)], (4, 6), (True, True)),
    ([(slice(2, 4),), (0,), (-3,)], (4, 6), (True, True)),
    ([(slice(None), slice(0, 2)), (slice(None), slice(4, 6))], (4, 6), (True, False)),
    ([(slice(0, 3),), (slice(2, 4),)], (4, 6), (False, False)),
    ([(slice(0, 2),), (slice(None), slice(2, 6))], (4, 6), (False, False)),
    ([(slice(0, 4, 2),), (slice(1, 4, 2),)], (4, 6), (False, False)),
    ([(None, slice(0, 4))], (4, 6), (False, False)),
    ([(..., 1)], (4, 6), (False, False)),
    ([(...,)], (), (False, False)),
]


@pytest.mark.parametrize(("places", "shape", "wanted"), CUTS)
def test_what_counts_as_cut_apart(places, shape, wanted):
    assert parts.cut(places, shape) == wanted


def _attend(x, weight, *, apart, hook=None):
    """Attention on the three parts of one projection, or on copies of them."""
    qkv = x @ weight
    kept = [] if hook is None else [qkv.register_hook(hook)]
    q, k, v = (p.view(2, 5, 4, 8).transpose(1, 2) for p in qkv.split(32, dim=2))
    if apart:
        q, k, v = q.clone(), k.clone(), v.clone()
    if kept:
        q.retain_grad()
    y = minitorch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    (y * y).sum().backward()
    return q, weight.grad


def test_gradients_that_lie_together_are_read_where_they_lie(monkeypatch):
    if minitorch.kernels.load("attention") is None:
        pytest.skip("the composite keeps its gradients apart")
    x = minitorch.randn(2, 5, 16)
    weight = minitorch.randn(16, 96, requires_grad=True)
    _, apart = _attend(x, weight, apart=True)
    weight.grad = None
    calls = []
    assemble = parts.assemble
    monkeypatch.setattr("minitorch.autograd.engine.assemble", lambda *a: calls.append(assemble(*a)))
    _, together = _attend(x, weight, apart=False)
    assert not calls
    np.testing.assert_allclose(together.numpy(), apart.numpy(), 1e-5, 1e-6)


def test_a_hook_that_writes_into_a_gradient_changes_no_other():
    x = minitorch.randn(2, 5, 16)
    weight = minitorch.randn(16, 96, requires_grad=True)
    q, _ = _attend(x, weight, apart=False, hook=lambda g: g * 1)
    before, weight.grad = q.grad.numpy().copy(), None
    q, _ = _attend(x, weight, apart=False, hook=lambda g: g.mul_(0))
    np.testing.assert_array_equal(q.grad.numpy(), before)
    assert not weight.grad.numpy().any()


def test_arrays_lie_where_numpy_says(monkeypatch):
    a = np.arange(24.0).reshape(2, 3, 4)
    wanted = [x.__array_interface__["data"][0] for x in (a, a[1:], a.T, a[:, 2])]
    for readable in (memory.READABLE, False):
        monkeypatch.setattr(memory, "READABLE", readable)
        assert [memory.address(x) for x in (a, a[1:], a.T, a[:, 2])] == wanted
