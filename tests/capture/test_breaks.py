"""What cannot be recorded runs eagerly and says so: reason, line, count."""

from __future__ import annotations

import contextlib
import cProfile
import dis
import gc
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.capture import Captured, CaptureError, CaptureWarning
from minitorch.capture.audit import Watcher
from minitorch.errors import ArgumentError
from minitorch.nn import functional as F

COUNTS = {"calls": 0}
NUMBERS: list[float] = []
CALLS = 0
GENERATOR = mt.Generator()


class Doubling(mt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.last: Any = None

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


class Carrying(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = mt.zeros(3)

    def forward(self, x: Any) -> Any:
        self.last = x + self.last.detach()
        return self.last * 1.0


def _counts_globally(x: Any) -> Any:
    global CALLS
    CALLS += 1
    return x * CALLS


def _counts_in_a_dict(x: Any) -> Any:
    COUNTS["calls"] += 1
    return x + COUNTS["calls"]


def _appends(x: Any) -> Any:
    NUMBERS.append(1.0)
    return x + len(NUMBERS)


class Drawing(nn.Module):
    def __init__(self, generator: Any) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, x: Any) -> Any:
        return x * float(self.generator.random())


def _changes_argument(x: Any) -> Any:
    return x.add_(1.0) * 1.0


def _prints(x: Any) -> Any:
    print("step")
    return x * 2


def _branches(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


def _selects(x: Any) -> Any:
    return x[x > 0].sum()


def _hooked(x: Any) -> Any:
    y = x * mt.ones(3, requires_grad=True)
    y.register_hook(lambda g: g * 2)
    return y.sum()


BREAKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "item": (lambda x: x * x.sum().item(), "item reads the value of a tensor"),
    "float": (lambda x: x * float(x.sum()), "float reads the value of a tensor"),
    "branch": (_branches, "bool reads the value of a tensor"),
    "tolist": (lambda x: x * len(x.tolist()), "tolist reads the value of a tensor"),
    "numpy": (lambda x: x * float(x.detach().numpy().sum()), "numpy reads the value"),
    "format": (lambda x: x * len(f"{x.sum()}"), "format reads the value of a tensor"),
    "equal": (lambda x: x * mt.equal(x, x), "equal reads the value of a tensor"),
    "nonzero": (lambda x: x.nonzero() * 1.0, "nonzero has a result whose shape"),
    "mask": (_selects, "a mask selects as many elements as it finds"),
    "sort": (lambda x: x.sort()[0], r"of minitorch/ops/\w+\.py is not known to be free of looks"),
    "attribute": (Counting(), "the step changes .*calls"),
    "tensor attribute": (Carrying(), "the step changes .*last"),
    "global": (_counts_globally, "the step changes the global CALLS"),
    "dict": (_counts_in_a_dict, r"the step changes the global COUNTS\['calls'\]"),
    "list": (_appends, "the step changes the global NUMBERS"),
    "random": (lambda x: x * random.random(), "random"),
    "numpy.random": (lambda x: x * float(np.random.rand()), "numbers are drawn from random or"),
    "own generator": (Drawing(np.random.default_rng(0)), "the step changes .*generator"),
    "own Random": (Drawing(random.Random(0)), "generator|random"),
    "time": (lambda x: x * time.time(), "time.time may be something else in every step"),
    "print": (_prints, "print has an effect outside of the step"),
    "array": (lambda x: x + mt.tensor(np.ones(3, np.float32)), "the values of an array become"),
    "own Function": (lambda x: Doubling.apply(x) * 1.0, "function|apply"),
    "argument in place": (_changes_argument, "add_ changes an argument in place"),
    "view result": (lambda x: x[1:], "the result is a view of an argument"),
    "unknown result": (lambda x: object(), "the result holds an object of object"),
    "set": (lambda x: x.clone().__setitem__(0, 1.0) or x * 1, "setitem changes a tensor in place"),
    "backward": (lambda x: (x * 1.0).sum().backward() or x, "backward works on gradients"),
    "disabled": (lambda x: kept_out(x) * 2, "kept_out is kept out by compiler.disable"),
    "generator": (
        lambda x: x * mt.rand(3, generator=GENERATOR),
        "numbers are drawn from a Generator of their own",
    ),
    "max_norm": (
        lambda x: F.embedding(mt.tensor([0]), x.reshape(3, 1).clone(), max_norm=1.0) * 1.0,
        "max_norm changes rows",
    ),
    "leaf in the step": (
        lambda x: (x * mt.ones(3, requires_grad=True)).sum(),
        "a leaf that requires gradients is made",
    ),
}


@mt.compiler.disable
def kept_out(x: Any) -> Any:
    return x + 1


def several(call: Captured, x: Any, copy: bool = False) -> list[Any]:
    """The results of some calls."""
    return [call(x.clone() if copy else x) for _ in range(5)]


@pytest.mark.parametrize("name", BREAKS)
def test_break(name: str) -> None:
    f, message = BREAKS[name]
    call, x = Captured(f), mt.tensor([1.0, 2.0, 3.0])
    x.requires_grad_(name == "backward")
    with pytest.warns(CaptureWarning, match=message) as seen:
        several(call, x, name == "argument in place")
    assert len(seen) == 1  # once, however often it happens
    assert seen[0].filename == __file__
    assert "test_breaks.py:" in str(seen[0].message)
    assert "runs eagerly, because" in str(seen[0].message)
    assert call.counts.replays == 0
    assert sum(call.counts.breaks.values()) >= 3


def test_eager_calls_go_on_right() -> None:
    module = Counting()
    call = Captured(module.forward)
    with pytest.warns(CaptureWarning, match="calls"):
        assert [call(mt.ones(1)).item() for _ in range(5)] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_line_of_the_change_and_of_the_read() -> None:
    call = Captured(Counting().forward)
    with pytest.warns(CaptureWarning, match=r"in forward: self\.calls \+= 1"):
        several(call, mt.ones(1))
    call = Captured(_branches)
    with pytest.warns(CaptureWarning, match=r"in _branches: return x \* 2 if x\.sum\(\) > 0"):
        several(call, mt.ones(1))


def test_line_where_starts_line_is_a_truth_value(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dis.get_instructions  # Python 3.13 says with it only whether a line begins

    def newer(code: Any) -> Any:
        return (step._replace(starts_line=step.starts_line is not None) for step in found(code))

    monkeypatch.setattr(dis, "get_instructions", newer)
    call = Captured(Counting().forward)
    with pytest.warns(CaptureWarning, match=r"in forward: self\.calls \+= 1"):
        several(call, mt.ones(1))


def test_fullgraph_raises() -> None:
    call = Captured(_branches, fullgraph=True)
    with pytest.raises(CaptureError, match="captured as a whole .* bool reads the value"):
        several(call, mt.ones(1))


def test_a_recording_that_cannot_be_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> Any:
        raise MemoryError("no room for a kernel")

    monkeypatch.setattr("minitorch.capture.recording.fused", full)
    captured = Captured(lambda x: x * 2 + 1)
    x = mt.ones(3)
    with pytest.warns(CaptureWarning, match=r"could not be finished \(MemoryError: no room"):
        found = [captured(x).tolist() for _ in range(4)]
    assert found == [[3.0, 3.0, 3.0]] * 4
    assert captured.counts.eager == 4


def test_a_stale_replay_is_found() -> None:
    hidden = iter(range(100)).__next__  # state that nobody can compare
    call = Captured(lambda x: x * hidden())
    with pytest.warns(CaptureWarning, match="a replay gave other numbers than the step itself"):
        out = [call(mt.ones(1)).item() for _ in range(4)]
    assert out == [0.0, 1.0, 2.0, 3.0]


def test_recording_inside_of_a_recording() -> None:
    inner = Captured(lambda x: x * 2)
    outer = Captured(lambda x: inner(x) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            assert outer(mt.ones(2)).tolist() == [3.0, 3.0]
    assert outer.counts.replays >= 1


def test_a_profiler_goes_on() -> None:
    call, profile = Captured(lambda x: x * 2), cProfile.Profile()
    profile.enable()
    try:
        several(call, mt.ones(2))
        len(str(call))
    finally:
        profile.disable()
    assert call.counts.replays == 1
    assert any("replay" in str(entry.code) for entry in profile.getstats())


class TestCompile:
    def test_function_decorator_and_module(self) -> None:
        @mt.compile
        def f(x: Any) -> Any:
            """Doc."""
            return x * 2

        @mt.compile(mode="reduce-overhead", dynamic=True, options={"max_recordings": 2})
        def g(x: Any) -> Any:
            return x + 1

        net = nn.Linear(2, 2)
        assert mt.compile(net) is net
        assert mt.compile(net) is net
        for _ in range(5):
            assert f(mt.ones(2)).tolist() == [2.0, 2.0]
            assert g(mt.ones(2)).tolist() == [2.0, 2.0]
            net(mt.ones(1, 2)).sum().backward()
        assert (f.counts.replays, net.forward.counts.replays) == (1, 1)
        assert (f.__name__, f.__doc__, g.budget) == ("f", "Doc.", 2)
        mt.compiler.reset()
        f(mt.ones(2))
        assert f.counts.recordings == 0

    def test_method(self) -> None:
        class Net(nn.Module):
            def __init__(self, factor: float) -> None:
                super().__init__()
                self.factor = factor

            @mt.compile
            def forward(self, x: Any) -> Any:
                return x * self.factor

        a, b = Net(2.0), Net(3.0)
        for _ in range(5):
            assert (a(mt.ones(1)).item(), b(mt.ones(1)).item()) == (2.0, 3.0)
        assert Net.forward.counts.replays

    def test_switched_off(self) -> None:
        def f(x: Any) -> Any:
            return x

        assert mt.compile(f, disable=True) is f
        assert mt.compile(f, backend="eager") is f
        assert mt.compile(kept_out) is kept_out
        assert not mt.compiler.is_compiling()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"model": 3}, "compile: a function is needed. Got int"),
            ({"backend": "cuda"}, "backend must be one of"),
            ({"mode": "fast"}, "mode must be one of"),
            ({"options": {"x": 1}}, "the option is max_recordings. Got 'x'"),
            ({"options": {"max_recordings": 0}}, "max_recordings must be an integer ≥ 1"),
        ],
    )
    def test_refusals(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(mt.errors.ArgumentError, match=message):
            mt.compile(**{"model": len, **options})


def test_code_that_a_library_runs_from_a_string_is_not_the_users() -> None:
    reasons: list[str] = []
    spaces: dict[str, Any] = {}
    text = "def f():\n    exec('import time; time.time()')"
    exec(compile(text, "site-packages/f.py", "exec"), spaces)
    with Watcher(lambda why, line: reasons.append(why), lambda: False, judge=True) as watcher:
        spaces["f"]()
    assert not reasons
    assert not watcher.codes


def test_what_the_garbage_collector_ends_is_no_part_of_the_step() -> None:
    reasons: list[str] = []
    before = gc.get_threshold()
    gc.set_threshold(10**6)
    try:
        held: list[Any] = [iter(mt.data.DataLoader(mt.data.TensorDataset(mt.ones(4, 1))))]
        next(held[0])
        held.append(held)
        del held
        with Watcher(lambda why, line: reasons.append(why), lambda: False, judge=True):
            gc.set_threshold(1)
            assert len([[] for _ in range(99)]) == 99
    finally:
        gc.set_threshold(*before)
    assert gc.isenabled()
    assert not reasons


class RunningMean(nn.Module):
    """Reads a buffer after the step itself has changed it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.register_buffer("mean", mt.zeros(3))

    def forward(self, x: Any) -> Any:
        h = self.layer(x)
        with mt.no_grad():
            self.mean.mul_(0.9).add_(h.detach().mean(0) * 0.1)
        return h - self.mean


def test_a_check_after_a_change_takes_the_change_back() -> None:
    net, twin = RunningMean(), RunningMean()
    twin.load_state_dict(net.state_dict())
    call = Captured(lambda x, y: nn.functional.cross_entropy(net(x), y))
    for i in range(9):
        x, y = mt.randn(8, 5), mt.randint(0, 3, (8,)) + 5 * (i % 4 == 3)
        found = []
        for f in (call, lambda x, y: nn.functional.cross_entropy(twin(x), y)):
            with pytest.raises(ArgumentError) if i % 4 == 3 else contextlib.nullcontext():
                found.append(f(x, y).item())
        assert found[:1] == found[1:]
        assert net.mean.tolist() == twin.mean.tolist()
    assert call.counts.breaks == {}
    assert call.counts.replays == 3


def test_calls_that_look_like_the_usual_ones() -> None:
    w = mt.ones(3, requires_grad=True)

    def step(batch: Any, scale: Any = 1, **rest: Any) -> Any:
        a, b = batch["a"], batch["b"][0]
        return ((a * w).sum() + b.sum() * (2 if a is b else 1)) * scale

    call = Captured(step, budget=20)
    a, b = mt.randn(2, 3), mt.randn(2, 3)
    usual = ({"a": a, "b": (b,)}, 1)
    for _ in range(8):
        call(*usual)
    assert call.counts.replays == 4
    others: list[Any] = [
        ({"a": a, "b": (a,)}, 1),
        ({"a": a, "b": [b]}, 1),
        ({"a": a, "b": (b.double(),)}, 1),
        ({"a": a, "b": (b[:1],)}, 1),
        ({"a": a, "b": (mt.randn(3, 2).T,)}, 1),
        ({"a": a.clone().requires_grad_(), "b": (b,)}, 1),
        ({"a": a, "b": (b,), "c": 1}, 1),
        ({"a": a, "b": (b,)}, True),
        ({"a": a, "b": (b,)}, 2),
        ({"a": a, "b": (b,)},),
    ]
    for args in others:
        assert call(*args).item() == step(*args).item()
    with mt.no_grad():
        assert not call(*usual).requires_grad
    with mt.autocast("cpu", dtype=mt.bfloat16):
        call(*usual)
    assert call.counts.replays == 4
    call(*usual)
    assert call.counts.replays == 5
