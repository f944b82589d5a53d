"""Loss scaling: rounds, overflow, what schedules see, copies, the errors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optim_cases import parameters, values

import minitorch as mt
from minitorch import nn, optim
from minitorch.amp import GradScaler


def setup(scale: float = 4.0, **options: Any) -> tuple[Any, Any, Any]:
    (p,) = parameters([np.ones(3, np.float32)])
    return p, optim.SGD([p], lr=1.0), GradScaler(init_scale=scale, **options)


def round_of(p: Any, optimizer: Any, scaler: Any, gradient: float = 0.5) -> None:
    optimizer.zero_grad()
    scaler.scale((p * gradient).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_gradients_are_divided_again() -> None:
    p, optimizer, scaler = setup()
    scaler.scale((p * 0.5).sum()).backward()
    np.testing.assert_array_equal(p.grad.numpy(), 2.0)
    scaler.unscale_(optimizer)
    np.testing.assert_array_equal(p.grad.numpy(), 0.5)
    nn.utils.clip_grad_norm_(p, 0.1)
    clipped = p.grad.numpy().copy()
    scaler.step(optimizer)
    np.testing.assert_array_equal(values([p])[0], 1 - clipped)


def test_an_overflow_skips_the_update_and_lowers_the_scale() -> None:
    p, optimizer, scaler = setup()
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    round_of(p, optimizer, scaler, np.inf)
    schedule.step()
    np.testing.assert_array_equal(values([p])[0], 1.0)
    assert (scaler.get_scale(), scaler.skipped_steps, optimizer.updates) == (2.0, 1, 0)
    round_of(p, optimizer, scaler)
    assert (scaler.get_scale(), scaler.skipped_steps, optimizer.updates) == (2.0, 1, 1)


def test_found_inf_tells_after_unscaling() -> None:
    p, optimizer, scaler = setup()
    for gradient, found in ((np.nan, True), (1.0, False)):
        optimizer.zero_grad()
        scaler.scale((p * gradient).sum()).backward()
        scaler.unscale_(optimizer)
        assert scaler.found_inf(optimizer) is found
        scaler.update()


def test_the_scale_grows_after_the_interval_and_stays_finite() -> None:
    p, optimizer, scaler = setup(scale=2.0**126, growth_interval=2)
    seen = []
    for _ in range(6):
        round_of(p, optimizer, scaler, 2.0**-126)
        seen.append(scaler.get_scale() / 2.0**126)
    assert seen == [1, 2, 2, 2, 2, 2]


def test_two_optimizers_share_the_scale() -> None:
    a, b = parameters([np.ones(2, np.float32), np.ones(2, np.float32)])
    first, second, scaler = optim.SGD([a], lr=1.0), optim.SGD([b], lr=1.0), GradScaler()
    scaler.scale((a + b * np.inf).sum()).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert scaler.get_scale() == 2.0**15
    np.testing.assert_array_equal(values([a, b]), [[0, 0], [1, 1]])


def test_containers_of_outputs() -> None:
    scaler = GradScaler(init_scale=2.0)
    assert [t.item() for t in scaler.scale([mt.tensor(1.0), mt.tensor(2.0)])] == [2.0, 4.0]
    nested = scaler.scale((mt.tensor(1.0), [mt.tensor(3.0)]))
    assert isinstance(nested, tuple)
    assert nested[1][0].item() == 6.0


def test_disabled_passes_through() -> None:
    p, optimizer, scaler = setup(enabled=False)
    loss = (p * 0.5).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_array_equal(values([p])[0], 0.5)
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}
    assert not scaler.is_enabled()
    scaler.load_state_dict({})


def test_options_can_be_read_and_set() -> None:
    scaler = GradScaler()
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert scaler.get_growth_factor() == 3.0
    assert scaler.get_backoff_factor() == 0.25
    assert scaler.get_growth_interval() == 7


def test_a_scale_can_be_given() -> None:
    p, optimizer, scaler = setup()
    round_of(p, optimizer, scaler)
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(mt.tensor(16.0))
    assert scaler.get_scale() == 16.0


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s)), "state"],
    ids=["deepcopy", "pickle", "state_dict"],
)
def test_copies_go_on_alike(copied: Any) -> None:
    p, optimizer, scaler = setup(growth_interval=3)
    round_of(p, optimizer, scaler)
    round_of(p, optimizer, scaler, np.inf)
    round_of(p, optimizer, scaler)
    if copied == "state":
        twin = GradScaler()
        twin.load_state_dict(scaler.state_dict())
    else:
        twin = copied(scaler)
    for s in (scaler, twin):
        for _ in range(2):
            round_of(p, optimizer, s)
    assert twin.state_dict() == scaler.state_dict()


def unscaled_twice() -> None:
    p, optimizer, scaler = setup()
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def stepped_twice() -> None:
    p, optimizer, scaler = setup()
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.step(optimizer)


def unscaled_after_step() -> None:
    p, optimizer, scaler = setup()
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)


def not_scaled(method: str) -> Callable[[], None]:
    def program() -> None:
        p, optimizer, scaler = setup()
        p.sum().backward()
        getattr(scaler, method)(*[] if method == "update" else [optimizer])

    return program


def update_first() -> None:
    p, _, scaler = setup()
    scaler.scale(p.sum()).backward()
    scaler.update()


def with_closure() -> None:
    p, optimizer, scaler = setup()
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer, lambda: None)


def half_gradients() -> None:
    p = nn.Parameter(mt.ones(3, dtype=mt.float16))
    optimizer, scaler = optim.SGD([p]), GradScaler()
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)


def pickled_in_a_round() -> None:
    p, optimizer, scaler = setup()
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    pickle.dumps(scaler)


PROGRAMS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unscaled twice": (unscaled_twice, mt.GraphError, r"unscale_\(\) was called already since"),
    "stepped twice": (stepped_twice, mt.GraphError, r"step\(\) was called already since"),
    "unscaled late": (unscaled_after_step, mt.GraphError, r"unscale_: once.*step\(\) was called"),
    "step unscaled": (not_scaled("step"), mt.GraphError, "step: no loss was scaled yet"),
    "unscale unscaled": (not_scaled("unscale_"), mt.GraphError, "unscale_: no loss was scaled"),
    "update unscaled": (not_scaled("update"), mt.GraphError, "update: no loss was scaled yet"),
    "update first": (update_first, mt.GraphError, r"step\(\) or unscale_\(\) must come before"),
    "closure": (with_closure, mt.ArgumentError, "a closure cannot be used"),
    "half": (half_gradients, mt.ArgumentError, r"must not be float16. Got f16\[3\].*autocast"),
    "pickled": (pickled_in_a_round, mt.GraphError, "only between two rounds"),
    "text": (lambda: GradScaler().scale("x"), mt.ArgumentError, "iterable of tensors. Got str"),
    "growth": (
        lambda: GradScaler(growth_factor=1),
        mt.ArgumentError,
        "growth_factor must be above",
    ),
    "backoff": (lambda: GradScaler(backoff_factor=1), mt.ArgumentError, "backoff_factor must be"),
    "scale": (lambda: GradScaler(init_scale=0), mt.ArgumentError, "init_scale must be above 0"),
    "interval": (lambda: GradScaler(growth_interval=0), mt.ArgumentError, "growth_interval must"),
    "empty state": (
        lambda: GradScaler().load_state_dict({}),
        mt.CheckpointError,
        "saved by a disabled scaler",
    ),
}


@pytest.mark.parametrize(("program", "error", "text"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_wrong_programs(program: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        program()
