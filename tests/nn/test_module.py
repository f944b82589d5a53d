"""Module: the attributes are the tree."""

import copy
import pickle

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.blocks = [nn.Linear(8, 8), nn.ReLU(), nn.BatchNorm1d(8)]
        self.heads = {"a": nn.Linear(8, 2), "b": (nn.Linear(8, 3), [nn.Dropout(0.5)])}
        self.scale = nn.Parameter(mt.ones(1))
        self.table = mt.arange(4)
        self.options = {"width": 8, "names": ["x", "y"]}

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.heads["a"](x) * self.scale


PARAMETERS = (
    "scale first.weight first.bias blocks.0.weight blocks.0.bias blocks.2.weight blocks.2.bias "
    "heads.a.weight heads.a.bias heads.b.0.weight heads.b.0.bias"
).split()
BUFFERS = "table blocks.2.running_mean blocks.2.running_var blocks.2.num_batches_tracked".split()
MODULES = [
    "",
    *"first blocks.0 blocks.1 blocks.2 heads.a heads.b.0 heads.b.1.0".split(),
]


def names(view):
    return [name for name, _ in view]


class TestTree:
    def test_layers_and_parameters_in_plain_containers_are_registered(self):
        net = Net()
        assert names(net.named_parameters()) == PARAMETERS
        assert names(net.named_buffers()) == BUFFERS
        assert names(net.named_modules()) == MODULES
        assert names(net.named_children()) == MODULES[1:]
        assert set(net.state_dict()) == {*PARAMETERS, *BUFFERS}

    def test_a_layer_appended_later_is_seen(self):
        net = Net()
        net.blocks.append(nn.Linear(8, 8))
        assert "blocks.3.weight" in names(net.named_parameters())

    def test_layers_in_containers_follow_the_mode(self):
        net = Net().eval()
        assert not any(m.training for m in net.modules())
        net.train()
        assert all(m.training for m in net.modules())

    def test_parameters_is_iterable_again_and_answers_next(self):
        view = Net().parameters()
        assert len(list(view)) == len(list(view)) == len(PARAMETERS)
        assert next(view) is list(view)[0]
        assert next(view) is list(view)[1]
        assert next(Net().named_parameters())[0] == "scale"

    def test_own_parameters_only(self):
        assert names(Net().named_parameters(prefix="net", recurse=False)) == ["net.scale"]

    def test_tied_parameters_are_reported_once_and_saved_under_both_names(self):
        net = nn.Module()
        net.a, net.b = nn.Linear(3, 3), nn.Linear(3, 3)
        net.b.weight = net.a.weight
        assert names(net.named_parameters()) == ["a.weight", "a.bias", "b.bias"]
        assert len(names(net.named_parameters(remove_duplicate=False))) == 4
        state = net.state_dict()
        assert state["a.weight"] is state["b.weight"]
        assert state["a.weight"].grad_fn is None
        assert not state["a.weight"].requires_grad

    def test_a_module_that_is_reachable_twice_is_walked_once(self):
        shared = nn.Linear(2, 2)
        net = nn.Sequential(shared, nn.ReLU(), shared)
        assert names(net.named_modules()) == ["", "0", "1"]
        assert names(net.named_modules(remove_duplicate=False)) == ["", "0", "1", "2"]
        assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]

    def test_a_cycle_through_a_list_ends(self):
        net = nn.Module()
        net.child = nn.Module()
        net.child.parents = [net]
        net.loop = []
        net.loop.append(net.loop)
        assert names(net.named_modules()) == ["", "child"]
        assert names(net.named_modules(remove_duplicate=False)) == ["", "child"]

    def test_tensors_with_gradient_are_no_buffers(self):
        net = nn.Module()
        net.leaf = mt.ones(2, requires_grad=True)
        net.result = net.leaf * 2
        assert names(net.named_buffers()) == []
        net.register_buffer("declared", mt.ones(1, requires_grad=True))
        assert names(net.named_buffers()) == ["declared"]

    def test_get_by_path(self):
        net = Net()
        assert net.get_submodule("heads.b.1.0").p == 0.5
        assert net.get_submodule("") is net
        assert net.get_parameter("heads.a.bias") is net.heads["a"].bias
        assert net.get_buffer("table") is net.table

    def test_views_for_ported_code(self):
        net = Net()
        assert list(net._parameters) == ["scale"]
        assert list(net._buffers) == ["table"]
        assert "blocks.0" in net._modules
        with pytest.raises(TypeError):
            net._parameters["x"] = 1

    def test_dir_lists_attributes(self):
        assert {"first", "scale", "table", "forward"} <= set(dir(Net()))


