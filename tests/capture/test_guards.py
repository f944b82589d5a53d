"""What chooses a recording: a change runs eagerly or has its own, never a stale one."""

from __future__ import annotations

import copy
import pickle
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.capture import Captured, CaptureWarning

SCALE = 2.0
SETTINGS = {"factor": 2.0, "names": ["a", "b"]}


@dataclass(slots=True)
class Slotted:
    factor: float = 2.0


class Config:
    rate = 2.0

    def __init__(self) -> None:
        self.factor = 2.0


CONFIG = Config()


class Net(nn.Module):
    steps = 2

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.factor = 2.0
        self.parts = [1.0, 2.0]
        self.config = Config()
        self.slotted = Slotted()
        self.queue = deque([1.0])
        self.table = np.ones(3)
        self.names = {"a"}

    def forward(self, x: Any) -> Any:
        y = self.drop(self.layer(x)) * self.factor + sum(self.parts)
        y = y * self.slotted.factor + sum(self.queue) + float(self.table[0]) * len(self.names)
        return (y * self.config.factor * self.steps).sum()


def _set(target: Any, name: str, value: Any) -> Callable[[Any], None]:
    return lambda net: setattr(target(net) if callable(target) else target, name, value)


CHANGES: dict[str, Callable[[Net], object]] = {
    "eval": lambda net: net.eval(),
    "one layer in eval": lambda net: net.drop.eval(),
    "attribute": _set(lambda net: net, "factor", 3.0),
    "attribute of a layer": lambda net: setattr(net.drop, "p", 0.25),
    "list of the module": lambda net: net.parts.append(3.0),
    "entry of a list": lambda net: net.parts.__setitem__(0, 5.0),
    "object of the module": _set(lambda net: net.config, "factor", 3.0),
    "attribute of the class": lambda net: setattr(Net, "steps", 3),
    "slot of an object": _set(lambda net: net.slotted, "factor", 3.0),
    "entry of a queue": lambda net: net.queue.append(2.0),
    "small NumPy array": lambda net: net.table.fill(4.0),
    "set": lambda net: net.names.add("b"),
    "frozen": lambda net: net.layer.requires_grad_(False),
    "other layer": lambda net: setattr(net, "layer", nn.Linear(3, 3)),
    "other weight": lambda net: setattr(net.layer, "weight", nn.Parameter(mt.ones(3, 3))),
    "weights loaded": lambda net: net.layer.load_state_dict(nn.Linear(3, 3).state_dict()),
    "weights written": lambda net: net.layer.weight.data.fill_(0.5),
    "memory replaced": lambda net: setattr(net.layer.weight, "data", mt.ones(3, 3)),
    "new attribute": lambda net: setattr(net, "other", 1),
}


def _numbers(f: Any, net: Any, x: Any) -> Any:
    mt.manual_seed(5)
    net.zero_grad()
    out = f(x)
    if out.requires_grad:
        out.backward()
    grads = [None if p.grad is None else p.grad.tolist() for p in net.parameters()]
    return out.tolist(), grads


@pytest.mark.parametrize("name", CHANGES)
def test_change(name: str) -> None:
    net, x = Net(), mt.randn(4, 3)
    call = Captured(net.forward, roots=[("the module", net)])
    for _ in range(6):
        call(x)
    assert call.counts.replays > 0
    try:
        CHANGES[name](net)
        for _ in range(6):
            assert _numbers(call, net, x) == _numbers(net.forward, net, x)
    finally:
        Net.steps = 2


def test_globals_closures_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = 1.0

    def f(x: Any, power: float = 2.0) -> Any:
        total = x * SCALE + shift + CONFIG.factor * Config.rate
        return (total * SETTINGS["factor"] + len(SETTINGS["names"])) ** power

    call, x = Captured(f), mt.randn(3)

    def check() -> None:
        for _ in range(5):
            assert call(x).tolist() == f(x).tolist()

    check()
    assert call.counts.replays
    monkeypatch.setattr(f"{__name__}.SCALE", 3.0)
    check()
    shift = 4.0
    check()
    monkeypatch.setitem(SETTINGS, "factor", 5.0)
    check()
    monkeypatch.setitem(SETTINGS, "names", ["a"])
    check()
    monkeypatch.setattr(CONFIG, "factor", 7.0)
    check()
    monkeypatch.setattr(Config, "rate", 7.0)
    check()
    assert call.counts.breaks == {}


@pytest.mark.parametrize(
    "arguments",
    [
        [(mt.ones(2),), (mt.ones(3),), (mt.ones(2, 1),)],
        [(mt.ones(2),), (mt.ones(2).double(),)],
        [(mt.ones(2), 1), (mt.ones(2), 2), (mt.ones(2), 2.0)],
        [(mt.ones(2), True), (mt.ones(2), 1)],
        [((mt.ones(2), mt.ones(2)),), ([mt.ones(2), mt.zeros(2)],)],
        [({"a": mt.ones(2)},), ({"b": mt.ones(2)},)],
    ],
)
def test_arguments(arguments: list[tuple[Any, ...]]) -> None:
    def f(*args: Any) -> Any:
        x = args[0]
        if isinstance(x, dict):
            return next(iter(x.values())) * len(next(iter(x)))
        if isinstance(x, tuple | list):
            return x[0] + x[1] * (2 if isinstance(x, list) else 3)
        scale = args[1] if len(args) > 1 else 1
        return x * scale + (1 if scale is True else 0)

    call = Captured(f)
    for _ in range(5):
        for args in arguments:
            out, wanted = call(*args), f(*args)
            assert (out.tolist(), out.dtype) == (wanted.tolist(), wanted.dtype)
    assert call.counts.replays


