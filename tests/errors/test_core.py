"""Wrong programs on tensors: each names the rule, what came and the fix."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import autograd

f = mt.ones


def g(*size: int) -> Any:
    return mt.ones(*size, requires_grad=True)


Program = Callable[[], Any]
TABLE: list[tuple[str, Program, type[Exception], str]] = [
    # shapes
    (
        "add",
        lambda: f(2, 3) + f(4),
        mt.ShapeError,
        r"add: shapes must be equal or 1.*f32\[2,3\] and f32\[4\]",
    ),
    (
        "mul cuda-less int",
        lambda: f(2) * mt.arange(3),
        mt.ShapeError,
        "mul: shapes must be equal or 1",
    ),
    ("compare", lambda: f(2) > f(3), mt.ShapeError, "gt: shapes must be equal or 1"),
    ("where", lambda: mt.where(f(2) > 0, f(2), f(3)), mt.ShapeError, "where: shapes"),
    (
        "matmul inner",
        lambda: f(8, 3) @ f(4, 5),
        mt.ShapeError,
        r"inner sizes must match.*\(3 ≠ 4\)",
    ),
    ("matmul hint", lambda: f(8, 3) @ f(4, 3), mt.ShapeError, r"Did you mean a @ b\.T\?"),
    ("matmul left hint", lambda: f(3, 8) @ f(3, 5), mt.ShapeError, r"Did you mean a\.T @ b\?"),
    (
        "matmul batch",
        lambda: f(2, 3, 4) @ f(5, 4, 2),
        mt.ShapeError,
        "leading axes must be equal or 1",
    ),
    ("matmul scalar", lambda: f(()) @ f(3), mt.ShapeError, "need at least one axis.*Use \\*"),
    ("mm rank", lambda: mt.mm(f(2), f(2, 2)), mt.ShapeError, "mm: operands must have 2 axes"),
    ("bmm batch", lambda: mt.bmm(f(2, 3, 4), f(3, 4, 2)), mt.ShapeError, "batches must be as long"),
    (
        "reshape",
        lambda: f(6).reshape(4),
        mt.ShapeError,
        r"number of elements must stay.*\(6\).*\(4\)",
    ),
    ("reshape -1", lambda: f(6).reshape(4, -1), mt.ShapeError, "must divide that number"),
    ("reshape two -1", lambda: f(6).reshape(-1, -1), mt.ShapeError, "only one size may be -1"),
    ("view", lambda: f(2, 3).T.view(6), mt.ShapeError, "view: .*without copying.*Use reshape"),
    ("permute", lambda: f(2, 3).permute(0, 0), mt.ShapeError, "must be named once"),
    ("transpose", lambda: f(2, 3).transpose(0, 2), IndexError, "dim must be from -2 to 1"),
    ("t", lambda: f(2, 3, 4).t(), mt.ShapeError, "t: at most 2 axes"),
    ("mT", lambda: f(2).mT, mt.ShapeError, "mT: at least 2 axes"),
    (
        "expand",
        lambda: f(2, 3).expand(4, 3),
        mt.ShapeError,
        "only axes of length 1 can be repeated",
    ),
    ("repeat", lambda: f(2, 3).repeat(2), mt.ShapeError, "one count per axis"),
    ("cat", lambda: mt.cat([f(2, 3), f(2, 4)]), mt.ShapeError, "cat: shapes must be equal except"),
    ("cat nothing", lambda: mt.cat([]), mt.ShapeError, "at least one tensor"),
    ("cat scalars", lambda: mt.cat([f(()), f(())]), mt.ShapeError, "0-d tensors cannot be joined"),
    ("stack", lambda: mt.stack([f(2), f(3)]), mt.ShapeError, "stack: all shapes must be equal"),
    ("stack nothing", lambda: mt.stack([]), mt.ShapeError, "at least one tensor"),
    ("split", lambda: f(4).split([1, 2]), mt.ShapeError, r"sizes must sum to 4.*\(3\)"),
    ("split size", lambda: f(4).split(0), mt.ArgumentError, "size must be positive"),
    ("chunk", lambda: f(4).chunk(0), mt.ArgumentError, "at least 1"),
    ("narrow", lambda: f(4).narrow(0, 2, 3), mt.ShapeError, "start \\+ length must be at most 4"),
    ("flatten", lambda: f(2, 3).flatten(1, 0), mt.ShapeError, "start_dim must not come after"),
    ("unflatten", lambda: f(6).unflatten(0, (4, 2)), mt.ShapeError, "must multiply to 6"),
    ("movedim", lambda: f(2, 3).movedim((0, 1), (0,)), mt.ShapeError, "name as many axes"),
    ("roll", lambda: f(3).roll((1, 2), (0,)), mt.ArgumentError, "one axis per shift"),
    ("zeros", lambda: mt.zeros(-1), mt.ShapeError, "sizes must not be negative"),
    ("ragged", lambda: mt.tensor([[1, 2], [3]]), mt.ShapeError, "equal lengths at every level"),
    ("meshgrid", lambda: mt.meshgrid(f(2, 2)), mt.ShapeError, "only vectors"),
    (
        "broadcast_shapes",
        lambda: mt.broadcast_shapes((2,), (3,)),
        mt.ShapeError,
        "broadcast: shapes",
    ),
    # reductions and axes
    ("sum axis", lambda: f(2, 3).sum(2), IndexError, r"sum: dim must be from -2 to 1"),
    ("sum twice", lambda: f(2, 3).sum((0, 0)), mt.ShapeError, "an axis may be named once"),
    ("mean int", lambda: mt.arange(3).mean(), mt.DtypeError, r"mean: .*floating.*i64\[3\].*float"),
    ("max empty", lambda: f(0).max(), mt.ShapeError, "must not be empty"),
    ("argmax empty", lambda: f(0, 2).argmax(0), mt.ShapeError, "must not be empty"),
    ("argmax bool", lambda: (f(2) > 0).argmax(), mt.DtypeError, "bool has no order"),
    ("softmax dim", lambda: f(2, 3).softmax(), mt.ArgumentError, "dim must be named.*dim=-1"),
    ("softmax int", lambda: mt.arange(3).softmax(0), mt.DtypeError, "must be floating"),
    ("topk", lambda: f(3).topk(4), mt.ArgumentError, "k must be from 0 to 3"),
    # dtypes
    ("matmul dtype", lambda: f(2, 2) @ f(2, 2).double(), mt.DtypeError, "one dtype.*f32.*f64"),
    ("requires_grad int", lambda: mt.arange(3).requires_grad_(), mt.DtypeError, "only floating"),
    ("bitwise", lambda: f(2) & f(2), mt.DtypeError, "must be integers or bool"),
    ("invert", lambda: ~f(2), mt.DtypeError, "must be integer or bool.*logical_not"),
    ("sub bool", lambda: (f(2) > 0) - (f(2) > 0), mt.DtypeError, "bool tensors are not accepted"),
    ("neg bool", lambda: -(f(2) > 0), mt.DtypeError, "bool tensors are not accepted"),
    ("int power", lambda: mt.arange(3) ** -1, mt.ArgumentError, "integers have no negative powers"),
    ("where", lambda: mt.where(f(2), f(2), f(2)), mt.DtypeError, "condition must be bool"),
    ("masked_fill", lambda: f(2).masked_fill(f(2), 0.0), mt.DtypeError, "mask must be bool"),
    (
        "masked_fill value",
        lambda: f(2).masked_fill(f(2) > 0, f(2)),
        mt.ShapeError,
        "a number or 0-d",
    ),
    ("dtype name", lambda: mt.zeros(2, dtype="float8"), mt.DtypeError, "not an element type"),
    ("default dtype", lambda: mt.set_default_dtype(mt.int64), mt.DtypeError, "must be floating"),
    ("finfo", lambda: mt.finfo(mt.int64), mt.DtypeError, "Use iinfo"),
    ("iinfo", lambda: mt.iinfo(mt.float32), mt.DtypeError, "Use finfo"),
    ("text", lambda: mt.tensor(["a"]), mt.DtypeError, "values must be numbers"),
    ("huge int", lambda: mt.tensor([2**70]), mt.DtypeError, "too large for int64"),
    ("narrow int", lambda: mt.tensor([300], dtype=mt.uint8), mt.DtypeError, "must fit into uint8"),
    ("from_numpy list", lambda: mt.from_numpy([1]), mt.DtypeError, "numpy.ndarray is needed"),
    ("text operand", lambda: f(2) + "a", TypeError, "unsupported operand"),
    ("rand dtype", lambda: mt.rand(2, dtype=mt.int64), mt.DtypeError, "Use randint"),
    # indices
    ("index", lambda: f(2, 3)[5], IndexError, r"must lie inside.*f32\[2,3\]\[5\]"),
    ("too many", lambda: f(2)[0, 0], IndexError, "must lie inside"),
    ("float index", lambda: f(2)[f(1)], mt.DtypeError, "Convert with .long"),
    ("negative step", lambda: f(4)[::-1], mt.ArgumentError, "step must be positive.*flip"),
    ("setitem", lambda: f(3).__setitem__(slice(0, 2), f(3)), mt.ShapeError, "must broadcast"),
    ("gather range", lambda: mt.gather(f(3), 0, mt.tensor([3])), IndexError, "from 0 to 2"),
    ("gather dtype", lambda: mt.gather(f(3), 0, f(1)), mt.DtypeError, "index must be int64"),
    ("gather rank", lambda: mt.gather(f(3, 3), 0, mt.tensor([0])), mt.ShapeError, "as many axes"),
    ("one_hot", lambda: mt.nn.functional.one_hot(mt.tensor([3]), 3), IndexError, "from 0 to 2"),
    # arguments
    ("arange", lambda: mt.arange(0, 5, -1), mt.ArgumentError, "must lead from start to end"),
    ("linspace", lambda: mt.linspace(0, 1, -1), mt.ArgumentError, "must not be negative"),
    ("clamp", lambda: f(2).clamp(), mt.ArgumentError, "at least one of min and max"),
    ("div mode", lambda: mt.div(f(2), 2, rounding_mode="up"), mt.ArgumentError, "None, 'trunc' or"),
    ("randint", lambda: mt.randint(5, 5, (2,)), mt.ArgumentError, "high must be above low"),
    ("bernoulli", lambda: mt.bernoulli(f(2) * 2), mt.ArgumentError, "from 0 to 1"),
    ("multinomial", lambda: mt.multinomial(f(2), 3), mt.ArgumentError, "replacement=True"),
    ("multinomial neg", lambda: mt.multinomial(-f(2), 1), mt.ArgumentError, "not negative"),
    ("meshgrid xy", lambda: mt.meshgrid(f(2), indexing="yx"), mt.ArgumentError, "'ij' or 'xy'"),
    ("uniform_", lambda: f(2).uniform_(2, 1), mt.ArgumentError, "from must not be above to"),
    ("normal_", lambda: f(2).normal_(0, -1), mt.ArgumentError, "std must not be negative"),
    ("device", lambda: mt.device("tpu"), mt.DeviceError, "'cpu', 'cuda' or 'cuda:N'"),
    ("cuda", lambda: f(2).cuda(), mt.DeviceError, r"needs CuPy.*\[cuda12\]"),
    (
        "printing",
        lambda: mt.set_printoptions(digits=3),
        mt.ArgumentError,
        "unknown option 'digits'",
    ),
    # conversions
    ("item", lambda: f(2).item(), mt.ShapeError, "exactly one element.*tolist"),
    ("bool", lambda: bool(f(2)), mt.ShapeError, r"ambiguous.*\.any\(\)"),
    ("len", lambda: len(f(())), TypeError, "0-d tensor has no length"),
    ("iter", lambda: list(f(())), TypeError, "0-d tensor has no axis"),
    ("numpy", lambda: g(2).numpy(), mt.GraphError, r"Use \.detach\(\)\.numpy\(\)"),
    ("index float", lambda: [1, 2][f(())], TypeError, "only integer tensors"),
    ("deepcopy", lambda: copy.deepcopy(g(2) * 1), mt.GraphError, "only leaves can be copied"),
    ("pickle", lambda: pickle.dumps(g(2) * 1), mt.GraphError, "only leaves can be pickled"),
    # autograd
    ("no graph", lambda: f(1).backward(), mt.GraphError, "has no graph: no tensor"),
    (
        "no_grad loss",
        lambda: mt.no_grad()(lambda: g(1) * 1)().backward(),
        mt.GraphError,
        "no graph",
    ),
    ("vector loss", lambda: (g(2) * 1).backward(), mt.GraphError, r"one-element.*\.sum\(\)"),
    ("seed shape", lambda: (g(2) * 1).backward(f(3)), mt.ShapeError, "shape of its output"),
    (
        "seed count",
        lambda: autograd.backward([g(1) * 1], [None, None]),
        mt.GraphError,
        "per output",
    ),
    ("no inputs", lambda: (g(1) * 1).backward(inputs=[]), mt.GraphError, "`inputs` is empty"),
    ("grad input", lambda: autograd.grad(g(1) * 1, f(1)), mt.GraphError, "Input 0.*does not"),
    ("only_inputs", lambda: autograd.grad(g(1), g(1), only_inputs=False), ValueError, "backward"),
    ("grad unused", lambda: autograd.grad(g(1) * 1, g(1)), mt.GraphError, "allow_unused=True"),
    ("grad shape", lambda: setattr(g(2), "grad", f(3)), mt.ShapeError, "shape and dtype of its"),
    ("data", lambda: setattr(g(2), "data", 3), mt.DtypeError, "a Tensor is needed"),
    ("leaf off", lambda: (g(2) * 1).requires_grad_(False), mt.GraphError, "only leaves"),
    ("hook", lambda: f(2).register_hook(print), mt.GraphError, "must require grad"),
    ("retain", lambda: f(2).retain_grad(), mt.GraphError, "must require grad"),
    (
        "post hook",
        lambda: (g(2) * 1).register_post_accumulate_grad_hook(print),
        mt.GraphError,
        "only leaves accumulate",
    ),
    (
        "floor_divide",
        lambda: (g(1) // 2).backward(),
        mt.GraphError,
        "floor_divide has no derivative",
    ),
    ("autocast device", lambda: mt.amp.autocast("tpu"), mt.ArgumentError, "'cpu' or 'cuda'"),
    ("autocast dtype", lambda: mt.amp.autocast("cpu", mt.float32), mt.DtypeError, "float16 or"),
]


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [pytest.param(*row[1:], id=f"{i}-{row[0]}") for i, row in enumerate(TABLE)],
)
def test_wrong_programs(program: Program, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        program()


def test_a_hook_must_keep_the_shape() -> None:
    x = g(2)
    x.register_hook(lambda grad: grad[:1])
    with pytest.raises(mt.ShapeError, match="a replaced gradient must keep its shape"):
        (x * 2).sum().backward()


def test_arrays_of_no_device_are_named() -> None:
    with pytest.raises(mt.DeviceError, match="belong to no device known here"):
        mt.backend.of(object())


def test_numpy_arrays_meet_tensors() -> None:
    assert (np.ones(2) * f(2)).tolist() == [1.0, 1.0]
    assert (f(2) + np.float64(1)).dtype is mt.float32
