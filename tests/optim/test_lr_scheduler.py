"""Schedules: torch's numbers, resume in the middle of a run, the end, the errors."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from optim_cases import arrays, parameters

import minitorch as mt
from minitorch import optim
from minitorch.optim import lr_scheduler

STEPS = 50
Make = Callable[[Any, Any], Any]


class Halves:
    """A function of the step as an object."""

    def __call__(self, step: int) -> float:
        return 0.5 ** (step // 10)


# Each makes a schedule of library `s` (ours or torch's) for optimizer `o`.
TABLE: dict[str, Make] = {
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [5, 12, 12, 30], 0.5),
    "MultiStepLR from 0": lambda s, o: s.MultiStepLR(o, [0, 3], 0.5),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 8),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.9, 13),
    "LinearLR down": lambda s, o: s.LinearLR(o, 1.0, 0.0, 20),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 30, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, STEPS, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 6, 2, 0.01),
    "CosineAnnealingWarmRestarts even": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(
        o, [0.5, 0.2], epochs=17, steps_per_epoch=3, anneal_strategy="linear", pct_start=0.5
    ),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1, three_phase=True),
    "OneCycleLR rate only": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1, cycle_momentum=False),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda step: 0.95**step),
    "LambdaLR each": lambda s, o: s.LambdaLR(o, [Halves(), lambda step: 1 / (1 + step)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.9 + 0.001 * step),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 45)], [5]
    ),
    "SequentialLR of three": lambda s, o: s.SequentialLR(
        o,
        [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9), s.LambdaLR(o, lambda step: 2.0**-step)],
        [20, 30],
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9), s.StepLR(o, 4)]
    ),
    "SequentialLR of a chain": lambda s, o: s.SequentialLR(
        o,
        [s.ChainedScheduler([s.LinearLR(o, 0.5, 1, 9), s.StepLR(o, 4)]), s.ExponentialLR(o, 0.8)],
        [15],
    ),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {"SGD": {"momentum": 0.9}, "AdamW": {}}


def two_groups(lib: Any, params: list[Any], name: str = "SGD") -> Any:
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}]
    return getattr(lib, name)(groups, lr=0.2, **OPTIMIZERS[name])


def ours(name: str = "SGD") -> Any:
    optimizer = two_groups(optim, parameters(arrays([(2,), (3,)])), name)
    optimizer.step()
    return optimizer


def theirs(name: str) -> Any:
    torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
    params = [torch.nn.Parameter(torch.tensor(a)) for a in arrays([(2,), (3,)])]
    return two_groups(torch.optim, params, name)


def momenta(optimizer: Any) -> list[float]:
    return [g["betas"][0] if "betas" in g else g["momentum"] for g in optimizer.param_groups]


def rates(optimizer: Any) -> list[float]:
    return [g["lr"] for g in optimizer.param_groups]


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
    for _ in range(2 * end):
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


# ---- errors --------------------------------------------------------------------------------------


def other_function() -> None:
    schedule = lr_scheduler.LambdaLR(ours(), lambda step: 0.5**step)
    schedule.step()
    lr_scheduler.LambdaLR(ours(), lambda step: 0.9**step).load_state_dict(schedule.state_dict())


def other_kind() -> None:
    state = lr_scheduler.StepLR(ours(), 3).state_dict()
    lr_scheduler.ExponentialLR(ours(), 0.9).load_state_dict(state)


def other_groups() -> None:
    state = lr_scheduler.StepLR(ours(), 3).state_dict()
    single = optim.SGD(parameters(arrays([(2,)])))
    lr_scheduler.StepLR(single, 3).load_state_dict(state)


def other_parts() -> None:
    o = ours()
    state = TABLE["SequentialLR of three"](lr_scheduler, o).state_dict()
    TABLE["SequentialLR"](lr_scheduler, o).load_state_dict(state)


def group_added(name: str, *args: Any) -> Callable[[], None]:
    def program() -> None:
        o = ours()
        schedule = getattr(lr_scheduler, name)(o, *args)
        o.add_param_group({"params": parameters(arrays([(2,)]))})
        schedule.step()

    return program


def sequence(parts: Callable[[Any], list[Any]], milestones: list[int]) -> Callable[[], Any]:
    def program() -> Any:
        o = ours()
        return lr_scheduler.SequentialLR(o, parts(o), milestones)

    return program


def made_by(name: str, *args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(lr_scheduler, name)(ours(), *args, **options)


def step_lr(o: Any) -> Any:
    return lr_scheduler.StepLR(o, 3)


PROGRAMS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no optimizer": (
        lambda: lr_scheduler.StepLR(3, 1),
        mt.ArgumentError,
        "StepLR: the first argument is the optimizer. Got int",
    ),
    "plateau without": (
        lambda: lr_scheduler.ReduceLROnPlateau("x"),
        mt.ArgumentError,
        "ReduceLROnPlateau: the first argument is the optimizer",
    ),
    "no initial rate": (
        made_by("StepLR", 3, last_epoch=4),
        mt.ArgumentError,
        "group 0 has no 'initial_lr', which last_epoch=4 needs",
    ),
    "no get_lr": (made_by("LRScheduler"), NotImplementedError, r"must override get_lr\(\)"),
    "step_size": (
        made_by("StepLR", 0),
        mt.ArgumentError,
        "step_size must be an integer, at least 1",
    ),
    "milestones": (
        made_by("MultiStepLR", [3, 4.5]),
        mt.ArgumentError,
        "milestones must be an integer, at least 0. Got 4.5",
    ),
    "constant": (
        made_by("ConstantLR", 0.0),
        mt.ArgumentError,
        "factor must be a number, above 0 and at most 1. Got 0.0",
    ),
    "linear start": (made_by("LinearLR", 1.5), mt.ArgumentError, "start_factor must be.*Got 1.5"),
    "linear end": (made_by("LinearLR", 1, -1), mt.ArgumentError, "end_factor must be.*at least 0"),
    "linear length": (
        made_by("LinearLR", total_iters=0),
        mt.ArgumentError,
        "total_iters must be an integer, at least 1",
    ),
    "cosine": (made_by("CosineAnnealingLR", 0), mt.ArgumentError, "T_max must be.*Got 0"),
    "restarts": (made_by("CosineAnnealingWarmRestarts", 0), mt.ArgumentError, "T_0 must be an int"),
    "restarts mult": (
        made_by("CosineAnnealingWarmRestarts", 3, 1.5),
        mt.ArgumentError,
        "T_mult must be an integer, at least 1. Got 1.5",
    ),
    "negative epoch": (
        lambda: made_by("CosineAnnealingWarmRestarts", 3)().step(-1),
        mt.ArgumentError,
        "epoch must not be negative",
    ),
    "cycle length": (
        made_by("OneCycleLR", 0.1),
        mt.ArgumentError,
        "Give total_steps, or epochs and steps_per_epoch",
    ),
    "cycle steps": (made_by("OneCycleLR", 0.1, 0), mt.ArgumentError, "total_steps must be an int"),
    "cycle strategy": (
        made_by("OneCycleLR", 0.1, 5, anneal_strategy="sin"),
        mt.ArgumentError,
        "anneal_strategy must be 'cos' or 'linear'. Got 'sin'",
    ),
    "cycle start": (
        made_by("OneCycleLR", 0.1, 5, pct_start=2),
        mt.ArgumentError,
        "pct_start must be a number, at least 0 and at most 1. Got 2",
    ),
    "cycle groups": (
        made_by("OneCycleLR", [0.1], 5),
        mt.ArgumentError,
        "max_lr must have one value per parameter group. Got 1 for 2 groups",
    ),
    "cycle momentum": (
        lambda: lr_scheduler.OneCycleLR(optim.Adagrad(parameters(arrays([(2,)]))), 0.1, 5),
        mt.ArgumentError,
        "Adagrad has no momentum or betas to cycle. Pass cycle_momentum=False",
    ),
    "lambda": (made_by("LambdaLR", 3), mt.ArgumentError, "must be a function of the step. Got int"),
    "lambdas": (
        made_by("LambdaLR", [abs]),
        mt.ArgumentError,
        "lr_lambda must have one value per parameter group. Got 1 for 2",
    ),
    "plateau mode": (
        made_by("ReduceLROnPlateau", "lowest"),
        mt.ArgumentError,
        "mode must be 'min' or 'max'. Got 'lowest'",
    ),
    "plateau threshold": (
        made_by("ReduceLROnPlateau", threshold_mode="x"),
        mt.ArgumentError,
        "threshold_mode must be 'rel' or 'abs'",
    ),
    "plateau factor": (
        made_by("ReduceLROnPlateau", factor=1.0),
        mt.ArgumentError,
        "factor must be below 1. Got 1",
    ),
    "plateau without metric": (
        lambda: made_by("ReduceLROnPlateau")().step(),
        TypeError,
        "missing 1 required positional argument: 'metrics'",
    ),
    "empty sequence": (
        sequence(lambda o: [], []),
        mt.ArgumentError,
        "SequentialLR: at least one schedule is needed",
    ),
    "sequence with plateau": (
        sequence(lambda o: [step_lr(o), lr_scheduler.ReduceLROnPlateau(o)], [3]),
        mt.ArgumentError,
        "schedule 1 must follow the step alone. Got ReduceLROnPlateau",
    ),
    "sequence of others": (
        sequence(lambda o: [step_lr(o), step_lr(ours())], [3]),
        mt.ArgumentError,
        "all schedules must belong to one optimizer. Schedule 1",
    ),
    "sequence milestones": (
        sequence(lambda o: [step_lr(o), step_lr(o)], []),
        mt.ArgumentError,
        r"milestones must rise, one less than there are schedules. Got \[\] for 2",
    ),
    "falling milestones": (
        sequence(lambda o: [step_lr(o), step_lr(o), step_lr(o)], [5, 3]),
        mt.ArgumentError,
        r"milestones must rise.*Got \[5, 3\]",
    ),
    "empty chain": (
        lambda: lr_scheduler.ChainedScheduler([]),
        mt.ArgumentError,
        "ChainedScheduler: at least one",
    ),
    "other function": (
        other_function,
        mt.CheckpointError,
        r"At step 1 they give \[0.9, 0.9\], and gave \[0.5, 0.5\]",
    ),
    "other kind": (
        other_kind,
        mt.CheckpointError,
        "the state must come from a ExponentialLR. Got one of StepLR",
    ),
    "other groups": (other_groups, mt.CheckpointError, "has 2 groups, the optimizer 1"),
    "other parts": (other_parts, mt.CheckpointError, "the state has 3 schedules, this one 2"),
    "group added": (
        group_added("LambdaLR", lambda step: 1.0),
        mt.ArgumentError,
        r"made for 2 groups, the optimizer has 3 now.*after add_param_group\(\)",
    ),
    "group added to a cycle": (
        group_added("OneCycleLR", 0.1, 5),
        mt.ArgumentError,
        "made for 2 groups, the optimizer has 3 now",
    ),
}


@pytest.mark.parametrize(("program", "error", "text"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_wrong_programs(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()
