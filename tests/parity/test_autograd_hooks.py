"""Hooks on tensors, nodes, saved values and several gradients; custom Functions: against torch."""

import gc
import weakref

import pytest
from peer_programs import compare, fill, filled

import minitorch as mt
from minitorch.autograd import Function, graph


def tensor_hooks(T):
    seen = []
    x = filled(T, 3).requires_grad_()
    y = x**2
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    h = y.register_hook(lambda g: seen.append(["y", g]))
    x.register_hook(lambda g: g + 1)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(["post", t.grad]))
    (y * 3).sum().backward(retain_graph=True)
    h.remove()
    (y * 3).sum().backward()
    return seen, x.grad, y.grad, y.retains_grad, x.retains_grad


def retained_with_graph(T):
    x = filled(T, 3).requires_grad_()
    y = x**3
    y.retain_grad()
    (y**2).sum().backward(create_graph=True)
    flag, kept = y.grad.requires_grad, y.grad.detach()
    y.grad.sum().backward()
    return flag, kept, x.grad


def node_hooks(T):
    seen = []
    x, w = filled(T, 2).requires_grad_(), filled(T, 2, start=3.0).requires_grad_()
    y = x * w
    node = y.grad_fn
    node.register_hook(lambda gi, go: seen.append([list(gi), list(go)]))
    node.register_hook(lambda gi, go: (gi[0] * 2, gi[1]))
    node.register_prehook(lambda go: (go[0] * 3,))
    h = node.register_prehook(lambda go: seen.append(list(go)))
    node.metadata["note"] = 1
    (y**2).sum().backward(retain_graph=True)
    h.remove()
    (y**2).sum().backward()
    return seen, x.grad, w.grad, node.metadata["note"]


def next_functions(T):
    x = filled(T, 2).requires_grad_()
    y = (x.sin() * T.ones(2)).sum()
    found, node = [], y.grad_fn
    mul = node.next_functions[0][0]
    found.append([fn is None for fn, _ in mul.next_functions])
    end = mul.next_functions[0][0].next_functions[0][0]
    found += [end.variable is x, end.next_functions == (), "AccumulateGrad" in end.name()]
    seen = []
    end.register_hook(lambda gi, go: seen.append("accumulated"))
    end.register_prehook(lambda go: seen.append(go[0]))
    y.backward()
    return found, seen


def packing(T):
    S, seen = T.autograd.graph.saved_tensors_hooks, []
    net = fill(T, T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2)))
    x = filled(T, 2, 3).requires_grad_()

    def pack(t):
        return t.detach().numpy().copy()

    def unpack(a):
        seen.append(1)
        return T.from_numpy(a)

    with S(pack, unpack):
        y = (net(x).exp() * x.sum()).sum()
        with T.no_grad():
            net(x)
    (g,) = T.autograd.grad(y, x, create_graph=True)
    (second,) = T.autograd.grad(g.sum(), x, retain_graph=True)
    y.backward()
    return len(seen) > 3, g, second, [p.grad for p in net.parameters()]


def inner_packing_wins(T):
    S, seen = T.autograd.graph.saved_tensors_hooks, []
    x = filled(T, 2).requires_grad_()
    with S(lambda t: seen.append("outer") or t, lambda t: t):
        a = x.exp()
        with S(lambda t: seen.append("inner") or t * 2, lambda t: t / 2):
            b = a.exp()
    b.sum().backward()
    return seen, x.grad


def parameters_are_seen_as_such(T):
    layer, kinds = fill(T, T.nn.Linear(2, 2)), []

    def pack(t):
        kinds.append(isinstance(t, T.nn.Parameter))
        return t

    with T.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = filled(T, 1, 2).requires_grad_() * layer.weight
    y.sum().backward()
    return any(kinds), layer.weight.grad


def on_cpu(T):
    x = filled(T, 3).requires_grad_()
    with T.autograd.graph.save_on_cpu():
        y = (x.exp() ** 2).sum()
    y.backward()
    return x.grad


def disabled(T):
    G = T.autograd.graph
    try:
        with G.disable_saved_tensors_hooks("not here"), G.save_on_cpu():
            pass
    except RuntimeError as e:
        text = str(e)
    with G.save_on_cpu():
        return text


def mutated(T):
    x = filled(T, 3).requires_grad_()
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        z = (y * y.sin()).exp()
        with T.no_grad():
            y.zero_()
            z.mul_(2)
        with T.autograd.set_multithreading_enabled(False):
            z.sum().backward()
    return x.grad


def multi(T):
    seen = []
    a, b, c = (filled(T, 2, start=float(i)).requires_grad_() for i in range(3))
    h = T.autograd.graph.register_multi_grad_hook([a, b, c], lambda gs: seen.append(list(gs)))
    first = T.autograd.graph.register_multi_grad_hook(
        (a, b), lambda g: seen.append(["any"]), mode="any"
    )
    (a * b).sum().backward()
    (a * b * c).sum().backward()
    h.remove()
    first.remove()
    (a * b * c).sum().backward()
    return seen


