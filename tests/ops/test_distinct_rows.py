"""Layers that multiply each row of an embedding once give what they give on any rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.capture import Captured
from minitorch.nn.functional import recurrent as functional
from minitorch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from minitorch.ops import distinct, recurrent

KINDS = ["LSTM", "GRU", "RNN"]
SHAPE, LETTERS, WIDTH = (18, 12), 40, 64
SIZES = {"LSTM": 96, "GRU": 128, "RNN": 384}
pytestmark = pytest.mark.skipif(
    recurrent.load_for("recurrent", np.ones(1 << 20, np.float32)) is None, reason="needs kernels"
)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often rows were multiplied once, and gradients went past the lookup."""
    counted = {"distinct": 0, "past": 0}

    def rows(*args: Any) -> Any:
        found = distinct.distinct_rows(*args)
        counted["distinct"] += found is not None
        return found

    def table(node: Any) -> Any:
        counted["past"] += 1
        return distinct.table_of(node)

    monkeypatch.setattr(recurrent, "distinct_rows", rows)
    monkeypatch.setattr(recurrent, "table_of", table)
    return counted


class Net(nn.Module):
    """A recurrent layer on an embedding."""

    def __init__(self, kind: str, rows: int = LETTERS, **options: Any) -> None:
        super().__init__()
        mt.manual_seed(1)
        layer = {k: options.pop(k) for k in ("batch_first", "bidirectional") if k in options}
        self.embedding = nn.Embedding(rows, WIDTH, **options)
        self.rnn = getattr(nn, kind)(WIDTH, SIZES[kind], **layer)
        self.change: Callable[[Any], Any] = lambda h: h

    def forward(self, x: Any) -> Any:
        y, last = self.rnn(self.change(self.embedding(x)))
        y = y.data if isinstance(y, PackedSequence) else y
        last = last[0] if isinstance(last, tuple) else last
        return (y * mt.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum() + last.square().sum()


def letters(rows: int = LETTERS) -> Any:
    mt.manual_seed(2)
    return mt.randint(0, rows, SHAPE)


def numbers(net: Net, x: Any, seed: Any = None) -> list[np.ndarray]:
    """The loss, and the gradients of all parameters."""
    net.zero_grad()
    loss = net(x)
    loss.backward(seed)
    return [loss.detach().numpy(), *[p.grad.numpy().copy() for p in net.parameters()]]


def close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5 * max(1e-3, np.abs(b).max()))