def test_keywords_are_arguments() -> None:
    call = Captured(lambda x, double=False: (x * 2 if double else x).sum())
    for double in (True, False, True):
        for _ in range(6):
            assert call(mt.ones(3), double=double).item() == (6 if double else 3)
        assert call(mt.ones(3)).item() == 3
    assert call.counts.replays


def test_one_tensor_twice_is_another_call() -> None:
    call, a, b = Captured(lambda x, y: x * 2 + y), mt.ones(2), mt.zeros(2)
    for _ in range(5):
        assert call(a, a).tolist() == [3.0, 3.0]
        assert call(a, b).tolist() == [2.0, 2.0]


def test_grad_mode_and_autocast() -> None:
    w = mt.randn(3, 3, requires_grad=True)
    call, x = Captured(lambda x: x @ w), mt.randn(2, 3)
    for _ in range(5):
        assert call(x).requires_grad
        with mt.no_grad():
            assert not call(x).requires_grad
        with mt.autocast("cpu", dtype=mt.bfloat16):
            assert call(x).dtype is mt.bfloat16
    assert call.counts.replays >= 5


def test_anomaly_mode_and_hooks_on_saved_tensors_run_eagerly() -> None:
    w = mt.randn(3, requires_grad=True)
    call, x = Captured(lambda x: (x * w).sum()), mt.ones(3)
    for _ in range(5):
        call(x)
    before = call.counts.replays
    with mt.autograd.detect_anomaly():
        assert call(x).grad_fn.op.name == "sum"
    with mt.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert call(x).grad_fn.op.name == "sum"
    assert call.counts.replays == before


def test_a_parameter_changed_before_backward_is_noticed() -> None:
    w = mt.randn(3, requires_grad=True)
    call = Captured(lambda x: (x * w).sum())
    for _ in range(5):
        out = call(mt.ones(3, requires_grad=True))
    with mt.no_grad():
        w.add_(1.0)
    with pytest.raises(mt.errors.GraphError, match="add_ changed it in place"):
        out.backward()


def test_second_backward_needs_retain_graph() -> None:
    w = mt.randn(3, requires_grad=True)
    call = Captured(lambda x: (x * w).sin().sum())
    for _ in range(5):
        out = call(mt.ones(3))
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(mt.errors.GraphError, match="consumed by an earlier backward"):
        out.backward()


def test_gradients_of_higher_order_are_refused() -> None:
    w = mt.randn(3, requires_grad=True)
    call = Captured(lambda x: (x * w).sin().sum())
    for _ in range(5):
        out = call(mt.ones(3))
    with pytest.raises(mt.errors.GraphError, match="first order only"):
        mt.autograd.grad(out, w, create_graph=True)


def test_checks_of_values_raise_as_eager() -> None:
    net = nn.Embedding(5, 2)
    call = Captured(lambda i: nn.functional.cross_entropy(net(i), i % 2))
    for _ in range(5):
        call(mt.tensor([1, 2]))
    assert call.counts.replays
    with pytest.raises(mt.errors.IndexRangeError, match="row numbers must be from 0 to 4"):
        call(mt.tensor([1, 7]))


def test_what_a_check_answers_chooses_a_recording() -> None:
    w = mt.randn(4, 3, requires_grad=True)

    def f(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(x @ w, y)

    call, x = Captured(f), mt.randn(2, 4)
    for _ in range(5):
        for y in (mt.tensor([0, 2]), mt.tensor([-100, 1])):
            assert call(x, y).tolist() == f(x, y).tolist()
    assert call.counts.recordings == 2
    assert call.counts.breaks == {}


def test_budget_names_the_guard() -> None:
    call = Captured(lambda x: x * 2, budget=3)

    def many_lengths() -> None:
        for n in range(2, 9):
            for _ in range(2):
                assert call(mt.ones(n)).tolist() == [2.0] * n

    text = r"recorded 3 times .* shape \[\d\] and float32 after \[\d\] and float32 that differed"
    with pytest.warns(CaptureWarning, match=text):
        many_lengths()
    assert call.counts.recordings == 3


def test_budget_names_the_state() -> None:
    net = Net().eval()
    call, x = Captured(net.forward, budget=2), mt.ones(2, 3)

    def many_factors() -> None:
        for n in range(5):
            net.factor = float(n)
            for _ in range(3):
                call(x)

    with pytest.warns(CaptureWarning, match=r"\.factor that differed"):
        many_factors()


def test_copies_and_pickles_are_compiled_anew() -> None:
    net = mt.compile(Net())
    for _ in range(5):
        net(mt.ones(2, 3))
    assert net.forward.counts.replays
    other = copy.deepcopy(net)
    assert other.forward.function.__self__ is other
    assert other.forward.counts.recordings == 0
    again = pickle.loads(pickle.dumps(net))
    assert again.forward.function.__self__ is again
    assert list(net.state_dict()) == list(Net().state_dict())