class TestRegistration:
    def test_buffers(self):
        net = nn.Module()
        net.register_buffer("kept", mt.zeros(2))
        net.register_buffer("temporary", mt.zeros(2), persistent=False)
        net.register_buffer("later", None)
        assert names(net.named_buffers()) == ["kept", "temporary"]
        assert list(net.state_dict()) == ["kept"]
        net.later = mt.ones(1)
        assert list(net.state_dict()) == ["kept", "later"]

    def test_parameters_and_modules(self):
        net = nn.Module()
        net.register_parameter("bias", None)
        assert net.bias is None
        net.register_parameter("weight", nn.Parameter(mt.ones(2)))
        net.add_module("layer", nn.ReLU())
        assert names(net.named_parameters()) == ["weight"]
        assert isinstance(net.layer, nn.ReLU)

    def test_a_parameter_can_be_replaced_or_switched_off(self):
        layer = nn.Linear(2, 2)
        layer.bias = None
        layer.weight = nn.Parameter(mt.zeros(2, 2))
        assert names(layer.named_parameters()) == ["weight"]
        del layer.weight
        assert list(layer.parameters()) == []


class TestCalls:
    def test_no_hooks_is_one_frame_above_forward(self):
        import sys

        class Depth(nn.Module):
            def forward(self):
                frame = sys._getframe()
                depth = 0
                while frame.f_code.co_name != "test_no_hooks_is_one_frame_above_forward":
                    frame, depth = frame.f_back, depth + 1
                return depth

        assert Depth()() == 2

    def test_apply_visits_children_first(self):
        seen = []
        net = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh()))
        assert net.apply(lambda m: seen.append(type(m).__name__)) is net
        assert seen == ["ReLU", "Tanh", "Sequential", "Sequential"]

    def test_train_calls_overridden_train_of_children(self):
        class Frozen(nn.Module):
            def train(self, mode=True):
                return super().train(False)

        net = nn.Sequential(Frozen(), nn.ReLU()).train()
        assert [m.training for m in net.modules()] == [True, False, True]

    def test_requires_grad_and_zero_grad(self):
        net = nn.Linear(2, 1)
        net(mt.ones(3, 2)).sum().backward()
        net.zero_grad(set_to_none=False)
        assert float(net.weight.grad.abs().sum()) == 0
        net.zero_grad()
        assert net.weight.grad is None
        net.requires_grad_(False)
        assert not any(p.requires_grad for p in net.parameters())


