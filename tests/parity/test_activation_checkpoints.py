"""`utils.checkpoint`: the numbers of the plain call, and of torch where the program is the same."""

import gc
import weakref

import pytest
from peer_programs import compare, fill, filled

import minitorch as mt
from minitorch import nn
from minitorch.utils.checkpoint import checkpoint, checkpoint_sequential


def block(T):
    N = T.nn
    return fill(T, N.Sequential(N.Linear(3, 4), N.Tanh(), N.BatchNorm1d(4), N.Linear(4, 3)))


def gradients(T, **options):
    net, x = block(T), filled(T, 5, 3).requires_grad_()
    y = T.utils.checkpoint.checkpoint(net, x * 2, **options)
    (y**2).sum().backward()
    stats = [net[2].running_mean, net[2].num_batches_tracked]
    return y, x.grad, [p.grad for p in net.parameters()], stats


def reentrant(T):
    return gradients(T, use_reentrant=True)


def not_reentrant(T):
    return gradients(T, use_reentrant=False, early_stop=False)


def second_order(T):
    x = filled(T, 3).requires_grad_()
    C = T.utils.checkpoint.checkpoint
    y = C(lambda a: (a.exp() * a).sin(), x, use_reentrant=False)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = T.autograd.grad((g**2).sum(), x, retain_graph=True)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return g, h, x.grad


def nested(T):
    C, calls = T.utils.checkpoint.checkpoint, []
    w = filled(T, 3, start=3.0).requires_grad_()

    def inner(a):
        calls.append("inner")
        return (a * w).tanh().exp()

    def outer(a):
        b = a.exp()
        return C(inner, C(inner, b, use_reentrant=False), use_reentrant=False) * b

    x = filled(T, 3).requires_grad_()
    C(outer, x, use_reentrant=False).sum().backward()
    return x.grad, w.grad, len(calls) > 2


def several(T):
    C = T.utils.checkpoint.checkpoint
    x, w = filled(T, 3).requires_grad_(), filled(T, 3, start=2.0).requires_grad_()
    a, (b, c), n = C(
        lambda x, k, w=None: (x * w, (x.exp(), w.sin()), k), x, 3, w=w, use_reentrant=False
    )
    (a.sum() + c.sum()).backward()
    return x.grad, w.grad, n


def in_segments(T):
    net, x = block(T), filled(T, 5, 3).requires_grad_()
    S = T.utils.checkpoint.checkpoint_sequential
    y = S(net, 3, x, use_reentrant=False)
    (y**2).sum().backward()
    with T.no_grad():
        silent = S(list(net.eval()), 2, x, use_reentrant=False)
    return y, x.grad, [p.grad for p in net.parameters()], silent


def contexts(T):
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *exc):
            seen.append("end of " + self.name)

    x = filled(T, 3).requires_grad_()
    y = T.utils.checkpoint.checkpoint(
        lambda a: a.exp().exp(),
        x,
        use_reentrant=False,
        context_fn=lambda: (Note("first"), Note("second")),
    )
    seen.append("between")
    y.sum().backward()
    return seen, x.grad


PROGRAMS = [reentrant, not_reentrant, second_order, nested, several, in_segments, contexts]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    compare(program)


def grads_of(run, *tensors):
    for t in tensors:
        t.grad = None
    mt.manual_seed(1)
    run().sum().backward()
    return [t.grad.tolist() for t in tensors], mt.rand(2).tolist()


