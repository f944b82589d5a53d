"""How bodies are compiled: errors come through, and other versions of numba are served too."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

compiler = pytest.importorskip("minitorch.kernels.cpu.compiler", reason="numba is not installed")
kernel_module = pytest.importorskip("minitorch.kernels.cpu.kernel", reason="numba is not installed")


@kernel_module.inlined
def _square(x, least):  # type: ignore[no-untyped-def]
    if x < least:
        return least
    return x * x


def _squares(first, last, x, out):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        out[i] = _square(x[i], 4.0) + _square(-x[i], 1.0) + min(x[i], *(0.0, 4.0))


def _without_pass_builder(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiler, "_has_pass_builder", lambda: False)


def _with_all_passes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiler, "_UNNEEDED", frozenset())
    only = {compiler.NativeLowering: compiler._BodyLowering}
    patch.setattr(compiler.BodyCompiler, "replaced", only)


@pytest.mark.parametrize("change", [None, _without_pass_builder, _with_all_passes])
def test_bodies_run_where_numba_lacks_a_part(
    change: Callable[[pytest.MonkeyPatch], None] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if change is not None:
        change(monkeypatch)
    x = np.linspace(-3, 3, 50)
    out = np.empty_like(x)
    squares = kernel_module.Kernel(_squares)
    for workers in (0, 2):
        squares.share(workers, len(x), x, out)
        expected = np.where(x < 4, 4, x * x) + np.where(-x < 1, 1, x * x) + np.minimum(x, 0)
        np.testing.assert_array_equal(out, expected)


def _copy_then_add(first, last, x, out, sums):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        if i < len(x):
            out[i] = x[i]
        else:
            sums[i - len(x)] = 0
            for j in range(len(x)):
                sums[i - len(x)] += out[j]


@pytest.mark.parametrize("second", [0, 1, 40])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_second_round_begins_when_the_first_is_done(workers: int, second: int) -> None:
    x, body = np.arange(5000.0), kernel_module.Kernel(_copy_then_add)
    for _ in range(20):
        out, sums = np.zeros(len(x)), np.full(second, -1.0)
        body.share(workers, kernel_module.in_rounds(len(x), second), x, out, sums)
        np.testing.assert_array_equal(out, x)
        np.testing.assert_array_equal(sums, np.full(second, x.sum()))


def test_a_numba_that_makes_no_entry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.BodyCompiler, "replaced", {})
    with pytest.raises(RuntimeError, match="compiles functions in another way"):
        kernel_module.Kernel(lambda first, last, x: None)(1, np.ones(3))


def test_a_numba_that_lacks_what_is_needed_leaves_the_plain_bodies() -> None:
    program = (
        "import numba.core.inline_closurecall as inside; del inside.inline_closure_call\n"
        "import minitorch as mt; mt.erf(mt.ones(3000))"
    )
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)
    assert run.returncode == 0
    assert "this version of numba does not fit" in run.stderr


@kernel_module.kernel()
def _roots(first, last, x):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        if x[i] < 0:
            raise ValueError("a negative number")
        x[i] = np.sqrt(x[i])


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("place", [0, 40, 99])
def test_an_error_in_a_body_reaches_the_caller(workers: int, place: int) -> None:
    x = np.full(100, 4.0)
    x[place] = -1
    with pytest.raises(ValueError, match="a negative number"):
        _roots.share(workers, len(x), x)
    x = np.full(100, 4.0)
    _roots.share(workers, len(x), x)
    assert (x == 2).all()


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collection_of_garbage_goes_on_as_before(collecting: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if collecting else gc.disable()
        kernel_module.Kernel(lambda first, last, x: None)(1, np.ones(3))
        assert gc.isenabled() == collecting
        with pytest.raises(Exception, match="nothing"):
            kernel_module.Kernel(lambda first, last, x: x.nothing)(1, np.ones(3))
        assert gc.isenabled() == collecting
    finally:
        gc.enable() if before else gc.disable()
