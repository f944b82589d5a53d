"""`minitorch.func` and `autograd.functional`, against torch."""

import itertools

import pytest
from peer_programs import compare, fill, filled

import minitorch as mt


def f(T, x, y):
    return (x.sin() * y).sum() + (x**2 * y**3).mean()


def func_grad(T):
    x, y = filled(T, 2, 3), filled(T, 3, start=2.0)
    F = T.func
    return [
        F.grad(lambda a, b: f(T, a, b))(x, y),
        F.grad(lambda a, b: f(T, a, b), argnums=1)(x, y),
        F.grad(lambda a, b: f(T, a, b), argnums=(0, -1))(x, y),
        F.grad(lambda a, b: (f(T, a, b), {"aux": a * 2}), has_aux=True)(x, y),
        F.grad_and_value(lambda a, b: f(T, a, b))(x, y),
        F.grad_and_value(lambda a, b: (f(T, a, b), b), has_aux=True)(x, y),
        F.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [y]}),
        F.grad(lambda a: a * 0 + 1)(T.tensor(2.0)),
        F.grad(lambda a, b: b.sum())(x, y),
    ]


def func_nested(T):
    F = T.func
    x = T.tensor(0.7)
    third = F.grad(F.grad(F.grad(lambda a: a.sin() * a**2)))(x)
    mixed = F.grad(lambda a: F.grad(lambda b: a * b**2)(a * 3))(x)
    confusion = F.grad(lambda a: a * F.grad(lambda b: a + b)(T.tensor(1.0)))(x)
    over = F.grad(lambda a: F.jvp(lambda b: (b**3 * a).sum(), (a,), (T.tensor(1.0),))[1])(x)
    return third, mixed, confusion, over


def func_outer_graph(T):
    """Results hang in the caller's graph where he asks for it, and nowhere else."""
    F = T.func
    x = filled(T, 3).requires_grad_()
    w = filled(T, 3, start=3.0).requires_grad_()
    g, v = F.grad_and_value(lambda a: (a**3 * w).sum())(x)
    (g.sum() + v).backward()
    plain, value = F.grad_and_value(lambda a: (a**3).sum())(x.detach())
    with T.no_grad():
        silent = F.grad(lambda a: (a**3 * w).sum())(x)
    flags = [g.requires_grad, plain.requires_grad, value.requires_grad, silent.requires_grad]
    return x.grad, w.grad, flags


def func_products(T):
    F = T.func
    x, y = filled(T, 2, 3), filled(T, 3, start=2.0)

    def g(a, b):
        return (a * b).sin(), {"s": (a**2).sum(0)}

    out, pull = F.vjp(g, x, y)
    first = pull((filled(T, 2, 3, start=5.0), {"s": filled(T, 3)}))
    second = pull((filled(T, 2, 3), {"s": filled(T, 3)}))
    value, tangent = F.jvp(g, (x, y), (filled(T, 2, 3, start=4.0), filled(T, 3)))
    aux = F.jvp(lambda a: (a * 2, a), (x,), (x,), has_aux=True)
    lin, push = F.linearize(g, x, y)
    constant = F.jvp(lambda a: (a * 2, y), (x,), (x,))
    return [out, first, second, value, tangent, aux, lin, push(x, y), constant]


def func_jacobians(T):
    F = T.func
    x, y = filled(T, 2, 2), filled(T, 2, start=2.0)

    def g(a, b):
        return (a * b).sin(), [(a @ b)]

    out = []
    for jac in (F.jacrev, F.jacfwd):
        out += [jac(g)(x, y), jac(g, argnums=1)(x, y), jac(g, argnums=(0, 1))(x, y)]
        out.append(jac(lambda a: (a**2, a), has_aux=True)(y))
        out.append(jac(lambda d: {"o": d["a"] * 2})({"a": y}))
        out.append(jac(lambda a: a.sum())(T.tensor(2.0)))
    out.append(F.hessian(lambda a: (a**3).sum() * a[0, 0])(x))
    out.append(F.hessian(lambda a, b: (a @ b).sin().sum(), argnums=(0, 1))(x, y))
    out.append(F.jacrev(F.jacrev(lambda a: a**3))(y))
    return out


