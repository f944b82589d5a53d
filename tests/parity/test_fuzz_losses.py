"""2 000 random calls of the losses and similarities against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

from fuzz import Call, Rng, run  # noqa: E402

import minitorch as mt  # noqa: E402


def _pick(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _maybe(rng: Rng, **options: Any) -> dict[str, Any]:
    """Each option with probability 1/2; a tuple is a choice."""
    out = {}
    for name, value in options.items():
        if rng.random() < 0.5:
            out[name] = _pick(rng, *value) if isinstance(value, tuple) else value
    return out


def _reduction(rng: Rng) -> dict[str, Any]:
    if rng.random() < 0.1:
        return _maybe(rng, size_average=(True, False), reduce=(True, False))
    return _maybe(rng, reduction=("mean", "sum", "none", "none", "sum", "typo"))


def _float(rng: Rng, shape: Any, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    dtype = np.float64 if rng.random() < 0.8 else np.float32
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


def _shape(rng: Rng, ndim: int | None = None) -> tuple[int, ...]:
    n = int(rng.integers(0, 4)) if ndim is None else ndim
    return tuple(int(k) for k in rng.integers(1, 5, n))


def _layer(name: str, options: dict[str, Any], arrays: list[np.ndarray], *fixed: Any) -> Call:
    """A loss as layer."""

    def call(m: Any, *xs: Any) -> Any:
        built = {k: m.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return getattr(m.nn, name)(**built)(*xs)

    return Call(f"{name}({options})", call, arrays)


def _same(rng: Rng, count: int, low: float = -2.0, high: float = 2.0) -> list[np.ndarray]:
    shape = _shape(rng)
    first = _float(rng, shape, low, high)
    return [first, *[rng.uniform(low, high, shape).astype(first.dtype) for _ in range(count - 1)]]


def _regression(rng: Rng) -> Call:
    name, options = _pick(
        rng,
        ("MSELoss", {}),
        ("L1Loss", {}),
        ("SmoothL1Loss", _maybe(rng, beta=(0.5, 0.0, 2.0))),
        ("HuberLoss", _maybe(rng, delta=(0.5, 2.0))),
    )
    reduction = _reduction(rng)
    if name == "HuberLoss":
        reduction = {k: v for k, v in reduction.items() if k == "reduction"}
    return _layer(name, {**options, **reduction}, _same(rng, 2))


def _probabilities(rng: Rng) -> Call:
    name = _pick(rng, "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "MultiLabelSoftMarginLoss")
    arrays = _same(rng, 2, 0.05, 0.95)
    options = _reduction(rng)
    last = arrays[0].shape[-1:]
    if name == "KLDivLoss":
        options |= _maybe(rng, log_target=True)
        if rng.random() < 0.2:
            options = {"reduction": "batchmean"}
    elif rng.random() < 0.4:
        options["weight"] = rng.uniform(0.5, 2, last).astype(arrays[0].dtype)
    if name == "BCEWithLogitsLoss" and rng.random() < 0.4:
        options["pos_weight"] = rng.uniform(0.5, 2, last).astype(arrays[0].dtype)
    return _layer(name, options, arrays)


def _classes(rng: Rng) -> Call:
    name = _pick(rng, "CrossEntropyLoss", "NLLLoss")
    shape = _shape(rng, int(rng.integers(1, 5)))
    x = _float(rng, shape)
    axis = 1 if len(shape) > 1 else 0
    classes = shape[axis]
    target = np.asarray(rng.integers(0, classes, shape[:axis] + shape[axis + 1 :]))
    options = _reduction(rng)
    if rng.random() < 0.4:
        options["weight"] = rng.uniform(0.5, 2, classes).astype(x.dtype)
    if name == "CrossEntropyLoss":
        options |= _maybe(rng, label_smoothing=(0.1, 0.5))
        if rng.random() < 0.3:
            soft = rng.uniform(0, 1, shape).astype(x.dtype)
            return _layer(name, options, [x, soft])
    if target.size > 1 and rng.random() < 0.4:
        options["ignore_index"] = int(target.flat[0])
        if (target == target.flat[0]).all():
            options.pop("ignore_index")
    if len(shape) > 1 and rng.random() < 0.1:
        target = target[..., None]  # one axis too many
    return _layer(name, options, [x, target])


def _signs(rng: Rng, shape: Any) -> np.ndarray:
    return np.asarray(rng.choice([-1, 1], shape))


def _margins(rng: Rng) -> Call:
    name = _pick(rng, "SoftMarginLoss", "HingeEmbeddingLoss", "MarginRankingLoss")
    options = _reduction(rng)
    if name != "SoftMarginLoss":
        options |= _maybe(rng, margin=(0.3, 1.5))
    arrays = _same(rng, 2 if name == "MarginRankingLoss" else 1)
    return _layer(name, options, [*arrays, _signs(rng, arrays[0].shape)])


def _cosine(rng: Rng) -> Call:
    x = _float(rng, _shape(rng, int(rng.integers(1, 4))))
    y = rng.normal(size=x.shape).astype(x.dtype)
    options = {**_reduction(rng), **_maybe(rng, margin=(0.3, -0.5))}
    wanted = x.shape[:-1] if rng.random() < 0.9 else x.shape
    return _layer("CosineEmbeddingLoss", options, [x, y, _signs(rng, wanted)])


def _multi(rng: Rng) -> Call:
    x = _float(rng, _shape(rng, int(rng.integers(1, 3))))
    classes = x.shape[-1]
    options = _reduction(rng)
    if rng.random() < 0.5:
        target = rng.integers(-1, classes, x.shape)
        return _layer("MultiLabelMarginLoss", options, [x, target])
    options |= _maybe(rng, p=(1, 2, 3), margin=(0.5, 2.0))
    if rng.random() < 0.4:
        options["weight"] = rng.uniform(0.5, 2, classes).astype(x.dtype)
    return _layer(
        "MultiMarginLoss", options, [x, np.asarray(rng.integers(0, classes, x.shape[:-1]))]
    )


def _likelihoods(rng: Rng) -> Call:
    if rng.random() < 0.5:
        options = {**_reduction(rng), **_maybe(rng, log_input=(True, False), full=True, eps=1e-4)}
        x, t = _same(rng, 2, 0.1, 3.0)
        return _layer("PoissonNLLLoss", options, [x, t])
    x, t = _same(rng, 2)
    shape = _pick(rng, x.shape, x.shape[:-1], (*x.shape[:-1], 1))
    var = rng.uniform(-0.05 if rng.random() < 0.1 else 0.1, 2, shape).astype(x.dtype)
    options = _maybe(rng, full=True, eps=1e-3, reduction=("sum", "none", "mean"))
    return _layer("GaussianNLLLoss", options, [x, t, var])


def _triplets(rng: Rng) -> Call:
    options = {
        **_reduction(rng),
        **_maybe(rng, margin=(0.5, 2.0, 0.0), p=(1.0, 2.0, 3.0), swap=True, eps=1e-4),
    }
    return _layer("TripletMarginLoss", options, _same(rng, 3))


def _similarity(rng: Rng) -> Call:
    x, y = _same(rng, 2)
    if rng.random() < 0.3 and x.ndim:
        y = y[:1]
    name = _pick(rng, "CosineSimilarity", "PairwiseDistance", "pdist")
    if name == "pdist":
        p = _pick(rng, 1.0, 2.0, 3.0, float("inf"), -1.0)
        return Call(f"pdist {p}", lambda m, x: m.pdist(x, p), [x])
    if name == "CosineSimilarity":
        return _layer(name, _maybe(rng, dim=(0, -1, 1), eps=1e-3), [x, y])
    return _layer(name, _maybe(rng, p=(1.0, 2.0, 3.0), eps=1e-3, keepdim=True), [x, y])


def _ctc(rng: Rng) -> Call:
    steps, count, classes = (int(n) for n in rng.integers((1, 1, 2), 7))
    lengths = rng.integers(0, 4, count)
    frames = rng.integers(0, steps + 1, count)
    blank = int(rng.integers(0, classes + (rng.random() < 0.03)))
    joined = rng.random() < 0.5
    wide = int(lengths.sum()) if joined else (count, 3)
    targets = np.asarray(rng.integers(0, classes, wide))
    targets[targets == blank] = (blank + 1) % classes
    options = _maybe(rng, reduction=("none", "sum", "mean"), zero_infinity=True)
    x = _float(rng, (steps, count, classes))
    normal = rng.random() < 0.5
    if rng.random() < 0.03:
        lengths = lengths[:-1]

    def call(m: Any, x: Any) -> Any:
        x = x.log_softmax(2) if normal else x
        given = [m.tensor(a) for a in (targets, frames, lengths)]
        return m.nn.CTCLoss(blank, **options)(x, *given)

    return Call(f"CTCLoss({blank}, {options}, {frames}, {lengths}, {targets})", call, [x])


def _adaptive(rng: Rng) -> Call:
    classes, count = int(rng.integers(4, 9)), int(rng.integers(1, 5))
    top = classes + (rng.random() < 0.1)
    cutoffs = sorted({int(c) for c in rng.integers(1, top, int(rng.integers(1, 3)))})
    options = _maybe(rng, head_bias=True, div_value=(2.0, 1.0))
    target = rng.integers(0, classes, count if rng.random() < 0.9 else count + 1)
    values = rng.uniform(-0.7, 0.7, 97)

    def call(m: Any, x: Any) -> Any:
        layer = m.nn.AdaptiveLogSoftmaxWithLoss(16, classes, cutoffs, **options).to(x.dtype)
        for k, p in enumerate(layer.parameters()):
            p.data.copy_(m.tensor(np.resize(np.roll(values, k * 7), tuple(p.shape))))
        output, loss = layer(x, m.tensor(target))
        weights = list(layer.parameters())
        grads = m.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        return [output, loss, layer.log_prob(x), layer.predict(x), *grads]

    return Call(f"Adaptive({classes}, {cutoffs}, {options})", call, [_float(rng, (count, 16))])


MAKERS: list[Callable[[Rng], Call]] = [
    _regression,
    _probabilities,
    _classes,
    _margins,
    _cosine,
    _multi,
    _likelihoods,
    _triplets,
    _similarity,
    _ctc,
    _adaptive,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[1:])
def test_random_calls(make: Callable[[Rng], Call]) -> None:
    run(mt, torch, make, 230, seed=1)
