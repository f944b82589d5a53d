"""The profiler of operations: what it sees, what it adds up, and that it leaves nothing behind."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError
from minitorch.ops import families, fused, observing, primitive
from minitorch.profiler import (
    EventList,
    FunctionEvent,
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

X = mt.ones(2, 3)

# An operation and the events that it makes, the inner ones in brackets.
SEEN: dict[str, tuple[Any, list[str]]] = {
    "unary": (lambda: mt.exp(X), ["exp"]),
    "binary": (lambda: X + X, ["add"]),
    "method": (lambda: X.mul(X), ["mul"]),
    "number": (lambda: X * 2, ["mul"]),
    "number of another kind": (lambda: mt.ones(2, dtype=mt.int64) + 1.5, ["add"]),
    "product": (lambda: X @ X.t(), ["matmul"]),
    "fused": (lambda: nn.functional.linear(X, mt.ones(4, 3)), ["linear"]),
    "sum": (lambda: X.sum(), ["sum"]),
    "sum of an axis": (lambda: X.sum(0), ["sum"]),
    "joined": (lambda: mt.cat([X, X]), ["cat"]),
    "copied": (lambda: X.clone(), ["clone"]),
    "cast": (lambda: X.double(), ["to"]),
    "indexed": (lambda: X[0], ["slice"]),
    "several outputs": (lambda: mt.linalg.eigh(mt.eye(2)), ["eigh"]),
    "label": (lambda: record_function("mine")(lambda: None)(), ["mine"]),
}


def names(prof: profile) -> list[str]:
    return [event.name for event in prof.events()]


@pytest.mark.parametrize("case", SEEN)
def test_every_kind_of_operation_is_seen(case: str) -> None:
    call, expected = SEEN[case]
    call()  # loads what loads late
    with profile() as prof:
        call()
    assert [n for n in names(prof) if n in expected] == expected
    assert all(event.cpu_time_total >= 0 for event in prof.events())


def test_backward_and_updates_are_seen() -> None:
    w = mt.ones(3, requires_grad=True)
    opt = mt.optim.SGD([w], lr=0.1)
    with profile() as prof:
        (w * w).sum().backward()
        opt.step()
    assert [n for n in names(prof) if "Backward" in n] == ["SumBackward", "MulBackward"]
    assert names(prof)[-1] == "Optimizer.step#SGD.step"


def test_nothing_stays_wrapped() -> None:
    kinds = (primitive.Primitive, families.Unary, fused.Fused)
    places = [vars(kind)["__call__"] for kind in kinds]
    cells = [cell.cell_contents for op in families.Binary.made for cell in op.function.__closure__]
    with contextlib.suppress(RuntimeError), profile():
        mt.exp(X)
        raise RuntimeError("inside")
    assert [vars(kind)["__call__"] for kind in kinds] == places
    again = [cell.cell_contents for op in families.Binary.made for cell in op.function.__closure__]
    assert all(a is b for a, b in zip(cells, again, strict=True))
    assert not observing._observers


def test_an_operation_that_raises_is_over() -> None:
    with profile() as prof:
        with pytest.raises(mt.errors.ShapeError):
            _ = mt.ones(2) + mt.ones(3)
        with pytest.raises(mt.errors.ShapeError):
            _ = mt.ones(2, 2) @ mt.ones(3, 3)
        mt.exp(X)
    assert prof.events()[-1].cpu_parent is None


def test_values_are_the_same() -> None:
    x = mt.tensor([1.0, 2.0], requires_grad=True)

    def step() -> list[float]:
        x.grad = None
        (mt.softmax(x * 3 + x, 0)[0].exp() / 2).backward()
        assert x.grad is not None
        return list(x.grad.tolist())

    plain = step()
    with profile(record_shapes=True, profile_memory=True, with_flops=True, with_stack=True):
        assert step() == plain


def test_averages_and_nested_times() -> None:
    with profile(record_shapes=True) as prof, record_function("outer"):
        mt.exp(X)
        with record_function("inner"):
            mt.exp(mt.ones(5))
    by_name = {one.key: one for one in prof.key_averages()}
    assert by_name["exp"].count == 2
    outer, inner = by_name["outer"], by_name["inner"]
    assert outer.cpu_time_total >= inner.cpu_time_total + outer.self_cpu_time_total
    assert prof.self_cpu_time_total == pytest.approx(outer.cpu_time_total)
    shapes = {one.input_shapes for one in prof.key_averages(True) if one.key == "exp"}
    assert shapes == {"[[2, 3]]", "[[5]]"}
    assert prof.total_average().count == len(prof.events())


def test_recursion_counts_once_in_total() -> None:
    inner = FunctionEvent("f", 1.0, 3.0, 0)
    outer = FunctionEvent("f", 0.0, 4.0, 0, cpu_children=[inner])
    inner.cpu_parent = outer
    [average] = EventList([inner, outer]).key_averages()
    assert (average.cpu_time_total, average.self_cpu_time_total) == (4.0, 4.0)


def test_memory_is_that_of_new_arrays() -> None:
    with profile(profile_memory=True) as prof:
        mt.exp(X)
        X.reshape(6)
    by_name = {one.key: one for one in prof.key_averages()}
    assert by_name["exp"].cpu_memory_usage == X.numel() * 4
    assert by_name["reshape"].cpu_memory_usage == 0


def test_the_users_line() -> None:
    with profile(with_stack=True) as prof:
        mt.exp(X)  # this line
    [event] = prof.events()
    assert event.line.endswith("mt.exp(X)  # this line")
    assert "test_profiler.py" in event.line


def test_table() -> None:
    with profile(profile_memory=True, with_flops=True) as prof:
        for _ in range(3):
            mt.exp(X)
        _ = X @ X.t()
    text = prof.key_averages().table(sort_by="count", row_limit=1, header="Mine")
    lines = text.splitlines()
    assert lines[0] == "Mine"
    assert lines[2].split()[0] == "Name"
    assert lines[4].startswith("exp")
    assert "72 B" in lines[4]
    assert lines[-1].startswith("Self CPU time total: ")
    flops = prof.table(sort_by="flops").splitlines()
    assert flops[3].startswith("matmul")
    assert flops[3].endswith("0.000")
    with pytest.raises(ArgumentError, match="sort_by must be one of"):
        prof.table(sort_by="luck")


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(name: str, tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof, record_function("step"):
        mt.exp(X)
    prof.add_metadata("run", "seven")
    prof.export_chrome_trace(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    trace = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events] == ["step", "exp"]
    step, exp = events
    assert step["ts"] <= exp["ts"]
    assert exp["ts"] + exp["dur"] <= step["ts"] + step["dur"] + 0.01
    assert exp["args"]["Input Dims"] == [[2, 3]]
    assert trace["run"] == "seven"


def test_schedule_and_trace_handler(tmp_path: Path) -> None:
    traces: list[list[str]] = []
    write = tensorboard_trace_handler(tmp_path / "traces", "worker")

    def ready(prof: profile) -> None:
        traces.append([name for name in names(prof) if name.startswith("ProfilerStep")])
        write(prof)

    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(12):
            mt.exp(X)
            prof.step()
    assert traces == [["ProfilerStep#3", "ProfilerStep#4"], ["ProfilerStep#7", "ProfilerStep#8"]]
    files = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert len(files) == 2
    assert all(n.startswith("worker.") and n.endswith(".pt.trace.json") for n in files)


def test_schedule_in_torchs_words() -> None:
    torch_profiler = pytest.importorskip("torch.profiler")
    arguments = {"wait": 2, "warmup": 1, "active": 3, "repeat": 2, "skip_first": 1}
    ours, theirs = schedule(**arguments), torch_profiler.schedule(**arguments)
    assert [ours(n).name for n in range(20)] == [theirs(n).name for n in range(20)]


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="active must be at least 1"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.raises(ArgumentError, match="at least one activity"):
        profile(activities=[])
    assert ProfilerActivity.CPU in supported_activities()
    assert schedule(wait=0, warmup=0, active=1)(0) is ProfilerAction.RECORD_AND_SAVE


def test_other_threads_have_their_own_nesting() -> None:
    with profile() as prof, record_function("outer"):
        thread = threading.Thread(target=lambda: mt.exp(X))
        thread.start()
        thread.join()
    exp, outer = prof.events()
    assert exp.cpu_parent is None
    assert exp.thread != outer.thread


def test_older_place_of_the_name() -> None:
    with mt.autograd.profiler.profile(enabled=False, use_cuda=False) as off:
        mt.exp(X)
    with mt.autograd.profiler.profile() as on:
        mt.exp(X)
    assert (names(off), names(on)) == ([], ["exp"])


def test_a_gpu_is_waited_for(pretend_gpu: ModuleType) -> None:
    x = mt.ones(2, device="cuda")
    with profile() as prof:
        mt.exp(x)
    assert names(prof) == ["exp"]
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        mt.exp(x)
    assert names(prof) == ["exp"]
