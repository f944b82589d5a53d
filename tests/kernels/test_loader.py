"""Compiled kernels are used where they are safe, and never take a process down."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import load, loader
from minitorch.kernels.unobserved import unobserved


def test_a_family_is_loaded_once() -> None:
    assert load("special") is load("special") is not None


def _run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
        check=False,
    )


def test_one_thread_at_a_time_imports_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[bool] = []

    def imported(family: str) -> None:
        thread = threading.Thread(
            target=lambda: others.append(loader._importing.acquire(blocking=False))
        )
        thread.start()
        thread.join()

    monkeypatch.setattr(loader, "_loaded", {})
    monkeypatch.setattr(loader, "_import", imported)
    assert load("special") is None
    assert others == [False]


def test_the_cache_folder_is_known_while_numba_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", ModuleType("numba"))  # the beginning of it
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert Path(loader.cache_folder()).parent == tmp_path


def test_kernels_can_be_switched_off() -> None:
    program = (
        "import sys\nfrom minitorch.kernels import load\n"
        "print(load('special'), 'numba' in sys.modules)"
    )
    assert _run(program, MINITORCH_KERNELS="off").stdout.split() == ["None", "False"]


def test_without_numbas_compiler_plain_bodies_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    config = pytest.importorskip("numba").config
    monkeypatch.setattr(loader, "_loaded", {})
    monkeypatch.setattr(config, "DISABLE_JIT", 1)  # NUMBA_DISABLE_JIT, to measure coverage
    assert load("special") is None


def test_everything_runs_without_numba() -> None:
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "import minitorch as mt\n"
        "print(round(mt.erf(mt.full((3000,), 0.5))[0].item(), 4))"
    )
    assert _run(program).stdout.split() == ["0.5205"]


SMALL = """
import sys
import minitorch as mt
from minitorch.nn import functional as F
x = mt.randn(4, 3, requires_grad=True)
F.cross_entropy(x, mt.tensor([0, 1, 2, 0])).backward()
loss = F.layer_norm(x, (3,)).sum() + F.gelu(x).sum() + x.softmax(1).sum() + mt.erf(x).sum()
table = mt.randn(5, 3, requires_grad=True)
loss = loss + F.embedding(mt.tensor([1, 1]), table).sum()
image, weight = mt.randn(1, 2, 5, 5, requires_grad=True), mt.randn(2, 2, 3, 3, requires_grad=True)
image = F.batch_norm(image, None, None, training=True)
loss = loss + F.max_pool2d(F.conv2d(image, weight), 2).sum()
loss.backward()
print("numba" in sys.modules)
"""


def test_small_arrays_do_not_wait_for_the_import_of_numba() -> None:
    out = _run(SMALL)
    assert out.stdout.split() == ["False"], out.stderr


def _large(dtype: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.Generator(np.random.Philox(5))
    a, g = (rng.standard_normal(shape).astype(dtype) * 5 for _ in "ab")
    a[..., 1, 2:4] = -np.inf
    return [a, g]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(64, 40), (3, 30, 41), (300, 200)])
def test_softmax_agrees_with_its_plain_body(
    name: str, dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from minitorch.ops import softmax

    a, g = _large(dtype, shape)
    rule = getattr(softmax, f"_{name}_rule")
    forward = getattr(softmax, f"_{name}_forward")
    calls: list[str] = []
    module = load("softmax")
    assert module is not None
    for body in (name, f"{name}_backward"):
        kernel = getattr(module, body)
        monkeypatch.setattr(
            module, body, lambda *xs, body=body, kernel=kernel: calls.append(body) or kernel(*xs)
        )
    axis = a.ndim - 1
    with np.errstate(all="ignore"):
        y = forward(a, axis=axis)
        fast = y, rule(g, y, axis=axis)
        assert calls == [name, f"{name}_backward"]
        monkeypatch.setattr(softmax, "load_for", lambda *xs, **options: None)
        plain = forward(a, axis=axis), rule(g, y, axis=axis)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for x, expected in zip(fast, plain, strict=True):
        np.testing.assert_allclose(x, expected, rtol=tolerance, atol=tolerance)


FORK = """
import os, minitorch as mt
x = mt.randn(1000)
print(mt.erf(x).shape)
child = os.fork()
if child == 0:
    import sys
    y = mt.erf(x)
    from minitorch.kernels import load
    os._exit(0 if load("special") is None and y.shape == (1000,) else 3)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_uses_the_plain_bodies() -> None:
    out = _run(FORK)
    assert out.stdout.split()[-1] == "0", out.stderr