class TestRepetition:
    def test_dropout_and_what_is_drawn_afterwards(self):
        x = mt.rand(50, requires_grad=True)
        drop = nn.Dropout(0.5)

        def part(a):
            return drop(a.exp()) * mt.rand(50)

        assert grads_of(lambda: checkpoint(part, x), x) == grads_of(lambda: part(x), x)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Softmax(-1)),
            lambda: nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 3), nn.GroupNorm(1, 2)),
            lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0),
        ],
    )
    def test_second_gradients_of_compiled_bodies(self, make):
        net, x = make(), mt.rand(3, 4, requires_grad=True)

        def penalty(call):
            mt.manual_seed(2)
            (g,) = mt.autograd.grad((call() ** 3).sum(), x, create_graph=True)
            return (g**2).sum()

        params = [x, *net.parameters()]
        plain, again = (
            mt.autograd.grad(penalty(call), params, allow_unused=True, materialize_grads=True)
            for call in (lambda: net(x), lambda: checkpoint(net, x))
        )
        for a, b in zip(plain, again, strict=True):
            assert a.tolist() == b.tolist()

    def test_other_numbers_on_request(self):
        x = mt.rand(50, requires_grad=True)

        def part(a):
            return a.exp() * mt.rand(50)

        (again,), _ = grads_of(lambda: checkpoint(part, x, preserve_rng_state=False), x)
        (plain,), _ = grads_of(lambda: part(x), x)
        assert again != plain

    def test_autocast_is_that_of_the_call(self):
        layer, x = nn.Linear(8, 8), mt.rand(4, 8, requires_grad=True)

        def run(call):
            with mt.autocast("cpu", mt.bfloat16):
                return call().float().tanh()

        plain = grads_of(lambda: run(lambda: layer(x)), x, layer.weight)
        assert plain == grads_of(lambda: run(lambda: checkpoint(layer, x)), x, layer.weight)

    def test_no_grad_needs_nothing(self):
        calls = []
        with mt.no_grad():
            y = checkpoint(lambda a: calls.append(1) or a.exp(), mt.ones(2))
        assert not y.requires_grad
        assert calls == [1]

    def test_parameters_of_an_input_without_gradient(self):
        layer = nn.Linear(2, 2)
        checkpoint(lambda a: layer(a).exp(), mt.ones(1, 2), use_reentrant=True).sum().backward()
        assert layer.weight.grad is not None

    def test_a_function_that_differentiates_inside(self):
        def penalty(a):
            b = a * 1
            (g,) = mt.autograd.grad((b**3).sum(), b, create_graph=True)
            return (g**2).sum()

        x = mt.tensor([1.0, 2.0], requires_grad=True)
        plain = grads_of(lambda: penalty(x), x)
        assert plain == grads_of(lambda: checkpoint(penalty, x), x)

    def test_a_custom_function(self):
        class Exp(mt.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                y = a.exp()
                ctx.save_for_backward(a, y)
                return y

            @staticmethod
            def backward(ctx, g):
                assert ctx.saved_tensors[0].shape == g.shape
                return g * ctx.saved_tensors[1]

        x = mt.tensor([1.0, 2.0], requires_grad=True)
        (got,), _ = grads_of(lambda: checkpoint(lambda a: Exp.apply(a * 2).exp(), x), x)
        (plain,), _ = grads_of(lambda: (x * 2).exp().exp(), x)
        assert got == pytest.approx(plain)

    def test_a_view_and_a_write_inside(self):
        def part(a):
            b = a * 2
            b[0] = a[1]
            return b.exp()

        x = mt.tensor([1.0, 2.0], requires_grad=True)
        plain = grads_of(lambda: part(x[:2]), x)
        assert plain == grads_of(lambda: checkpoint(part, x[:2]), x)

    def test_intermediate_values_are_not_kept(self):
        kept = []

        def part(a):
            b = a.exp()
            kept.append(weakref.ref(b._array))
            return b.exp()

        x = mt.ones(10, requires_grad=True)
        y = checkpoint(part, x)
        gc.collect()
        assert kept[0]() is None
        y.sum().backward()
        assert x.grad is not None

    def test_in_training_with_gradients_accumulated(self):
        net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
        x = mt.rand(6, 4)
        params = list(net.parameters())
        plain = grads_of(lambda: net(x) ** 2 + net(x + 1), *params)
        assert plain == grads_of(lambda: checkpoint(net, x) ** 2 + checkpoint(net, x + 1), *params)


def changing(shapes, **options):
    values = iter(shapes)

    def part(a):
        n = next(values)
        return (a.exp()[:n].exp()).sum() if n else a.exp().exp().exp().sum()

    checkpoint(part, mt.ones(4, requires_grad=True), **options).backward()


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "text"),
        [
            (lambda: checkpoint(mt.exp, mt.ones(1), determinism_check="x"), "'default' or 'none'"),
            (lambda: checkpoint_sequential([mt.exp], 2, mt.ones(1)), "from 1 to the number"),
            (lambda: checkpoint_sequential([mt.exp], 1, mt.ones(1), x=1), "unknown options x"),
            (lambda: changing([4, 3]), r"value 1 is f32\[3\] in place of f32\[4\]"),
            (lambda: changing([0, 4]), "it saved 2 values in place of 3"),
            (lambda: changing([4, 0], early_stop=False), "it saved more than 2 values"),
        ],
    )
    def test_messages(self, call, text):
        with pytest.raises((RuntimeError, ValueError), match=text):
            call()

    def test_an_argument_changed_in_place(self):
        x = mt.ones(2, requires_grad=True)
        a = x * 1
        y = checkpoint(lambda t: t.exp().exp(), a)
        a.detach().zero_()
        with pytest.raises(RuntimeError, match="was changed in place by fill_ since the call"):
            y.sum().backward()