class Programs:
    """Custom Functions, made anew for each namespace."""

    def dirty(self, T):
        class Twice(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 2

        x = filled(T, 3).requires_grad_()
        y = x * 1
        z = Twice.apply(y)
        (z**2).sum().backward()
        return z is y, x.grad

    def setup(self, T):
        class Scale(T.autograd.Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(x, k):
                return x * k, x.detach() > 0

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(inputs[0])
                ctx.k = inputs[1]
                ctx.mark_non_differentiable(output[1])

            @staticmethod
            def backward(ctx, g, _):
                first, again = ctx.saved_tensors, ctx.saved_tensors
                return g * ctx.k + first[0] * 0 + again[0], None

        x = filled(T, 3).requires_grad_()
        y, positive = Scale.apply(x, 3.0)
        y.sum().backward()
        return y, positive, positive.requires_grad, x.grad

    def unmaterialized(self, T):
        seen = []

        class Two(T.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.set_materialize_grads(False)
                seen.append(list(ctx.needs_input_grad))
                return x * 2, w * 3

            @staticmethod
            def backward(ctx, a, b):
                seen.append([a is None, b is None])
                return None if a is None else a * 2, None if b is None else b * 3

        x, w = filled(T, 2).requires_grad_(), filled(T, 2)
        a, b = Two.apply(x, w)
        a.sum().backward()
        return seen, x.grad

    def second(self, T):
        class Cube(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x**3
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                return g * 3 * x**2 + y * 0

        x = filled(T, 3).requires_grad_()
        (g,) = T.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
        (h,) = T.autograd.grad(g.sum(), x)
        with T.autograd.graph.save_on_cpu():
            y = Cube.apply(x)
        (k,) = T.autograd.grad(y.sum(), x, create_graph=True)
        (m,) = T.autograd.grad(k.sum(), x)
        return g, h, k, m

    def once(self, T):
        from_path = T.autograd.function.once_differentiable

        class Square(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**2

            @staticmethod
            @from_path
            def backward(ctx, g):
                return g * 2 * ctx.saved_tensors[0]

        x = filled(T, 3).requires_grad_()
        first = T.autograd.grad(Square.apply(x).sum(), x)[0]
        (g,) = T.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
        try:
            g.sum().backward()
        except RuntimeError:
            return first, g, "raises"
        return "passes"

    def variable(self, T):
        V = T.autograd.Variable
        x = V(filled(T, 2), requires_grad=True)
        (x**2).sum().backward()
        return x.grad, isinstance(x, V), isinstance(T.ones(1), V), isinstance(3, V)


PROGRAMS = [tensor_hooks, retained_with_graph, node_hooks, next_functions, packing]
PROGRAMS += [inner_packing_wins, mutated, parameters_are_seen_as_such, on_cpu, disabled, multi]
PROGRAMS += [getattr(Programs(), name) for name in vars(Programs) if name[0] != "_"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    compare(program)


class TestSavedValues:
    def test_memory_goes_with_the_packing(self):
        x = mt.ones(100, requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: None, lambda n: mt.ones(100)):
            a = x.exp()
            kept = weakref.ref(a._array)
            y = a.exp().sum()
        del a
        gc.collect()
        assert kept() is None
        y.backward()
        assert x.grad.tolist() == [1.0] * 100

    def test_a_write_is_noticed_where_the_hook_kept_the_memory(self):
        x = mt.ones(2, requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x.exp()
            z = y.exp()
        y.detach().zero_()
        with pytest.raises(RuntimeError, match="changed it in place"):
            z.sum().backward()

    def test_a_write_does_not_matter_after_a_copy(self):
        x = mt.ones(2, requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = x.exp()
            z = (y * 1).exp()
        right = (z.detach() * y.detach()).tolist()
        y.detach().zero_()
        z.sum().backward()
        assert x.grad.tolist() == pytest.approx(right)

    def test_with_anomaly_mode(self):
        x = mt.tensor([0.0], requires_grad=True)
        with mt.autograd.detect_anomaly(), graph.save_on_cpu():
            y = (x.sqrt() * 0).sum()
            with pytest.raises(RuntimeError, match="NaN.*test_autograd_hooks"):
                y.backward()

    def test_what_is_unpacked_must_fit(self):
        x = mt.ones(2, requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
            y = x.exp().sum()
        with pytest.raises(RuntimeError, match=r"like the one that was packed, float32\[2\]"):
            y.backward()

    def test_version_by_hand(self):
        x = mt.ones(2, requires_grad=True)
        y = x.exp()
        z = y.exp()
        graph.increment_version(y)
        with pytest.raises(RuntimeError, match="increment_version changed it"):
            z.sum().backward()


MESSAGES = {
    "mode": (lambda x: graph.register_multi_grad_hook([x], print, mode="some"), "'all' or 'any'"),
    "grad": (lambda x: graph.register_multi_grad_hook([x.detach()], print), "must require grad"),
    "count": (lambda x: backward_with_hook(x), "one gradient for each input of the node"),
    "once": (lambda x: once_again(x), "declared once_differentiable"),
}


def backward_with_hook(x):
    y = x * x
    y.grad_fn.register_hook(lambda gi, go: (gi[0],))
    y.sum().backward()


def once_again(x):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        @mt.autograd.once_differentiable
        def backward(ctx, g):
            return g * 2

    (g,) = mt.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    g.sum().backward()


@pytest.mark.parametrize("case", MESSAGES)
def test_messages(case):
    call, text = MESSAGES[case]
    with pytest.raises((RuntimeError, ValueError), match=text):
        call(mt.tensor([1.0, 2.0], requires_grad=True))