FORK_MEANWHILE = """
import os, sys, threading
import minitorch as mt
from minitorch.kernels import loader

begun, forked = threading.Event(), threading.Event()

imported = loader._import

def slow(family):
    begun.set()
    forked.wait()
    return imported(family)

loader._import = slow
worker = threading.Thread(target=lambda: loader.load("special"))
worker.start()
begun.wait()
child = os.fork()
if child == 0:
    grandchild = os.fork()
    if mt.erf(mt.ones(3000)).shape != (3000,):
        os._exit(3)
    os._exit(os.waitpid(grandchild, 0)[1] if grandchild else 0)
forked.set()
worker.join()
print(os.waitpid(child, 0)[1], loader.load("special") is not None)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_a_thread_imports_kernels_uses_the_plain_bodies() -> None:
    out = _run(FORK_MEANWHILE)
    assert out.stdout.split() == ["0", "True"], out.stderr


AT_ONCE = """
import threading
import minitorch as mt
found, start = [], threading.Barrier(6)

def work():
    start.wait()
    found.append(mt.erf(mt.ones(200_000)).sum().item())

workers = [threading.Thread(target=work) for _ in range(6)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(len(found), len(set(found)))
"""


def test_threads_that_call_their_first_kernel_at_once() -> None:
    out = _run(AT_ONCE, NUMBA_NUM_THREADS="2", OMP_NUM_THREADS="2")
    assert out.stdout.split() == ["6", "1"], out.stderr


def _in_a_thread(call: Callable[[], object]) -> object:
    seen: list[object] = []
    worker = threading.Thread(target=lambda: seen.append(call()))
    worker.start()
    worker.join()
    return seen[0]


@pytest.mark.parametrize("reentrant", [True, False])
def test_threads_share_kernels_only_where_the_layer_allows(
    monkeypatch: pytest.MonkeyPatch, reentrant: bool
) -> None:
    module = load("special")
    monkeypatch.setattr(loader, "_reentrant", reentrant)
    assert _in_a_thread(lambda: load("special")) is (module if reentrant else None)
    assert load("special") is module


@pytest.mark.parametrize("shape", [(), (0,), (3,), (100, 7), (2, 0)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_erf_agrees_with_its_plain_body(shape: tuple[int, ...], dtype: str) -> None:
    from minitorch.ops.special import erf_array

    x = (mt.randn(shape, dtype=mt.float64) * 2).to(getattr(mt, dtype))
    fast = mt.erf(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minitorch.kernels.load", lambda family: None)
        patch.setattr("minitorch.ops.special._FEW", 0)
        plain = erf_array(x._array)
    tolerance = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 2e-7, "float64": 1e-14}[dtype]
    np.testing.assert_allclose(
        fast.double().numpy(), plain.astype(np.float64), rtol=tolerance, atol=tolerance
    )


def test_a_long_compilation_is_told_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiler = pytest.importorskip("minitorch.kernels.cpu.compiler")
    kernel = pytest.importorskip("minitorch.kernels.cpu.kernel")
    monkeypatch.setattr(compiler, "NOTED_SECONDS", 0.0)
    monkeypatch.setattr(compiler, "_noted", False)
    for _ in range(2):
        kernel.Kernel(lambda first, last, x: None)(1, np.ones(3))
    assert capsys.readouterr().err.count("minitorch: compiling kernels for this machine, once") == 1
    monkeypatch.setattr(compiler, "_noted", False)
    compiler.announced()  # as `--build` does, which would advise itself
    kernel.Kernel(lambda first, last, x: None)(1, np.ones(3))
    assert not capsys.readouterr().err


def test_profile_functions_do_not_see_a_compilation() -> None:
    seen: list[str] = []

    def watch(frame: Any, event: str, arg: Any) -> None:
        seen.append(frame.f_code.co_name)

    def work() -> None:
        raise ValueError("nobody looks")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with pytest.raises(ValueError, match="nobody looks"), unobserved():
            work()
        assert sys.getprofile() == watch
    finally:
        sys.setprofile(before)
    assert "work" not in seen
    assert "unobserved" in seen


def test_the_command_line_wants_a_word() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "minitorch.kernels"], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2
    assert "--build" in result.stdout


def test_nothing_can_be_built_without_numba() -> None:
    program = "from minitorch.kernels.__main__ import main\nprint(main(['--build']))"
    done = _run(program, MINITORCH_KERNELS="off")
    assert "there are none to compile without numba" in done.stdout
    assert done.stdout.split()[-1] == "1"


def test_folders_that_were_not_used_for_long_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    root = tmp_path / "minitorch" / "kernels"
    for name, days in (("0123abcd", 99), ("89abcdef", 1), ("notes", 99)):
        (root / name / "cpu").mkdir(parents=True)
        when = time.time() - days * 86400
        os.utime(root / name, (when, when))
    loader.keep_folders_in_use(str(root / "deadbeef"))
    assert sorted(p.name for p in root.iterdir()) == ["89abcdef", "deadbeef", "notes"]
    os.utime(root / "89abcdef", (0, 0))
    loader.keep_folders_in_use(str(root / "89abcdef"))
    assert time.time() - (root / "89abcdef").stat().st_mtime < 3600
    loader.keep_folders_in_use(str(tmp_path / "elsewhere" / "deadbeef"))
    assert not (tmp_path / "elsewhere").exists()
