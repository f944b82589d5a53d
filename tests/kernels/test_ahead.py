"""Other processes compile what a step will need, and every program finds what layers need."""

from __future__ import annotations

import io
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import __main__ as main
from minitorch.kernels import ahead, programs

pytest.importorskip("numba")
fcntl = pytest.importorskip("fcntl")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_body_is_claimed_by_one(tmp_path: Path) -> None:
    with ahead.claim(tmp_path / "new", "body") as ours:
        with ahead.claim(tmp_path / "new", "body", wait=False) as theirs:
            assert ours
            assert not theirs
        with ahead.claim(tmp_path / "new", "other", wait=False) as theirs:
            assert theirs
    with ahead.claim(tmp_path / "new", "body", wait=False) as theirs:
        assert theirs


def test_a_claim_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "LONGEST", 0.0)
    with ahead.claim(tmp_path, "body"), ahead.claim(tmp_path, "body") as anyway:
        assert anyway


def test_where_no_file_can_be_made_nothing_is_claimed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with ahead.claim(tmp_path / "file", "a") as a, ahead.claim(tmp_path / "file", "a") as b:
        assert a
        assert b


def test_a_claim_ends_though_a_process_was_forked_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[int] = []  # as a forked process has them
    lock = ahead._lock
    monkeypatch.setattr(ahead, "_lock", lambda f, end: copies.append(os.dup(f)) or lock(f, end))
    with ahead.claim(tmp_path, "body"):
        pass
    with ahead.claim(tmp_path, "body", wait=False) as again:
        assert again
    for file in copies:
        os.close(file)


