"""`nn.utils`: norms by hooks and parametrisations, pruning, vectors: against torch."""

import copy
import importlib
import pickle

import pytest
from peer_programs import compare, fill, filled

import minitorch as mt
from minitorch import nn
from minitorch.nn.utils import parametrize, prune


def vectors(T):
    net = fill(T, T.nn.Sequential(T.nn.Linear(2, 3), T.nn.Linear(3, 1)))
    flat = T.nn.utils.parameters_to_vector(net.parameters())
    flat.sum().backward()
    T.nn.utils.vector_to_parameters(filled(T, flat.numel()), net.parameters())
    return flat, [p.grad for p in net.parameters()], list(net.parameters())


def fused(T):
    conv, bn = fill(T, T.nn.Conv2d(2, 3, 2)), fill(T, T.nn.BatchNorm2d(3))
    with T.no_grad():
        bn.running_mean.copy_(filled(T, 3))
        bn.running_var.copy_(filled(T, 3) ** 2 + 1)
    both = T.nn.utils.fuse_conv_bn_eval(conv.eval(), bn.eval())
    linear = fill(T, T.nn.Linear(2, 3, bias=False)).eval()
    one = T.nn.utils.fuse_linear_bn_eval(linear, fill(T, T.nn.BatchNorm1d(3)).eval())
    return both(filled(T, 1, 2, 3, 3)), one(filled(T, 2, 2)), both.weight.requires_grad


def train(T, layer, x, steps=2):
    """What a few steps of SGD make of a layer."""
    seen = [list(layer.state_dict())]
    params = list(layer.parameters())
    for _ in range(steps):
        y = layer(x)
        grads = T.autograd.grad((y**2).sum(), params)
        with T.no_grad():
            for p, g in zip(params, grads, strict=True):
                p.sub_(g * 0.01)
        seen += [y, grads]
    return [*seen, layer.state_dict()]


def weight_norm_by_hook(T):
    U, out = T.nn.utils, []
    for dim in (0, 1, None):
        layer = U.weight_norm(fill(T, T.nn.Linear(3, 2)), dim=dim)
        out += train(T, layer, filled(T, 4, 3))
        U.remove_weight_norm(layer)
        out += [layer(filled(T, 4, 3)), sorted(layer.state_dict())]
    out += train(T, U.weight_norm(fill(T, T.nn.Conv1d(2, 3, 2))), filled(T, 1, 2, 5))
    return out


def weight_norm_parametrized(T):
    P, out = T.nn.utils.parametrizations, []
    for dim in (0, 1, None):
        layer = P.weight_norm(fill(T, T.nn.Linear(3, 2)), dim=dim)
        out += train(T, layer, filled(T, 4, 3))
        old = {"weight_g": filled(T, *layer.parametrizations.weight.original0.shape)}
        old |= {"weight_v": filled(T, 2, 3), "bias": filled(T, 2)}
        layer.load_state_dict(old)
        out.append(layer.weight)
    layer.weight = filled(T, 2, 3, start=8.0)
    out += [layer.weight, layer.parametrizations.weight.original0]
    T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    return [*out, layer.weight, sorted(layer.state_dict()), type(layer).__name__]


def set_uv(T, layer, names, sizes):
    """The same start of the power iteration in both."""
    with T.no_grad():
        for name, n in zip(names, sizes, strict=True):
            v = filled(T, n, start=4.0)
            holder, _, last = name.rpartition(".")
            getattr(layer.get_submodule(holder), last).copy_(v / v.norm())
    return layer


def spectral_norm_by_hook(T):
    U, names = T.nn.utils, ("weight_u", "weight_v")
    layer = set_uv(T, U.spectral_norm(fill(T, T.nn.Linear(3, 2))), names, (2, 3))
    out = train(T, layer, filled(T, 4, 3))
    layer.eval()
    out += [layer(filled(T, 4, 3)), layer(filled(T, 4, 3)), layer.state_dict()]
    U.remove_spectral_norm(layer)
    conv = U.spectral_norm(fill(T, T.nn.Conv2d(2, 3, 2)), n_power_iterations=3)
    conv = set_uv(T, conv, names, (3, 8))
    return [*out, layer.weight, sorted(layer.state_dict()), *train(T, conv, filled(T, 1, 2, 3, 3))]


def spectral_norm_parametrized(T):
    names = ("parametrizations.weight.0._u", "parametrizations.weight.0._v")
    layer = T.nn.utils.parametrizations.spectral_norm(fill(T, T.nn.Linear(3, 2)))
    out = train(T, set_uv(T, layer, names, (2, 3)), filled(T, 4, 3))
    layer.eval()
    one = fill(T, T.nn.LayerNorm(3))
    T.nn.utils.parametrizations.spectral_norm(one)
    return [*out, layer(filled(T, 4, 3)), layer.weight, one.weight]


