"""Rows of the table for `nn.functional`; see `op_table.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from op_table import Row

IMAGE = (((1, 2, 4, 4),), ((2, 4, 4),), ((0, 2, 4, 4),))
SERIES = (((2, 2, 5),), ((2, 5),), ((0, 2, 5),))
PLAIN = (((3, 4),), ((),), ((0, 3),), ((2, 1, 3),))
# Kernels may sum a strided array in another order than a contiguous one.
ROUNDING = {"strided": "rounding differs with the layout"}
EMPTY_MEAN = "the mean of nothing is NaN"


def _row(name: str, call: Callable[..., Any], shapes: Any = PLAIN, **options: Any) -> Row:
    """A row whose `call` gets `m.nn.functional` and the library `m`."""
    exempt = {**ROUNDING, **options.pop("exempt", {})}
    return Row(name, lambda m, *xs: call(m.nn.functional, m, *xs), shapes, exempt=exempt, **options)


def _quiet(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` without the advice that torch prints about it."""

    def run(*arguments: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return call(*arguments)

    return run


def _activation(name: str, **options: Any) -> Row:
    arguments = options.pop("arguments", {})
    return _row(f"F.{name}", lambda F, m, x: getattr(F, name)(x, **arguments), **options)


ACTIVATION = [
    _activation("relu"),
    _activation("leaky_relu"),
    _activation("elu"),
    _activation("celu", arguments={"alpha": 0.5}),
    _activation("selu"),
    _activation("gelu"),
    _row("F.gelu tanh", lambda F, m, x: F.gelu(x, approximate="tanh")),
    _activation("silu"),
    _activation("mish"),
    _activation("softplus"),
    _row("F.softplus beta", lambda F, m, x: F.softplus(x, beta=3.0, threshold=2.0)),
    _activation("logsigmoid"),
    _activation("hardtanh"),
    _activation("relu6", high=9.0),
    _activation("hardswish", low=-5.0, high=5.0),
    _activation(
        "hardsigmoid", low=-5.0, high=5.0, exempt={"parity": "torch divides by a float32 6"}
    ),
    _activation("softsign"),
    _activation("tanhshrink"),
    _activation("sigmoid"),
    _activation("tanh"),
    _row("F.threshold", lambda F, m, x: F.threshold(x, 0.3, -4.0)),
    _row("F.glu", lambda F, m, x: F.glu(x, 1), (((3, 4),), ((2, 6, 3),), ((0, 4),))),
    _row(
        "F.prelu",
        lambda F, m, x, w: F.prelu(x, w),
        (((3, 4), (4,)), ((3, 4, 2), (4,)), ((3, 4), (1,)), ((5,), (1,))),
    ),
    _row("F.softmax", lambda F, m, x: F.softmax(x, -1), (((3, 4),), ((2, 3, 5),), ((0, 3),))),
    _row("F.softmax 1", lambda F, m, x: F.softmax(x, 1), (((3, 4, 2),), ((2, 0, 3),))),
    _row("F.softmin", lambda F, m, x: F.softmin(x, 1), (((3, 4, 2),),)),
    _row(
        "F.log_softmax",
        lambda F, m, x: F.log_softmax(x, -1),
        (((3, 4),), ((2, 3, 5),), ((0, 3),)),
    ),
    _row("F.log_softmax 1", lambda F, m, x: F.log_softmax(x, 1), (((3, 4, 2),),)),
]


def _conv(
    name: str, *options: Any, weight: Any = (2, 2, 2, 3), bias: bool = True, shapes: Any = IMAGE
) -> Row:
    function = "conv2d" if len(weight) == 4 else "conv1d"
    sizes = tuple((*s, weight, (weight[0],)) if bias else (*s, weight) for s in shapes)

    def call(F: Any, m: Any, x: Any, w: Any, b: Any = None) -> Any:
        return getattr(F, function)(x, w, b, *options)

    return _row(f"F.{function} {name}", _quiet(call), sizes)


CONVOLUTION = [
    _conv("plain"),
    _conv("no bias", bias=False),
    _conv("stride", (2, 1)),
    _conv("padding", 1, (2, 1)),
    _conv("same", 1, "same"),
    _conv("valid", 1, "valid"),
    _conv("dilation", 1, 1, (2, 1)),
    _conv("all", (2, 3), (1, 2), (1, 2)),
    _conv("wide padding", 2, (3, 4), weight=(1, 2, 2, 2)),
    _conv("pointwise", weight=(3, 2, 1, 1)),
    _conv("pointwise stride", 2, weight=(3, 2, 1, 1)),
    _conv("groups", 1, 1, 1, 2, weight=(4, 1, 3, 3)),
    _conv("groups 2", 1, 0, 1, 2, weight=(4, 2, 2, 2), shapes=(((1, 4, 3, 3),),)),
    _conv("pointwise groups", 1, 0, 1, 2, weight=(4, 1, 1, 1)),
    _conv("plain", weight=(3, 2, 3), shapes=SERIES),
    _conv("all", 2, 3, 2, weight=(3, 2, 3), shapes=SERIES),
    _conv("same", 1, "same", 2, weight=(3, 2, 4), shapes=SERIES),
    _conv("groups", 1, 0, 1, 2, weight=(2, 1, 2), shapes=SERIES, bias=False),
    _row("F.unfold", lambda F, m, x: F.unfold(x, (2, 3), (1, 2), 1, (2, 1)), (((1, 2, 4, 5),),)),
    _row(
        "F.fold",
        lambda F, m, x: F.fold(x, (5, 6), (2, 3), (1, 2), 1, (2, 1)),
        (((1, 12, 12),), ((18, 12),)),
    ),
]


def _pad(name: str, widths: Any, mode: str, shapes: Any) -> Row:
    return _row(f"F.pad {name}", lambda F, m, x: F.pad(x, widths, mode=mode), shapes)


PAD = [
    _pad("constant", (1, 2, 0, 1), "constant", (((3, 4),), ((2, 3, 4),))),
    _pad("cut", (-1, 2), "constant", (((3, 4),),)),
    _row("F.pad value", lambda F, m, x: F.pad(x, (1, 1), value=3.5), (((3, 4),), ((4,),))),
    _pad("reflect", (2, 1, 1, 2), "reflect", (((2, 3, 4, 5),),)),
    _pad("replicate", (3, 1, 1, 4), "replicate", (((2, 3, 4, 5),),)),
    _pad("circular", (2, 1, 3, 0), "circular", (((2, 3, 4, 5),),)),
    _pad("reflect 1d", (2, 1), "reflect", (((2, 3, 4),),)),
]


def _pool(name: str, function: str, *options: Any, shapes: Any = IMAGE, **named: Any) -> Row:
    return _row(
        f"F.{function} {name}",
        lambda F, m, x: getattr(F, function)(x, *options, **named),
        shapes,
    )


POOL = [
    _pool("2", "max_pool2d", 2),
    _pool("overlap", "max_pool2d", 3, 2, 1),
    _pool("dilation", "max_pool2d", 2, 1, 1, 2),
    _pool("ceil", "max_pool2d", (2, 3), 2, 1, ceil_mode=True),
    _pool("negative", "max_pool2d", 3, 1, 1, shapes=(((1, 1, 4, 4),),)),
    _pool("2", "max_pool1d", 2, shapes=SERIES),
    _pool("all", "max_pool1d", 3, 2, 1, 1, True, shapes=SERIES),
    _pool("2", "avg_pool2d", 2),
    _pool("overlap", "avg_pool2d", 3, 2, 1),
    _pool("ceil", "avg_pool2d", (2, 3), 2, 1, True),
    _pool("no pad", "avg_pool2d", 3, 2, 1, True, False),
    _pool("divisor", "avg_pool2d", 2, 1, 0, False, True, 3),
    _pool("all", "avg_pool1d", 3, 2, 1, True, False, shapes=SERIES),
    _pool("1", "adaptive_avg_pool2d", 1),
    _pool("3x2", "adaptive_avg_pool2d", (3, 2)),
    _pool("keep", "adaptive_avg_pool2d", (None, 4)),
    _pool("3", "adaptive_avg_pool1d", 3, shapes=SERIES),
]

NORM = [
    _row(
        "F.layer_norm",
        lambda F, m, x, w, b: F.layer_norm(x, w.shape, w, b),
        (
            ((3, 4), (4,), (4,)),
            ((2, 3, 4), (3, 4), (3, 4)),
            ((70, 5), (5,), (5,)),
            ((0, 4), (4,), (4,)),
        ),
    ),
    _row("F.layer_norm plain", lambda F, m, x: F.layer_norm(x, x.shape[-1:]), (((3, 4),),)),
    _row(
        "F.layer_norm weight",
        lambda F, m, x, w: F.layer_norm(x, x.shape[-1:], w),
        (((3, 4), (4,)),),
    ),
    _row(
        "F.rms_norm",
        lambda F, m, x, w: F.rms_norm(x, w.shape, w, 1e-3),
        (((3, 4), (4,)), ((2, 3, 4), (3, 4))),
    ),
    _row(
        "F.group_norm",
        lambda F, m, x, w, b: F.group_norm(x, 2, w, b),
        (((3, 8), (8,), (8,)), ((2, 4, 3, 3), (4,), (4,))),
    ),
    _row("F.instance_norm", lambda F, m, x: F.instance_norm(x), (((2, 3, 4),), ((2, 3, 4, 2),))),
    _row(
        "F.batch_norm training",
        lambda F, m, x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        (((5, 4), (4,), (4,)), ((3, 4, 6), (4,), (4,)), ((3, 4, 2, 5), (4,), (4,))),
    ),
    _row(
        "F.batch_norm plain",
        lambda F, m, x: F.batch_norm(x, None, None, training=True),
        (((3, 4, 6),), ((5, 3),)),
    ),
    _row(
        "F.batch_norm evaluation",
        lambda F, m, x, w, b: F.batch_norm(
            x,
            m.tensor([0.5, -0.5, 1.0, 0.0], dtype=x.dtype),
            m.tensor([1.0, 2.0, 0.5, 3.0], dtype=x.dtype),
            w,
            b,
        ),
        (((5, 4), (4,), (4,)), ((3, 4, 2, 5), (4,), (4,)), ((0, 4), (4,), (4,))),
    ),
    _row("F.normalize", lambda F, m, x: F.normalize(x), (((3, 4),), ((2, 3, 4),))),
    _row(
        "F.cosine_similarity",
        lambda F, m, a, b: F.cosine_similarity(a, b),
        (((3, 4), (3, 4)), ((2, 3, 4), (2, 3, 4))),
    ),
    _row(
        "F.bilinear",
        lambda F, m, a, b, w, c: F.bilinear(a, b, w, c),
        (((3, 4), (3, 2), (5, 4, 2), (5,)),),
    ),
    _row(
        "F.embedding",
        lambda F, m, w: F.embedding(m.tensor([[0, 2, 2], [4, 1, 0]]), w),
        (((5, 3),),),
    ),
    _row(
        "F.embedding padding",
        lambda F, m, w: F.embedding(m.tensor([0, 2, 2, 4]), w, padding_idx=-3),
        (((5, 3),),),
        exempt={p: "the row of padding gets no gradient" for p in ("gradient", "second")},
    ),
]
REDUCTIONS = ("mean", "sum", "none")
SAME = (((3, 4), (3, 4)), ((5,), (5,)), ((), ()), ((2, 3, 2), (2, 3, 2)))


def _each(name: str, call: Callable[..., Any], shapes: Any = SAME, **options: Any) -> list[Row]:
    """A row for each reduction; `call` gets F, m, the reduction and the tensors."""

    def bound(reduction: str) -> Callable[..., Any]:
        return lambda F, m, *xs: call(F, m, reduction, *xs)

    return [_row(f"F.{name} {r}", bound(r), shapes, **options) for r in REDUCTIONS]


def _classes(m: Any, x: Any, ignored: bool = False) -> Any:
    """Class numbers for the logits `x`: 0, 1, 2, … and, if wanted, one that is ignored."""
    shape = tuple(x.shape[:1] + x.shape[2:]) if x.ndim > 1 else ()
    count = 1
    for n in shape:
        count *= n
    classes = x.shape[1 if x.ndim > 1 else 0]
    numbers = [(7 * i + 1) % classes for i in range(count)]
    if ignored and count > 1:
        numbers[-1] = -100
    return m.tensor(numbers, dtype=m.int64).reshape(shape)


LOGITS = (((4, 3),), ((3,),), ((2, 3, 4),), ((2, 3, 2, 2),))
WEIGHTED = (((4, 3),), ((2, 3, 4),))


def _weight(m: Any, x: Any) -> Any:
    """Constant factors for three classes."""
    return m.tensor([0.5, 2.0, 1.0], dtype=x.dtype)


LOSS = [
    *_each("mse_loss", lambda F, m, r, a, b: F.mse_loss(a, b, reduction=r)),
    *_each("l1_loss", lambda F, m, r, a, b: F.l1_loss(a, b, reduction=r)),
    *_each("smooth_l1_loss", lambda F, m, r, a, b: F.smooth_l1_loss(a, b, reduction=r, beta=0.7)),
    *_each("huber_loss", lambda F, m, r, a, b: F.huber_loss(a, b, reduction=r, delta=0.7)),
    *_each(
        "binary_cross_entropy",
        lambda F, m, r, a, b: F.binary_cross_entropy(a, b, reduction=r),
        low=0.1,
        high=0.9,
    ),
    *_each(
        "binary_cross_entropy_with_logits",
        lambda F, m, r, a, b: F.binary_cross_entropy_with_logits(a, b, reduction=r),
    ),
    _row(
        "F.binary_cross_entropy_with_logits weights",
        lambda F, m, a, b: F.binary_cross_entropy_with_logits(
            a, b, _weight(m, a), pos_weight=_weight(m, a).flip(0)
        ),
        (((4, 3), (4, 3)), ((2, 4, 3), (2, 4, 3))),
    ),
    *_each("kl_div", _quiet(lambda F, m, r, a, b: F.kl_div(a, b, reduction=r)), low=0.1),
    _row(
        "F.kl_div batchmean",
        lambda F, m, a, b: F.kl_div(a, b, reduction="batchmean"),
        SAME[:1],
        low=0.1,
    ),
    _row("F.kl_div log", lambda F, m, a, b: F.kl_div(a, b, reduction="sum", log_target=True), SAME),
    *_each(
        "cross_entropy",
        lambda F, m, r, x: F.cross_entropy(x, _classes(m, x), reduction=r),
        LOGITS,
    ),
    *_each(
        "cross_entropy ignored",
        lambda F, m, r, x: F.cross_entropy(x, _classes(m, x, True), reduction=r),
        LOGITS,
    ),
    *_each(
        "cross_entropy weight",
        lambda F, m, r, x: F.cross_entropy(x, _classes(m, x, True), _weight(m, x), reduction=r),
        WEIGHTED,
        low=0.2,
    ),
    *_each(
        "cross_entropy smoothing",
        lambda F, m, r, x: F.cross_entropy(
            x, _classes(m, x, True), _weight(m, x), reduction=r, label_smoothing=0.2
        ),
        WEIGHTED,
        low=0.2,
    ),
    _row(
        "F.cross_entropy smoothing plain",
        lambda F, m, x: F.cross_entropy(x, _classes(m, x, True), label_smoothing=0.2),
        LOGITS,
    ),
    *_each(
        "cross_entropy probabilities",
        lambda F, m, r, x, t: F.cross_entropy(x, t, reduction=r, label_smoothing=0.1),
        (((4, 3), (4, 3)), ((2, 3, 4), (2, 3, 4)), ((3,), (3,))),
    ),
    _row(
        "F.cross_entropy probabilities weight",
        lambda F, m, x, t: F.cross_entropy(x, t, _weight(m, x)),
        (((4, 3), (4, 3)),),
        low=0.2,
    ),
    *_each("nll_loss", lambda F, m, r, x: F.nll_loss(x, _classes(m, x, True), reduction=r), LOGITS),
    *_each(
        "nll_loss weight",
        lambda F, m, r, x: F.nll_loss(x, _classes(m, x, True), _weight(m, x), reduction=r),
        WEIGHTED,
        low=0.2,
    ),
    *_each(
        "gaussian_nll_loss",
        lambda F, m, r, a, b, v: F.gaussian_nll_loss(a, b, v, reduction=r, full=True),
        (((3, 4), (3, 4), (3, 4)),),
        low=0.3,
    ),
]

SMALL_ONE = "the small row tests it"


def _large(name: str, call: Callable[..., Any], *shapes: Any, low: float = -1.0) -> Row:
    """A row of a size that the kernels for float32 are used for."""
    exempt = {"gradient": SMALL_ONE, "second": SMALL_ONE}
    return _row(f"F.{name} large", call, (shapes,), exempt=exempt, low=low, high=-low)


LARGE = [
    _large("gelu", lambda F, m, x: F.gelu(x), (3, 300), low=-4.0),
    _large("gelu tanh", lambda F, m, x: F.gelu(x, approximate="tanh"), (3, 300), low=-4.0),
    _large("silu", lambda F, m, x: F.silu(x), (3, 300), low=-4.0),
    _large("softmax", lambda F, m, x: F.softmax(x, -1), (2, 3, 700), low=-8.0),
    _large("log_softmax", lambda F, m, x: F.log_softmax(x, -1), (2, 3, 700), low=-8.0),
    _large(
        "layer_norm", lambda F, m, x, w, b: F.layer_norm(x, w.shape, w, b), (70, 50), (50,), (50,)
    ),
    _large("cross_entropy", lambda F, m, x: F.cross_entropy(x, _classes(m, x, True)), (70, 50)),
    _large("embedding", lambda F, m, w: F.embedding(m.tensor([0, 2, 2, 4]), w), (5, 150)),
    *[
        _large(
            f"conv2d {options}",
            lambda F, m, x, w, b, options=options: F.conv2d(x, w, b, *options),
            (20, 8, 12, 11),
            (6, 8 // (options[3] if len(options) > 3 else 1), 3, 3),
            (6,),
            low=-0.2,
        )
        for options in ((1, 1), (2, (2, 0), (1, 2)), ((1, 2), 1, 1, 2), (3, 4, 2))
    ],
    _large("conv2d pointwise", lambda F, m, x, w: F.conv2d(x, w), (9, 8, 12, 11), (6, 8, 1, 1)),
    _large("max_pool2d", lambda F, m, x: F.max_pool2d(x, 3, 2, 1), (9, 8, 12, 11)),
    _large("avg_pool2d", lambda F, m, x: F.avg_pool2d(x, 3, 2, 1), (9, 8, 12, 11)),
]

ROWS = [*ACTIVATION, *CONVOLUTION, *PAD, *POOL, *NORM, *LOSS, *LARGE]