class TestConversion:
    def test_to_dtype_casts_floating_tensors_in_place(self):
        net = Net()
        before = list(net.parameters())
        net(mt.ones(3, 4)).sum().backward()
        assert net.double() is net
        assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
        assert {p.dtype for p in net.parameters()} == {mt.float64}
        assert {p.grad.dtype for p in net.parameters() if p.grad is not None} == {mt.float64}
        assert net.table.dtype is mt.int64
        assert net.blocks[2].running_mean.dtype is mt.float64
        assert net.blocks[2].num_batches_tracked.dtype is mt.int64
        assert all(p.requires_grad and p.is_leaf for p in net.parameters())

    @pytest.mark.parametrize(
        ("convert", "dtype"),
        [
            (lambda m: m.half(), mt.float16),
            (lambda m: m.bfloat16(), mt.bfloat16),
            (lambda m: m.double().float(), mt.float32),
            (lambda m: m.to(mt.float64), mt.float64),
            (lambda m: m.to("cpu", mt.float64), mt.float64),
            (lambda m: m.to(device="cpu", dtype=mt.float64), mt.float64),
            (lambda m: m.to(mt.ones(1, dtype=mt.float64)), mt.float64),
            (lambda m: m.type(mt.float64), mt.float64),
            (lambda m: m.cpu(), mt.float32),
        ],
    )
    def test_ways_to_convert(self, convert, dtype):
        assert convert(nn.Linear(2, 2)).weight.dtype is dtype

    def test_ties_survive_conversion_and_copy(self):
        net = nn.Module()
        net.a, net.b = nn.Linear(2, 2), nn.Linear(2, 2)
        net.b.weight = net.a.weight
        net.a.table = net.b.table = mt.ones(2)
        for other in (net.double(), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert other.a.weight is other.b.weight
            assert other.a.table is other.b.table


class TestState:
    def test_round_trip(self):
        a, b = Net(), Net()
        assert repr(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
        for (name, p), (_, q) in zip(a.state_dict().items(), b.state_dict().items(), strict=True):
            np.testing.assert_array_equal(p.numpy(), q.numpy(), err_msg=name)

    def test_loading_copies_into_the_same_parameters(self):
        net = nn.Linear(2, 2)
        weight, state = net.weight, {"weight": np.eye(2), "bias": mt.ones(2)}
        net.load_state_dict(state)
        assert net.weight is weight
        assert net.weight.dtype is mt.float32
        assert net.weight.tolist() == [[1, 0], [0, 1]]
        state["bias"].fill_(5)
        assert net.bias.tolist() == [1, 1]

    def test_assign_takes_the_tensor_over(self):
        net = nn.Linear(2, 2)
        net.load_state_dict(
            {"weight": mt.ones(2, 2, dtype=mt.float64), "bias": mt.ones(2)}, assign=True
        )
        assert net.weight.dtype is mt.float64
        assert isinstance(net.weight, nn.Parameter)

    def test_a_plain_tensor_may_be_missing(self):
        net = Net()
        state = net.state_dict()
        del state["table"]
        assert net.load_state_dict(state) == ([], [])

    def test_not_strict_reports_names(self):
        net = nn.Linear(2, 2)
        found = net.load_state_dict({"weight": mt.ones(2, 2), "other": mt.ones(1)}, strict=False)
        assert found.missing_keys == ["bias"]
        assert found.unexpected_keys == ["other"]

    def test_nothing_changes_if_anything_is_wrong(self):
        net = nn.Linear(2, 2)
        before = net.weight.tolist()
        with pytest.raises(mt.CheckpointError):
            net.load_state_dict({"weight": mt.ones(2, 2), "bias": mt.ones(3)}, strict=False)
        assert net.weight.tolist() == before

    def test_extra_state(self):
        class Counter(nn.Module):
            count = 0

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        net = nn.Sequential(Counter())
        net[0].count = 3
        assert net.state_dict() == {"0._extra_state": {"count": 3}}
        other = nn.Sequential(Counter())
        other.load_state_dict(net.state_dict())
        assert other[0].count == 3

    def test_prefix_and_destination(self):
        into = {}
        nn.Linear(1, 1).state_dict(destination=into, prefix="layer.")
        assert list(into) == ["layer.weight", "layer.bias"]
        kept = nn.Linear(1, 1)
        assert kept.state_dict(keep_vars=True)["weight"] is kept.weight


class TestText:
    def test_repr_is_pytorchs(self):
        net = nn.Sequential(nn.Linear(1, 2), nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()]))
        assert repr(net) == (
            "Sequential(\n"
            "  (0): Linear(in_features=1, out_features=2, bias=True)\n"
            "  (1): ModuleList(\n"
            "    (0-1): 2 x ReLU()\n"
            "    (2): Tanh()\n"
            "  )\n"
            ")"
        )
        assert repr(nn.ModuleList()) == "ModuleList()"
        assert repr(nn.Sequential()) == "Sequential()"

    def test_layers_in_plain_lists_are_shown_with_their_path(self):
        assert "(blocks.1): ReLU()" in repr(Net())


