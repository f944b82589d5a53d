"""Messages of the losses and activations that load late, and what is random in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, DtypeError, ShapeError

F: Any = nn.functional
X = mt.tensor([[0.5, -0.5, 0.1], [1.0, 2.0, 3.0]])
ONES = mt.ones(2, 3)
WRONG: list[tuple[str, Any, Any, str]] = [
    ("soft shape", lambda: F.soft_margin_loss(X, X[0]), ShapeError, "does not broadcast"),
    ("hinge label", lambda: F.hinge_embedding_loss(X, mt.ones(2)), ShapeError, "not broadcast"),
    ("ranking axes", lambda: F.margin_ranking_loss(X, X, mt.ones(3)), ShapeError, "one shape"),
    ("cosine", lambda: F.cosine_embedding_loss(X, X, ONES), ShapeError, "with a target"),
    ("multi p", lambda: F.multi_margin_loss(X, mt.tensor([0, 1]), p=3), ArgumentError, "1 or 2"),
    ("multi axes", lambda: F.multi_margin_loss(X[None], X), ShapeError, "f[N, C] or f[C]"),
    ("multi shape", lambda: F.multi_margin_loss(X, mt.tensor([0])), ShapeError, "shape (2,)"),
    ("multi float", lambda: F.multi_margin_loss(X, mt.ones(2)), DtypeError, "Use .long()"),
    ("multi class", lambda: F.multi_margin_loss(X, mt.tensor([0, 3])), ArgumentError, "0 to 2"),
    ("multilabel 0-d", lambda: F.multilabel_soft_margin_loss(X.sum(), X.sum()), ShapeError, "[…,"),
    ("poisson", lambda: F.poisson_nll_loss(X, mt.ones(2)), ShapeError, "does not broadcast"),
    ("gauss var", lambda: F.gaussian_nll_loss(X, X, -ONES), ArgumentError, "its logarithm"),
    ("triplet", lambda: F.triplet_margin_loss(X, X, X, margin=0.0), ArgumentError, "above 0"),
    ("triplet axes", lambda: F.triplet_margin_loss(X, X, X[0]), ShapeError, "as many axes"),
    ("triplet layer", lambda: nn.TripletMarginLoss(0.0), ArgumentError, "above 0"),
    ("multi layer", lambda: nn.MultiMarginLoss(3), ArgumentError, "1 or 2"),
    ("pdist", lambda: F.pdist(X[0]), ShapeError, "a matrix of rows"),
    ("pdist p", lambda: F.pdist(X, -1.0), ArgumentError, "not be negative"),
    ("pdist float", lambda: F.pdist(X.long()), DtypeError, "must be floating"),
    ("softshrink", lambda: F.softshrink(X, -1.0), ArgumentError, "not be negative"),
    ("hardshrink", lambda: F.hardshrink(X.long()), DtypeError, "Use .float()"),
    ("rrelu", lambda: F.rrelu(X, 0.5, 0.1), ArgumentError, "lower must not"),
    ("softmax2d", lambda: nn.Softmax2d()(X), ShapeError, "[N, C, H, W]"),
    ("channels", lambda: F.feature_alpha_dropout(X[0], training=True), ShapeError, "[N, C, …]"),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_message(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_pdist_of_one_row_keeps_the_graph() -> None:
    x = mt.ones(1, 3, requires_grad=True)
    F.pdist(x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 0)


@pytest.mark.parametrize("inplace", [False, True])
def test_rrelu_draws_a_slope_for_each_element(inplace: bool) -> None:
    x = mt.full((1000,), -2.0)
    y = nn.RReLU(0.1, 0.3, inplace)(x).numpy()
    assert y.min() >= -0.6
    assert y.max() <= -0.2
    assert len(np.unique(y)) > 900
    assert (y is x.numpy()) or inplace == np.array_equal(y, x.numpy())


@pytest.mark.parametrize("layer", [nn.Dropout3d(0.5), nn.FeatureAlphaDropout(0.5)])
def test_whole_channels_are_dropped(layer: Any) -> None:
    y = layer(mt.ones(40, 50, 1, 2, 2)).numpy().reshape(2000, 4)
    assert (y == y[:, :1]).all()
    assert 0.4 < (y[:, 0] == y[:, 0].min()).mean() < 0.6
    assert layer.eval()(X) is X


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_in_place_writes_its_input(name: str) -> None:
    x = mt.randn(10, 20, 3)
    assert getattr(F, name)(x, 0.5, True, True) is x
    assert (getattr(F, name)(x, 1.0, True).numpy() == 0).all()


@pytest.mark.parametrize(
    ("size_average", "reduce", "reduction"),
    [(None, False, "none"), (False, None, "sum"), (True, True, "mean"), (False, False, "none")],
)
def test_old_arguments_name_a_reduction(
    size_average: bool | None, reduce: bool | None, reduction: str
) -> None:
    for loss in (nn.MSELoss, nn.CrossEntropyLoss, nn.PoissonNLLLoss, nn.KLDivLoss):
        made: Any = loss
        assert made(size_average=size_average, reduce=reduce).reduction == reduction


def test_hardtanh_knows_its_old_names() -> None:
    assert repr(nn.Hardtanh(min_value=-2.0, max_value=3.0)) == "Hardtanh(min_val=-2.0, max_val=3.0)"


LAYERS = [
    "Hardshrink(0.3)",
    "Softshrink()",
    "RReLU()",
    "RReLU(0.1, 0.2, inplace=True)",
    "Softmax2d()",
    "Dropout3d(0.2)",
    "FeatureAlphaDropout()",
]


@pytest.mark.parametrize("text", LAYERS)
def test_repr_and_evaluation_are_torchs(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (eval(f"nn.{text}", {"nn": m.nn}).eval() for m in (mt, torch))
    assert repr(ours) == repr(theirs)
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 2, 2)
    np.testing.assert_allclose(
        ours(mt.tensor(x)).numpy(), theirs(torch.tensor(x)).numpy(), rtol=1e-6
    )
