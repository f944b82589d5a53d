"""Recurrent layers: names and start values, messages, dropout, packed sequences, definitions."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from op_table import Row
from rows.recurrent import ROWS

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, DataError, DtypeError, ShapeError
from minitorch.nn.utils import rnn
from minitorch.ops.fused import Fused

X = mt.ones(5, 3, 4)
H = mt.zeros(1, 3, 6)
PACKED = rnn.pack_padded_sequence(X, [5, 3, 1])
WRONG: list[tuple[str, Any, Any, str]] = [
    ("axes", lambda: nn.GRU(4, 6)(X[0][0]), ShapeError, "3 axes"),
    ("features", lambda: nn.GRU(3, 6)(X), ShapeError, "input_size=3"),
    ("empty", lambda: nn.GRU(4, 6)(X[:0]), ShapeError, "needs an element"),
    ("dtype", lambda: nn.GRU(4, 6)(X.double()), DtypeError, "dtype of the weights"),
    ("state dtype", lambda: nn.GRU(4, 6)(X, H.double()), DtypeError, "one floating dtype"),
    ("state", lambda: nn.GRU(4, 6)(X, H[:, :2]), ShapeError, "(1, 3, 6)"),
    ("pair", lambda: nn.LSTM(4, 6)(X, H), ArgumentError, "(h, c)"),
    ("unbatched", lambda: nn.LSTM(4, 6)(X[0], (H, H)), ShapeError, "(1, 6)"),
    ("sizes", lambda: nn.LSTM(4, 0), ArgumentError, "hidden_size must be at least 1"),
    ("whole", lambda: nn.LSTM(4, 2.0), TypeError, "hidden_size must be an int"),
    ("dropout", lambda: nn.LSTM(4, 2, dropout=1.5), ArgumentError, "from 0 to 1"),
    ("proj", lambda: nn.LSTM(4, 2, proj_size=2), ArgumentError, "from 0 to hidden_size - 1"),
    ("proj gru", lambda: nn.GRU(4, 6, proj_size=2), ArgumentError, "only LSTM"),
    ("kind", lambda: nn.RNN(4, 6, nonlinearity="elu"), ArgumentError, "'tanh' or 'relu'"),
    ("cell kind", lambda: nn.RNNCell(4, 6, nonlinearity="elu"), ArgumentError, "'tanh' or"),
    ("cell axes", lambda: nn.RNNCell(4, 6)(X), ShapeError, "[B, I] or [I]"),
    ("cell features", lambda: nn.RNNCell(3, 6)(X[0]), ShapeError, "input_size=3"),
    ("cell state", lambda: nn.GRUCell(4, 6)(X[0], H[0, :2]), ShapeError, "batch of the input"),
    ("cell width", lambda: nn.GRUCell(4, 6)(X[0], X[0]), ShapeError, "must have 6 features"),
    ("cell state axes", lambda: nn.GRUCell(4, 6)(X[0], H), ShapeError, "[B, H] or [H]"),
    ("count", lambda: mt.gru(X, H), ArgumentError, "expected 9 arguments"),
    ("width", lambda: mt.gru_cell(X[0], H[0], mt.ones(18, 3), mt.ones(18, 6)), ShapeError, "3 fe"),
    ("lengths", lambda: rnn.pack_padded_sequence(X, [5, 3]), ShapeError, "Is batch_first right?"),
    ("growing", lambda: rnn.pack_padded_sequence(X, [3, 5, 1]), DataError, "enforce_sorted=False"),
    ("none", lambda: rnn.pack_padded_sequence(X, [5, 3, 0]), DataError, "at least one element"),
    ("long", lambda: rnn.pack_padded_sequence(X, [6, 3, 1]), DataError, "at most 5"),
    ("no batch", lambda: rnn.pack_padded_sequence(X[:, :0], []), DataError, "empty batch"),
    ("one axis", lambda: rnn.pack_padded_sequence(X[0, 0], [1]), ShapeError, "[T, B, …]"),
    ("total", lambda: rnn.pad_packed_sequence(PACKED, total_length=3), ArgumentError, "at least 5"),
    ("side", lambda: rnn.pad_sequence([X], padding_side="up"), ArgumentError, "'right' or 'left'"),
    ("nothing", lambda: rnn.pad_sequence([]), ShapeError, "Got 0"),
    ("unlike", lambda: rnn.pad_sequence([X, X[0]]), ShapeError, "but the first must be equal"),
    ("sizes of none", lambda: rnn.PackedSequence(X), ArgumentError, "Use pack_sequence"),
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


LAYERS = [
    "RNN(4, 6)",
    "RNN(4, 6, 2, 'relu', False)",
    "GRU(4, 6, num_layers=2, bidirectional=True, batch_first=True)",
    "LSTM(4, 6, 2, dropout=0.5)",
    "LSTM(4, 6, 2, proj_size=2, bias=False, bidirectional=True)",
    "RNNCell(4, 6, nonlinearity='relu')",
    "LSTMCell(4, 6, bias=False)",
    "GRUCell(4, 6)",
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
    for p in ours.parameters():
        assert 0.01 < float(abs(p).max()) <= 6**-0.5


def test_layers_are_copied_and_listed() -> None:
    layer = nn.LSTM(4, 6, 2)
    layer.flatten_parameters()
    assert [len(w) for w in layer.all_weights] == [4, 4]
    twin = copy.deepcopy(layer)
    np.testing.assert_array_equal(twin(X)[0].detach().numpy(), layer(X)[0].detach().numpy())


def test_dropout_acts_between_layers_in_training_only() -> None:
    layer = nn.GRU(4, 6, 2, dropout=0.5)
    assert not mt.equal(layer(X)[0], layer(X)[0])
    layer.eval()
    assert mt.equal(layer(X)[0], layer(X)[0])
    with pytest.warns(UserWarning, match="dropout acts between layers"):
        nn.GRU(4, 6, dropout=0.5)


def test_packed_rows_end_where_their_sequence_ends() -> None:
    layer = nn.LSTM(4, 6)
    _, (h, c) = layer(PACKED)
    for i, n in enumerate([5, 3, 1]):
        _, (one_h, one_c) = layer(X[:n, i])
        np.testing.assert_allclose(h[:, i].detach().numpy(), one_h.detach().numpy(), rtol=1e-5)
        np.testing.assert_allclose(c[:, i].detach().numpy(), one_c.detach().numpy(), rtol=1e-5)


def test_packed_sequences_convert() -> None:
    packed = rnn.pack_sequence([X[:2, 0], X[:, 1]], enforce_sorted=False)
    assert packed.double().data.dtype is mt.float64
    assert packed.half().float().data.dtype is mt.float32
    assert packed.cpu() is packed
    assert not packed.is_cuda
    assert packed.unsorted_indices.tolist() == [1, 0]


def test_half_types_are_computed_in_float32() -> None:
    layer = nn.LSTM(4, 6)
    y = layer(X)[0].detach().numpy()
    half = layer.half()(X.half())[0]
    assert half.dtype is mt.float16
    np.testing.assert_allclose(half.detach().float().numpy(), y, atol=2e-3)


def test_autocast_computes_in_the_half_type() -> None:
    with mt.autocast("cpu", mt.bfloat16):
        y, _ = nn.LSTM(4, 6)(X)
    assert y.dtype is mt.bfloat16


@pytest.mark.parametrize("dtype", [mt.float32, mt.bfloat16], ids=str)
@pytest.mark.parametrize("used", ["y", "h", "c", "yh", "yhc", "yy", "hhc"])
def test_results_that_nothing_uses_have_no_gradient(used: str, dtype: mt.dtype) -> None:
    layer = nn.LSTM(4, 6, batch_first=True).to(dtype)

    def loss() -> Any:
        y, (h, c) = layer(X.to(dtype))
        results = {"y": y, "h": h, "c": c}
        return sum((results[name] * results[name]).float().sum() for name in used)

    loss().backward()
    # Where gradients are wanted for some tensors, those of parts are joined first.
    wanted = mt.autograd.grad(loss(), list(layer.parameters()))
    for p, g in zip(layer.parameters(), wanted, strict=True):
        np.testing.assert_array_equal(p.grad.float().numpy(), g.float().numpy())