def func_modules(T):
    net = fill(T, T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 1)))
    params = {k: v.detach() for k, v in net.named_parameters()}
    xs, ys = filled(T, 5, 3), filled(T, 5, 1, start=9.0)

    def loss(params, x, y):
        out = T.func.functional_call(net, params, (x,))
        return ((out - y) ** 2).mean()

    whole = T.func.grad(loss)(params, xs, ys)
    each = T.func.vmap(T.func.grad(loss), in_dims=(None, 0, 0))(params, xs, ys)
    both = T.func.functional_call(net, ({"0.weight": params["0.weight"] * 0}, {}), xs)
    return whole, each, both, net[0].weight


def tied(T):
    class Tied(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = T.nn.Linear(2, 2, bias=False)
            self.b = T.nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("scale", T.ones(1))

        def forward(self, x, factor=1.0):
            return self.b(self.a(x)) * self.scale * factor

    net = fill(T, Tied())
    call, x = T.func.functional_call, filled(T, 1, 2)
    new = filled(T, 2, 2, start=7.0)
    return [
        call(net, {"a.weight": new}, x, {"factor": 2.0}),
        call(net, {"a.weight": new}, x, tie_weights=False),
        call(
            net, {"a.weight": new, "b.weight": new * 2, "scale": filled(T, 1)}, x, tie_weights=False
        ),
        net(x),
    ]


def ensemble(T):
    nets = [fill(T, T.nn.Sequential(T.nn.Linear(2, 2), T.nn.BatchNorm1d(2))) for _ in range(3)]
    for i, net in enumerate(nets):
        with T.no_grad():
            net[0].weight.add_(i)
        net.eval()
    params, buffers = T.func.stack_module_state(nets)
    base, x = nets[0], filled(T, 4, 2)

    def run(p, b, x):
        return T.func.functional_call(base, (p, b), (x,))

    out = T.vmap(run, in_dims=(0, 0, None))(params, buffers, x)
    out.sum().backward()
    shapes = {k: list(v.shape) for k, v in {**params, **buffers}.items()}
    return out, shapes, params["0.weight"].grad, params["0.weight"].is_leaf


def mapping(T):
    x, y = filled(T, 3, 2), filled(T, 2, 3)
    out = [
        T.vmap(lambda a, b: a * b, in_dims=(0, 1))(x, y),
        T.vmap(lambda a: (a.sum(), {"twice": a * 2}), out_dims=(0, {"twice": 1}))(x),
        T.vmap(lambda a: (a.sum(), a * 2), out_dims=(0, -1))(x),
        T.vmap(lambda d, k: d["a"] + k, in_dims=({"a": 0}, None))({"a": x}, 3.0),
        T.vmap(lambda a, b: a @ b, in_dims=(-1, None))(y, T.ones(2, 2)),
        T.vmap(T.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))(x, y.T),
        T.vmap(lambda a, b=None: a + b)(x, b=x),
        T.vmap(lambda a: a.sum(), in_dims=0, chunk_size=2)(x),
        T.vmap(lambda a: (a.sum(), a))(T.zeros(0, 4)),
        T.vmap(lambda a: a * 2, in_dims=1, out_dims=1)(T.zeros(4, 0)),
        T.vmap(T.func.jacrev(lambda a: a.sin()))(x),
        T.vmap(T.func.hessian(lambda a: (a**3).sum()))(x),
        T.vmap(T.func.jacfwd(lambda a: a**2))(x),
        T.func.jacrev(T.vmap(lambda a: a.sin().sum()))(x),
    ]
    w = filled(T, 3, 2).requires_grad_()
    (T.vmap(lambda a, b: (a * b).sum() ** 2)(w, x)).sum().backward()
    return out, w.grad


