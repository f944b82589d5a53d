"""Optimizers that look at whole parameters, and L-BFGS, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
import minitorch as mt  # noqa: E402
from minitorch import nn, optim  # noqa: E402

STEPS = 50
SHAPES: list[tuple[int, ...]] = [(5, 4), (), (4,), (2, 3, 3), (4, 9)]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "d": 2.0, "weight_decay": 0.1}),
    ("Adafactor", {"eps": (1e-3, 1e-2), "maximize": True}),
    ("Muon", {}),
    ("Muon", {"nesterov": False, "ns_steps": 3, "weight_decay": 0.0, "momentum": 0.5}),
    ("Muon", {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "ns_coefficients": (2.0, -1.5, 0.5)}),
]


def pair(values: list[np.ndarray]) -> tuple[list[Any], list[Any]]:
    """The same parameters here and in torch."""
    return (
        [nn.Parameter(mt.tensor(v)) for v in values],
        [torch.nn.Parameter(torch.tensor(v)) for v in values],
    )


def draw(shapes: list[tuple[int, ...]], seed: int, dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(s), dtype) for s in shapes]


def assert_same(ours: list[Any], theirs: list[Any], tolerance: float) -> None:
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), tolerance, tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_updates(
    name: str, options: dict[str, Any], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torch's iteration runs in bfloat16; here it is compared in full precision.
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda self: self.clone())
    shapes = [s for s in SHAPES if len(s) == 2] if name == "Muon" else SHAPES
    ours, theirs = pair(draw(shapes, 0, dtype))
    optimizer = getattr(optim, name)(ours, **options)
    reference = getattr(torch.optim, name)(theirs, **options)
    for step in range(STEPS):
        for i, g in enumerate(draw(shapes, step + 1, dtype)):
            skipped = (step + i) % 5 == 4
            ours[i].grad = None if skipped else mt.tensor(g)
            theirs[i].grad = None if skipped else torch.tensor(g)
        optimizer.step()
        reference.step()
    assert_same(ours, theirs, 2e-4 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "betas": (0.5, 0.7), "maximize": True}])
def test_sparse_adam_moves_only_rows_that_occur(options: dict[str, Any]) -> None:
    (table,) = draw([(7, 3)], 0, np.float32)
    ours = nn.Parameter(mt.tensor(table))
    theirs = torch.nn.Embedding(7, 3, sparse=True, _weight=torch.tensor(table))
    optimizer = optim.SparseAdam([ours], **options)
    reference = torch.optim.SparseAdam(theirs.parameters(), **options)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        index = rng.integers(0, 7, 3)
        optimizer.zero_grad()
        reference.zero_grad()
        (nn.functional.embedding(mt.tensor(index), ours) ** 2).sum().backward()
        (theirs(torch.tensor(index)) ** 2).sum().backward()
        optimizer.step()
        reference.step()
    assert_same([ours], [theirs.weight], 1e-5)


LBFGS_CASES: list[dict[str, Any]] = [
    {},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7, "lr": 0.5},
    {"line_search_fn": "strong_wolfe", "max_iter": 5, "max_eval": 3},
    {"lr": 0.3, "max_iter": 4, "history_size": 2},
    {"lr": 0.1, "tolerance_grad": 0.5},
]


def valley(lib: Any, x: Any, y: Any) -> Any:
    """A curved valley with a second parameter beside it."""
    curved = (1 - x[:-1]) ** 2 + 5 * (x[1:] - x[:-1] ** 2) ** 2
    return curved.sum() + (y**4).sum() + lib.cos(y).sum()


@pytest.mark.parametrize("options", LBFGS_CASES)
def test_lbfgs(options: dict[str, Any]) -> None:
    ours, theirs = pair(draw([(5,), (2, 2)], 3, np.float64))
    optimizer, reference = optim.LBFGS(ours, **options), torch.optim.LBFGS(theirs, **options)
    calls = [0, 0]

    def closures(i: int, lib: Any, params: list[Any], o: Any) -> Any:
        def closure() -> Any:
            calls[i] += 1
            o.zero_grad()
            loss = valley(lib, *params)
            loss.backward()
            return loss

        return closure

    first, second = closures(0, mt, ours, optimizer), closures(1, torch, theirs, reference)
    for i in range(4):
        loss, expected = optimizer.step(first).item(), reference.step(second).item()
        assert loss == pytest.approx(expected, rel=1e-6, nan_ok=True)
        assert calls[0] == calls[1]
        if i == 1:  # a run that is resumed goes on in the same way
            saved = optimizer.state_dict()
            optimizer = optim.LBFGS(ours, **options)
            first = closures(0, mt, ours, optimizer)
            optimizer.load_state_dict(saved)
    assert optimizer.state[ours[0]]["n_iter"] == reference.state[theirs[0]]["n_iter"]
    assert optimizer.state[ours[0]]["func_evals"] == reference.state[theirs[0]]["func_evals"]
    assert_same(ours, theirs, 1e-6)


def test_tensor_rates() -> None:
    ours, theirs = pair(draw([(3, 3)], 0, np.float32))
    optimizer = optim.NAdam(ours, lr=mt.tensor(0.1))
    reference = torch.optim.NAdam(theirs, lr=torch.tensor(0.1))
    for step in range(5):
        (g,) = draw([(3, 3)], step, np.float32)
        ours[0].grad, theirs[0].grad = mt.tensor(g), torch.tensor(g)
        optimizer.step()
        reference.step()
    assert_same(ours, theirs, 1e-5)


FUZZED: dict[str, dict[str, list[Any]]] = {
    "SGD": {"momentum": [0, 0.9], "dampening": [0, 0.3], "weight_decay": [0, 0.1]},
    "Adam": {"betas": [(0.9, 0.999), (0.2, 0.6)], "amsgrad": [False, True], "eps": [1e-8, 0.1]},
    "AdamW": {"weight_decay": [0, 0.3], "amsgrad": [False, True]},
    "RMSprop": {"alpha": [0.99, 0.2], "centered": [False, True], "momentum": [0, 0.5]},
    "Adagrad": {"lr_decay": [0, 0.2], "weight_decay": [0, 0.1]},
    "Adadelta": {"rho": [0.9, 0.1, 1.0], "eps": [1e-6, 0.1], "weight_decay": [0, 0.1]},
    "Adamax": {"betas": [(0.9, 0.999), (0.2, 0.6)], "weight_decay": [0, 0.1]},
    "NAdam": {"momentum_decay": [4e-3, 0.2], "decoupled_weight_decay": [False, True],
              "weight_decay": [0, 0.1]},
    "RAdam": {"betas": [(0.9, 0.999), (0.2, 0.8)], "decoupled_weight_decay": [False, True],
              "weight_decay": [0, 0.1]},
    "ASGD": {"lambd": [1e-4, 0.1], "alpha": [0.75, 0.2], "t0": [1e6, 2.0]},
    "Rprop": {"etas": [(0.5, 1.2), (0.1, 3.0)], "step_sizes": [(1e-6, 50), (0.01, 0.02)]},
    "Adafactor": {"beta2_decay": [-0.8, -0.1], "d": [1.0, 3.0], "weight_decay": [0, 0.1]},
}  # fmt: skip


@pytest.mark.parametrize("name", FUZZED)
def test_random_options_and_gradients(name: str) -> None:
    """About 2 000 updates in all, with rates that change and gradients that come and go."""
    rng = np.random.default_rng(len(name))
    for trial in range(28):
        options = {k: v[rng.integers(len(v))] for k, v in FUZZED[name].items()}
        if name != "Rprop" or rng.random() < 0.5:
            options["lr"] = float(rng.choice([1e-3, 0.05, 0.5]))
        options["maximize"] = bool(rng.random() < 0.3)
        shapes = [tuple(rng.integers(0, 4, rng.integers(0, 4))) for _ in range(3)]
        if name == "Adafactor":
            shapes = [s for s in shapes if 0 not in s] or [(2,)]
        start = draw(shapes, trial, np.float64)
        ours, theirs = pair(start)
        optimizer = getattr(optim, name)(ours, **options)
        reference = getattr(torch.optim, name)(theirs, **options)
        for step in range(6):
            for p, q, g in zip(ours, theirs, draw(shapes, 100 + step, np.float64), strict=True):
                g = g * 10.0 ** rng.integers(-3, 2)
                absent = rng.random() < 0.2
                p.grad = None if absent else mt.tensor(g)
                q.grad = None if absent else torch.tensor(g)
            if rng.random() < 0.2 and name != "Rprop":
                for o in (optimizer, reference):
                    o.param_groups[0]["lr"] *= 0.7
            optimizer.step()
            reference.step()
        assert_same(ours, theirs, 1e-6 if name in ("NAdam", "ASGD") else 1e-9)
