"""Schedules: torch's numbers, resume in the middle of a run, and the end."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from optim_cases import arrays, parameters
from schedule_cases import OPTIMIZERS, STEPS, TABLE, Make, ours, two_groups

import minitorch as mt
from minitorch import optim
from minitorch.optim import lr_scheduler


def theirs(name: str) -> Any:
    torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
    params = [torch.nn.Parameter(torch.tensor(a)) for a in arrays([(2,), (3,)])]
    return two_groups(torch.optim, params, name)


def momenta(optimizer: Any) -> list[float]:
    return [g["betas"][0] if "betas" in g else g["momentum"] for g in optimizer.param_groups]


def rates(optimizer: Any) -> list[float]:
    return [g["lr"] for g in optimizer.param_groups]


def test_warmup_then_cosine() -> None:
    optimizer = ours()
    schedule = lr_scheduler.WarmupCosine(optimizer, 5, 25, 0.1)
    seen = []
    for _ in range(40):
        seen.append(rates(optimizer)[0] / 0.2)
        schedule.step()
    assert seen[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    assert seen[15] == pytest.approx(0.55)
    assert seen[25:] == pytest.approx([0.1] * 15)
    assert seen[5:26] == sorted(seen[5:26], reverse=True)
    resumed = lr_scheduler.WarmupCosine(ours(), 1, 2)
    resumed.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    assert resumed.state_dict() == schedule.state_dict()


@pytest.mark.filterwarnings("ignore:Detected call of:UserWarning")  # torch's chain in a sequence
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("make", TABLE.values(), ids=TABLE.keys())
def test_numbers_are_torchs(make: Make, name: str) -> None:
    expected = theirs(name)
    optimizer = ours(name)
    torch = pytest.importorskip("torch")
    schedule, reference = make(lr_scheduler, optimizer), make(torch.optim.lr_scheduler, expected)
    for _ in range(STEPS):
        assert rates(optimizer) == pytest.approx(rates(expected), rel=1e-12, abs=1e-15)
        assert schedule.get_last_lr() == pytest.approx(
            reference.get_last_lr(), rel=1e-12, abs=1e-15
        )
        assert momenta(optimizer) == pytest.approx(momenta(expected), rel=1e-12)
        expected.step()
        schedule.step()
        reference.step()


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"mode": "max", "patience": 1, "factor": 0.5, "threshold": 0.1},
        {"threshold_mode": "abs", "threshold": 0.05, "patience": 0, "cooldown": 3},
        {"mode": "max", "threshold_mode": "abs", "patience": 1, "min_lr": [0.01, 0.001]},
        {"patience": 0, "factor": 0.1, "eps": 1e-3},
    ],
)
def test_plateau_numbers_are_torchs(options: dict[str, Any]) -> None:
    expected, optimizer = theirs("SGD"), ours()
    torch = pytest.importorskip("torch")
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    reference = torch.optim.lr_scheduler.ReduceLROnPlateau(expected, **options)
    metric = 1.0
    for i in range(STEPS):
        metric *= 0.9 if i % 7 < 3 else 1.05
        schedule.step(mt.tensor(metric, dtype=mt.float64))
        reference.step(metric)
        assert rates(optimizer) == pytest.approx(rates(expected), rel=1e-12)
        assert schedule.get_last_lr() == rates(optimizer)
        assert schedule.num_bad_epochs == reference.num_bad_epochs
        assert schedule.best == pytest.approx(reference.best)


def test_fractions_of_an_epoch() -> None:
    expected, optimizer = theirs("SGD"), ours()
    torch = pytest.importorskip("torch")
    for t_mult in (1, 2):
        schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, t_mult)
        reference = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(expected, 3, t_mult)
        for i in range(80):
            schedule.step(i / 4)
            reference.step(i / 4)
            assert rates(optimizer) == pytest.approx(rates(expected), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("make", TABLE.values(), ids=TABLE.keys())
@pytest.mark.parametrize("middle", [0, 1, 5, 20, 37])
def test_resume_in_the_middle(make: Make, middle: int) -> None:
    optimizer = ours("AdamW")
    schedule = make(lr_scheduler, optimizer)
    for _ in range(middle):
        schedule.step()
    saved = json.loads(json.dumps([schedule.state_dict(), optimizer.state_dict()["param_groups"]]))
    other = ours("AdamW")
    resumed = make(lr_scheduler, other)
    resumed.load_state_dict(saved[0])
    other.load_state_dict({"state": {}, "param_groups": saved[1]})
    for _ in range(STEPS - middle):
        assert resumed.get_last_lr() == schedule.get_last_lr()
        assert rates(other) == rates(optimizer)
        assert momenta(other) == momenta(optimizer)
        schedule.step()
        resumed.step()


def test_plateau_resumes() -> None:
    optimizer, other = ours(), ours()
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, cooldown=2)
    for i in range(5):
        schedule.step(1.0 + i)
    resumed = lr_scheduler.ReduceLROnPlateau(other)
    resumed.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    other.load_state_dict(optimizer.state_dict())
    for i in range(9):
        schedule.step(2.0 + i)
        resumed.step(2.0 + i)
        assert rates(other) == rates(optimizer)
    assert resumed.state_dict() == schedule.state_dict()


def test_a_state_is_a_snapshot() -> None:
    schedule = lr_scheduler.StepLR(ours(), 1)
    saved = schedule.state_dict()
    kept = copy.deepcopy(saved)
    schedule.step()
    assert saved == kept


ENDS: dict[str, tuple[Make, int, float]] = {
    "CosineAnnealingLR": (lambda s, o: s.CosineAnnealingLR(o, 10, 0.01), 10, 0.01),
    "CosineAnnealingLR between": (lambda s, o: s.CosineAnnealingLR(o, 9.5, 0.01), 10, 0.01),
    "OneCycleLR": (lambda s, o: s.OneCycleLR(o, 0.5, 10), 9, 0.5 / 25 / 1e4),
    "PolynomialLR": (lambda s, o: s.PolynomialLR(o, 10), 10, 0.0),
    "LinearLR": (lambda s, o: s.LinearLR(o, 1.0, 0.5, 10), 10, 0.1),
}


@pytest.mark.parametrize(("make", "end", "last"), ENDS.values(), ids=ENDS.keys())
def test_rates_stay_after_the_end(make: Make, end: int, last: float) -> None:
    optimizer = ours()
    schedule = make(lr_scheduler, optimizer)
    for _ in range(end):
        schedule.step()
    assert rates(optimizer)[0] == pytest.approx(last)
    at_end = rates(optimizer)
    over = isinstance(schedule, lr_scheduler.OneCycleLR)  # which raises after one more
    for _ in range(1 if over else 2 * end):
        schedule.step()
        assert rates(optimizer) == at_end


def test_last_epoch_goes_on_where_the_optimizer_was() -> None:
    optimizer = ours()
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
    schedule.step()
    schedule.step()
    other = ours()
    other.load_state_dict(optimizer.state_dict())
    again = lr_scheduler.ExponentialLR(other, 0.5, last_epoch=1)
    assert again.last_epoch == 2
    assert rates(other) == rates(optimizer)
    again.step()
    schedule.step()
    assert rates(other) == rates(optimizer)


def test_a_schedule_of_the_users_own() -> None:
    class Warmup(lr_scheduler._LRScheduler):
        def __init__(self, optimizer: Any, steps: int) -> None:
            self.steps = steps
            super().__init__(optimizer)

        def get_lr(self) -> list[float]:
            return [b * min(1.0, (self.last_epoch + 1) / self.steps) for b in self.base_lrs]

    optimizer = ours()
    schedule = Warmup(optimizer, 4)
    seen = [schedule.get_last_lr()[0]]
    for _ in range(4):
        schedule.step()
        seen.append(schedule.get_last_lr()[0])
    assert seen == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2])
    other = Warmup(ours(), 9)
    other.load_state_dict(schedule.state_dict())
    assert (other.steps, other.last_epoch) == (4, 4)


def test_a_chain_can_be_restarted_within_a_sequence() -> None:
    optimizer = ours()
    chain = lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(optimizer, 0.5, 2), lr_scheduler.ExponentialLR(optimizer, 0.1)]
    )
    constant = lr_scheduler.ConstantLR(optimizer, 1.0, 1)
    schedule = lr_scheduler.SequentialLR(optimizer, [constant, chain], [3])
    seen = []
    for _ in range(6):
        seen.append(rates(optimizer)[0])
        schedule.step()
    assert seen == pytest.approx([0.2, 0.2, 0.2, 0.1, 0.01, 0.004 / 2])


def test_schedules_of_present_rates_take_in_groups_added_later() -> None:
    optimizer = ours()
    exponential = lr_scheduler.ExponentialLR(optimizer, 0.5)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    optimizer.add_param_group({"params": parameters(arrays([(2,)])), "lr": 1.0})
    exponential.step()
    plateau.step(1.0)
    plateau.step(1.0)
    assert rates(optimizer) == pytest.approx([0.01, 0.0025, 0.05])


def test_a_first_step_before_the_optimizers_warns() -> None:
    schedule = lr_scheduler.StepLR(two_groups(optim, parameters(arrays([(2,), (3,)]))), 1)
    with pytest.warns(UserWarning, match=r"StepLR\.step\(\) came before optimizer\.step\(\)"):
        schedule.step()
