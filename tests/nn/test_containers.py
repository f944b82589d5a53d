"""Containers: lists and dicts whose items are attributes."""

from collections import OrderedDict

import pytest

import minitorch as mt
from minitorch import nn


def kinds(container):
    return [type(m).__name__ for m in container]


class TestSequential:
    def test_runs_in_order_and_has_numbers_as_names(self):
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        assert net(mt.ones(4, 2)).shape == (4, 1)
        assert [n for n, _ in net.named_children()] == ["0", "1", "2"]
        assert getattr(net, "1") is net[1]
        assert len(net) == 3
        assert net[-1] is net[2]

    def test_names_from_a_mapping(self):
        net = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
        assert [n for n, _ in net.named_children()] == ["first", "second"]
        assert net.second is net[1]
        assert [n for n, _ in net[1:].named_children()] == ["second"]

    def test_editing(self):
        net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
        net[1] = nn.GELU()
        net.append(nn.SiLU())
        net.insert(0, nn.Identity())
        assert kinds(net) == ["Identity", "ReLU", "GELU", "Sigmoid", "SiLU"]
        del net[0]
        assert type(net.pop(0)).__name__ == "ReLU"
        net.extend([nn.Tanh()])
        net += nn.Sequential(nn.ELU())
        assert kinds(net) == ["GELU", "Sigmoid", "SiLU", "Tanh", "ELU"]
        assert [n for n, _ in net.named_children()] == list("01234")
        del net[1:4]
        assert kinds(net + nn.Sequential(nn.ReLU())) == ["GELU", "ELU", "ReLU"]
        assert kinds(net[:1]) == ["GELU"]

    def test_a_module_set_as_attribute_joins_the_end(self):
        net = nn.Sequential(nn.ReLU())
        net.add_module("last", nn.Tanh())
        assert kinds(net) == ["ReLU", "Tanh"]

    def test_empty(self):
        assert nn.Sequential()(3) == 3


class TestLists:
    def test_module_list(self):
        layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        assert len(layers) == 3
        assert layers[0] in layers
        assert nn.ReLU() not in layers
        assert len(list(layers.parameters())) == 6
        assert isinstance(layers[1:], nn.ModuleList)
        assert len(layers + [nn.ReLU()]) == 4
        assert next(layers.named_parameters())[0] == "0.weight"

    def test_the_same_module_several_times(self):
        shared = nn.Linear(2, 2)
        layers = nn.ModuleList([shared] * 3)
        assert len(layers) == 3
        assert len(list(layers.parameters())) == 2

    def test_parameter_list(self):
        values = nn.ParameterList([nn.Parameter(mt.ones(2)), mt.zeros(3)])
        values.append(mt.ones(1))
        assert all(isinstance(p, nn.Parameter) for p in values)
        assert list(values.state_dict()) == ["0", "1", "2"]
        assert "Parameter containing: [minitorch.float32 of size 2]" in repr(values)


class TestDicts:
    def test_module_dict(self):
        layers = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        layers["c"] = nn.GELU()
        layers.update([("a", nn.ELU())])
        assert list(layers) == list(layers.keys()) == ["a", "b", "c"]
        assert kinds(layers.values()) == ["ELU", "Tanh", "GELU"]
        assert [k for k, _ in layers.items()] == ["a", "b", "c"]
        assert "a" in layers
        assert "training" not in layers
        assert layers.get("x") is None
        assert type(layers.pop("b")).__name__ == "Tanh"
        del layers["a"]
        assert len(layers) == 1
        layers.clear()
        assert len(layers) == 0
        with pytest.raises(KeyError):
            layers["a"]

    def test_parameter_dict(self):
        values = nn.ParameterDict({"w": mt.ones(2)})
        assert isinstance(values["w"], nn.Parameter)
        assert values.w is values["w"]
        assert list(values.state_dict()) == ["w"]
        assert "(w): Parameter containing" in repr(values)


def test_in_place_activations_write_into_their_input():
    x = mt.tensor([-1.0, 2.0])
    y = nn.ReLU(inplace=True)(x)
    assert y is x
    assert x.tolist() == [0, 2]
    w = mt.tensor([-1.0, 2.0], requires_grad=True)
    z = w * 1
    nn.functional.leaky_relu(z, 0.5, inplace=True).sum().backward()
    assert w.grad.tolist() == [0.5, 1]


def test_pretrained_embedding():
    table = nn.Embedding.from_pretrained(mt.ones(3, 2))
    assert not table.weight.requires_grad
    assert nn.Embedding.from_pretrained(mt.ones(3, 2), freeze=False).weight.requires_grad


def test_gumbel_softmax():
    logits = mt.zeros(50, 4, requires_grad=True)
    soft = nn.functional.gumbel_softmax(logits)
    assert abs(soft.sum().item() - 50) < 1e-3
    hard = nn.functional.gumbel_softmax(logits, hard=True)
    assert set(hard.detach().round(decimals=3).flatten().tolist()) == {0, 1}
    (hard * mt.arange(4.0)).sum().backward()
    assert logits.grad.abs().sum().item() > 0
