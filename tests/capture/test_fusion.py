"""Chains of elementwise calls become kernels: which ones, with which bits, what stays alone."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.capture import Captured, fusion, lowering
from minitorch.nn import functional as F

pytest.importorskip("numba", reason="without numba there are no kernels")

from .test_same_numbers import PROGRAMS, trained

ROWS, WIDTH = 160, 256  # more numbers than a kernel needs


def _rms_norm(x: Any, w: Any) -> Any:
    return x * mt.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def _layer_norm(x: Any, w: Any) -> Any:
    centred = x - x.mean(-1, keepdim=True)
    return centred / mt.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * w + w


def _huber(x: Any, y: Any) -> Any:
    d = (x - y).abs()
    return mt.where(d < 1, 0.5 * d * d, d - 0.5)


def _gated(h: Any) -> Any:
    a, b = h.chunk(2, dim=-1)
    return a.abs() * b + a.clamp(min=0) * 0.5


# A function of x, y and w, a row; and how many kernels it has, forward and backward.
CHAINS: dict[str, tuple[Callable[..., Any], int, int, bool]] = {
    "residuals": (lambda x, y, w: ((x * 0.5 + y * 0.1) * 1.1 + x).square().sum(), 1, 1, True),
    "loss": (lambda x, y, w: _huber(x, y).mean(), 1, 1, True),
    "row": (lambda x, y, w: (x * w + w).abs().mean(), 1, 1, True),
    "rms_norm": (lambda x, y, w: (_rms_norm(x, w) * y).sum(), 2, 3, True),
    "layer_norm": (lambda x, y, w: (_layer_norm(x, w) * y).sum(), 2, 4, True),
    "powers": (lambda x, y, w: (x**3 + x.abs() ** 1.5 - (x * x + 1) ** -0.5).mean(), 1, 1, False),
    "clamped": (lambda x, y, w: (mt.maximum(x, y).clamp(-0.5, 0.9) * 2).sum(), 1, 1, True),
    "masked": (lambda x, y, w: (x.masked_fill(y > 0, 2.0) * y).sum(1).mean(), 1, 1, True),
    "product between": (lambda x, y, w: ((x * x + 1) @ (y * y - 1).T).mean(), 2, 1, True),
    "halves": (lambda x, y, w: _gated(x * y).mean(), 1, 2, True),
    "activation": (lambda x, y, w: (x * mt.sigmoid(1.702 * x)).sum(), 1, 1, False),
    "physics": (lambda x, y, w: ((x * y).tanh() ** 2 - (-x.abs()).exp() * y).mean(), 1, 1, False),
    "entropy": (lambda x, y, w: (x.relu() - x * y + (-x.abs()).exp().log1p()).mean(), 1, 1, False),
}


def _kernels(calls: Any) -> list[Any]:
    return [call for call in calls if type(call.body).__name__ == "Chain"]


def _recording(captured: Captured) -> Any:
    ((recording,),) = captured._recordings.values()
    return recording


@pytest.mark.parametrize("dtype", [mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_one_kernel_each_way(name: str, dtype: Any) -> None:
    function, forward, backward, exact = CHAINS[name]
    mt.manual_seed(0)
    leaves = [mt.randn(*s, dtype=dtype) for s in ((ROWS, WIDTH), (ROWS, WIDTH), (WIDTH,))]
    for t in leaves:
        t.requires_grad_()
    captured = Captured(function)

    def run(f: Any) -> list[Any]:
        for t in leaves:
            t.grad = None
        value = f(*leaves)
        value.backward()
        grads = [None if t.grad is None else t.grad.numpy().copy() for t in leaves]
        return [value.item(), *grads]

    for _ in range(4):
        run(captured)
    assert not captured.counts.breaks
    expected, got = run(function), run(captured)
    assert captured.counts.replays
    rtol = 0 if exact else 1e-6 if dtype is mt.float32 else 1e-14
    for a, b in zip(expected, got, strict=True):
        if a is not None:
            np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol)
    recording = _recording(captured)
    calls = next(iter(recording._backwards.values()))[0]
    assert (len(_kernels(recording._forwards)), len(_kernels(calls))) == (forward, backward)


def _numbers(x: Any) -> list[float]:
    if isinstance(x, dict):
        x = list(x.values())
    return [n for part in x for n in _numbers(part)] if isinstance(x, list | tuple) else [x]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_learn_the_same_when_everything_is_fused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fusion, "LEAST", 1)
    monkeypatch.setattr(fusion, "STEPS", 1)
    monkeypatch.setattr(lowering, "SHORT", 1)
    before = mt.random.state_dict()
    expected, state, _ = trained(PROGRAMS[name], False)
    got, other, call = trained(PROGRAMS[name], True)
    mt.random.load_state_dict(before)
    assert call.counts.replays
    assert not call.counts.breaks
    for a, b in zip(_numbers((expected, state)), _numbers((got, other)), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_small_chains_and_single_calls_stay_as_they_are() -> None:
    captured = Captured(lambda x: (x * 2 + 1).sum())
    for _ in range(3):
        captured(mt.randn(10, 10))
    assert not _kernels(_recording(captured)._forwards)
    for rows, count in ((ROWS, 0), (512, 1)):
        captured = Captured(lambda x: x.abs())
        for _ in range(3):
            captured(mt.randn(rows, WIDTH))
        assert len(_kernels(_recording(captured)._forwards)) == count


def test_changes_in_place_stay_between_what_reads_before_and_after() -> None:
    def step(x: Any) -> Any:
        a = x * 2 + 1
        b = a * a - a
        with mt.no_grad():
            a.add_(1.0)
        return b + a * 3 - 1

    captured = Captured(step)
    x = mt.randn(ROWS, WIDTH)
    for _ in range(6):
        got = captured(x)
    np.testing.assert_array_equal(got.numpy(), step(x).numpy())
    assert captured.counts.replays
    assert not captured.counts.breaks


def test_a_view_between_two_kernels_sees_what_is_written() -> None:
    def step(x: Any) -> Any:
        a = x * 2 + 1
        b = a.view(-1)
        c = b * b - 1
        with mt.no_grad():
            a.add_(1.0)
        return c + b, b[:3] * 1

    captured = Captured(step)
    x = mt.randn(512, WIDTH)
    for _ in range(6):
        got = captured(x)
    assert captured.counts.replays
    for a, b in zip(got, step(x), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_results_are_the_callers_own() -> None:
    captured = Captured(lambda x: (x * 2 + 1, x * 2 - 1))
    x = mt.randn(ROWS, WIDTH)
    kept = [captured(x) for _ in range(5)]
    for a, b in kept:
        np.testing.assert_array_equal(a.numpy(), x.numpy() * 2 + 1)
        np.testing.assert_array_equal(b.numpy(), x.numpy() * 2 - 1)
    first = kept[-1][0]
    first.mul_(0.0)
    assert captured(x)[0].abs().sum() > 0


def test_nan_and_infinities_come_out_as_without() -> None:
    def step(x: Any, y: Any) -> Any:
        return mt.where(x > y, (x / y).exp(), mt.maximum(x, y).log1p() - x.tanh() * y.sqrt())

    captured = Captured(step)
    ends = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0, 1e-40], np.float32)
    x = mt.from_numpy(np.resize(ends, (ROWS, WIDTH)))
    y = mt.from_numpy(np.repeat(ends, ROWS * WIDTH // 8).reshape(ROWS, WIDTH))
    for _ in range(6):
        got = captured(x, y)
    assert captured.counts.replays
    np.testing.assert_allclose(got.numpy(), step(x, y).numpy(), rtol=1e-6)


# Functions of x and y whose results are zeros of either sign.
ZEROS: dict[str, Callable[..., Any]] = {
    "relu": lambda x, y: x.relu() + x.abs().neg().relu() * x,
    "clamp": lambda x, y: mt.stack([x.clamp(min=0) * 1, x.clamp(max=0) * 1, x.clamp(0, 1) * 1]),
    "maximum": lambda x, y: mt.maximum(x, y) * mt.maximum(y, x).abs(),
    "minimum": lambda x, y: mt.minimum(x, y) * mt.minimum(y, x).abs(),
    "positive": lambda x, y: mt.where(x < 0.05, 0.0, x) * 1,
    "negative": lambda x, y: mt.where(x < 0.05, -0.0, x) * 1,
    "rows": lambda x, y: (x * 1).sum(1),
    "columns": lambda x, y: (x * 1).sum(0),
    "all": lambda x, y: (x * 1).mean(),
}


@pytest.mark.parametrize("name", ZEROS)
def test_zeros_have_the_sign_that_they_have_without(name: str) -> None:
    captured = Captured(ZEROS[name])
    mt.manual_seed(0)
    for _ in range(4):
        captured(mt.rand(ROWS, WIDTH) + 0.1, mt.rand(ROWS, WIDTH))
    assert _kernels(_recording(captured)._forwards)
    zero, mixed = mt.zeros(ROWS, WIDTH), mt.zeros(ROWS, WIDTH)
    mixed[:, ::2] = -0.0
    for x in (-zero, zero, mixed):
        got, expected = captured(x, -x), ZEROS[name](x, -x)
        np.testing.assert_array_equal(np.signbit(got.numpy()), np.signbit(expected.numpy()))
    assert captured.counts.replays


def test_kernels_outlive_those_that_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    chain: Any = fusion.load("chain")
    few = functools.lru_cache(1)(chain._compiled.__wrapped__)
    monkeypatch.setattr(chain, "_compiled", few)
    x = mt.randn(ROWS, WIDTH)
    for i in range(6):
        captured = Captured(lambda x, i=i: x * 2 + i)
        for _ in range(5):
            got = captured(x)
        assert _kernels(_recording(captured)._forwards)
        np.testing.assert_array_equal(got.numpy(), x.numpy() * 2 + i)


def test_a_kernel_may_read_nothing() -> None:
    captured = Captured(lambda x: x[..., :1].expand(ROWS, WIDTH).floor().relu() * 1.5)
    for _ in range(6):
        x = mt.randn(ROWS, WIDTH).requires_grad_()
        captured(x).sum().backward()
        assert x.grad is not None
        assert not x.grad.numpy().any()
    assert captured.counts.replays
    assert not captured.counts.breaks


def _twice(v: Any, x: Any) -> Any:
    return v.sum() + (v * x).sum(1)


# Functions of x and y, and a shape: with the numbers they are recorded with, mistakes do not show.
HIDDEN: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "a sum of bools": (lambda x, y: mt.where(((x > 0) + (y > 0)) ^ (x > y), x, y), (128, 129)),
    "axes in another order": (lambda x, y: (x * 1 + y).sum((2, 1)), (33, 17, 33)),
    "one by one": (lambda x, y: (x * 2 + y).sum(0), (40000, 1)),
    "copies": (lambda x, y: _twice((x * y)[:1].expand(24, 1030), x), (24, 1030)),
    "many copies": (lambda x, y: _twice((x * y)[:1].expand(60, 1030), x), (60, 1030)),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_the_recorded_numbers_hide_is_right(name: str) -> None:
    function, shape = HIDDEN[name]
    captured = Captured(function)
    for _ in range(4):
        captured(mt.ones(*shape), -mt.ones(*shape))
    mt.manual_seed(0)
    x, y = mt.rand(*shape) + 0.1, mt.rand(*shape) + 0.1
    np.testing.assert_array_equal(captured(x, y).numpy(), function(x, y).numpy())
    assert captured.counts.replays


def test_without_kernels_nothing_is_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "load", lambda family: None)
    captured = Captured(lambda x: x * 2 + 1)
    x = mt.randn(ROWS, WIDTH)
    for _ in range(6):
        got = captured(x)
    assert not _kernels(_recording(captured)._forwards)
    np.testing.assert_array_equal(got.numpy(), x.numpy() * 2 + 1)


def test_a_kernel_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    chain: Any = fusion.load("chain")

    class Wrong(chain.Chain):  # type: ignore[misc, name-defined]
        def __call__(self, *arrays: Any) -> Any:
            return super().__call__(*arrays) * 1.0001

    monkeypatch.setattr(chain, "Chain", Wrong)
    captured = Captured(lambda x: (x * 2 + 1).relu())
    x = mt.randn(ROWS, WIDTH)
    for _ in range(6):
        got = captured(x)
    assert captured.counts.replays
    np.testing.assert_array_equal(got.numpy(), np.maximum(x.numpy() * 2 + 1, 0))


def test_a_module_learns_through_kernels() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)
            self.scale = nn.Parameter(mt.ones(64))

        def forward(self, x: Any) -> Any:
            h = self.up(_rms_norm(x, self.scale))
            return x + 0.5 * self.down(h * mt.sigmoid(1.702 * h))

    def losses(compiled: bool) -> list[float]:
        mt.manual_seed(0)
        net = Block()
        call = mt.compile(net) if compiled else net
        optimizer = mt.optim.SGD(net.parameters(), lr=0.1)
        found = []
        for _ in range(6):
            x = mt.randn(96, 64)
            loss = F.mse_loss(call(x), x * 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)


# What follows batch_norm of x, with a second one beside; and whether it is joined with it.
AFTER_NORM: dict[str, tuple[Callable[..., Any], bool]] = {
    "relu": (lambda x, norm, other: norm(x).relu(), True),
    "residual": (lambda x, norm, other: (norm(x) + x).relu(), True),
    "both": (lambda x, norm, other: (norm(x) + other(x)).relu(), True),
    "silu": (lambda x, norm, other: F.silu(norm(x)), True),
    "pooling": (lambda x, norm, other: F.max_pool2d(norm(x), 2), False),
}


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", AFTER_NORM)
def test_what_follows_batch_norm_is_joined_with_it(name: str, training: bool) -> None:
    after, joined = AFTER_NORM[name]
    affine = name != "residual"
    mt.manual_seed(0)
    norms = nn.ModuleList([nn.BatchNorm2d(8, affine=affine) for _ in range(2)]).train(training)
    for t in norms.state_dict().values():
        if t.is_floating_point():
            t.add_(mt.rand(t.shape))
    twins = copy.deepcopy(norms)
    x = mt.randn(16, 8, 12, 12) * 2 + 1
    captured = Captured(lambda x: after(x, *norms))
    for _ in range(6):
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, expected = captured(a * 1.0), after(b * 1.0, *twins)
        got.sum().backward()
        expected.sum().backward()
        exactly = name != "silu"
        for p, q in zip(
            (got, a.grad, *norms.state_dict().values()),
            (expected, b.grad, *twins.state_dict().values()),
            strict=True,
        ):
            tolerance = 0 if exactly else 1e-5
            np.testing.assert_allclose(p.detach(), q.detach(), rtol=tolerance, atol=tolerance)
    assert not captured.counts.breaks
    assert captured.counts.replays == 2
    ran = {getattr(c.body, "__name__", "") for c in _recording(captured)._forwards}
    assert ("normalised" not in ran) == joined


def test_batch_norm_that_rounds_otherwise_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    real = fusion.expression_of_norm

    def other(call: Any, leaf: Any) -> Any:
        y = real(call, leaf)
        return type(y)("neg", (y,), y.dtype, y.shape)

    monkeypatch.setattr(fusion, "expression_of_norm", other)
    norm = nn.BatchNorm2d(8)
    captured = Captured(lambda x: norm(x).relu() * 2.0)
    x = mt.randn(16, 8, 12, 12)
    for _ in range(6):
        captured(x).sum().backward()
    assert captured.counts.replays == 2
    calls = _recording(captured)._forwards
    assert [c.body.__name__ for c in calls if "norm" in getattr(c.body, "__name__", "")]
    assert len(_kernels(calls)) == 1
