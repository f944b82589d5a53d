"""Hooks around forward and backward."""

import copy
import pickle

import pytest

import minitorch as mt
from minitorch import nn


def note(module, args, output):
    """At module level, so that it can be pickled."""


class Pair(nn.Module):
    def forward(self, a, b=None, scale=1.0):
        return a * scale, a if b is None else b * 2


def ones(*shape):
    return mt.ones(*shape, requires_grad=True)


class TestForward:
    def test_pre_hook_sees_and_replaces_arguments(self):
        layer = nn.Linear(2, 1, bias=False)
        nn.init.ones_(layer.weight)
        seen = []
        layer.register_forward_pre_hook(lambda m, args: seen.append((m, args)))
        layer.register_forward_pre_hook(lambda m, args: (args[0] * 3,))
        assert layer(mt.ones(1, 2)).item() == 6
        layer.register_forward_pre_hook(lambda m, args: args[0] * 2)
        assert layer(mt.ones(1, 2)).item() == 12
        assert seen[0][0] is layer
        assert isinstance(seen[0][1], tuple)

    def test_hook_sees_and_replaces_the_output(self):
        layer = nn.Identity()
        layer.register_forward_hook(lambda m, args, output: output + args[0])
        layer.register_forward_hook(lambda m, args, output: None)
        assert layer(mt.tensor(2.0)).item() == 4

    def test_order_and_prepend(self):
        layer, order = nn.Identity(), []
        for i in range(2):
            layer.register_forward_hook(lambda m, a, o, i=i: order.append(i))
        layer.register_forward_hook(lambda m, a, o: order.append("first"), prepend=True)
        layer(1)
        assert order == ["first", 0, 1]

    def test_keyword_arguments(self):
        module, seen = Pair(), []
        module.register_forward_pre_hook(
            lambda m, args, kwargs: (args, {**kwargs, "scale": 5.0}), with_kwargs=True
        )
        module.register_forward_hook(
            lambda m, args, kwargs, output: seen.append(kwargs), with_kwargs=True
        )
        assert module(mt.tensor(1.0), scale=2.0)[0].item() == 5
        assert seen == [{"scale": 5.0}]

    def test_always_call_runs_after_an_exception(self):
        class Fails(nn.Module):
            def forward(self):
                raise KeyError("x")

        module, seen = Fails(), []
        module.register_forward_hook(lambda m, a, o: seen.append("plain"))
        module.register_forward_hook(lambda m, a, o: seen.append(o), always_call=True)
        with pytest.raises(KeyError):
            module()
        assert seen == [None]

    def test_a_failing_always_called_hook_runs_once(self):
        module, calls = nn.Identity(), []

        def hook(m, args, output):
            calls.append(1)
            raise KeyError("x")

        module.register_forward_hook(hook, always_call=True)
        with pytest.raises(KeyError):
            module(1)
        assert calls == [1]

    def test_wrong_return_of_a_keyword_pre_hook(self):
        module = Pair()
        module.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True)
        with pytest.raises(TypeError, match=r"return None or \(args, kwargs\)"):
            module(mt.tensor(1.0))

    def test_removal(self):
        layer, seen = nn.Identity(), []
        handle = layer.register_forward_hook(lambda m, a, o: seen.append(1))
        layer(1)
        handle.remove()
        handle.remove()
        layer(1)
        with layer.register_forward_pre_hook(lambda m, a: seen.append(2)):
            layer(1)
        layer(1)
        assert seen == [1, 2]
        assert layer._hooks is None

    def test_a_hook_may_remove_itself(self):
        layer, seen = nn.Identity(), []

        def once(m, args, output):
            seen.append(1)
            handle.remove()

        handle = layer.register_forward_hook(once)
        layer(1)
        layer(1)
        assert seen == [1]

    def test_copies_and_pickles_keep_hooks(self):
        layer = nn.Identity()
        layer.register_forward_hook(note)
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert other(3) == 3
            assert other._hooks is not None
            assert other._hooks is not layer._hooks


class TestBackward:
    def test_gradients_of_inputs_and_outputs(self):
        layer, seen = nn.Linear(2, 3), []
        layer.register_full_backward_hook(lambda m, gi, go: seen.append((m, gi, go)))
        x = ones(4, 2)
        layer(x).sum().backward()
        ((module, grad_input, grad_output),) = seen
        assert module is layer
        assert grad_input[0].tolist() == x.grad.tolist()
        assert grad_output[0].tolist() == mt.ones(4, 3).tolist()

    def test_replaced_gradient_reaches_the_input(self):
        layer = nn.Linear(2, 3)
        layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0 + 7,))
        x = ones(4, 2)
        layer(x).sum().backward()
        assert set(x.grad.flatten().tolist()) == {7}
        assert layer.weight.grad.abs().sum().item() > 0

    def test_pre_hook_replaces_the_gradient_of_the_output(self):
        layer = nn.Linear(2, 1, bias=False)
        layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
        layer(ones(1, 2)).sum().backward()
        assert layer.weight.grad.tolist() == [[10, 10]]

    def test_several_inputs_and_outputs(self):
        module, seen = Pair(), []
        module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
        a, b = ones(2), ones(2)
        y, z = module(a, b)
        (y.sum() + z.sum()).backward()
        ((grad_input, grad_output),) = seen
        assert [g.tolist() for g in grad_input] == [[1, 1], [2, 2]]
        assert [g.tolist() for g in grad_output] == [[1, 1], [1, 1]]

    def test_inputs_without_gradient(self):
        layer, seen = nn.Linear(2, 1), []
        layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
        layer(mt.ones(1, 2)).sum().backward()
        ((grad_input, grad_output),) = seen
        assert grad_input == (None,)
        assert grad_output[0].tolist() == [[1]]

    def test_not_called_without_recording(self):
        layer, seen = nn.Linear(2, 1), []
        layer.register_full_backward_hook(lambda m, gi, go: seen.append(1))
        with mt.no_grad():
            layer(mt.ones(1, 2))
        assert seen == []

    def test_wrong_number_of_gradients(self):
        layer = nn.Linear(2, 1)
        layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
        with pytest.raises(RuntimeError, match="Got 2 for 1 inputs"):
            layer(ones(1, 2)).sum().backward()
