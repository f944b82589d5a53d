"""Chains of elementwise steps: each step × dtype against NumPy, layouts, sums, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="without numba there are no kernels")

from minitorch.kernels import load, threads

chain: Any = load("chain")
Step, Plan = chain.Step, chain.Plan
UFUNCS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "neg": np.negative,
    "abs": np.absolute,
    "sign": np.sign,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
WHOLE = ("add", "sub", "mul", "neg", "abs", "maximum", "sign", "eq", "lt")
ENDS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0, 2.5, -2.5, 88.7, -104.5]


def operands(kind: str, count: int) -> list[np.ndarray]:
    """Arrays that hold every pair of the ends, with numbers of all sizes; 1 more than lanes."""
    rng = np.random.default_rng(0)
    if kind in "il":
        return [rng.integers(-9, 9, 203).astype(kind) for _ in range(count)]
    some = rng.standard_normal(203) * 10.0 ** rng.integers(-9, 9, 203)
    a, b = (x.reshape(-1) for x in np.meshgrid(ENDS, ENDS))
    return [np.concatenate([x, y]).astype(kind) for x, y in ((a, some), (b, some[::-1]))[:count]]


def computed(op: str, arrays: list[np.ndarray], kind: str) -> np.ndarray:
    """The arrays through a chain of one step."""
    n = len(arrays)
    steps = [Step("input", (), a.dtype.char, i) for i, a in enumerate(arrays)]
    steps.append(Step(op, tuple(range(n)), kind))
    size = arrays[0].size
    inputs = tuple((a.dtype.char, (1,)) for a in arrays)
    out: np.ndarray = chain.Chain(Plan((size,), inputs, tuple(steps), (n,)), (size,))(*arrays)
    return out


ARITHMETIC = [(op, kind) for op in UFUNCS for kind in "fdl" if kind != "l" or op in WHOLE]


@pytest.mark.parametrize(("op", "kind"), ARITHMETIC)
def test_arithmetic_has_the_bits_of_numpy(op: str, kind: str) -> None:
    ufunc = UFUNCS[op]
    arrays = operands(kind, ufunc.nin)
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays)
    np.testing.assert_array_equal(computed(op, arrays, expected.dtype.char), expected)


@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("op", ["exp", "tanh", "log", "log1p"])
def test_functions_are_right_to_two_units(op: str, kind: str) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal(4000) * s for s in (1e-3, 0.1, 1, 10, 100)])
    x = np.concatenate([x, operands("d", 1)[0]]).astype(kind)
    with np.errstate(all="ignore"):
        exact = getattr(np, op)(x.astype(np.float64 if kind == "f" else np.longdouble))
        rounded = exact.astype(kind)
    y = computed(op, [x], kind)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(y[~finite], rounded[~finite])
    unit = np.spacing(np.abs(rounded[finite]))
    assert np.max(np.abs(y[finite] - exact[finite]) / unit) <= 2


@pytest.mark.parametrize(("old", "new"), ["fd", "df", "?f", "?d", "lf", "ld", "il", "f?", "l?"])
def test_casts_are_those_of_numpy(old: str, new: str) -> None:
    x = operands("f" if old == "?" else old, 1)[0]
    x = x > 0 if old == "?" else x
    with np.errstate(all="ignore"):
        expected = x.astype(new)
    np.testing.assert_array_equal(computed("cast", [x], new), expected)


@pytest.mark.parametrize("op", ["and", "or", "xor", "not"])
def test_logic(op: str) -> None:
    bools = [x > 0 for x in operands("f", 1 if op == "not" else 2)]
    np.testing.assert_array_equal(computed(op, bools, "?"), getattr(np, f"logical_{op}")(*bools))


LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    # sizes passed over, and the strides of the second array
    "same": ((5000,), (1,)),
    "row": ((37, 65), (0, 1)),
    "column": ((37, 65), (1, 0)),
    "number": ((7, 4100), (0, 0)),
    "middle": ((5, 6, 33), (33, 0, 1)),
    "outer": ((5, 6, 33), (0, 1, 0)),
    "part of rows": ((37, 65), (80, 1)),
    "part of both": ((5, 6, 33), (999, 40, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_with_fewer_axes_are_repeated(layout: str) -> None:
    sizes, strides = LAYOUTS[layout]
    rng = np.random.default_rng(2)
    a = rng.standard_normal(sizes).astype("f")
    size = 1 + sum(s * (n - 1) for s, n in zip(strides, sizes, strict=True))
    numbers = rng.standard_normal(size).astype("f")
    shape = [n if s else 1 for n, s in zip(sizes, strides, strict=True)]
    apart = tuple(4 * s for s in strides)
    b = np.ndarray(shape, "f", numbers, 0, apart)
    steps = (
        Step("input", (), "f", 0),
        Step("input", (), "f", 1),
        Step("add", (1, 1), "f"),
        Step("mul", (0, 2), "f"),
        Step("gt", (0, 2), "?"),
    )
    whole = tuple(int(np.prod(sizes[i + 1 :])) for i in range(len(sizes)))
    plan = Plan(sizes, (("f", whole), ("f", strides)), steps, (3, 4))
    body = chain.Chain(plan, sizes, (), (None, None if b.flags.c_contiguous else b.strides))
    out, more = body(a, b.copy() if layout == "part of rows" else b)
    np.testing.assert_array_equal(out, a * (b + b))
    np.testing.assert_array_equal(more, a > b + b)


def test_arrays_in_another_order_and_numbers_are_taken() -> None:
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    steps = (Step("input", (), "d", 0), Step("input", (), "d", 1), Step("mul", (0, 1), "d"))
    plan = Plan((12,), (("d", (1,)), ("d", (0,))), steps, (2,))
    np.testing.assert_array_equal(chain.Chain(plan, (3, 4))(x, np.float64(3)), x * 3)


@pytest.mark.parametrize("n", [1, 7, 8, 13, 128, 129, 136, 500, 4099])
@pytest.mark.parametrize("kind", ["f", "d"])
def test_sums_along_rows_have_the_bits_of_numpy(n: int, kind: str) -> None:
    x = np.random.default_rng(n).standard_normal((5, n)).astype(kind)
    steps = (Step("input", (), kind, 0), Step("mul", (0, 0), kind))
    plan = Plan((5, n), ((kind, (n, 1)),), steps, (1,), (1, 0))
    square, squares, total = chain.Chain(plan, (5, n), [(5, 1), (5,)])(x)
    np.testing.assert_array_equal(square, x * x)
    np.testing.assert_array_equal(squares, (x * x).sum(1, keepdims=True))
    np.testing.assert_array_equal(total, x.sum(1))


@pytest.mark.parametrize("sizes", [(5,), (999,), (70001,), (90, 136), (3, 5000)])
def test_sums_of_everything_have_the_bits_of_numpy(sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(sizes).astype("f")
    row = x[:1] if len(sizes) > 1 else x
    steps = (Step("input", (), "f", 0), Step("input", (), "f", 1), Step("mul", (0, 1), "f"))
    has = (1,) if len(sizes) == 1 else (0, 1)
    whole = (1,) if len(sizes) == 1 else (sizes[1], 1)
    plan = Plan(sizes, (("f", whole), ("f", has)), steps, (), (2,), "all")
    total = chain.Chain(plan, sizes, [()])(x, row)
    assert total == np.add.reduce((x * row).reshape(-1))
    assert total.shape == ()


@pytest.mark.parametrize("sizes", [(9, 64), (33, 100), (200, 13), (4, 5, 130)])
def test_sums_of_columns_have_the_bits_of_numpy(sizes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(sizes).astype("f")
    has = tuple(int(np.prod(sizes[i + 1 :])) for i in range(len(sizes)))
    steps = (Step("input", (), "f", 0), Step("mul", (0, 0), "f"))
    plan = Plan(sizes, (("f", has),), steps, (1,), (1, 0), "columns")
    square, squares, total = chain.Chain(plan, sizes, [sizes[-1:], (1, sizes[-1])])(x)
    axes = tuple(range(len(sizes) - 1))
    np.testing.assert_array_equal(square, x * x)
    np.testing.assert_array_equal(squares, (x * x).sum(axes))
    np.testing.assert_array_equal(total[0], x.sum(axes))


def test_threads_do_not_change_the_bits() -> None:
    x = np.random.default_rng(0).standard_normal((300, 257)).astype("f")
    steps = (Step("input", (), "f", 0), Step("exp", (0,), "f"))
    plan = Plan((300, 257), (("f", (257, 1)),), steps, (1,), (1,))
    body = chain.Chain(plan, x.shape, [(300,)])
    before = threads.count()
    found = []
    try:
        for count in (1, 2, 4):
            threads.set_num_threads(count)
            found.append([a.tobytes() for a in body(x)])
    finally:
        threads.set_num_threads(before)
    assert found[0] == found[1] == found[2]
