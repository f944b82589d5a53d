"""Schedules that are compared with torch's, and an optimizer to run them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from optim_cases import arrays, parameters

from minitorch import optim
from minitorch.optim import lr_scheduler

STEPS = 60
Make = Callable[[Any, Any], Any]


class Halves:
    """A function of the step as an object."""

    def __call__(self, step: int) -> float:
        return 0.5 ** (step // 10)


def shrinking(x: float) -> float:
    """A scale of the user's own."""
    return 1 / (1 + x / 4)


def swa_of(schedules: Any) -> Any:
    """The averaging tools beside the schedules."""
    if schedules is lr_scheduler:
        return optim.swa_utils
    return pytest.importorskip("torch").optim.swa_utils


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
        o, [0.5, 0.2], epochs=61, steps_per_epoch=1, anneal_strategy="linear", pct_start=0.5
    ),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1, three_phase=True),
    "OneCycleLR rate only": lambda s, o: s.OneCycleLR(o, 0.5, STEPS + 1, cycle_momentum=False),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda step: 0.95**step),
    "LambdaLR each": lambda s, o: s.LambdaLR(o, [Halves(), lambda step: 1 / (1 + step)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.9 + 0.001 * step),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 55)], [5]
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
TABLE |= {
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 7, 5),
    "CyclicLR halving": lambda s, o: s.CyclicLR(
        o, [0.1, 0.2], [0.5, 0.3], 4, mode="triangular2", base_momentum=[0.5, 0.6]
    ),
    "CyclicLR falling": lambda s, o: s.CyclicLR(
        o, 0.1, 0.5, 6, mode="exp_range", gamma=0.95, cycle_momentum=False
    ),
    "CyclicLR own": lambda s, o: s.CyclicLR(o, 0.1, 0.5, 3, scale_fn=shrinking),
    "CyclicLR own steps": lambda s, o: s.CyclicLR(
        o, 0.1, 0.5, 3, scale_fn=shrinking, scale_mode="iterations", max_momentum=0.99
    ),
    "SWALR": lambda s, o: swa_of(s).SWALR(o, 0.05),
    "SWALR linear": lambda s, o: swa_of(s).SWALR(o, [0.05, 0.5], 30, "linear"),
    "SWALR at once": lambda s, o: swa_of(s).SWALR(o, 0.01, 0),
}
OPTIMIZERS: dict[str, dict[str, Any]] = {"SGD": {"momentum": 0.9}, "AdamW": {}}


def two_groups(lib: Any, params: list[Any], name: str = "SGD") -> Any:
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}]
    return getattr(lib, name)(groups, lr=0.2, **OPTIMIZERS[name])


def ours(name: str = "SGD") -> Any:
    optimizer = two_groups(optim, parameters(arrays([(2,), (3,)])), name)
    optimizer.step()
    return optimizer
