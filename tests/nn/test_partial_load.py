"""Loading a part by patterns, names behind wrappers, and what a lax load left."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import CheckpointError
from minitorch.nn.partial import left_by_loads


def model() -> Any:
    return nn.ModuleDict(
        {"body": nn.Linear(3, 3), "norm": nn.BatchNorm1d(3), "head": nn.Linear(3, 2)}
    )


def same(a: Any, b: Any) -> bool:
    return bool((a == b).all())


def test_patterns_choose() -> None:
    ours, theirs = model(), model()
    head = ours["head"].weight.detach().clone()
    found = ours.load_part(theirs.state_dict(), exclude=["head.*", "*.num_batches_tracked"])
    assert same(ours["body"].weight, theirs["body"].weight)
    assert same(ours["head"].weight, head)
    assert found.left == ["norm.num_batches_tracked", "head.weight", "head.bias"]
    assert repr(found) == (
        "<6 of 9 tensors loaded; left as they were: norm.num_batches_tracked, head.weight, "
        "head.bias; 3 of the file not used>"
    )
    assert repr(ours.load_part(theirs.state_dict())) == "<9 of 9 tensors loaded>"
    assert ours.load_part(theirs.state_dict(), include="body.*").loaded == [
        "body.weight",
        "body.bias",
    ]


def test_a_prefix_chooses_in_the_file() -> None:
    body, theirs = nn.Linear(3, 3), model()
    found = body.load_part(theirs.state_dict(), prefix="body.")
    assert same(body.weight, theirs["body"].weight)
    assert (found.loaded, found.left, found.unused) == (["weight", "bias"], [], [])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing chosen": (
        {"include": "encoder.*"},
        r"must choose tensors.*choose none of its 9: body",
    ),
    "all excluded": ({"exclude": "*"}, r"include='\*' and exclude='\*', which choose none"),
    "not in the file": ({"prefix": "x."}, r"0 of 9 are; missing are body.weight, .*file has none"),
    "some missing": ({"include": ["body.*", "head.*"]}, r"3 of 4 are; missing are head.bias"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    options, message = WRONG[case]
    ours, state = model(), model().state_dict()
    del state["head.bias"]
    before = copy.deepcopy(ours).state_dict()
    with pytest.raises(CheckpointError, match=message):
        ours.load_part(state, **options)
    assert all(same(value, before[name]) for name, value in ours.state_dict().items())


def test_shapes_must_fit() -> None:
    with pytest.raises(
        CheckpointError, match=r"of another shape or kind: weight \(model f32\[3,3\]"
    ):
        nn.Linear(3, 3).load_part(nn.Linear(3, 2).state_dict(), include="weight")


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_names_behind_wrappers(prefix: str) -> None:
    theirs, ours = model(), model()
    state = {prefix + name: value for name, value in theirs.state_dict().items()}
    assert ours.load_state_dict(state) == ([], [])
    assert same(ours["body"].weight, theirs["body"].weight)
    wrapped = nn.DataParallel(model())
    assert wrapped.load_state_dict(theirs.state_dict()) == ([], [])
    assert same(wrapped.module["body"].weight, theirs["body"].weight)
    assert list(wrapped.state_dict())[0] == "module.body.weight"  # as in PyTorch


def test_a_wrapper_with_missing_names_says_so() -> None:
    with pytest.raises(CheckpointError, match=r"1 missing .*: bias"):
        nn.Linear(2, 2).load_state_dict({"module.weight": mt.ones(2, 2)})


def left(module: Any) -> list[str]:
    return [one.name for one in left_by_loads(module)]


def test_what_a_lax_load_left_is_remembered() -> None:
    ours, state = model(), model().state_dict()
    body = {name: value for name, value in state.items() if name.startswith("body")}
    keys = ours.load_state_dict(body, strict=False)
    assert len(keys.missing_keys) == 6
    outer = nn.ModuleList([ours])
    assert left(outer) == [f"0.{name}" for name in keys.missing_keys]
    assert left(copy.deepcopy(outer)) == left(outer)
    assert left(outer.double()) == left(outer)
    ours.load_part(state, include="norm.*")
    assert left(ours) == ["head.weight", "head.bias"]
    nn.init.normal_(ours["head"].weight)  # whoever sets it has seen it
    assert left(ours) == ["head.bias"]
    ours.load_state_dict({n: v for n, v in state.items() if "head" in n}, strict=False)
    assert left(ours) == []
    ours.load_state_dict(body, strict=False)
    ours.load_state_dict(state)
    assert left(ours) == []


def test_the_note_is_no_part_of_the_state() -> None:
    ours = model()
    names = list(ours.state_dict())
    ours.load_state_dict({"body.weight": np.ones((3, 3), np.float32)}, strict=False)
    assert list(ours.state_dict()) == names
