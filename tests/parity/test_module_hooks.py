"""Hooks of modules and of their state, step by step against torch."""

import pytest
from peer_programs import compare, fill, filled


def forward_hooks(T):
    seen = []
    net = fill(T, T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2)))
    net[0].register_forward_pre_hook(lambda m, a: seen.append("pre"))
    net[0].register_forward_pre_hook(lambda m, a: (a[0] * 2,), prepend=True)
    net[1].register_forward_hook(lambda m, a, o: o + 1)
    h = net[1].register_forward_hook(lambda m, a, o: seen.append(o.sum().item()), prepend=True)
    first = net(filled(T, 2, 3))
    h.remove()
    return seen, first, net(filled(T, 2, 3))


def always_called(T):
    seen = []

    class Broken(T.nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    m = Broken()
    m.register_forward_hook(lambda m, a, o: seen.append(str(o)), always_call=True)
    m.register_forward_hook(lambda m, a, o: seen.append("never"))
    try:
        m(1)
    except ValueError as e:
        seen.append(str(e))
    return seen


def global_hooks(T):
    seen = []
    M = T.nn.modules.module
    handles = [
        M.register_module_forward_pre_hook(lambda m, a: seen.append("pre " + type(m).__name__)),
        M.register_module_forward_hook(lambda m, a, o: seen.append("post " + type(m).__name__)),
        M.register_module_full_backward_hook(
            lambda m, gi, go: seen.append(["back " + type(m).__name__, go[0].sum().item()])
        ),
    ]
    net = fill(T, T.nn.Sequential(T.nn.Linear(2, 2), T.nn.ReLU()))
    net[0].register_forward_hook(lambda m, a, o: seen.append("own"))
    net(filled(T, 3, 2)).sum().backward()
    for handle in handles:
        handle.remove()
    seen.append("removed")
    net(filled(T, 3, 2))
    return seen


def backward_hooks(T):
    seen = []
    net = fill(T, T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2)))
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    net[1].register_full_backward_hook(lambda m, gi, go: seen.append([gi[0], go[0]]))
    net[2].register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    x = filled(T, 2, 3).requires_grad_()
    (net(x) ** 2).sum().backward()
    return seen, x.grad, [p.grad for p in net.parameters()]


def state_hooks(T):
    seen = []
    net = fill(T, T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Sequential(T.nn.Linear(2, 1))))
    net[1].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append([prefix, keep]))
    net[1].register_state_dict_post_hook(
        lambda m, s, p, meta: s.update({p + "note": s[p + "0.bias"]})
    )
    net[0]._register_state_dict_hook(
        lambda m, s, p, meta: s.update({p + "kernel": s.pop(p + "weight")})
    )
    state = net.state_dict()
    seen.append(list(state))
    other = fill(T, T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Sequential(T.nn.Linear(2, 1))))

    def rename(state_dict, prefix, metadata, strict, missing, unexpected, errors):
        state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel") * 2
        seen.append([strict, metadata.get("version")])

    def drop(module, state_dict, prefix, *rest):
        state_dict.pop(prefix + "note")

    def after(module, keys):
        seen.append([list(keys.missing_keys), list(keys.unexpected_keys)])

    other[0]._register_load_state_dict_pre_hook(rename)
    other[1].register_load_state_dict_pre_hook(drop)
    other[1].register_load_state_dict_post_hook(lambda m, keys: seen.append("inner"))
    other.register_load_state_dict_post_hook(after)
    result = other.load_state_dict(dict(state), strict=False)
    seen.append([list(result.missing_keys), list(result.unexpected_keys)])
    return seen, other.state_dict()


def a_hook_forgives_missing_keys(T):
    net = T.nn.Linear(2, 1)
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    result = net.load_state_dict({"weight": filled(T, 1, 2)})
    return net.weight, list(result.missing_keys)


def overridden_state(T):
    class Wrapped(T.nn.Linear):
        def state_dict(self, *args, **kwargs):
            state = super().state_dict(*args, **kwargs)
            state[kwargs.get("prefix", "") + "extra"] = filled(T, 1)
            return state

        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "own"] = self.weight.detach() * 2

        def _load_from_state_dict(self, state_dict, prefix, *rest):
            state_dict.pop(prefix + "own", None)
            state_dict.pop(prefix + "extra", None)
            super()._load_from_state_dict(state_dict, prefix, *rest)

    net = fill(T, T.nn.Sequential(Wrapped(2, 2), T.nn.ReLU()))
    state = net.state_dict()
    other = T.nn.Sequential(Wrapped(2, 2), T.nn.ReLU())
    other.load_state_dict(state, strict=False)
    return list(state), other[0].weight, fill(T, Wrapped(1, 1)).state_dict()


def walking(T):
    class Net(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = T.nn.Linear(2, 2)
            self.tied = self.a
            self.b = T.nn.Sequential(T.nn.BatchNorm1d(2))
            self.register_parameter("w", T.nn.Parameter(filled(T, 1)))
            self.register_parameter("off", None)
            self.register_buffer("buf", filled(T, 2), persistent=False)

    net = Net()
    named = {}
    for duplicates in (True, False):
        for recurse in (True, False):
            options = {"recurse": recurse, "remove_duplicate": duplicates}
            named[f"p{duplicates}{recurse}"] = [n for n, _ in net.named_parameters("x", **options)]
            named[f"b{duplicates}{recurse}"] = [n for n, _ in net.named_buffers("x", **options)]
        pairs = net.named_modules(prefix="x", remove_duplicate=duplicates)
        named[f"m{duplicates}"] = [n for n, _ in pairs]
    named["children"] = [n for n, _ in net.named_children()]
    named["state"] = sorted(net.state_dict())
    named["at"] = [net.get_submodule("b.0") is net.b[0], net.get_buffer("b.0.running_mean")]
    named["param"] = net.get_parameter("a.weight") is net.a.weight
    net.set_submodule("b.0", T.nn.ReLU())
    return named, type(net.b[0]).__name__


PROGRAMS = [forward_hooks, always_called, global_hooks, backward_hooks, state_hooks]
PROGRAMS += [a_hook_forgives_missing_keys, overridden_state, walking]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    compare(program)
