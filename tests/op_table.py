"""One row per operation: how to call it, on what, and which properties do not hold and why.

`call(m, *tensors)` is written once for both libraries: `m` is minitorch, or torch as the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """An operation under test.

    Attributes:
        name: Shown in test ids.
        call: `call(m, *tensors)`.
        shapes: Sets of input shapes; the first is used where one is enough.
        low, high: Range of the sampled values, away from kinks and poles.
        exempt: Property name to the reason why it is not tested. On a device, `waits` and
            `uploads` say why the host waits for it or sends values.
        integers: The operation also takes integers.
        seed: Of the sample.
    """

    name: str
    call: Callable[..., Any]
    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    low: float = -2.0
    high: float = 2.0
    exempt: dict[str, str] = field(default_factory=dict)
    integers: bool = False
    seed: int = 0

    def sample(self, shapes: tuple[tuple[int, ...], ...], dtype: Any = np.float64) -> list[Any]:
        """Arrays with distinct values in the range; integers count from small numbers."""
        rng = np.random.Generator(np.random.Philox(self.seed))
        kind = np.dtype(dtype).kind
        out = []
        for shape in shapes:
            if kind == "b":
                out.append(rng.random(shape) < 0.5)
            elif kind in "iu":
                out.append(rng.integers(1, 6, shape).astype(dtype))
            else:
                out.append(np.asarray(rng.uniform(self.low, self.high, shape)).astype(dtype))
        return out


ONE = (((3, 4),), ((),), ((0, 3),), ((2, 1, 3),), ((5,),))
TWO = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((2, 1, 3), (4, 1)),
    ((), (3,)),
    ((), ()),
    ((0, 3), (3,)),
    ((1,), (2, 2)),
)
MATRIX = (((3, 4),), ((2, 3, 4),), ((4, 4),), ((0, 4),))
NO_GRAD = {"gradient": "no gradient", "second": "no gradient"}


def _one(name: str, *, shapes: Any = ONE, **options: Any) -> Row:
    return Row(name, lambda m, x: getattr(m, name)(x), shapes, **options)


def _two(name: str, **options: Any) -> Row:
    return Row(name, lambda m, a, b: getattr(m, name)(a, b), TWO, **options)


def _row(name: str, call: Any, shapes: Any = ONE, **options: Any) -> Row:
    return Row(name, call, shapes, **options)


ELEMENTWISE = [
    _two("add", integers=True),
    _two("sub", integers=True),
    _two("mul", integers=True),
    _two("div", low=0.5, integers=True),
    _two("pow", low=0.5),
    _two("maximum", integers=True),
    _two("minimum", integers=True),
    _two("atan2", low=0.5),
    _two("fmod", low=0.5, high=3.0),
    _two("remainder", low=0.5, high=3.0),
    _two("logaddexp"),
    _row(
        "floor_divide",
        lambda m, a, b: m.floor_divide(a.detach(), b.detach()),
        TWO,
        low=0.5,
        exempt=NO_GRAD,
        integers=True,
    ),
    _row("add alpha", lambda m, a, b: m.add(a, b, alpha=2), TWO),
    _row("sub alpha", lambda m, a, b: m.sub(a, b, alpha=3), TWO),
    _row("number right", lambda m, x: (x + 2) * 3.0 - 1),
    _row("number left", lambda m, x: 2.0 / (3 - x), high=1.0),
    _row("number power", lambda m, x: 2.0**x),
    _row("pow 2", lambda m, x: x**2),
    _row("pow 3", lambda m, x: x**3),
    _row("pow 2.5", lambda m, x: x**2.5, low=0.2),
    _row("pow -1", lambda m, x: x**-1, low=0.5),
    _row("pow 0", lambda m, x: x**0, exempt={"second": "constant"}),
    _one("neg", integers=True),
    _one("abs", low=0.3, integers=True),
    _one("square", integers=True),
    _one("reciprocal", low=0.5),
    _one("exp"),
    _one("exp2"),
    _one("expm1"),
    _one("log", low=0.3),
    _one("log2", low=0.3),
    _one("log10", low=0.3),
    _one("log1p", low=-0.5),
    _one("sqrt", low=0.3),
    _one("rsqrt", low=0.3),
    _one("sin"),
    _one("cos"),
    _one("tan", low=-1.0, high=1.0),
    _one("asin", low=-0.8, high=0.8),
    _one("acos", low=-0.8, high=0.8),
    _one("atan"),
    _one("sinh"),
    _one("cosh"),
    _one("tanh"),
    _one("asinh"),
    _one("acosh", low=1.3, high=3.0),
    _one("atanh", low=-0.8, high=0.8),
    _one("sigmoid"),
    _one("relu", integers=True),
    _one("erf"),
    _one("sign", integers=True, exempt={"second": "constant"}),
    _one("floor", integers=True, exempt={"second": "constant"}),
    _one("ceil", integers=True, exempt={"second": "constant"}),
    _one("trunc", integers=True, exempt={"second": "constant"}),
    _one("round", exempt={"second": "constant"}),
    _row("round decimals", lambda m, x: m.round(x, decimals=1), exempt={"second": "constant"}),
    _one("frac"),
    _row("clamp", lambda m, x: m.clamp(x, -0.5, 0.7)),
    _row("clamp min", lambda m, x: m.clamp(x, min=0.1)),
    _row("clamp max", lambda m, x: x.clamp(max=0.1)),
    _row("lerp", lambda m, a, b: m.lerp(a, b, 0.3), TWO),
    _row(
        "addcmul",
        lambda m, a, b, c: m.addcmul(a, b, c, value=0.5),
        (((3, 4), (3, 4), (4,)), ((), (), ())),
    ),
    _row(
        "addcdiv",
        lambda m, a, b, c: m.addcdiv(a, b, c, value=0.5),
        (((3, 4), (3, 4), (4,)),),
        low=0.5,
    ),
    _row("where", lambda m, a, b: m.where(a > b, a, b * 2), TWO),
    _row("where number", lambda m, x: m.where(x > 0, x, 0.0)),
    _row("masked_fill", lambda m, x: x.masked_fill(x > 0.5, -1.0)),
    _row("nan_to_num", lambda m, x: m.nan_to_num(x)),
    _row("clone", lambda m, x: x.clone()),
]

COMPARISON = [
    *[_two(n, exempt=NO_GRAD, integers=True) for n in ("eq", "ne", "lt", "le", "gt", "ge")],
    *[
        _two(n, exempt=NO_GRAD, integers=True)
        for n in ("logical_and", "logical_or", "logical_xor", "isclose")
    ],
    *[_one(n, exempt=NO_GRAD) for n in ("isnan", "isinf", "isfinite", "signbit", "logical_not")],
]

DIMS: tuple[Any, ...] = (0, 1, -1, (0, 1))


def _reduced(name: str, dim: Any, keepdim: bool, **options: Any) -> Row:
    return _row(
        f"{name} dim={dim} keepdim={keepdim}",
        lambda m, x: getattr(m, name)(x, dim, keepdim),
        (((3, 4),), ((2, 3, 4),)),
        **options,
    )


def _values(result: Any) -> Any:
    return result if not isinstance(result, tuple) else result[0]


REDUCTION = [
    *[_one(n, integers=n == "sum") for n in ("sum",)],
    _one("mean", shapes=(((3, 4),), ((),), ((2, 1, 3),))),
    *[
        _reduced(n, d, k)
        for n in ("sum", "mean", "amax", "amin")
        for d in DIMS
        for k in (False, True)
    ],
    *[_reduced("logsumexp", d, k) for d in DIMS for k in (False, True)],
    _one("var", shapes=(((3, 4),), ((5,),))),
    _one("std", shapes=(((3, 4),), ((5,),))),
    _row("var dim", lambda m, x: m.var(x, 1), (((3, 4),),)),
    _row("var correction", lambda m, x: m.var(x, (0, 1), correction=0), (((3, 4),),)),
    _row("std keepdim", lambda m, x: m.std(x, 0, keepdim=True), (((3, 4),),)),
    _one("max", shapes=(((3, 4),), ((5,),), ((),)), integers=True),
    _one("min", shapes=(((3, 4),), ((5,),), ((),)), integers=True),
    _row("max dim", lambda m, x: m.max(x, 1)[0], (((3, 4),), ((2, 3, 4),))),
    _row("min dim", lambda m, x: m.min(x, 0, True)[0], (((3, 4),), ((2, 3, 4),))),
    _row("max indices", lambda m, x: m.max(x, -1)[1], (((3, 4),),), exempt=NO_GRAD),
    _row("argmax", lambda m, x: m.argmax(x, 1), (((3, 4),),), exempt=NO_GRAD, integers=True),
    _row("argmin flat", lambda m, x: m.argmin(x), (((3, 4),),), exempt=NO_GRAD),
    _one("prod", shapes=(((3, 4),), ((),)), integers=True),
    _row("prod dim", lambda m, x: m.prod(x, 1), (((3, 4),), ((2, 3, 4),))),
    _row("prod zeros", lambda m, x: m.prod(x * (x > -1), 1), (((3, 4),),), seed=3),
    _row("all", lambda m, x: m.all(x > -1.5, 1), MATRIX, exempt=NO_GRAD),
    _row("any", lambda m, x: m.any(x > 1.5), MATRIX, exempt=NO_GRAD),
    _row("count_nonzero", lambda m, x: m.count_nonzero(x > 0, 0), MATRIX, exempt=NO_GRAD),
    _row("cumsum", lambda m, x: m.cumsum(x, 1), MATRIX, integers=True),
    _row("cumprod", lambda m, x: m.cumprod(x, 1), (((3, 4),),), integers=True),
    _row("cumprod zeros", lambda m, x: m.cumprod(x * (x > -1), 1), (((3, 4),),), seed=3),
    _row("softmax", lambda m, x: m.softmax(x, -1), (((3, 4),), ((2, 3, 4),), ((),))),
    _row("softmax 0", lambda m, x: m.softmax(x, 0), (((3, 4),), ((2, 3, 4),))),
    _row("log_softmax", lambda m, x: m.log_softmax(x, 1), (((3, 4),), ((2, 3, 4),))),
    _one("norm", shapes=(((3, 4),), ((5,),))),
    _row("norm 1", lambda m, x: m.norm(x, 1, 1), (((3, 4),),), low=0.1),
    _row("norm 3", lambda m, x: m.norm(x, 3, 0), (((3, 4),),)),
    _row("norm inf", lambda m, x: m.norm(x, float("inf"), 1), (((3, 4),),)),
    _one("median", shapes=(((3, 4),), ((5,),))),
    _row("median dim", lambda m, x: m.median(x, 1)[0], (((3, 5),),)),
]

SHAPE = [
    _row("reshape", lambda m, x: m.reshape(x, (-1, 2)), MATRIX[:3]),
    _row("view", lambda m, x: x.view(-1), (((3, 4),), ((),)), exempt={"strided": "needs a copy"}),
    _row("flatten", lambda m, x: m.flatten(x, 1), MATRIX),
    _row("unflatten", lambda m, x: m.unflatten(x, 1, (2, -1)), (((3, 4),),)),
    _row("ravel", lambda m, x: m.ravel(x), ONE),
    _row("squeeze", lambda m, x: m.squeeze(x), (((2, 1, 3),), ((1, 1),), ((3,),))),
    _row("squeeze dim", lambda m, x: m.squeeze(x, 1), (((2, 1, 3),), ((2, 3),))),
    _row("unsqueeze", lambda m, x: m.unsqueeze(x, -1), ONE),
    _row("permute", lambda m, x: m.permute(x, (2, 0, 1)), (((2, 3, 4),), ((0, 3, 4),))),
    _row("transpose", lambda m, x: m.transpose(x, 0, -1), MATRIX),
    _row("t", lambda m, x: x.t(), (((3, 4),), ((5,),))),
    _row("T", lambda m, x: x.T, (((3, 4),),)),
    _row("mT", lambda m, x: x.mT, MATRIX),
    _row("movedim", lambda m, x: m.movedim(x, 0, 2), (((2, 3, 4),),)),
    _row("movedim two", lambda m, x: m.movedim(x, (0, 1), (-1, 0)), (((2, 3, 4),),)),
    _row("expand", lambda m, x: x.expand(2, -1, 4), (((3, 1),), ((3, 4),))),
    _row("broadcast_to", lambda m, x: m.broadcast_to(x, (2, 3, 4)), (((3, 1),), ((),))),
    _row("repeat", lambda m, x: x.repeat(2, 1, 3), (((3, 4),), ((2, 3, 4),))),
    _row("tile", lambda m, x: m.tile(x, (2,)), (((3, 4),), ((5,),))),
    _row("flip", lambda m, x: m.flip(x, (0, 1)), MATRIX),
    _row("roll", lambda m, x: m.roll(x, (1, -2), (0, 1)), MATRIX),
    _row("roll flat", lambda m, x: m.roll(x, 3), MATRIX),
    _row("tril", lambda m, x: m.tril(x, 1), MATRIX),
    _row("triu", lambda m, x: m.triu(x, -1), MATRIX),
    _row("contiguous", lambda m, x: x.contiguous() * 1, MATRIX),
    _row("cat", lambda m, a, b: m.cat([a, b], 1), (((3, 4), (3, 2)), ((2, 3, 4), (2, 0, 4)))),
    _row("cat same", lambda m, x: m.cat([x, x, x]), MATRIX),
    _row("stack", lambda m, a, b: m.stack([a, b], -1), (((3, 4), (3, 4)), ((), ()))),
    _row("hstack", lambda m, a, b: m.hstack([a, b]), (((3, 4), (3, 1)), ((2,), (3,)))),
    _row("vstack", lambda m, a, b: m.vstack([a, b]), (((3, 4), (1, 4)), ((3,), (3,)))),
    _row("narrow", lambda m, x: m.narrow(x, 1, 1, 2), MATRIX[:3]),
    _row("select", lambda m, x: m.select(x, 1, -1), MATRIX),
    _row("split", lambda m, x: m.split(x, 3, 1)[1], MATRIX[:1]),
    _row("split sizes", lambda m, x: m.split(x, [1, 3], 1)[1] * 2, MATRIX[:1]),
    _row("chunk", lambda m, x: m.chunk(x, 2, -1)[0], MATRIX),
    _row("unbind", lambda m, x: m.unbind(x, 1)[2], MATRIX[:1]),
]


def _long(m: Any, values: Any) -> Any:
    return m.tensor(values, dtype=m.int64)


INDEXING = [
    _row("x[1]", lambda m, x: x[1], MATRIX[:3]),
    _row("x[-1, 2]", lambda m, x: x[-1, 2], MATRIX[:3]),
    _row("x[:, 1:3]", lambda m, x: x[:, 1:3], MATRIX),
    _row("x[::2]", lambda m, x: x[::2], MATRIX),
    _row("x[..., None, 0]", lambda m, x: x[..., None, 0], MATRIX),
    _row("x[[0, 0, 2]]", lambda m, x: x[[0, 0, 2]], (((3, 4),),)),
    _row("x[i, j]", lambda m, x: x[_long(m, [0, 2, 0]), _long(m, [1, 1, 1])], (((3, 4),),)),
    _row("x[i, :2]", lambda m, x: x[_long(m, [[0, 2], [1, 1]]), :2], (((3, 4),),)),
    _row("x[:, i]", lambda m, x: x[:, _long(m, [0, 2, 2])], (((3, 4),), ((2, 3, 4),))),
    _row("x[mask]", lambda m, x: x[x > 0], MATRIX),
    _row("x[row mask]", lambda m, x: x[m.tensor([True, False, True])], (((3, 4),),)),
    _row("gather", lambda m, x: m.gather(x, 1, _long(m, [[0, 3], [1, 1]])), (((3, 4),),)),
    _row("take_along_dim", lambda m, x: m.take_along_dim(x, m.argsort(x, 1), 1), (((3, 4),),)),
    _row("index_select", lambda m, x: m.index_select(x, 1, _long(m, [0, 0, 3])), (((3, 4),),)),
    _row("masked_select", lambda m, x: m.masked_select(x, x > 0), MATRIX),
    _row(
        "scatter_add",
        lambda m, a, b: m.scatter_add(a, 0, _long(m, [[0, 1], [0, 0]]), b),
        (((3, 4), (2, 2)),),
    ),
    _row(
        "scatter",
        lambda m, a, b: m.scatter(a, 1, _long(m, [[0, 3], [2, 1]]), b),
        (((3, 4), (2, 2)),),
    ),
    _row("sort", lambda m, x: m.sort(x, 1)[0], MATRIX),
    _row("sort descending", lambda m, x: m.sort(x, -1, descending=True)[0], MATRIX),
    _row("argsort", lambda m, x: m.argsort(x, 0, descending=True), MATRIX, exempt=NO_GRAD),
    _row("topk", lambda m, x: m.topk(x, 2, 1)[0], MATRIX[:3]),
    _row("topk smallest", lambda m, x: m.topk(x, 2, 0, largest=False)[0], (((3, 4),),)),
    _row("nonzero", lambda m, x: m.nonzero(x > 0), MATRIX, exempt=NO_GRAD),
    _row("unique", lambda m, x: m.unique(x > 0), MATRIX, exempt=NO_GRAD),
    _row("diagonal", lambda m, x: m.diagonal(x, 1), (((3, 4),), ((4, 4),))),
    _row("diag vector", lambda m, x: m.diag(x), (((3,),),)),
    _row("diag matrix", lambda m, x: m.diag(x), (((3, 4),),)),
]


def _written(m: Any, x: Any, write: Callable[[Any], Any]) -> Any:
    y = x * 1
    write(y)
    return y * y


def _set(index: Any, value: Any) -> Callable[..., Any]:
    def call(m: Any, a: Any, b: Any) -> Any:
        y = a * 1
        y[index] = value(b)
        return y * y

    return call


IN_PLACE = [
    _row("add_", lambda m, a, b: _written(m, a, lambda y: y.add_(b)), TWO[:2]),
    _row("mul_", lambda m, a, b: _written(m, a, lambda y: y.mul_(b)), TWO[:2]),
    _row("div_", lambda m, a, b: _written(m, a, lambda y: y.div_(b)), TWO[:2], low=0.5),
    _row(
        "mul_ self",
        lambda m, x: _written(m, x, lambda y: y.mul_(y)),
        exempt={"parity": "torch refuses it at backward; here it is right"},
    ),
    _row("exp_", lambda m, x: _written(m, x, lambda y: y.exp_())),
    _row("relu_", lambda m, x: _written(m, x, lambda y: y.relu_())),
    _row("clamp_", lambda m, x: _written(m, x, lambda y: y.clamp_(-1, 1))),
    _row("zero_", lambda m, x: _written(m, x, lambda y: y.zero_()) + x),
    _row("fill_", lambda m, x: _written(m, x, lambda y: y.fill_(3.0)) + x * x),
    _row("copy_", lambda m, a, b: _written(m, a, lambda y: y.copy_(b)), TWO[:2]),
    _row("y += b", lambda m, a, b: (a * 1).__iadd__(b) ** 2, TWO[:2]),
    _row("setitem row", _set(0, lambda b: b[0]), (((3, 4), (3, 4)),)),
    _row("setitem broadcast", _set(slice(None), lambda b: b), (((3, 4), (4,)),)),
    _row("setitem list", _set([0, 2], lambda b: b[1:]), (((3, 4), (3, 4)),)),
    _row("view write", lambda m, x: _written(m, x, lambda y: y[0].mul_(3)), (((3, 4),),)),
    _row("slice +=", lambda m, x: _written(m, x, lambda y: y[:, 1:].add_(x[:, 1:])), (((3, 4),),)),
    _row("view of view", lambda m, x: _written(m, x, lambda y: y.T[1].exp_()), (((3, 4),),)),
    _row(
        "reshape write",
        lambda m, x: _written(m, x, lambda y: y.view(-1)[2:].mul_(x.sum())),
        (((3, 4),),),
    ),
]


def _stale_view(m: Any, x: Any) -> Any:
    y = x * 1
    view = y[0]
    y.mul_(3)
    return view * view


IN_PLACE.append(_row("view after write", _stale_view, (((3, 4),),)))

LINALG = [
    _row(
        "matmul",
        lambda m, a, b: m.matmul(a, b),
        (
            ((3, 4), (4, 2)),
            ((4,), (4,)),
            ((3, 4), (4,)),
            ((4,), (4, 2)),
            ((2, 3, 4), (2, 4, 2)),
            ((2, 3, 4), (4, 2)),
            ((3, 4), (2, 4, 2)),
            ((2, 1, 3, 4), (5, 4, 2)),
            ((0, 4), (4, 2)),
            ((3, 0), (0, 2)),
        ),
    ),
    _row("@ transposed", lambda m, a, b: a @ b.T, (((3, 4), (2, 4)),)),
    _row("mm", lambda m, a, b: m.mm(a, b), (((3, 4), (4, 2)),)),
    _row("bmm", lambda m, a, b: m.bmm(a, b), (((2, 3, 4), (2, 4, 2)),)),
    _row("mv", lambda m, a, b: m.mv(a, b), (((3, 4), (4,)),)),
    _row("dot", lambda m, a, b: m.dot(a, b), (((4,), (4,)),)),
    _row("outer", lambda m, a, b: m.outer(a, b), (((3,), (4,)),)),
    _row("addmm", lambda m, a, b, c: m.addmm(a, b, c, beta=2, alpha=3), (((2,), (3, 4), (4, 2)),)),
    _row("baddbmm", lambda m, a, b, c: m.baddbmm(a, b, c), (((3, 2), (2, 3, 4), (2, 4, 2)),)),
    _row(
        "linear",
        lambda m, x, w, b: m.nn.functional.linear(x, w, b),
        (
            ((3, 4), (2, 4), (2,)),
            ((2, 3, 4), (2, 4), (2,)),
            ((4,), (2, 4), (2,)),
            ((0, 4), (2, 4), (2,)),
        ),
    ),
    _row("linear no bias", lambda m, x, w: m.nn.functional.linear(x, w), (((3, 4), (2, 4)),)),
]

ROWS = [*ELEMENTWISE, *COMPARISON, *REDUCTION, *SHAPE, *INDEXING, *IN_PLACE, *LINALG]
