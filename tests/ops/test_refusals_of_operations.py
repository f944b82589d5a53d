"""What the rarer operations refuse, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt

X = mt.ones(2, 3)
V = mt.arange(3)
B = mt.tensor([True, False])

CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "heaviside": (lambda: mt.heaviside(X, X.double()), "both operands must have one dtype"),
    "gcd": (lambda: mt.gcd(X, X), "gcd: both operands must be integers. Got f32"),
    "nextafter": (lambda: mt.nextafter(V, V), "nextafter: the operands must be floating"),
    "frexp": (lambda: mt.frexp(V), "frexp: the input must be floating"),
    "frac": (lambda: mt.frac(V), "frac: the input must be floating"),
    "hypot": (lambda: mt.hypot(V, V), "hypot: the operands must be floating"),
    "isclose": (lambda: mt.isclose(V, X), "isclose: both operands must have one dtype"),
    "positive": (lambda: mt.positive(B), "positive: bool has no sign"),
    "sub bool": (lambda: X - True, "sub: bool tensors are not accepted"),
    "isin": (lambda: mt.isin(1, 2), "isin: at least one operand must be a tensor"),
    "polygamma": (lambda: mt.polygamma(-1, X), "polygamma: n must not be negative. Got -1"),
    "mvlgamma": (lambda: mt.mvlgamma(X, 0), "mvlgamma: p must be at least 1. Got 0"),
    "unfold size": (lambda: X.unfold(1, 4, 1), "unfold: size must be from 0 to 3"),
    "unfold step": (lambda: X.unfold(1, 2, 0), "unfold: step must be positive"),
    "repeats": (lambda: X.repeat_interleave(-1), "repeats must not be negative. Got -1"),
    "repeats counts": (lambda: X.repeat_interleave(V, 0), "one count per slice is needed, 2"),
    "repeats dtype": (lambda: mt.repeat_interleave(X), "repeats must be an int64 vector"),
    "repeats negative": (lambda: mt.repeat_interleave(V - 1), "must not be negative. Got -1"),
    "rot90": (lambda: mt.rot90(X, 1, (0,)), "rot90: two axes are needed"),
    "rot90 same": (lambda: mt.rot90(X, 1, (0, 0)), "rot90: two different axes are needed"),
    "fliplr": (lambda: mt.fliplr(V), "fliplr: at least 2 axes are needed"),
    "flipud": (lambda: mt.flipud(X.sum()), "flipud: at least 1 axis is needed"),
    "flip twice": (lambda: mt.flip(X, (0, 0)), "flip: an axis may be named once"),
    "tril": (lambda: mt.tril(V), "tril: at least 2 axes are needed"),
    "block_diag": (lambda: mt.block_diag(X[None]), "block_diag: at most 2 axes are allowed"),
    "tensor_split": (lambda: mt.tensor_split(X, 0), "at least one part is needed. Got 0"),
    "tensor_split 0-d": (lambda: mt.tensor_split(X.sum(), 1), "at least 1 axis is needed"),
    "hsplit": (lambda: mt.hsplit(X, 2), "hsplit: the parts must be equal: 3 elements along axis 1"),
    "vsplit": (lambda: mt.vsplit(V, 1), "vsplit: at least 2 axes are needed"),
    "diag": (lambda: mt.diag(X[None]), "diag: 1 or 2 axes are needed"),
    "diag_embed": (lambda: mt.diag_embed(X, 0, 1, 1), "dim1 and dim2 must differ"),
    "tril_indices": (lambda: mt.tril_indices(-1, 2), "tril_indices: sizes must not be negative"),
    "unravel_index": (lambda: mt.unravel_index(V, (2,)), "positions must be below 2"),
    "as_strided": (lambda: X.t().as_strided((2,), (1,)), "the tensor must be contiguous"),
    "as_strided far": (lambda: X.as_strided((4,), (2,)), "positions must be from 0 to 5"),
    "as_strided sizes": (lambda: X.as_strided((4,), (2, 1)), "one step per size is needed"),
    "scatter_reduce": (lambda: X.scatter_reduce(0, V[None], X, "max"), "reduce must be one of sum"),
    "scatter_reduce dtype": (
        lambda: X.scatter_reduce(0, mt.zeros(1, 3).long(), X.double(), "sum"),
        "scatter_reduce: both tensors must have one dtype",
    ),
    "scatter": (lambda: X.scatter(0, V[None], 1.0, reduce="max"), "must be 'add' or 'multiply'"),
    "index_add": (lambda: X.index_add(0, V[:1], X), "source must have one slice per index"),
    "index axes": (lambda: X.index_copy(0, V[None] * 0, X), "index must have one axis"),
    "index_fill": (lambda: X.index_fill(0, V[:1], X), "index_fill: the value must be 0-d"),
    "index_reduce": (lambda: X.index_reduce(0, V[:2], X, "sum"), "must be one of prod, mean"),
    "take": (lambda: mt.take(X, V + 5), "positions must be from -6 to 5"),
    "take dtype": (lambda: mt.take(X, X), "take: the index must be int64"),
    "put": (lambda: X.put(V, X), "put: one value per position is needed"),
    "masked_scatter": (lambda: X.masked_scatter(X > 0, X[0]), "must have at least 6 elements"),
    "masked_scatter mask": (lambda: X.masked_scatter(X, X), "the mask must be bool"),
    "kthvalue": (lambda: X.kthvalue(4), "k must be from 1 to 3"),
    "select_scatter": (lambda: X.select_scatter(X, 0, 0), "src must have the shape of the region"),
    "median": (lambda: mt.median(B), "median: bool has no order"),
    "median empty": (lambda: mt.median(X[:0], 0), "median: the axis must not be empty"),
    "nanmedian": (lambda: mt.nanmedian(B), "nanmedian: bool has no order"),
    "mode": (lambda: mt.mode(X[:0], 0), "mode: the axis must not be empty"),
    "quantile": (lambda: mt.quantile(X, 1.5), "quantiles must be from 0 to 1. Got 1.5"),
    "quantile dtype": (lambda: mt.quantile(V, 0.5), "the input must be float32 or float64"),
    "quantile q": (lambda: mt.quantile(X, mt.tensor(0.5).double()), "q must have the dtype"),
    "quantile axes": (lambda: mt.quantile(X, X), "q must be a number or a vector"),
    "quantile kind": (lambda: mt.quantile(X, 0.5, interpolation="x"), "must be one of linear"),
    "quantile empty": (lambda: mt.quantile(X[:0], 0.5), "the input must not be empty"),
    "nanmean": (lambda: mt.nanmean(V), "nanmean: the input must be floating"),
    "histc": (lambda: mt.histc(V), "histc: the input must be floating"),
    "histc bins": (lambda: mt.histc(X, 0), "histc: bins must be positive"),
    "histc range": (lambda: mt.histc(X, 3, 2, 1), "histc: max must be above min"),
    "histc nan": (lambda: mt.histc(X * float("nan")), "histc: the range must be finite"),
    "diff": (lambda: mt.diff(X.sum()), "diff: at least 1 axis is needed"),
    "diff n": (lambda: mt.diff(X, -1), "diff: n must not be negative"),
    "trapezoid": (lambda: mt.trapezoid(X, X, dx=1), "x and dx exclude each other"),
    "trapezoid points": (lambda: mt.trapezoid(X, X[0, :2]), "one point per value is needed"),
    "renorm": (lambda: mt.renorm(V.float(), 2, 0, 1), "renorm: at least 2 axes are needed"),
    "renorm p": (lambda: mt.renorm(X, 0, 0, 1), "p must be positive and maxnorm not negative"),
    "logcumsumexp": (lambda: mt.logcumsumexp(V, 0), "the input must be floating"),
    "searchsorted": (lambda: mt.searchsorted(V, V, side="x"), "side must be 'left' or 'right'"),
    "searchsorted both": (
        lambda: mt.searchsorted(V, V, side="left", right=True),
        "contradict each other",
    ),
    "searchsorted rows": (
        lambda: mt.searchsorted(X, V.float()),
        "the sequence must be a vector or",
    ),
    "searchsorted number": (lambda: mt.searchsorted(X, 1.0), "a number needs a vector"),
    "bucketize": (lambda: mt.bucketize(V, X), "bucketize: boundaries must be a vector"),
    "fill_diagonal_": (lambda: V.clone().fill_diagonal_(1), "a matrix, or axes of one length"),
    "resize_": (lambda: mt.ones(2).resize_(-1), "resize_: sizes must not be negative"),
    "resize_ grad": (
        lambda: mt.ones(2, requires_grad=True).resize_(1),
        "a tensor that requires grad cannot be resized",
    ),
    "unsqueeze_ leaf": (
        lambda: mt.ones(2, requires_grad=True).unsqueeze_(0),
        "a leaf that requires grad cannot be changed in place",
    ),
    "empty_strided": (lambda: mt.empty_strided((2,), (1, 1)), "one step per size is needed"),
    "asarray": (lambda: mt.asarray(X, dtype=mt.int64, copy=False), "needs a copy. Got copy=False"),
    "frombuffer": (lambda: mt.frombuffer(b"abc", dtype=mt.int32), "must hold whole elements"),
    "vander": (lambda: mt.vander(X), "vander: a vector is needed"),
    "poisson": (lambda: mt.poisson(-X), "poisson: rates must not be negative"),
    "poisson dtype": (lambda: mt.poisson(V), "poisson: the input must be floating"),
    "binomial": (lambda: mt.binomial(X, X + 1), "probabilities must be from 0 to 1. Got 2"),
    "log_normal_": (lambda: X.clone().log_normal_(0, -1), "std must be positive"),
    "cauchy_": (lambda: X.clone().cauchy_(0, 0), "sigma must be positive"),
    "geometric_": (lambda: X.clone().geometric_(1), "p must lie between 0 and 1"),
    "is_nonzero": (lambda: mt.is_nonzero(X), "exactly one element is needed"),
    "type": (lambda: X.type("torch.Nope"), "the name must be one of FloatTensor"),
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    call, text = CASES[name]
    with pytest.raises((RuntimeError, ValueError, TypeError), match=text.replace("(", r"\(")):
        call()