def custom_parametrization(T):
    P = T.nn.utils.parametrize

    class Symmetric(T.nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).T

        def right_inverse(self, w):
            return w.triu()

    class Scale(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = T.nn.Parameter(T.tensor(2.0))
            self.calls = 0

        def forward(self, w):
            self.calls += 1
            return w * self.factor

    net = T.nn.Sequential(fill(T, T.nn.Linear(2, 2)), T.nn.ReLU())
    layer = net[0]
    P.register_parametrization(layer, "weight", Symmetric())
    scale = Scale()
    P.register_parametrization(layer, "weight", scale)
    P.register_parametrization(layer, "bias", T.nn.Tanh())
    names = [list(net.state_dict()), [n for n, _ in net.named_parameters()]]
    flags = [P.is_parametrized(layer), P.is_parametrized(layer, "weight"), P.is_parametrized(net)]
    flags.append(P.type_before_parametrizations(layer) is T.nn.Linear)
    x = filled(T, 3, 2)
    before = scale.calls
    with P.cached():
        first = net(x) + net(x)
    counted = scale.calls - before
    first.sum().backward()
    grads = [p.grad for p in net.parameters()]
    P.remove_parametrizations(layer, "weight")
    after = [list(net.state_dict()), type(layer).__name__]
    P.remove_parametrizations(layer, "bias", leave_parametrized=False)
    return [names, flags, counted, first, grads, after, net(x), type(layer).__name__]


def buffer_parametrization(T):
    P = T.nn.utils.parametrize
    bn = fill(T, T.nn.BatchNorm1d(2))
    P.register_parametrization(bn, "running_mean", T.nn.Tanh())
    names = list(bn.state_dict()), [n for n, _ in bn.named_buffers()]
    return names, bn.eval()(filled(T, 3, 2))


def pruning(T):
    R, out = importlib.import_module(f"{T.__name__}.nn.utils.prune"), []
    layer = fill(T, T.nn.Linear(4, 3))
    R.l1_unstructured(layer, "weight", 0.3)
    out += [R.is_pruned(layer), sorted(layer.state_dict()), layer.weight, layer.weight_mask]
    R.ln_structured(layer, "weight", 1, n=2, dim=0)
    out += [layer.weight_mask, *train(T, layer, filled(T, 2, 4))[1:]]
    R.l1_unstructured(layer, "weight", 2)
    out += [layer.weight_mask, [n for n, _ in layer.named_parameters()]]
    R.remove(layer, "weight")
    out += [layer.weight, R.is_pruned(layer), sorted(layer.state_dict())]
    R.custom_from_mask(layer, "bias", T.tensor([0.0, 1.0, 0.0]))
    out += [layer.bias, layer(filled(T, 2, 4))]
    R.identity(layer, "weight")
    scores = fill(T, T.nn.Linear(4, 3)).weight.detach() * -1
    other = fill(T, T.nn.Conv2d(2, 3, 2))
    R.l1_unstructured(other, "weight", 5, importance_scores=filled(T, 3, 2, 2, 2, start=5.0))
    R.ln_structured(other, "weight", 0.5, n=1, dim=1)
    out += [other.weight_mask, R.L1Unstructured(0.5).prune(scores)]
    return out


def pruning_together(T):
    R = importlib.import_module(f"{T.__name__}.nn.utils.prune")
    net = fill(T, T.nn.Sequential(T.nn.Linear(4, 3), T.nn.Linear(3, 2)))
    pairs = [(net[0], "weight"), (net[1], "weight")]
    R.global_unstructured(pairs, pruning_method=R.L1Unstructured, amount=0.4)
    first = [net[0].weight_mask, net[1].weight_mask]
    return first, net(filled(T, 2, 4)), R.is_pruned(net)


def random_pruning(T):
    R, out = importlib.import_module(f"{T.__name__}.nn.utils.prune"), []
    layer = fill(T, T.nn.Linear(10, 10))
    R.random_unstructured(layer, "weight", 0.25)
    out.append((layer.weight_mask == 0).sum().item())
    R.random_structured(layer, "weight", 2, dim=1)
    out.append((layer.weight_mask.sum(0) == 0).sum().item())
    return out


PROGRAMS = [vectors, fused, weight_norm_by_hook, weight_norm_parametrized, spectral_norm_by_hook]
PROGRAMS += [spectral_norm_parametrized, custom_parametrization, buffer_parametrization]
PROGRAMS += [pruning, pruning_together, random_pruning]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    compare(program)


def test_state_of_a_reparametrised_layer_that_was_called():
    for make in (nn.utils.weight_norm, nn.utils.spectral_norm):
        layer = make(nn.Linear(2, 2))
        with mt.no_grad():
            layer(mt.ones(1, 2))
        assert "weight" not in layer.state_dict()
        make(nn.Linear(2, 2)).load_state_dict(layer.state_dict())


def test_a_parametrised_module_is_not_pickled():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="Save its state_dict"):
        pickle.dumps(layer)