class Forgot(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(1, 1)

    def forward(self, x):
        return self.layer(x)


class Misspelt(nn.Module):
    def foward(self, x):
        return x


class Broken(nn.Module):
    @property
    def size(self):
        return self.layer.missing


def hidden(module):
    module.register_buffer("forward", mt.ones(1))


MESSAGES = [
    (lambda: Forgot()(mt.ones(1, 1)), AttributeError, "did not call super"),
    (lambda: list(Forgot().parameters()), AttributeError, "did not call super"),
    (lambda: Forgot().training, AttributeError, "did not call super"),
    (lambda: nn.Linear(1, 1).weigth, AttributeError, "Did you mean 'weight'"),
    (lambda: nn.Linear(1, 1).zzz, AttributeError, "Assign it in __init__"),
    (lambda: Broken().size, AttributeError, "no attribute 'layer'"),
    (lambda: Misspelt()(1), NotImplementedError, "Did you mean forward by 'foward'"),
    (lambda: nn.Module()(1), NotImplementedError, "must define forward"),
    (lambda: setattr(nn.Linear(1, 1), "weight", mt.ones(1)), TypeError, "nn.Parameter"),
    (lambda: nn.Module().register_buffer("a.b", mt.ones(1)), ValueError, "without '.'"),
    (lambda: nn.Module().register_buffer("a", 3), TypeError, "must be a tensor or None"),
    (lambda: nn.Module().register_parameter("a", mt.ones(1)), TypeError, "nn.Parameter"),
    (lambda: nn.Module().add_module("a", nn.ReLU), TypeError, "an instance"),
    (lambda: hidden(nn.Module()), ValueError, "exists already"),
    (lambda: nn.Module().train("yes"), ValueError, "True or False"),
    (lambda: Net().get_submodule("block"), AttributeError, "there is no submodule 'block'"),
    (lambda: Net().get_parameter("scal"), AttributeError, "Did you mean 'scale'"),
    (lambda: Net().get_buffer("x"), AttributeError, "There are"),
    (lambda: nn.Linear(1, 1).to(mt.int64), TypeError, "floating dtype"),
    (lambda: nn.Linear(1, 1).to(devise="cpu"), TypeError, "devise"),
    (lambda: nn.Linear(1, 1).load_state_dict([1]), TypeError, "a mapping"),
    (lambda: nn.Linear(1, 1).load_state_dict({"weight": 1}), mt.CheckpointError, "int"),
    (lambda: nn.Module().get_extra_state(), NotImplementedError, "not overridden"),
    (lambda: nn.Module().set_extra_state(1), NotImplementedError, "set_extra_state"),
]


@pytest.mark.parametrize(("call", "kind", "text"), MESSAGES, ids=[m[2] for m in MESSAGES])
def test_messages(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


STATES = [
    ({}, "0 of 2", "2 missing"),
    ({"weight": np.ones((1, 1))}, "1 of 2", "1 missing"),
    ({"weight": np.ones((1, 1)), "bias": np.ones(1), "x": np.ones(1)}, "2 of 2", "1 unexpected"),
    (
        {"weight": np.ones((2, 1)), "bias": np.ones(1)},
        "1 of 2",
        "weight (model f32[1,1], given f64[2,1])",
    ),
    (
        {"model.weight": np.ones((1, 1)), "model.bias": np.ones(1)},
        "0 of 2",
        "carry the prefix 'model.'",
    ),
]


@pytest.mark.parametrize(("state", "count", "text"), STATES, ids=[s[2] for s in STATES])
def test_load_messages(state, count, text):
    with pytest.raises(mt.CheckpointError) as caught:
        nn.Linear(1, 1).load_state_dict(state)
    assert count in str(caught.value)
    assert text in str(caught.value)


def test_load_names_a_missing_prefix():
    outer = nn.Module()
    outer.net = nn.Linear(1, 1)
    with pytest.raises(mt.CheckpointError, match=r"lack the prefix 'net\.'"):
        outer.load_state_dict(nn.Linear(1, 1).state_dict())


def test_not_strict_with_no_match_at_all_raises():
    with pytest.raises(mt.CheckpointError, match="0 of 2"):
        nn.Linear(1, 1).load_state_dict({"x": mt.ones(1)}, strict=False)


def test_two_tensors_with_one_path_are_refused():
    net = nn.Module()
    net.layers = {1: nn.Linear(1, 1), "1": nn.Linear(1, 1)}
    with pytest.raises(mt.ArgumentError, match=r"two tensors have the path 'layers.1.weight'"):
        net.state_dict()


def test_integers_do_not_take_fractions():
    net = nn.Module()
    net.register_buffer("steps", mt.tensor(0))
    with pytest.raises(mt.CheckpointError, match="of another shape or kind"):
        net.load_state_dict({"steps": mt.tensor(1.5)})


def test_running_statistics_are_written_once_and_in_place():
    layer = nn.BatchNorm1d(3)
    mean = layer.running_mean
    y = mean * mt.ones(3, requires_grad=True)
    layer(mt.tensor([[1.0, 2, 3], [3, 4, 5]]))
    assert layer.running_mean is mean
    assert mean.tolist() == pytest.approx([0.2, 0.3, 0.4])
    assert layer.running_var.tolist() == pytest.approx([1.1] * 3)
    with pytest.raises(mt.GraphError, match="batch_norm"):
        y.sum().backward()
