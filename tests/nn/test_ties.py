"""Declared ties survive what happens to a tree, and files that break them are refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, CheckpointError


class Model(nn.Module):
    """An embedding whose weight is that of the last layer, too."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.blocks = [nn.Linear(3, 3), nn.Linear(3, 5)]
        self.tie("blocks.1.weight", "embed.weight")


def tied(model: Any) -> bool:
    names = [name for name, _ in model.named_parameters()]
    assert "blocks.1.weight" not in names
    return model.blocks[1].weight is model.embed.weight


def copied(path: str) -> Callable[[Any], Any]:
    def change(model: Any) -> Any:
        model.set_submodule(path, copy.deepcopy(model.get_submodule(path)))
        return model

    return change


def assigned(model: Any) -> Any:
    model.blocks[1].weight = nn.Parameter(model.embed.weight.detach().clone())
    return model


def both_copied(model: Any) -> Any:
    model.embed, model.blocks = copy.deepcopy(model.embed), copy.deepcopy(model.blocks)
    return model


def other_source(model: Any) -> Any:
    model.untie("blocks.1.weight")
    model.embed.weight = nn.Parameter(mt.ones(5, 3))
    return model.tie("blocks.1.weight", "embed.weight")


def loaded(model: Any) -> Any:
    other = Model()
    other.load_state_dict(model.state_dict())
    return other


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda model: model,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy of the tied layer": copied("blocks.1"),
    "deepcopy of the source": copied("embed"),
    "deepcopy of both apart": both_copied,
    "a copy of the values": assigned,
    "cast": lambda model: model.double(),
    "load": loaded,
    "another source": other_source,
    "inside of another": lambda model: copied("blocks.1")(nn.ModuleList([model])[0]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_ties_survive(case: str) -> None:
    assert tied(CHANGES[case](Model()))


def test_state_dicts_and_moves_keep_ties_too() -> None:
    model = assigned(Model())
    state = model.state_dict()
    assert state["blocks.1.weight"] is state["embed.weight"]
    model = assigned(Model())
    with mt.no_grad():
        model.to(mt.float64)
    assert model.blocks[1].weight is model.embed.weight


def test_untie_gives_a_parameter_of_its_own() -> None:
    model = Model().untie("blocks.1.weight")
    assert model.blocks[1].weight is not model.embed.weight
    assert (model.blocks[1].weight == model.embed.weight).all()
    assert len(list(model.parameters())) == 5


def test_a_file_may_name_it_once() -> None:
    for name in ("embed.weight", "blocks.1.weight"):
        state, model = Model().state_dict(), Model()
        del state[name]
        assert model.load_state_dict(state) == ([], [])
        other = next(n for n in ("embed.weight", "blocks.1.weight") if n != name)
        assert (model.embed.weight == state[other]).all()


def test_a_file_with_two_values_is_refused() -> None:
    model = Model()
    before = model.embed.weight.detach().clone()
    state = {**model.state_dict(), "embed.weight": mt.ones(5, 3)}
    with pytest.raises(CheckpointError, match=r"'blocks.1.weight' and 'embed.weight' are tied"):
        model.load_state_dict(state)
    assert (model.embed.weight == before).all()


def test_other_values_at_a_tied_path_are_an_error() -> None:
    model = Model()
    model.blocks[1].weight = nn.Parameter(mt.ones(5, 3))
    message = r"a declared tie holds one parameter.*'blocks.1.weight'.*'embed.weight'.*untie"
    for use in (lambda: list(model.parameters()), model.state_dict, model.double):
        with pytest.raises(ArgumentError, match=message):
            use()
    model.embed.weight = model.blocks[1].weight
    assert tied(model)


WRONG: dict[str, tuple[tuple[str, str], str]] = {
    "shape": (("blocks.0.weight", "embed.weight"), r"parameters of one shape.*\[3,3\].*\[5,3\]"),
    "itself": (("embed.weight", "embed.weight"), "two paths with parameters of one shape"),
    "module": (("blocks.1", "embed.weight"), r"Got 'blocks.1', which is Linear"),
    "missing": (("embed.bias", "embed.weight"), r"Got 'embed.bias', which is nothing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_tied(case: str) -> None:
    paths, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        Model().tie(*paths)


def test_untie_needs_a_tie() -> None:
    with pytest.raises(ArgumentError, match=r"'embed.weight' is not tied. Got ties of blocks.1"):
        Model().untie("embed.weight")


def test_gradients_of_both_uses_meet() -> None:
    model = Model()
    hidden = model.blocks[0](model.embed(mt.tensor([0, 3])))
    model.blocks[1](hidden).sum().backward()
    assert model.embed.weight.grad is model.blocks[1].weight.grad
