"""Every operation gives on the device what it gives on the CPU, with no hidden transfer or wait."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import all_rows
import pytest
from device_checks import (
    DEVICES,
    Costs,
    check_gradients,
    check_results,
    check_second_gradients,
)
from op_table import ROWS, Row

import minitorch as mt

LATE = "the shape of the result depends on the values"
ANSWER = "the answer is a Python value"
# Rows during which the host waits for the device, and why it has to.
WAITS = {
    "x[mask]": LATE,
    "x[row mask]": LATE,
    "masked_select": LATE,
    "nonzero": LATE,
    "unique": LATE,
    "unique with counts": LATE,
    "bincount": LATE,
    "where indices": LATE,
    "allclose": ANSWER,
    "equal": ANSWER,
    "set at a mask": "CuPy counts the mask",
    "cumprod": "its rule asks whether an element is 0, as PyTorch's does",
    "cumprod zeros": "its rule asks whether an element is 0, as PyTorch's does",
}
# Rows during which values come from the host, and why.
UPLOADS = {
    "x[[0, 0, 2]]": "the list",
    "setitem list": "the list",
    "new_tensor": "the values",
    "set at a mask": "CuPy sends the number",
}


def _row(name: str, call: Any, *shapes: tuple[int, ...], **options: Any) -> Row:
    return Row(name, call, (shapes or ((3, 4),),), **options)


def _set(x: Any, key: Any, value: Any) -> Any:
    x = x.clone()
    x[key] = value
    return x


MORE = [
    *[
        _row(f"{name} with a number", lambda m, x, name=name: getattr(m, name)(x, 2.5), (3, 4))
        for name in ("add", "sub", "mul", "div", "maximum", "gt", "fmod", "eq", "logaddexp")
    ],
    _row("number minus", lambda m, x: 2 - x, (3, 4)),
    _row("0-d plus a number", lambda m, x: x + 1.5, ()),
    _row("integers", lambda m, x: (x.long() + 1) * 2 // 3, (3, 4)),
    _row("integers over a number", lambda m, x: x.long() / 2, (3, 4)),
    _row("integers times floats", lambda m, x, y: x.long() * y, (3, 4), (4,)),
    _row("mask times floats", lambda m, x: (x > 0) * x, (3, 4)),
    _row("not", lambda m, x: ~(x > 0), (3, 4)),
    *[
        _row(name, lambda m, x, name=name: getattr(m, name)(x.long(), (x > 0).long()), (3, 4))
        for name in (
            "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()
        )
    ],
    _row("bitwise_not", lambda m, x: m.bitwise_not(x.long()), (3, 4)),
    _row("where with numbers", lambda m, x: m.where(x > 0, 1.0, 0.0), (3, 4)),
    _row("where indices", lambda m, x: m.where(x > 0), (3, 4)),
    _row("clamp with a tensor", lambda m, x, y: m.clamp(x, min=y), (3, 4), (4,)),
    _row("clamp_min", lambda m, x: m.clamp_min(x, 0.1), (3, 4)),
    _row("clamp_max", lambda m, x: m.clamp_max(x, 0.1), (3, 4)),
    _row("allclose", lambda m, x: m.allclose(x, x), (3, 4)),
    _row("equal", lambda m, x: m.equal(x, x + 1), (3, 4)),
    _row("bincount", lambda m, x: m.bincount((x > 0).long().reshape(-1)), (3, 4)),
    _row("unique with counts", lambda m, x: m.unique(x > 0, return_counts=True), (3, 4)),
    _row("var_mean", lambda m, x: m.var_mean(x, 1), (3, 4)),
    _row("std_mean", lambda m, x: m.std_mean(x, 1), (3, 4)),
    _row("median of an axis", lambda m, x: m.median(x, 1), (3, 4)),
    _row("argmin", lambda m, x: m.argmin(x, 1), (3, 4)),
    _row("swapaxes", lambda m, x: m.swapaxes(x, 0, 1), (3, 4)),
    _row("broadcast_tensors", lambda m, x, y: m.broadcast_tensors(x, y), (3, 4), (4,)),
    _row("meshgrid", lambda m, x, y: m.meshgrid(x, y, indexing="ij"), (3,), (4,)),
    _row("zeros_like", lambda m, x: m.zeros_like(x), (3, 4)),
    _row("ones_like", lambda m, x: m.ones_like(x), (3, 4)),
    _row("full_like", lambda m, x: m.full_like(x, 2.0), (3, 4)),
    _row("new_zeros", lambda m, x: x.new_zeros(2), (3, 4)),
    _row("new_ones", lambda m, x: x.new_ones(2), (3, 4)),
    _row("new_full", lambda m, x: x.new_full((2,), 3.0), (3, 4)),
    _row("new_tensor", lambda m, x: x.new_tensor([1.0, 2.0]), (3, 4)),
    *[
        _row(f"to {name}", lambda m, x, name=name: getattr(x, name)(), (3, 4))
        for name in ("double", "half", "long", "int", "bool", "byte")
    ],
    _row("add_ alpha", lambda m, x, y: x.clone().add_(y, alpha=0.5), (3, 4), (3, 4)),
    _row("sub_ a number", lambda m, x: x.clone().sub_(1.5), (3, 4)),
    _row("addcmul_", lambda m, x, y: x.clone().addcmul_(x, y, value=0.1), (3, 4), (3, 4)),
    _row("addcdiv_", lambda m, x, y: x.clone().addcdiv_(x, y, value=0.1), (3, 4), (3, 4), low=0.5),
    _row("lerp_", lambda m, x, y: x.clone().lerp_(y, 0.1), (3, 4), (3, 4)),
    _row("masked_fill_", lambda m, x: x.clone().masked_fill_(x > 0, 0.0), (3, 4)),
    _row("abs_", lambda m, x: x.clone().abs_(), (3, 4)),
    _row("set a number", lambda m, x: _set(x, 0, 2.0), (3, 4)),
    _row("set at a mask", lambda m, x: _set(x, x > 0, 0.0), (3, 4)),
    _row("set at a tensor", lambda m, x, y: _set(x, m.tensor([0, 2]), y), (3, 4), (2, 4)),
]
ALL = [*ROWS, *MORE]


COSTS = Costs(WAITS, UPLOADS)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_results_equal_the_cpus(row: Row, device: str, pretend_gpu: ModuleType) -> None:
    check_results(row, device, pretend_gpu, COSTS)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_gradients_equal_the_cpus(row: Row, pretend_gpu: ModuleType) -> None:
    check_gradients(row, pretend_gpu, COSTS)


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
@pytest.mark.usefixtures("pretend_gpu")
def test_second_gradients_equal_the_cpus(row: Row) -> None:
    check_second_gradients(row)


ELSEWHERE = {
    "another name of a row": "absolute arccos arcsin arctan arctan2 clip concat concatenate divide "
    "moveaxis multiply negative subtract true_divide diag",
    "see test_creation": "bernoulli multinomial normal rand rand_like randint randint_like randn "
    "randn_like randperm arange as_tensor empty empty_like eye from_dlpack from_numpy full "
    "linspace logspace ones tensor zeros",
    "see tests/ops/test_making": "asarray binomial empty_permuted empty_strided frombuffer poisson "
    "range scalar_tensor vander",
    "see tests/parity/test_fourier": "bartlett_window blackman_window hamming_window hann_window "
    "kaiser_window",
    "no arrays": "broadcast_shapes can_cast detach get_device is_complex is_conj is_inference "
    "is_nonzero is_same_size is_signed is_storage typename",
}


def test_every_operation_has_a_row() -> None:
    rows = {row.name.split(" ")[0] for row in [*ALL, *all_rows.FAMILIES]}
    elsewhere = {name for names in ELSEWHERE.values() for name in names.split()}
    missing = [
        name
        for name in dir(mt)
        if not name.startswith("_")
        and str(getattr(getattr(mt, name), "__module__", "")).startswith("minitorch.ops")
        and name not in rows | elsewhere
        and not name.endswith(("_", "Tensor"))
    ]
    assert not missing


def test_reasons_belong_to_rows() -> None:
    assert {*WAITS, *UPLOADS} <= {row.name for row in ALL}