def test_copies_are_independent():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    twin = copy.deepcopy(layer)
    parametrize.register_parametrization(twin, "bias", nn.Tanh())
    assert not parametrize.is_parametrized(layer, "bias")
    assert isinstance(layer.bias, nn.Parameter)
    parametrize.remove_parametrizations(twin, "weight")
    assert parametrize.is_parametrized(layer, "weight")


def test_pruning_together_twice():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    pairs = [(net[0], "weight"), (net[1], "weight")]
    for _ in range(2):
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=4)
    assert sum((m.weight_mask == 0).sum().item() for m in net) == 8


def test_skip_init_draws_nothing():
    before = mt.get_rng_state().tolist()
    layer = nn.utils.skip_init(nn.Linear, 3, 2)
    assert layer.weight.shape == (2, 3)
    assert mt.get_rng_state().tolist() == before


class Wrong(nn.Module):
    def forward(self, w):
        return w[:1]


def linear():
    return nn.Linear(2, 3)


def register(layer, module, **options):
    return parametrize.register_parametrization(layer, "weight", module, **options)


MESSAGES = {
    "vector": (
        lambda: nn.utils.vector_to_parameters(mt.ones(3), linear().parameters()),
        "one element for each of the 9",
    ),
    "no tensor": (
        lambda: nn.utils.vector_to_parameters([1.0], linear().parameters()),
        "expected a tensor. Got list",
    ),
    "fuse": (lambda: nn.utils.fuse_conv_bn_eval(linear(), nn.BatchNorm1d(3)), "evaluation mode"),
    "norm twice": (
        lambda: nn.utils.weight_norm(nn.utils.weight_norm(linear())),
        "It is reparametrised already",
    ),
    "no norm": (lambda: nn.utils.remove_weight_norm(linear()), "has no WeightNorm"),
    "missing": (lambda: nn.utils.spectral_norm(linear(), "w"), "must have a parameter 'w'"),
    "steps": (
        lambda: nn.utils.spectral_norm(linear(), n_power_iterations=0),
        "n_power_iterations must be at least 1",
    ),
    "steps too": (
        lambda: nn.utils.parametrizations.spectral_norm(linear(), n_power_iterations=0),
        "n_power_iterations must be at least 1",
    ),
    "missing too": (
        lambda: nn.utils.parametrizations.spectral_norm(linear(), "w"),
        "must have a parameter 'w'",
    ),
    "shape": (lambda: register(linear(), Wrong()), "the shape and dtype of the original"),
    "second": (
        lambda: register(register(linear(), nn.Tanh()), Wrong()),
        "the shape and dtype of its input",
    ),
    "name": (
        lambda: parametrize.register_parametrization(linear(), "w", nn.Tanh()),
        "must have a parameter or buffer 'w'",
    ),
    "set": (
        lambda: setattr(register(linear(), nn.Tanh()), "weight", mt.ones(3, 2)),
        "Tanh has no right_inverse",
    ),
    "remove": (
        lambda: parametrize.remove_parametrizations(linear(), "weight"),
        "is not parametrised",
    ),
    "several": (
        lambda: parametrize.remove_parametrizations(
            nn.utils.parametrizations.weight_norm(linear()), "weight", leave_parametrized=False
        ),
        "there must be one original. 'weight' has 2",
    ),
    "amount": (lambda: prune.l1_unstructured(linear(), "weight", 1.5), "a share from 0.0 to 1.0"),
    "amount kind": (lambda: prune.l1_unstructured(linear(), "weight", "x"), "must be a number"),
    "too much": (lambda: prune.l1_unstructured(linear(), "weight", 7), "at most 6, what there is"),
    "prune name": (lambda: prune.identity(linear(), "w"), "must have a parameter 'w'"),
    "scores": (
        lambda: prune.l1_unstructured(linear(), "weight", 1, importance_scores=mt.ones(2)),
        "the importance scores must have the shape",
    ),
    "channels": (lambda: prune.ln_structured(linear(), "bias", 1, 2, 0), "tensor of 2 axes"),
    "not pruned": (lambda: prune.remove(linear(), "weight"), "'weight' of Linear is not pruned"),
    "global": (
        lambda: prune.global_unstructured([(linear(), "weight")], prune.LnStructured),
        "must be unstructured",
    ),
    "mask": (
        lambda: prune.custom_from_mask(linear(), "weight", mt.ones(2)),
        "a mask must have the shape of the tensor",
    ),
    "type": (lambda: prune.PruningContainer(odd()).compute_mask(mt.ones(2), mt.ones(2)), "PRUNING"),
}


def odd():
    method = prune.Identity()
    method.PRUNING_TYPE, method._tensor_name = "odd", "weight"
    return method


@pytest.mark.parametrize("case", MESSAGES)
def test_messages(case):
    call, text = MESSAGES[case]
    with pytest.raises((RuntimeError, ValueError), match=text):
        call()
