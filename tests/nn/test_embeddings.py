"""Embeddings, bags, CTC and the adaptive softmax: messages, and what no table says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, DtypeError, IndexRangeError, ShapeError

F: Any = nn.functional
W = mt.randn(5, 3)
ROWS = mt.tensor([[0, 2, 4], [1, 1, 3]])
FLAT = mt.tensor([0, 2, 4, 1])
LP = mt.log_softmax(mt.randn(6, 2, 5), 2)
LABELS = mt.tensor([[1, 2], [3, 4]])


def _bag(*args: Any, **options: Any) -> Any:
    return lambda: F.embedding_bag(*args, **options)


def _ctc(*args: Any, **options: Any) -> Any:
    return lambda: F.ctc_loss(*args, **options)


def _adaptive(*args: Any) -> Any:
    return lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 6, [2, 4], 2.0)(*args)


WRONG: list[tuple[str, Any, Any, str]] = [
    ("mode", _bag(ROWS, W, mode="median"), ArgumentError, "'sum', 'mean' or 'max'"),
    ("floats", _bag(ROWS.float(), W), DtypeError, "Use .long()"),
    ("table", _bag(ROWS, W[0]), ShapeError, "[rows, width]"),
    ("offsets", _bag(ROWS, W, FLAT), ShapeError, "Leave them away"),
    ("none", _bag(FLAT, W), ShapeError, "with offsets"),
    ("first", _bag(FLAT, W, mt.tensor([1, 2])), ArgumentError, "start at 0"),
    ("end", _bag(FLAT, W, mt.tensor([0, 5])), ArgumentError, "not leave the 4"),
    (
        "last",
        _bag(FLAT, W, mt.tensor([0, 2]), include_last_offset=True),
        ArgumentError,
        "they end there",
    ),
    (
        "no last",
        _bag(FLAT, W, FLAT[:0], include_last_offset=True),
        ShapeError,
        "needs an offset",
    ),
    ("outside", _bag(ROWS + 3, W), IndexRangeError, "Got 3 to 7"),
    ("samples", _bag(ROWS, W, per_sample_weights=W), ArgumentError, "need mode='sum'"),
    (
        "sample shape",
        _bag(ROWS, W, mode="sum", per_sample_weights=W),
        ShapeError,
        "shape of the input",
    ),
    ("frequency", _bag(ROWS, W, mode="max", scale_grad_by_freq=True), ArgumentError, "no meaning"),
    ("padding", _bag(ROWS, W, padding_idx=5), ArgumentError, "from -5 to 4"),
    ("bag layer", lambda: nn.EmbeddingBag(5, 3, padding_idx=-6), ArgumentError, "from -5 to 4"),
    ("ctc axes", _ctc(LP[0, 0], LABELS, (6, 6), (2, 2)), ShapeError, "[T, N, C] or [T, C]"),
    ("ctc dtype", _ctc(LP.long(), LABELS, (6, 6), (2, 2)), DtypeError, "must be floating"),
    ("ctc blank", _ctc(LP, LABELS, (6, 6), (2, 2), blank=5), ArgumentError, "from 0 to 4"),
    ("ctc count", _ctc(LP, LABELS, (6,), (2, 2)), ShapeError, "each of the 2 sequences"),
    ("ctc steps", _ctc(LP, LABELS, (7, 6), (2, 2)), ArgumentError, "from 0 to 6"),
    ("ctc targets", _ctc(LP, LABELS, (6, 6), (3, 2)), ShapeError, "(2, 3 or more)"),
    ("ctc joined", _ctc(LP, FLAT, (6, 6), (2, 1)), ShapeError, "(3,)"),
    ("ctc labels", _ctc(LP, LABELS + 1, (6, 6), (2, 2)), IndexRangeError, "Got 2 to 5"),
    ("cutoffs", lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 6, [4, 2]), ArgumentError, "rising"),
    ("adaptive", _adaptive(mt.ones(2, 8), FLAT), ShapeError, "a target [N]"),
    ("adaptive class", _adaptive(mt.ones(4, 8), FLAT + 2), IndexRangeError, "Got 2 to 6"),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_message(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "Embedding(5, 3, 2, 1.0, 3.0, True, True)",
        "EmbeddingBag(5, 3, max_norm=1.0, padding_idx=2, mode='sum', scale_grad_by_freq=True)",
        "EmbeddingBag(5, 3, norm_type=1.0)",
        "AdaptiveLogSoftmaxWithLoss(16, 10, [2, 5], head_bias=True)",
        "CTCLoss(2)",
    ],
)
def test_names_are_torchs(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (eval(f"nn.{text}", {"nn": m.nn}) for m in (mt, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_a_bag_divides_the_gradient_of_each_row_by_its_frequency() -> None:
    w = W.clone().requires_grad_()
    F.embedding_bag(mt.tensor([[0, 0, 2]]), w, mode="sum", scale_grad_by_freq=True).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy()[:, 0], [1, 0, 1, 0, 0])


def test_longer_rows_are_scaled_where_they_are_used() -> None:
    layer = nn.Embedding(4, 2, max_norm=1.0)
    layer.weight.data.fill_(3.0)
    layer(mt.tensor([0, 2, 2])).sum().backward()
    norms = layer.weight.detach().norm(dim=1).numpy()
    np.testing.assert_allclose(norms, [1, 18**0.5, 1, 18**0.5], rtol=1e-5)


def test_a_bag_from_a_table_is_frozen() -> None:
    bag = nn.EmbeddingBag.from_pretrained(W, mode="max", padding_idx=0)
    assert not bag.weight.requires_grad
    assert (bag.mode, bag.padding_idx) == ("max", 0)
    assert nn.EmbeddingBag(4, 2, padding_idx=-1).weight.tolist()[3] == [0.0, 0.0]


def test_adaptive_softmax_of_one_row() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 6, [2, 4], 2.0)
    layer.reset_parameters()
    x = mt.randn(8)
    output, loss = layer(x, mt.tensor([5])[0])
    assert output.shape == ()
    np.testing.assert_allclose(float(loss), -float(layer.log_prob(x[None])[0, 5]), rtol=1e-5)


def test_ctc_of_half_types_is_wide_inside() -> None:
    narrow = F.ctc_loss(LP.half(), LABELS, (6, 6), (2, 2))
    assert narrow.dtype is mt.float16
    exact = F.ctc_loss(LP.half().float(), LABELS, (6, 6), (2, 2))
    np.testing.assert_allclose(float(narrow), float(exact), rtol=2e-3)


def test_ctc_sums_over_all_alignments() -> None:
    p = mt.exp(F.log_softmax(mt.randn(3, 1, 3), 2)).numpy()[:, 0]
    paths = [(1, 2, 2), (1, 1, 2), (1, 2, 0), (0, 1, 2), (1, 0, 2)]
    total = sum(p[0, a] * p[1, b] * p[2, c] for a, b, c in paths)
    loss = F.ctc_loss(mt.tensor(np.log(p)), mt.tensor([1, 2]), (3,), (2,), reduction="sum")
    np.testing.assert_allclose(float(loss), -np.log(total), rtol=1e-5)