def functional(T):
    A = T.autograd.functional
    x, y = filled(T, 2), filled(T, 3, start=2.0)

    def two(a, b):
        return (a.sum() * b).sin(), a**2

    def scalar(a, b):
        return (a**3).sum() * b.sum() + (b**2).prod()

    v_out = (filled(T, 3), filled(T, 2))
    v_in = (filled(T, 2, start=4.0), filled(T, 3))
    out = [
        A.jacobian(two, (x, y)),
        A.jacobian(lambda a: a**2, x),
        A.jacobian(lambda a: a.sum(), x),
        A.jacobian(lambda a: a**2, x, vectorize=True),
        A.jacobian(lambda a: a**2, x, vectorize=True, strategy="forward-mode"),
        A.hessian(scalar, (x, y)),
        A.hessian(lambda a: (a**3).sum(), x),
        A.hessian(lambda a: a.sum(), x),
        A.vjp(two, (x, y), v_out),
        A.vjp(lambda a: a.sum(), x),
        A.jvp(two, (x, y), v_in),
        A.jvp(lambda a: a * x, T.tensor(2.0)),
        A.hvp(scalar, (x, y), v_in),
        A.vhp(scalar, (x, y), v_in),
        A.vhp(lambda a: a.sum(), x, x),
        A.jacobian(lambda a, b: a * 2, (x, y)),
    ]
    leaf = filled(T, 2).requires_grad_()
    A.jacobian(lambda a: a**3, leaf, create_graph=True).sum().backward()
    A.hvp(lambda a: (a**4).sum(), leaf, leaf.detach(), create_graph=True)[1].sum().backward()
    A.jvp(lambda a: a**3, leaf, leaf.detach(), create_graph=True)[1].sum().backward()
    flags = [A.jacobian(lambda a: a**3, leaf).requires_grad]
    flags += [o.requires_grad for o in A.vjp(lambda a: a.sum(), leaf)]
    return out, leaf.grad, flags


def batched(T):
    x, y = filled(T, 3).requires_grad_(), filled(T, 2).requires_grad_()
    z = T.cat([x**2, y.sin()])
    eye = T.eye(5)
    grad = T.autograd.grad
    first = grad(z, (x, y), eye, retain_graph=True, is_grads_batched=True)
    unused = grad(
        z[:3], (x, y), T.ones(2, 3), retain_graph=True, is_grads_batched=True, allow_unused=True
    )
    zeros = grad(z[:3], (x, y), T.ones(2, 3), is_grads_batched=True, materialize_grads=True)
    w = filled(T, 2).requires_grad_()
    lone = grad((x**2).sum(), (x, w), T.ones(2), is_grads_batched=True, materialize_grads=True)
    return first, unused[0], unused[1] is None, zeros, lone[0]


PROGRAMS = [func_grad, func_nested, func_outer_graph, func_products, func_jacobians, func_modules]
PROGRAMS += [tied, ensemble, mapping, functional, batched]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    compare(program)


