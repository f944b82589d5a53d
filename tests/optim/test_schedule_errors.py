"""What schedules refuse, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from optim_cases import arrays, parameters
from schedule_cases import TABLE, ours

import minitorch as mt
from minitorch import optim
from minitorch.optim import lr_scheduler


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


def steps_after_a_cycle() -> None:
    optimizer = optim.SGD(parameters(arrays([(2,)])), 0.1, momentum=0.9)
    schedule = lr_scheduler.OneCycleLR(optimizer, 0.1, 5)
    for _ in range(5):
        optimizer.step()
        schedule.step()
    schedule.step()


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
    "cyclic mode": (
        made_by("CyclicLR", 0.1, 0.2, mode="saw"),
        mt.ArgumentError,
        "mode must be one of triangular, triangular2, exp_range. Got 'saw'",
    ),
    "cyclic scale": (
        made_by("CyclicLR", 0.1, 0.2, scale_mode="epoch"),
        mt.ArgumentError,
        "scale_mode must be 'cycle' or 'iterations'. Got 'epoch'",
    ),
    "cyclic steps": (
        made_by("CyclicLR", 0.1, 0.2, 0),
        mt.ArgumentError,
        "step_size_up and step_size_down must be above 0. Got 0 and None",
    ),
    "cyclic momentum": (
        lambda: lr_scheduler.CyclicLR(optim.Adagrad(parameters(arrays([(2,)]))), 0.1, 0.2),
        mt.ArgumentError,
        "Adagrad has no momentum or betas to cycle",
    ),
    "averaging strategy": (
        lambda: optim.swa_utils.SWALR(ours(), 0.1, anneal_strategy="sin"),
        mt.ArgumentError,
        "anneal_strategy must be 'cos' or 'linear'. Got 'sin'",
    ),
    "warmup": (
        made_by("WarmupCosine", 10, 10),
        mt.ArgumentError,
        "the rise must end before total_steps. Got warmup_steps=10 and total_steps=10",
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
    "after the cycle": (steps_after_a_cycle, mt.ArgumentError, r"Got step 6 of 5\. Make it as"),
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
