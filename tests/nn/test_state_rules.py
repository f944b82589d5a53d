"""Which tensors a state dict holds, and hooks around saving and loading."""

import copy
import pickle

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import CheckpointError


class Caching(nn.Module):
    """Sets tensors in its constructor, in a method called from there, and in forward."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.table = mt.arange(3.0)
        self.cache = None
        self._build()

    def _build(self):
        self.scale = mt.ones(1)

    def forward(self, x):
        y = self.layer(x)
        self.cache = y.detach()
        self.late = x
        return y


SAVED = {"layer.weight", "layer.bias", "table", "scale"}


def called():
    net = Caching()
    net(mt.ones(1, 2))
    return net


class TestPlainTensors:
    def test_only_what_the_constructor_set_is_saved(self):
        assert set(called().state_dict()) == SAVED

    def test_all_of_them_move(self):
        net = called().double()
        assert {net.cache.dtype, net.late.dtype, net.table.dtype} == {mt.float64}
        assert set(dict(net.named_buffers())) == {"table", "scale", "cache", "late"}
        assert set(net.state_dict()) == SAVED

    def test_a_fresh_module_loads_the_state(self):
        state = called().state_dict()
        assert str(Caching().load_state_dict(state)) == "<All keys matched successfully>"

    @pytest.mark.parametrize(
        "copied",
        [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))],
        ids=["deepcopy", "pickle"],
    )
    def test_copies_keep_the_rule(self, copied):
        net = copied(called())
        assert set(net.state_dict()) == SAVED
        net(mt.ones(1, 2))
        assert set(net.state_dict()) == SAVED

    def test_a_new_value_keeps_the_place_and_a_deleted_one_loses_it(self):
        net = Caching()
        net.table = net.table + 1
        assert "table" in net.state_dict()
        del net.table
        net.table = mt.ones(3)
        assert "table" not in net.state_dict()

    def test_one_that_is_registered_is_saved(self):
        net = called()
        net.register_buffer("late", net.late)
        assert "late" in net.state_dict()

    def test_a_changed_shape_is_taken_over(self):
        net = Caching()
        net.table = mt.arange(5.0)
        fresh = Caching()
        fresh.load_state_dict(net.state_dict())
        assert fresh.table.tolist() == [0, 1, 2, 3, 4]
        net.table += 1
        assert fresh.table.tolist() == [0, 1, 2, 3, 4]

    def test_another_objects_constructor_is_no_constructor(self):
        class Outer(nn.Module):
            def __init__(self, inner):
                super().__init__()
                inner(mt.ones(1, 2))
                self.inner = inner

        assert set(Outer(Caching()).state_dict()) == {f"inner.{name}" for name in SAVED}


class TestReplacing:
    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("weight", mt.ones(2, 2), "parameter 'weight' can only be replaced by a Parameter"),
            ("inner", 3, "module 'inner' can only be replaced by a Module or None. Got int"),
            ("inner", mt.ones(1), "module 'inner' can only be replaced by a Module or None"),
            ("steps", 3, "buffer 'steps' can only be replaced by a Tensor or None. Got int"),
        ],
    )
    def test_a_registered_name_keeps_its_kind(self, name, value, text):
        net = nn.Linear(2, 2)
        net.inner = nn.ReLU()
        net.register_buffer("steps", mt.zeros(1))
        with pytest.raises(TypeError, match=text):
            setattr(net, name, value)
        setattr(net, name, None)


class TestLoading:
    def test_nothing_is_written_where_a_hook_leaves_an_error(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        state = {k: v + 1 for k, v in net.state_dict().items()}
        before = net[0].weight.tolist()

        def complain(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
            errors.append("this file is too old")

        net[1].register_load_state_dict_pre_hook(complain)
        with pytest.raises(CheckpointError, match="this file is too old"):
            net.load_state_dict(state)
        assert net[0].weight.tolist() == before

    def test_an_override_that_takes_what_it_wants(self):
        class Odd(nn.Linear):
            def _load_from_state_dict(self, state_dict, prefix, *rest):
                with mt.no_grad():
                    self.weight.copy_(state_dict[prefix + "kernel"].T)

        net = nn.Sequential(Odd(2, 3, bias=False), nn.Linear(3, 1))
        state = net.state_dict()
        state["0.kernel"] = state.pop("0.weight").T + 1
        net.load_state_dict(state)
        assert net[0].weight.tolist() == (state["0.kernel"].T).tolist()

    def test_it_can_be_called_for_one_module_alone(self):
        layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
        state = {f"x.{k}": v for k, v in other.state_dict().items()}
        missing, errors = [], []
        layer._load_from_state_dict(state, "x.", {}, True, missing, [], errors)
        assert layer.weight.tolist() == other.weight.tolist()
        state["x.weight"] = mt.ones(3)
        layer._load_from_state_dict(state, "x.", {}, True, missing, [], errors)
        assert errors == ["x.weight (model f32[2,2], given f32[3])"]

    def test_the_old_positional_form(self):
        target = {}
        nn.Linear(1, 1).state_dict(target, "a.", True)
        assert isinstance(target["a.weight"], nn.Parameter)

    def test_a_module_that_knows_its_parent(self):
        net = nn.Linear(1, 1)
        net.child = nn.Linear(1, 1)
        net.child.parent = net
        names = {"weight", "bias", "child.weight", "child.bias"}
        assert set(net.state_dict()) == names
        assert not net.load_state_dict(net.state_dict()).missing_keys


class TestSubmodules:
    def test_set_submodule_everywhere(self):
        net = nn.Module()
        net.blocks = [nn.Sequential(nn.ReLU(), nn.ReLU()), nn.ReLU()]
        net.heads = {"a": nn.ReLU(), 3: nn.ReLU()}
        for path in ("blocks.0.1", "blocks.1", "heads.a", "heads.3", "new"):
            new = nn.Tanh()
            net.set_submodule(path, new)
            assert net.get_submodule(path) is new

    @pytest.mark.parametrize(
        ("path", "error", "text"),
        [
            ("nope.a", AttributeError, "there is no place 'nope.a' in this tree"),
            ("pair.0", AttributeError, "tuples cannot be changed"),
            ("", ValueError, "a non-empty path and a Module are needed"),
        ],
    )
    def test_errors(self, path, error, text):
        net = nn.Module()
        net.pair = (nn.ReLU(), nn.ReLU())
        with pytest.raises(error, match=text):
            net.set_submodule(path, nn.ReLU())
        with pytest.raises(AttributeError, match="no submodule 'x'"):
            net.set_submodule("x", nn.ReLU(), strict=True)

    def test_to_empty(self):
        net = nn.Linear(2, 3)
        weight = net.weight
        assert net.to_empty(device="cpu") is net
        assert net.weight is weight
        assert weight.shape == (3, 2)