def strict_cases(T):
    A, x = T.autograd.functional, filled(T, 2)
    y = filled(T, 2, start=1.0)
    calls = [
        lambda: A.jacobian(lambda a: y * 2, x, strict=True),
        lambda: A.jacobian(lambda a, b: a * 2, (x, y), strict=True),
        lambda: A.hessian(lambda a: a.sum(), x, strict=True),
        lambda: A.vjp(lambda a, b: a.sum(), (x, y), strict=True),
        lambda: A.jvp(lambda a: a * 2, x, x, strict=True),
        lambda: A.vhp(lambda a: (a**2).sum(), x, x, strict=True),
        lambda: A.vhp(lambda a: a.sum(), x, x, strict=True),
        lambda: A.hvp(lambda a: (a**2).sum(), x, y, strict=True),
        lambda: A.jacobian(lambda a: a * 2, x, strict=True, vectorize=True),
        lambda: A.jvp(lambda a: a * 2, x),
        lambda: A.vjp(lambda a: a * 2, x),
        lambda: A.vjp(lambda a: a * 2, x, filled(T, 3)),
        lambda: A.hessian(lambda a: a * 2, x),
        lambda: A.jacobian(lambda a: a * 2, 3.0),
        lambda: A.jacobian(lambda a: 3.0, x),
        lambda: A.jacobian(lambda a: a, x, strategy="forward-mode"),
        lambda: T.func.grad(lambda a: a * 2)(x),
        lambda: T.func.grad(lambda a: a.sum(), argnums=1)(x),
        lambda: T.func.jvp(lambda a: a * 2, (x,), (filled(T, 3),)),
        lambda: T.func.jvp(lambda a: a * 2, x, x),
        lambda: T.vmap(lambda a: a)(3.0),
        lambda: T.vmap(lambda a: a, in_dims=None)(x),
        lambda: T.vmap(lambda a, b: a * b)(x, 3.0),
        lambda: T.vmap(lambda a, b: a * b, in_dims=(0, None))(x, 3.0),
        lambda: T.vmap(lambda a, b: a)(x, filled(T, 3)),
        lambda: T.vmap(lambda a: a, in_dims=1)(x),
        lambda: T.vmap(lambda a: a, in_dims=(0, 0))(x),
        lambda: T.vmap(lambda a: 3.0)(x),
        lambda: T.vmap(lambda a: (a, a), out_dims=(0, 0, 0))(x),
        lambda: T.vmap(lambda a: a, randomness="perhaps")(x),
        lambda: T.vmap(lambda a: T.rand(1) * a)(x),
        lambda: T.func.functional_call(T.nn.Linear(1, 1), {"weight": x}, x, strict=True),
        lambda: T.func.stack_module_state([]),
        lambda: T.func.stack_module_state([T.nn.Linear(1, 1), T.nn.ReLU()]),
        lambda: T.autograd.grad((x.requires_grad_() * 2), x, T.ones(2, 3), is_grads_batched=True),
    ]
    outcome = []
    for call in calls:
        try:
            call()
            outcome.append("passes")
        except Exception:
            outcome.append("raises")
    return [f"{i} {what}" for i, what in enumerate(outcome)]


def test_errors_where_torch_has_them():
    compare(strict_cases)


class TestRandomness:
    def draws(self, **options):
        mt.manual_seed(3)
        return mt.vmap(lambda a: a + mt.rand(2), **options)(mt.zeros(4)).tolist()

    def test_different(self):
        rows = self.draws(randomness="different")
        assert all(a != b for a, b in itertools.combinations(rows, 2))

    def test_same(self):
        rows = self.draws(randomness="same")
        assert rows == [rows[0]] * 4
        mt.manual_seed(3)
        assert rows[0] == mt.rand(2).tolist()
        assert mt.rand(2).tolist() != rows[0]

    def test_error_says_what_to_do_and_leaves_the_stream(self):
        with pytest.raises(RuntimeError, match=r'randomness="different" or randomness="same"'):
            self.draws()
        after = mt.rand(2).tolist()
        mt.manual_seed(3)
        assert after == mt.rand(2).tolist()

    def test_dropout_per_sample(self):
        drop = mt.nn.Dropout(0.5)
        rows = mt.vmap(drop, randomness="same")(mt.ones(3, 8)).tolist()
        assert rows == [rows[0]] * 3


def tied_twice(x):
    net = mt.nn.Linear(2, 2)
    net.twin = net.weight
    mt.func.functional_call(net, {"weight": x, "twin": x + 1}, x)


