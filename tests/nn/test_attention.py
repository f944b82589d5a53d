"""Attention and the Transformer: names, start values, messages, dropout, definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_table import Row
from rows.attention import ROWS

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, DtypeError, ShapeError
from minitorch.ops.attention import attention_op
from minitorch.ops.fused import Fused

F: Any = nn.functional
Q, K, V = mt.ones(2, 4, 3, 8), mt.ones(2, 4, 5, 8), mt.ones(2, 4, 5, 6)
X = mt.ones(5, 3, 8)


def _attend(*args: Any, **options: Any) -> Any:
    return lambda: F.scaled_dot_product_attention(*args, **options)


def _heads(*args: Any, **options: Any) -> Any:
    layer = nn.MultiheadAttention(8, 2)
    return lambda: layer(*(args or (X, X, X)), **options)


WRONG: list[tuple[str, Any, Any, str]] = [
    ("axes", _attend(Q[0, 0, 0], K, V), ShapeError, "[..., length, features]"),
    ("dtype", _attend(Q, K.double(), V), DtypeError, "one floating dtype"),
    ("features", _attend(Q, K[..., :4], V), ShapeError, "as many features"),
    ("positions", _attend(Q, K, V[:, :, :3]), ShapeError, "as many positions"),
    ("both", _attend(Q, K, V, mt.ones(3, 5), is_causal=True), ArgumentError, "Got both"),
    ("p", _attend(Q, K, V, dropout_p=1.5), ArgumentError, "from 0 to 1"),
    ("mask shape", _attend(Q, K, V, mt.ones(4, 5)), ShapeError, "(2, 4, 3, 5)"),
    ("mask dtype", _attend(Q, K, V, mt.ones(3, 5).long()), DtypeError, "must be bool"),
    ("gqa", _attend(Q, K[:, :3], V[:, :3], enable_gqa=True), ShapeError, "divide those of the que"),
    ("heads", lambda: nn.MultiheadAttention(8, 3), ArgumentError, "must divide embed_dim"),
    ("query", _heads(X[..., :4], X, X), ShapeError, "must have 8 features"),
    ("ndim", _heads(X, X[0], X[0]), ShapeError, "without a batch"),
    ("key", _heads(X, X, X[:3]), ShapeError, "as many positions"),
    ("value", _heads(X, X, X[..., :4]), ShapeError, "value must have 8 features"),
    ("causal", _heads(is_causal=True), ArgumentError, "needs attn_mask"),
    ("attn_mask", _heads(attn_mask=mt.ones(5, 4)), ShapeError, "(5, 5) or (6, 5, 5)"),
    ("padding", _heads(key_padding_mask=mt.ones(5, 3)), ShapeError, "(3, 5), batch first"),
    ("integers", _heads(attn_mask=mt.ones(5, 5).long()), DtypeError, "must be bool (true where"),
    (
        "static",
        lambda: F.multi_head_attention_forward(
            *(X, X, X, 8, 2, mt.ones(24, 8), None, None, None, False, 0.0, mt.ones(8, 8), None),
            static_k=X,
        ),
        ShapeError,
        "[6, S, 4]",
    ),
    (
        "head count",
        lambda: F.multi_head_attention_forward(
            X, X, X, 8, 3, mt.ones(24, 8), None, None, None, False, 0.0, mt.ones(8, 8), None
        ),
        ArgumentError,
        "heads must divide",
    ),
    (
        "activation",
        lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
        ArgumentError,
        "'relu', 'gelu' or a function",
    ),
    ("batch", lambda: nn.Transformer(8, 2, 1, 1, 4)(X, X[:, :2]), ShapeError, "one batch"),
    ("d_model", lambda: nn.Transformer(4, 2, 1, 1, 4)(X, X), ShapeError, "d_model=4"),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_message(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def _results(row: Row, dtype: str) -> list[np.ndarray]:
    xs = [mt.tensor(a).requires_grad_() for a in row.sample(row.shapes[0], np.dtype(dtype))]
    y = row.call(mt, *xs)
    weights = mt.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).reshape(y.shape)
    grads = mt.autograd.grad((y * weights).sum(), xs, allow_unused=True)
    return [y.detach().numpy(), *[g.numpy() for g in grads if g is not None]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_fast_bodies_and_definitions_agree(
    row: Row, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = _results(row, dtype)
    monkeypatch.setattr(Fused, "__call__", lambda op, *xs, **options: op.definition(*xs, **options))
    tolerance = {"float32": 2e-5, "float64": 1e-10}[dtype]
    for a, b in zip(fast, _results(row, dtype), strict=True):
        np.testing.assert_allclose(a, b, tolerance, tolerance)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_large_attention_equals_its_definition(causal: bool, masked: bool) -> None:
    q, k, v = (mt.randn(2, 3, 40, 16, requires_grad=True) for _ in range(3))
    mask = mt.rand(40, 40) < 0.5 if masked and not causal else None
    if mask is not None:
        mask[3] = False
    results = []
    for op in (attention_op, attention_op.definition):
        y = op(q, k, v, mask, scale=0.25, causal=causal)
        results.append([y.detach(), *mt.autograd.grad((y * y).sum(), (q, k, v))])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 2e-5, 2e-5)


def test_nothing_to_attend_to_gives_0() -> None:
    y = F.scaled_dot_product_attention(Q, K[:, :, :0], V[:, :, :0])
    assert not y.any()
    weights = nn.MultiheadAttention(8, 2)(X, X, X, attn_mask=mt.ones(5, 5).bool())[1]
    assert weights is not None
    assert not weights.any()


def test_dropout_drops_weights_and_scales_the_others() -> None:
    mt.manual_seed(0)
    ones = mt.ones(1, 400, 8)
    y = F.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5).numpy()
    assert abs(y.mean() - 1) < 0.02
    assert y.std() > 0.01
    assert not F.scaled_dot_product_attention(ones, ones, ones, dropout_p=1.0).any()


def test_dropout_has_gradients_of_its_draw() -> None:
    q, k, v = (mt.randn(2, 5, 3, dtype=mt.float64, requires_grad=True) for _ in range(3))

    def attend(*xs: Any) -> Any:
        mt.manual_seed(3)
        return F.scaled_dot_product_attention(*xs, dropout_p=0.4)

    assert mt.autograd.gradcheck(attend, (q, k, v))
    assert mt.autograd.gradgradcheck(attend, (q, k, v), fast_mode=True)


def test_autocast_computes_in_the_half_type() -> None:
    with mt.autocast("cpu", mt.bfloat16):
        assert F.scaled_dot_product_attention(Q, K, V).dtype is mt.bfloat16


LAYERS = [
    "MultiheadAttention(8, 2)",
    "MultiheadAttention(8, 2, bias=False)",
    "MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True)",
    "TransformerEncoderLayer(8, 2, 16)",
    "TransformerDecoderLayer(8, 2, 16, bias=False, activation='gelu')",
    "TransformerEncoderLayer(8, 2, 16, activation=nn.SiLU())",
    "TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)",
    "Transformer(8, 2, 1, 1, 16, batch_first=True)",
]


@pytest.mark.parametrize("text", LAYERS)
def test_names_and_shapes_are_torchs(text: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (eval(f"nn.{text}", {"nn": m.nn}) for m in (mt, torch))
    assert repr(ours) == repr(theirs)
    a, b = ours.state_dict(), theirs.state_dict()
    assert [(k, tuple(v.shape)) for k, v in a.items()] == [
        (k, tuple(v.shape)) for k, v in b.items()
    ]
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        if p.numel() > 32:
            ratio = float(p.detach().std()) / max(float(q.detach().std()), 1e-9)
            assert 0.6 < ratio < 1.6 or not float(q.detach().abs().max()), name


def test_layers_of_a_stack_are_copies() -> None:
    stack: Any = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
    assert stack.layers[0].linear1.weight is not stack.layers[1].linear1.weight
    assert stack(X).shape == X.shape
