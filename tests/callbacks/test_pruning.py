"""Pruning by epoch: how much, of what, from which values, and exact resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from averaging_tasks import check_resumes
from scripted_tasks import Linear, Spy, fit, loader, quiet

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import ModelCheckpoint, ModelPruning, WeightAveraging
from minitorch.errors import ArgumentError
from minitorch.io import load_tree
from minitorch.nn.utils import prune


class Net(Linear):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Any) -> Any:
        return self.net(x) + self.linear(x)


def zeros(task: Any) -> float:
    weights = [np.ravel(p.detach().numpy()) for p in task.parameters()]
    return float((np.concatenate(weights) == 0).mean())


def share(trainer: Any) -> float:
    masks = [np.ravel(b.numpy()) for n, b in trainer.module.named_buffers() if "mask" in n]
    return float((np.concatenate(masks) == 0).mean()) if masks else 0.0


ALL: dict[str, tuple[dict[str, Any], list[float]]] = {
    "share of what is left": ({"amount": 0.5}, [0.5, 0.75]),
    "number": ({"amount": 3}, [3 / 36, 6 / 36]),
    "by epoch": ({"amount": lambda epoch: [0.25, 0.0, 0.0][epoch]}, [0.25, 0.25]),
    "not at first": ({"amount": 0.5, "apply_pruning": lambda epoch: epoch > 0}, [0.0, 0.5]),
    "never": ({"apply_pruning": False}, [0.0, 0.0]),
    "random": ({"pruning_fn": "random_unstructured", "amount": 0.5}, [0.5, 0.75]),
    "a class": ({"pruning_fn": prune.L1Unstructured, "amount": 0.5}, [0.5, 0.75]),
    "each tensor": ({"use_global_unstructured": False, "amount": 0.5}, [17 / 36, 25 / 36]),
}


@pytest.mark.parametrize("case", ALL)
def test_how_much_is_pruned(case: str) -> None:
    options, shares = ALL[case]
    options = {"pruning_fn": "l1_unstructured", **options}
    seen = Spy("on_train_epoch_start", share)
    task = Net()
    fit(task, ModelPruning(**options), seen, max_epochs=3)
    assert seen.seen[1:] == pytest.approx(shares, abs=1.5 / 36)
    assert not prune.is_pruned(task)
    assert zeros(task) >= seen.seen[-1]


@pytest.mark.parametrize("name", ["ln_structured", "random_structured"])
def test_whole_channels(name: str) -> None:
    task = Net()
    options: dict[str, Any] = {"use_global_unstructured": False, "pruning_dim": 0}
    fit(
        task,
        ModelPruning(
            name,
            [(task.net[0], "weight")],
            amount=0.5,
            pruning_norm=2,
            use_lottery_ticket_hypothesis=False,
            **options,
        ),
        max_epochs=1,
    )
    rows = (task.net[0].weight.detach().numpy() == 0).all(1)
    assert rows.sum() == 4
    assert (task.net[0].bias.detach().numpy() != 0).all()


def test_chosen_names_and_layers() -> None:
    class Some(ModelPruning):
        def filter_parameters_to_prune(self, parameters_to_prune: Any = ()) -> Any:
            return [(part, name) for part, name in parameters_to_prune if part.out_features == 8]

    task = Net()
    fit(task, Some("l1_unstructured", parameter_names=["weight"], amount=0.5), max_epochs=1)
    empty = {n: int((p.detach().numpy() == 0).sum()) for n, p in task.named_parameters()}
    assert empty.pop("net.0.weight") == 8
    assert not any(empty.values())


def test_the_lottery_ticket_starts_from_its_first_values() -> None:
    task = Net()
    first = np.array(task.net[0].weight.detach().numpy())
    seen = Spy("on_train_epoch_start", lambda t: np.array(t.module.net[0].weight.detach().numpy()))
    fit(task, ModelPruning("l1_unstructured", amount=0.5), seen, max_epochs=2)
    kept = seen.seen[1] != 0
    np.testing.assert_array_equal(seen.seen[1][kept], first[kept])
    assert 0 < kept.sum() < kept.size


def test_new_values_for_the_ticket() -> None:
    task = Net()
    first = np.array(task.net[0].weight.detach().numpy())
    seen = Spy("on_train_epoch_start", lambda t: np.array(t.module.net[0].weight.detach().numpy()))
    fit(
        task,
        ModelPruning("l1_unstructured", amount=0.5, resample_parameters=True),
        seen,
        max_epochs=2,
    )
    kept = seen.seen[1] != 0
    assert not (seen.seen[1][kept] == first[kept]).any()
    assert abs(seen.seen[1]).max() <= 1 / np.sqrt(2)


RESUMED: dict[str, dict[str, Any]] = {
    "default": {"amount": 0.3},
    "without a ticket": {"amount": 0.3, "use_lottery_ticket_hypothesis": False},
    "new values": {"amount": 0.3, "resample_parameters": True},
    "not permanent": {"amount": 0.3, "make_pruning_permanent": False},
    "after validation": {"amount": 0.3, "prune_on_train_epoch_end": False},
}


@pytest.mark.parametrize("case", RESUMED)
def test_resumed_equals_uninterrupted(case: str, tmp_path: Path) -> None:
    check_resumes(
        Net, lambda: ModelPruning("l1_unstructured", **RESUMED[case]), tmp_path, (1, 4, 6, 13)
    )


def test_files_hold_ordinary_weights(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, "{epoch}", every_n_epochs=1, save_top_k=-1)
    task = Net()
    trainer = quiet(ModelPruning("l1_unstructured", amount=0.5), keep, max_epochs=2)
    trainer.fit(task, loader(), loader(1))
    state = load_tree(tmp_path / "epoch=1.ckpt")["state_dict"]
    assert sorted(state) == sorted(Net().state_dict())
    assert zeros(Net.load_from_checkpoint(tmp_path / "epoch=1.ckpt")) >= 0.7
    trainer.test(task, loader(1), ckpt_path=str(tmp_path / "epoch=1.ckpt"), verbose=False)
    assert zeros(task) >= 0.7


def test_files_of_masks_are_tested_too(tmp_path: Path) -> None:
    pruning = ModelPruning("l1_unstructured", amount=0.5, make_pruning_permanent=False)
    task = Net()
    trainer = quiet(pruning, max_epochs=1)
    trainer.fit(task, loader(), loader(1))
    assert prune.is_pruned(task)
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    fresh = Net()
    quiet(ModelPruning("l1_unstructured")).test(
        fresh, loader(1), ckpt_path=tmp_path / "x.ckpt", verbose=False
    )
    with mt.no_grad():
        x = mt.ones(2, 2)
        np.testing.assert_array_equal(fresh(x).numpy(), task(x).numpy())


def test_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"amount": 0.5, "parameter_names": ["weight"], "verbose": 2}
    fit(Net(), ModelPruning("l1_unstructured", **options), max_epochs=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ModelPruning: zeros 0/26 (0.00%) → 13/26 (50.00%)"
    assert lines[1].startswith("  linear.weight: 0/2 (0.00%) → ")
    assert len(lines) == 4


WRONG: dict[str, tuple[Any, str]] = {
    "name": (lambda: ModelPruning("l2"), r"pruning_fn must be one of 'ln_structured'.*Got 'l2'"),
    "instance": (lambda: ModelPruning(prune.L1Unstructured(1)), "pruning_fn must be one of"),  # type: ignore[arg-type]
    "local class": (
        lambda: ModelPruning(prune.L1Unstructured, use_global_unstructured=False),
        "must be a name with use_global_unstructured=False",
    ),
    "structured": (
        lambda: ModelPruning("random_structured", pruning_dim=0),
        "use_global_unstructured must be False with RandomStructured, which is structured",
    ),
    "axis": (
        lambda: ModelPruning("random_structured", use_global_unstructured=False),
        "pruning_dim must be the axis of a structured method. Got None. Pass 0",
    ),
    "norm": (
        lambda: ModelPruning("ln_structured", use_global_unstructured=False, pruning_dim=0),
        "pruning_norm must be the order of the norm. Got None. Pass 2",
    ),
    "names": (
        lambda: ModelPruning("l1_unstructured", parameter_names=["gamma"]),
        'parameter_names must be a list of "weight" and "bias"',
    ),
    "amount": (
        lambda: ModelPruning("l1_unstructured", amount="half"),  # type: ignore[arg-type]
        "amount must be a number or a function of the epoch. Got 'half'",
    ),
    "verbose": (lambda: ModelPruning("l1_unstructured", verbose=3), "verbose must be 0, 1 or 2"),
    "stranger": (
        lambda: ModelPruning("l1_unstructured", [(nn.Linear(1, 1), "weight")]),
        "parameters_to_prune must be pairs of a layer of the module",
    ),
    "no pair": (
        lambda: ModelPruning("l1_unstructured", ["weight"]),  # type: ignore[list-item]
        "parameters_to_prune must be pairs of a layer of the module",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused_when_a_fit_starts(case: str) -> None:
    make, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        fit(Net(), make(), max_epochs=1)


def test_shared_weights_are_left_alone() -> None:
    class Tied(Net):
        def __init__(self) -> None:
            super().__init__()
            self.again = nn.Linear(2, 8)
            self.tie("again.weight", "net.0.weight")

        def forward(self, x: Any) -> Any:
            return self.net[2](self.again(x) + self.net[0](x)) + self.linear(x)

    task = Tied()
    fit(task, ModelPruning("l1_unstructured", amount=0.9), max_epochs=1)
    assert (task.again.weight.detach().numpy() != 0).all()
    explicit = ModelPruning("l1_unstructured", [(task.again, "weight")])
    with pytest.raises(ArgumentError, match="that several layers share cannot be pruned"):
        fit(task, explicit, max_epochs=1)


def test_no_averages_of_pruned_weights() -> None:
    with pytest.raises(ArgumentError, match="Got a WeightAveraging as well. Prune first"):
        fit(Net(), ModelPruning("l1_unstructured"), WeightAveraging(), max_epochs=1)