MESSAGES = {
    "argnums": (lambda x: mt.func.grad(lambda a: a, argnums=2)(x), "argnums must name positional"),
    "leaf": (lambda x: mt.func.grad(lambda a: a)(3.0), "must be tensors or trees"),
    "scalar": (lambda x: mt.func.grad(lambda a: a)(x), r"one-element tensor. Got f32\[2\]"),
    "pair": (lambda x: mt.func.grad(lambda a: a, has_aux=True)(x), "has_aux: the function must"),
    "value": (lambda x: mt.func.vjp(lambda a: 3, x), "must return tensors or trees"),
    "cotangents": (lambda x: mt.func.vjp(lambda a: a, x)[1]((x, x)), "structure of the value"),
    "tuples": (lambda x: mt.func.jvp(lambda a: a, x, x), "must be tuples"),
    "tangents": (lambda x: mt.func.jvp(lambda a: a, (x,), (x[:1],)), "structure and shapes"),
    "strict": (
        lambda x: mt.func.jvp(lambda a: x * 2, (x,), (x,), strict=True),
        "with strict=True every output",
    ),
    "in_dims": (lambda x: mt.vmap(lambda a: a, in_dims=(0, 0))(x), "in_dims must be a number"),
    "axis": (lambda x: mt.vmap(lambda a: a, in_dims=3)(x), "the batch axis must exist"),
    "kind": (lambda x: mt.vmap(lambda a: a, in_dims=("x",))(x), "it must be a number"),
    "none": (lambda x: mt.vmap(lambda a: a, in_dims=None)(x), "at least one argument"),
    "lengths": (lambda x: mt.vmap(lambda a, b: a)(x, x[:1]), "have one length"),
    "out_dims": (lambda x: mt.vmap(lambda a: a, out_dims=(0, 0))(x), "out_dims must be a number"),
    "result": (lambda x: mt.vmap(lambda a: 3)(x), "must return tensors. Got int"),
    "structures": (
        lambda x: mt.vmap(lambda a: a if a.item() > 0 else (a, a))(mt.tensor([1.0, -1.0])),
        "a result of the same structure",
    ),
    "randomness": (lambda x: mt.vmap(lambda a: a, randomness="no")(x), "randomness must be one"),
    "chunk": (lambda x: mt.vmap(lambda a: a, chunk_size=0)(x), "chunk_size must be at least 1"),
    "names": (
        lambda x: mt.func.functional_call(mt.nn.Linear(1, 1), {"wight": x}, x),
        "Did you mean 'weight'",
    ),
    "twice": (
        lambda x: mt.func.functional_call(mt.nn.Linear(1, 1), [{"bias": x}, {"bias": x}], x),
        "every name must be given once. Got bias",
    ),
    "tied": (tied_twice, "a tied tensor must be given once"),
    "models": (lambda x: mt.func.stack_module_state([]), "at least one module"),
    "kinds": (
        lambda x: mt.func.stack_module_state([mt.nn.ReLU(), mt.nn.Tanh()]),
        "all modules must be of one class",
    ),
    "v": (lambda x: mt.autograd.functional.vjp(lambda a: a, x), "v may be left out only"),
    "v_shape": (
        lambda x: mt.autograd.functional.vjp(lambda a: a, x, x[:1]),
        "must have the shapes",
    ),
    "inputs": (lambda x: mt.autograd.functional.vjp(lambda a: a, 3), "inputs must be a tensor"),
    "hessian": (lambda x: mt.autograd.functional.hessian(lambda a: a, x), "one tensor with one"),
    "strategy": (
        lambda x: mt.autograd.functional.jacobian(lambda a: a, x, strategy="x"),
        "strategy must be",
    ),
    "forward": (
        lambda x: mt.autograd.functional.jacobian(lambda a: a, x, strategy="forward-mode"),
        "needs vectorize=True",
    ),
    "constant": (
        lambda x: mt.autograd.functional.jacobian(lambda a: x, x, strict=True),
        "output 0 does not depend on any input",
    ),
    "unused": (
        lambda x: mt.autograd.functional.jacobian(lambda a, b: a, (x, x), strict=True),
        "input 1 is not used",
    ),
    "batched": (
        lambda x: mt.autograd.grad(x.requires_grad_() * 2, x, mt.ones(0, 2), is_grads_batched=True),
        "a first axis of one length",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages(case):
    call, text = MESSAGES[case]
    with pytest.raises((RuntimeError, ValueError), match=text):
        call(mt.tensor([1.0, 2.0]))