def on_all_rows(net: Net, x: Any) -> list[np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functional, "options_of", lambda x: {})
        return numbers(net, x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"bidirectional": True}, {"padding_idx": 3}, {"rows": 4000}],
    ids=lambda o: "-".join(o) or "time first",
)
def test_same_numbers(kind: str, options: dict[str, Any], counts: dict[str, int]) -> None:
    net = Net(kind, **options)
    x = letters() * (4000 // LETTERS if "rows" in options else 1)
    found = numbers(net, x)
    assert counts == dict.fromkeys(counts, 2 if "bidirectional" in options else 1)
    close(found, on_all_rows(net, x))


def test_the_hidden_states_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = Net("LSTM"), letters()
    y = net.rnn(net.embedding(x))[0]
    with mt.no_grad():  # of which no graph knows where rows are from
        assert y.tolist() == net.rnn(net.embedding(x))[0].tolist()


def _retained(net: Net) -> None:
    net.change = lambda h: h.retain_grad() or setattr(net, "kept", [h]) or h


def _moved(change: Callable[[Any], Any]) -> Callable[[Net], None]:
    return lambda net: setattr(net, "change", change)


def _with_other_rows(h: Any) -> Any:
    with mt.no_grad():
        h[0] = 0.25
    return h


def _packed(h: Any) -> Any:
    return pack_padded_sequence(h, [SHAPE[0] - i // 4 for i in range(SHAPE[1])])


@pytest.mark.parametrize(
    ("prepare", "options", "wanted"),
    [
        (_retained, {}, (1, 0)),
        (_moved(_with_other_rows), {}, (0, 0)),
        (_moved(lambda h: h * 1.0), {}, (0, 0)),
        (_moved(lambda h: h.flatten(0, 1)), {}, (1, 1)),
        (_moved(lambda h: h.transpose(0, 1)), {}, (1, 1)),
        (_moved(lambda h: h.permute(2, 0, 1).reshape(-1, *SHAPE[:1], WIDTH)), {}, (0, 0)),
        (_moved(lambda h: h[1:].unflatten(0, (1, -1))[0, :]), {"rows": 7}, (1, 1)),
        (_moved(lambda h: h[..., :WIDTH]), {}, (0, 0)),
        (_moved(_packed), {}, (1, 1)),
        (_moved(lambda h: _packed(_with_other_rows(h))), {}, (0, 0)),
        (lambda net: None, {"scale_grad_by_freq": True}, (0, 0)),
        (lambda net: net.embedding.requires_grad_(False), {}, (0, 0)),
    ],
)
def test_what_others_see(
    prepare: Any, options: Any, wanted: tuple[int, int], counts: dict[str, int]
) -> None:
    net = Net("LSTM", **options)
    prepare(net)
    x = letters(options.get("rows", LETTERS))
    if not net.embedding.weight.requires_grad:
        net(x).backward()
        assert net.embedding.weight.grad is None
    else:
        found = numbers(net, x)
        close(found, on_all_rows(net, x))
    assert (counts["distinct"], counts["past"]) == wanted
    if prepare is _retained:
        sums = np.zeros((LETTERS, WIDTH))
        np.add.at(sums, x.numpy(), net.kept[0].grad.numpy())
        np.testing.assert_allclose(net.embedding.weight.grad.numpy(), sums, 1e-4, 1e-5)


def test_gradients_of_one_of_them(counts: dict[str, int]) -> None:
    net, x = Net("LSTM"), letters()
    h = net.embedding(x)
    net.change = lambda _: h
    dh, dw = mt.autograd.grad(net(x), [h, net.rnn.weight_ih_l0], retain_graph=True)
    assert counts["past"] == 0
    (table,) = mt.autograd.grad(net(x), [net.embedding.weight], retain_graph=True)
    assert counts["past"] == 1
    again = mt.autograd.grad(net(x), [net.embedding.weight, h, net.rnn.weight_ih_l0])
    assert counts["past"] == 1
    close([g.numpy() for g in again], [table.numpy(), dh.numpy(), dw.numpy()])


def test_hooks_seen_late_and_anomalies(counts: dict[str, int]) -> None:
    net, x, seen = Net("LSTM"), letters(), []
    wanted = numbers(net, x)
    h = net.embedding(x)
    net.change = lambda _: h
    loss = net(x)
    h.register_hook(lambda g: seen.append(g) or g * 2)
    net.zero_grad()
    loss.backward()
    assert seen[0].shape == h.shape
    grad: Any = net.embedding.weight.grad
    np.testing.assert_allclose(grad.numpy(), 2 * wanted[1], 1e-4, 1e-5)
    assert counts["past"] == 1
    net.change = lambda h: h
    with mt.autograd.detect_anomaly():
        close(numbers(net, x), wanted)


def test_gradients_of_higher_order(counts: dict[str, int]) -> None:
    net, x = Net("LSTM"), letters()
    weight = net.embedding.weight
    (first,) = mt.autograd.grad(net(x), [weight], create_graph=True)
    assert counts == {"distinct": 1, "past": 0}
    (second,) = mt.autograd.grad(first.square().sum(), [weight])
    assert second.isfinite().all()
    (plain,) = mt.autograd.grad(net(x), [weight])
    close([first.detach().numpy()], [plain.numpy()])


@pytest.mark.parametrize("kind", KINDS)
def test_captured_steps(kind: str) -> None:
    net = Net(kind)
    call = Captured(net)
    for seed in range(6):
        mt.manual_seed(seed)
        x = mt.randint(0, 5 + 7 * seed, SHAPE)
        net.zero_grad()
        loss = call(x)
        loss.backward()
        found = [loss.detach().numpy(), *[p.grad.numpy().copy() for p in net.parameters()]]
        for a, b in zip(found, numbers(net, x), strict=True):
            np.testing.assert_array_equal(a, b)
    assert call.counts.breaks == {}
    assert call.counts.replays >= 2
    plain = on_all_rows(net, x)
    assert any((a != b).any() for a, b in zip(found, plain, strict=True))


@pytest.mark.parametrize("padding", [None, 3])
def test_a_captured_step_takes_rows_that_hardly_repeat(padding: int | None) -> None:
    net = Net("LSTM", 4000, padding_idx=padding)
    call = Captured(net)
    for seed in range(8):
        mt.manual_seed(seed)
        x = mt.randint(0, 4000 if seed % 2 and seed > 3 else 5, SHAPE)
        net.zero_grad()
        loss = call(x)
        loss.backward()
        found = [loss.detach().numpy(), *[p.grad.numpy().copy() for p in net.parameters()]]
        close(found, numbers(net, x))
    assert call.counts.replays >= 4


def test_a_frozen_input_product_has_no_gradients() -> None:
    layer = nn.LSTM(256, 256, bias=False, batch_first=True)
    layer.weight_ih_l0.requires_grad_(False)
    x = mt.randn(32, 32, 256)
    layer(x)[0].sum().backward()
    found = layer.weight_hh_l0.grad.numpy().copy()
    layer.weight_ih_l0.requires_grad_(True)
    layer.zero_grad()
    layer(x)[0].sum().backward()
    np.testing.assert_array_equal(found, layer.weight_hh_l0.grad.numpy())


def test_rows_that_hardly_repeat_are_all_multiplied() -> None:
    x = np.ones((100, 64), np.float32)
    index = np.arange(100)
    assert distinct.distinct_rows(x, 1 << 12, index, 100, ()) is None
    assert distinct.distinct_rows(x, 1 << 12, index, 10**6, ()) is None
    assert distinct.distinct_rows(x, 10, index // 10, 100, ()) is None  # too little work
    for rows in (100, 10**6):
        found = distinct.distinct_rows(x * index[:, None], 1 << 12, index // 10 * 10, rows, ())
        assert found is not None
        assert found.numbers.tolist() == list(range(0, 100, 10))
        assert (found.numbers[found.place] == index // 10 * 10).all()
        assert (found.rows[:, 0] // 10 * 10 == found.numbers).all()
