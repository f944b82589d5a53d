"""Rows of order statistics, scans, searches and differences."""

from __future__ import annotations

from typing import Any

from op_table import MATRIX, NO_GRAD, ONE, Row

FULL = MATRIX[:3]
LATE = {"waits": "the shape of the result depends on the values"}


def _row(name: str, call: Any, shapes: Any = FULL, **options: Any) -> Row:
    return Row(name, call, shapes, **options)


def _with_nan(m: Any, x: Any) -> Any:
    return m.where(x > 1.25, x.new_full((), float("nan")), x)


def _ordered(m: Any, x: Any) -> Any:
    return m.sort(x.detach(), -1)[0]


ROWS = [
    _row("median nan", lambda m, x: m.median(_with_nan(m, x), -1)[1], exempt=NO_GRAD),
    _row("nanmedian", lambda m, x: m.nanmedian(x)),
    _row("nanmedian dim", lambda m, x: m.nanmedian(_with_nan(m, x), 1)[0]),
    _row("mode", lambda m, x: m.mode(m.round(x), 1)[0], exempt={"second": "constant"}),
    _row("mode indices", lambda m, x: m.mode(m.round(x), 0, True)[1], exempt=NO_GRAD),
    _row("quantile", lambda m, x: m.quantile(x, 0.3), exempt={"float dtypes": "float32, float64"}),
    *[
        _row(
            f"quantile {kind}",
            lambda m, x, kind=kind: m.quantile(
                x, x.new_tensor([0.1, 0.5, 1.0]), 1, True, interpolation=kind
            ),
            exempt={"float dtypes": "float32, float64", "uploads": "the quantiles"},
        )
        for kind in ("linear", "lower", "higher", "midpoint", "nearest")
    ],
    _row(
        "nanquantile",
        lambda m, x: m.nanquantile(_with_nan(m, x), 0.4, 0),
        exempt={"float dtypes": "float32, float64", "uploads": "the quantile"},
    ),
    _row("nansum", lambda m, x: m.nansum(_with_nan(m, x)), ONE),
    _row("nansum dim", lambda m, x: m.nansum(_with_nan(m, x), (0, 1), True)),
    _row("nanmean", lambda m, x: m.nanmean(_with_nan(m, x), -1)),
    _row("aminmax", lambda m, x: m.aminmax(x, dim=1)[0], integers=True),
    _row("aminmax all", lambda m, x: m.aminmax(x)[1]),
    _row("cummax", lambda m, x: m.cummax(x, 1)[0], MATRIX),
    _row("cummax indices", lambda m, x: m.cummax(m.round(x), 0)[1], MATRIX, exempt=NO_GRAD),
    _row("cummin", lambda m, x: m.cummin(x, -1)[0], MATRIX, integers=True),
    _row("cummin nan", lambda m, x: m.cummin(_with_nan(m, x), 0)[1], MATRIX, exempt=NO_GRAD),
    _row("logcumsumexp", lambda m, x: m.logcumsumexp(x, 1), MATRIX),
    _row("diff", lambda m, x: m.diff(x), MATRIX, integers=True),
    _row("diff twice", lambda m, x: m.diff(x, 2, 1, prepend=x[:, :1], append=x[:, :2])),
    _row("trapezoid", lambda m, x: m.trapezoid(x, dx=0.5)),
    _row("trapezoid points", lambda m, x, y: m.trapz(x, y, dim=1), (((3, 4), (3, 4)),)),
    _row("trapz", lambda m, x, y: m.trapz(x, y), (((3, 4), (4,)),)),
    _row("cumulative_trapezoid", lambda m, x: m.cumulative_trapezoid(x, dim=0)),
    _row("dist", lambda m, a, b: m.dist(a, b, 3), (((3, 4), (4,)),)),
    _row("renorm", lambda m, x: m.renorm(x, 2, 0, 1.5), (((3, 4),), ((2, 3, 4),))),
    _row("histc", lambda m, x: m.histc(x.detach(), 5, -1, 2), exempt={**NO_GRAD, **LATE}),
    _row(
        "histogram",
        lambda m, x: m.histogram(x.detach(), 4, range=(-2.0, 2.0))[0],
        exempt={**NO_GRAD, **LATE},
    ),
    _row(
        "searchsorted",
        lambda m, a, b: m.searchsorted(_ordered(m, a), b.detach(), right=True),
        (((5,), (3, 4)), ((3, 5), (3, 2))),
        exempt=NO_GRAD,
    ),
    _row(
        "bucketize",
        lambda m, a, b: m.bucketize(a.detach(), _ordered(m, b)),
        (((3, 4), (5,)), ((0, 4), (2,))),
        exempt=NO_GRAD,
    ),
    _row(
        "unique_consecutive",
        lambda m, x: m.unique_consecutive(m.round(x).detach(), return_counts=True)[1],
        MATRIX,
        exempt={**NO_GRAD, **LATE},
    ),
    _row("kthvalue", lambda m, x: m.kthvalue(x, 2, 0)[0]),
    _row("msort", lambda m, x: m.msort(x), MATRIX),
    _row("argwhere", lambda m, x: m.argwhere(x > 0), MATRIX, exempt={**NO_GRAD, **LATE}),
]