class _Process:
    """What `subprocess.Popen` gives, with a file for its standard input."""

    started: list[_Process]

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        self.stdin = open(Path(options["env"]["NUMBA_CACHE_DIR"]) / "told", "ab")
        self.started.append(self)

    def wait(self) -> None:
        """It has ended."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[_Process]]:
    """The processes that are started, on four cores and with nothing begun."""
    monkeypatch.setattr(_Process, "started", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", _Process)
    monkeypatch.setattr(ahead, "_begun", False)
    monkeypatch.setattr(ahead, "_processes", [])
    monkeypatch.setattr(ahead, "_cores", lambda: 4)
    monkeypatch.setattr(ahead, "made", {"Linear", "Adam"})
    monkeypatch.setattr(ahead.atexit, "register", lambda *args: None)
    monkeypatch.setenv("MINITORCH_COMPILE_AHEAD", "on")
    yield _Process.started
    for process in _Process.started:
        process.stdin.close()


@pytest.mark.parametrize(("threads", "count"), [(None, 3), (8, 3), (3, 2), (1, 0)])
def test_as_many_processes_start_as_there_are_cores_to_spare(
    started: list[_Process], tmp_path: Path, threads: int | None, count: int
) -> None:
    for _ in range(2):
        ahead.begin(threads, str(tmp_path))
    assert len(started) == count
    for process in started:
        assert process.options["env"]["MINITORCH_COMPILE_AHEAD"] == "off"
    if count:
        ahead.tell("loss._cross_entropy")
        told = (tmp_path / "told").read_text().splitlines()
        assert sorted(told) == sorted(["Adam", "Linear", "loss._cross_entropy"] * count)


@pytest.mark.parametrize("reason", ["one core", "nothing made", "off", "frozen", "no python"])
def test_no_process_starts_where_none_can_help(
    started: list[_Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    if reason == "one core":
        monkeypatch.setattr(ahead, "_cores", lambda: 1)
    elif reason == "nothing made":
        monkeypatch.setattr(ahead, "made", set())
    elif reason == "off":
        monkeypatch.setenv("MINITORCH_COMPILE_AHEAD", "off")
    elif reason == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        monkeypatch.setattr(sys, "executable", "/opt/app/paint")
    ahead.begin(None, str(tmp_path))
    assert not started


def test_a_process_that_has_ended_is_told_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.close(read)
    process = type("Ended", (), {"stdin": io.FileIO(write, "w")})()
    monkeypatch.setattr(ahead, "_processes", [process])
    ahead.tell("Linear")
    assert ahead._processes == []
    process.stdin.close()


def test_no_signal_ends_a_program_that_leaves_broken_pipes_to_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write = os.pipe()
    os.close(read)
    process = type("Ended", (), {"stdin": io.FileIO(write, "w")})()
    monkeypatch.setattr(ahead, "_processes", [process])
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        ahead.tell("Linear")
    finally:
        signal.signal(signal.SIGPIPE, before)
    assert ahead._processes == []
    assert signal.SIGPIPE not in signal.sigpending()
    process.stdin.close()


def test_no_thread_need_start(
    started: list[_Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: Any) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(ahead.threading.Thread, "start", start)
    ahead.begin(2, str(tmp_path))
    assert len(started) == 1


def test_layers_and_optimizers_that_are_made_are_known() -> None:
    mt.optim.Adam(mt.nn.Linear(2, 2).parameters())
    assert {"Linear", "Adam"} <= ahead.made


@pytest.fixture(scope="module")
def known() -> dict[str, list[programs.Need]]:
    """What each program needs."""
    return {name: programs.needs_of(name) for name in programs.PROGRAMS}


def test_every_program_needs_kernels(known: dict[str, list[programs.Need]]) -> None:
    assert all(known.values())
    assert [n.name for n in known["LayerNorm"]] == ["norm._layer_norm", "norm._layer_norm_backward"]
    assert [n.when for n in known["LayerNorm"]] == [0, 1]
    assert [n.when for n in known["Adam"]] == [2]


def test_a_rehearsal_runs_no_kernel() -> None:
    x = mt.ones(64, 64)
    with programs.rehearsal() as needs:
        y = x.softmax(1)
    assert [need.name for need in needs] == ["softmax._softmax_f32"]
    assert not y.numpy().any()
    np.testing.assert_allclose(mt.ones(64, 64).softmax(1).numpy(), 1 / 64)


def test_bodies_stand_in_the_order_of_a_step(known: dict[str, list[programs.Need]]) -> None:
    found = programs.wanted(known, ["Adam", "LayerNorm", "elementwise._values_silu", "Elsewhere"])
    assert [need.name for need in programs.in_order(found)] == [
        "norm._layer_norm",
        "elementwise._values_silu",
        "elementwise._gradients_silu_slope",
        "norm._layer_norm_backward",
        "optim.adam",
    ]


def test_what_often_goes_together_has_programs() -> None:
    pairs = (pair for table in programs.OFTEN_WITH for pair in table.items())
    assert {name for pair in pairs for names in pair for name in names} <= set(programs.PROGRAMS)


def test_long_bodies_come_first(
    known: dict[str, list[programs.Need]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(main, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(main, "_compiled", lambda need: compiled.append(need.name) or True)
    monkeypatch.setattr(programs, "needs_of", known.__getitem__)
    main._compile(queue.Queue(), {"Embedding", "LayerNorm", "Adam"})
    assert compiled[:2] == ["attention._attend", "optim.adam"]


def test_a_process_guesses_once_nothing_is_left_that_was_asked_for(
    known: dict[str, list[programs.Need]], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(main, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(main, "_compiled", lambda need: compiled.append(need.name) or True)
    monkeypatch.setattr(programs, "needs_of", known.__getitem__)
    main._compile(queue.Queue(), {"LayerNorm", "SGD"})
    asked = ["optim.sgd", "norm._layer_norm_backward", "norm._layer_norm"]
    assert compiled == asked + [need.name for need in reversed(known["attention"])]


def test_a_body_of_many_programs_says_nothing(known: dict[str, list[programs.Need]]) -> None:
    assert programs.wanted(known, ["panels._work"]) == []


@pytest.mark.parametrize("name", ["logreg", "mlp", "cnn", "resnet", "gpt", "lstm"])
def test_the_build_leaves_nothing_to_compile(
    known: dict[str, list[programs.Need]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from workloads import WORKLOADS

    workload = WORKLOADS[name]
    with programs.rehearsal() as needs:
        model, (x, y) = workload.make(mt), workload.batch(mt)
        optimizer = mt.optim.Adam(model.parameters())
        getattr(mt.nn.functional, workload.loss)(model(x), y).backward()
        optimizer.step()
    built = {need[:2] for found in known.values() for need in found}
    missing = {need.name for need in needs if need[:2] not in built}
    assert not missing, "kernels/programs.py needs a program that calls these with such types"
    assert needs or name == "logreg"


def _run(program: str, cache: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "MINITORCH_COMPILE_AHEAD": "on"}
    environment["OMP_NUM_THREADS"] = "1" if program == WORK else "2"
    command = [sys.executable, "-c", program]
    options: Any = {"capture_output": True, "text": True, "timeout": 120, "env": environment}
    return subprocess.run(command, input=text, **options)


WORK = """
import io, sys
from minitorch.kernels import __main__ as main
main._IDLE_SECONDS = 0.0
main._listen = lambda names: [names.put(word) for word in ("SGD", "Elsewhere")]
main.work_ahead()
"""


def test_a_process_compiles_ahead_what_it_is_told(tmp_path: Path) -> None:
    done = _run(WORK, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {p.name.split("-")[0] for p in tmp_path.rglob("*.nbi")} == {"optim.sgd"}


def test_a_process_that_cannot_understand_ends(tmp_path: Path) -> None:
    program = "from minitorch.kernels.__main__ import main; main(['--ahead'])"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, env=environment) as process:
        assert process.stdin is not None
        process.stdin.write("Größe\n".encode())
        process.stdin.flush()
        assert process.wait(60) == 0


def test_processes_find_the_package_where_this_one_has_it(
    started: list[_Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    ahead.begin(2, str(tmp_path))
    first, last = started[0].options["env"]["PYTHONPATH"].split(os.pathsep)
    assert first == "mine"
    assert (Path(last) / "minitorch" / "kernels" / "ahead.py").samefile(ahead.__file__)


def test_a_process_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    done = _run("from minitorch.kernels.__main__ import main; main(['--ahead'])", tmp_path, "")
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("*.nbi"))


STEP = """
import minitorch as mt
from minitorch.kernels import ahead
layer = mt.nn.ReLU()
x = mt.full((64, 64), 2.0, requires_grad=True)
layer(x).backward(mt.ones(64, 64))
print(x.grad.sum().item(), ahead._begun or ahead._cores() < 2)
"""


def test_a_program_and_its_processes_share_the_work(tmp_path: Path) -> None:
    done = _run(STEP, tmp_path)
    assert done.stdout.split() == ["4096.0", "True"], done.stderr
    found = {p.name.split("-")[0] for p in tmp_path.rglob("*.nbi")}
    assert {"elementwise._values_relu", "elementwise._gradients_relu_slope"} <= found
