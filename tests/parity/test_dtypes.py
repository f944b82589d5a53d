"""Promotion and creation: the dtype of every result is torch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

NAMES = [
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
]
RANKS = {"vector": lambda m, d: m.ones(2, dtype=d), "scalar": lambda m, d: m.ones((), dtype=d)}
NUMBERS = [True, 2, 2.5]
OPERATIONS = {
    "add": lambda m, a, b: a + b,
    "mul": lambda m, a, b: a * b,
    "div": lambda m, a, b: a / b,
    "maximum": lambda m, a, b: m.maximum(a, b),
    "eq": lambda m, a, b: a == b,
    "pow": lambda m, a, b: a**b,
    "where": lambda m, a, b: m.where(m.tensor([True, False]), a, b),
}


def named(x: Any) -> str:
    return str(x.dtype).split(".")[1]


@pytest.mark.parametrize("name", OPERATIONS)
def test_pairs_of_tensors(name: str) -> None:
    call = OPERATIONS[name]
    wrong = []
    for (a, b), (ra, rb) in itertools.product(
        itertools.product(NAMES, NAMES), itertools.product(RANKS, RANKS)
    ):
        try:
            want = named(call(torch, *_pair(torch, a, b, ra, rb)))
        except (RuntimeError, NotImplementedError):
            continue
        got = named(call(mt, *_pair(mt, a, b, ra, rb)))
        if got != want:
            wrong.append((a, ra, b, rb, got, want))
    assert not wrong


def _pair(m: Any, a: str, b: str, ra: str, rb: str) -> tuple[Any, Any]:
    return RANKS[ra](m, getattr(m, a)), RANKS[rb](m, getattr(m, b))


@pytest.mark.parametrize("name", [n for n in OPERATIONS if n not in ("maximum", "where")])
@pytest.mark.parametrize("flip", [False, True])
def test_tensors_and_numbers(name: str, flip: bool) -> None:
    call = OPERATIONS[name]
    wrong = []
    for d, rank, number in itertools.product(NAMES, RANKS, NUMBERS):
        results = []
        for m in (torch, mt):
            t = RANKS[rank](m, getattr(m, d))
            pair = (number, t) if flip else (t, number)
            try:
                results.append(named(call(m, *pair)))
            except (RuntimeError, NotImplementedError):
                results.append("error")
        if results[0] != results[1] and results[0] != "error":
            wrong.append((d, rank, number, results))
    assert not wrong


CREATIONS = {
    "tensor float": lambda m: m.tensor(1.5),
    "tensor int": lambda m: m.tensor([1, 2]),
    "tensor bool": lambda m: m.tensor([True]),
    "tensor mixed": lambda m: m.tensor([1, 2.5]),
    "tensor empty": lambda m: m.tensor([]),
    "tensor nested empty": lambda m: m.tensor([[], []]),
    "tensor of tensors": lambda m: m.tensor([m.tensor(1.0), m.tensor(2.0)]),
    "zeros": lambda m: m.zeros(2, 3),
    "ones tuple": lambda m: m.ones((2, 3), dtype=m.int64),
    "full int": lambda m: m.full((2,), 3),
    "full float": lambda m: m.full((2,), 3.0),
    "full bool": lambda m: m.full((2,), True),
    "arange": lambda m: m.arange(5),
    "arange float": lambda m: m.arange(0, 1, 0.3),
    "arange down": lambda m: m.arange(5, 0, -2),
    "arange float end": lambda m: m.arange(3.0),
    "linspace": lambda m: m.linspace(0, 1, 5),
    "linspace one": lambda m: m.linspace(2, 3, 1),
    "eye": lambda m: m.eye(2, 3),
    "zeros_like": lambda m: m.zeros_like(m.ones(2, dtype=m.int32)),
    "full_like": lambda m: m.full_like(m.ones(2), 3),
    "new_zeros": lambda m: m.ones(2, dtype=m.float64).new_zeros(3),
    "new_tensor": lambda m: m.ones(2, dtype=m.int64).new_tensor([1.5]),
    "logspace": lambda m: m.logspace(0, 2, 3),
    "meshgrid": lambda m: m.meshgrid(m.arange(2), m.arange(3), indexing="ij")[1],
    "meshgrid xy": lambda m: m.meshgrid(m.arange(2), m.arange(3), indexing="xy")[0],
    "float": lambda m: m.arange(2).float(),
    "long": lambda m: m.tensor([1.7, -1.7]).long(),
    "bool": lambda m: m.tensor([0.0, 2.0]).bool(),
    "type_as": lambda m: m.ones(2).type_as(m.ones(1, dtype=m.float64)),
    "to": lambda m: m.ones(2).to(m.float64),
    "sum of bool": lambda m: m.ones(3, dtype=m.bool).sum(),
    "sum dtype": lambda m: m.ones(3, dtype=m.int32).sum(dtype=m.float32),
    "cat": lambda m: m.cat([m.ones(1), m.ones(1, dtype=m.float64)]),
}


@pytest.mark.parametrize("name", CREATIONS)
def test_creation(name: str) -> None:
    want, got = CREATIONS[name](torch), CREATIONS[name](mt)
    assert named(got) == named(want)
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


SHOWN = [
    lambda m: m.tensor([1.0, 2.5]),
    lambda m: m.tensor([1.0, 2.0]),
    lambda m: m.tensor([[1, 2], [3, 4]]),
    lambda m: m.tensor(3.5),
    lambda m: m.tensor([True, False]),
    lambda m: m.tensor([1e-8, 1.0]),
    lambda m: m.tensor([], dtype=m.float32),
    lambda m: m.ones(2, dtype=m.float64),
    lambda m: m.ones(2, requires_grad=True),
]


@pytest.mark.parametrize("build", SHOWN)
def test_repr(build: Any) -> None:
    assert repr(build(mt)) == repr(build(torch)).replace("torch.", "minitorch.")
