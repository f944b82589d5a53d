"""Products, attention and recurrent layers: compiled bodies equal the plain ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.kernels import load
from minitorch.nn import functional as F
from minitorch.ops import product, recurrent_steps
from minitorch.ops.fused import Fused

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    before = mt.get_num_threads()
    yield
    mt.set_num_threads(before)


def _for_each_number(call: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
    """The results, the same to the bit for each number of threads."""
    results = []
    for number in (1, 2, 4):
        mt.set_num_threads(number)
        results.append(call())
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    return results[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), [(300, 517, 129), (70, 130, 1300), (1, 900, 300)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products(m: int, n: int, k: int, turned: tuple[bool, bool], dtype: str) -> None:
    a = RNG.normal(size=(k, m) if turned[0] else (m, k)).astype(dtype)
    b = RNG.normal(size=(n, k) if turned[1] else (k, n)).astype(dtype)
    a, b = a.T if turned[0] else a, b.T if turned[1] else b
    bias = RNG.normal(size=n).astype(dtype)
    (found,) = _for_each_number(lambda: [product.product(a, b, bias)])
    tolerance = {"float32": 3e-4, "float64": 1e-11}[dtype]
    np.testing.assert_allclose(found, a.astype("d") @ b.astype("d") + bias, 0, tolerance)


def test_products_of_batches_and_of_arrays_that_cannot_be_written() -> None:
    a, b = RNG.normal(size=(12, 40, 30)), RNG.normal(size=(12, 30, 50))
    a.flags.writeable = False
    (found,) = _for_each_number(lambda: [product.matmul(a, b)])
    np.testing.assert_allclose(found, np.matmul(a, b), 1e-11, 1e-11)
    turned = np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2)
    np.testing.assert_allclose(product.matmul(a[:, ::2], turned), a[:, ::2] @ b, 1e-11, 1e-11)
    x = RNG.normal(size=(300, 77)).astype(np.float32)
    np.testing.assert_array_equal(product.column_sums(x), x.sum(0))


MASKS: list[Any] = [None, "causal", (70, 90), (2, 1, 1, 90), (3, 70, 90)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", [(70, 90), (70, 30)])
def test_attention(mask: Any, lengths: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = lengths
    sizes = [(2, rows, 3, 8), (2, columns, 3, 8), (2, columns, 3, 6)]
    # Heads apart, as they lie in a projection of all heads.
    xs = [mt.tensor(RNG.normal(size=s).astype(np.float32)).requires_grad_() for s in sizes]
    kept = None
    if isinstance(mask, tuple):
        kept = mt.tensor(RNG.normal(size=mask)[..., :columns] > -0.5)

    def call() -> list[np.ndarray]:
        q, k, v = (x.transpose(1, 2) for x in xs)
        y = F.scaled_dot_product_attention(q, k, v, kept, is_causal=mask == "causal")
        weights = mt.linspace(0.5, 1.5, y.numel()).reshape(y.shape)
        return [y.detach().numpy(), *[g.numpy() for g in mt.autograd.grad((y * weights).sum(), xs)]]

    found = _for_each_number(call)
    monkeypatch.setattr(Fused, "__call__", lambda op, *xs, **options: op.definition(*xs, **options))
    for a, b in zip(found, call(), strict=True):
        np.testing.assert_allclose(a, b, 2e-5, 2e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("form", ["time first", "batch first", "packed"])
def test_recurrent_layers(kind: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    width = 256 if form == "packed" else 30  # gates that would take whole pages
    batch_first = form == "batch first"
    model = getattr(nn, kind)(10, width, bidirectional=True, batch_first=batch_first)
    x = mt.randn(7, 13, 10, requires_grad=True)
    lengths = mt.tensor([7 - i // 2 for i in range(13)])

    def call() -> list[np.ndarray]:
        given = nn.utils.rnn.pack_padded_sequence(x, lengths) if form == "packed" else x
        given = x.transpose(0, 1).contiguous() if batch_first else given
        y, last = model(given)
        y = y.data if form == "packed" else y
        loss = (y * mt.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum()
        loss = loss + sum((a * a).sum() for a in (last if kind == "LSTM" else [last]))
        grads = mt.autograd.grad(loss, [x, *model.parameters()])
        return [y.detach().numpy(), *[g.numpy() for g in grads]]

    found = _for_each_number(call)
    monkeypatch.setattr(recurrent_steps, "_compiled", lambda *arrays, **options: None)
    for a, b in zip(found, call(), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def test_tanh_is_exact_to_two_units() -> None:
    kernels = load("recurrent")
    assert kernels is not None
    x = np.concatenate([np.linspace(-12, 12, 4001), np.logspace(-30, 0, 999)]).astype(np.float32)
    rows = x.copy()
    kernels._squash_tanh(rows)
    exact = np.tanh(x.astype(np.float64))
    assert (np.abs(rows - exact) <= 2 * np.spacing(np.abs(exact.astype(np.float32)))).all()


def test_masked_softmax() -> None:
    x = mt.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]).requires_grad_()
    mask = mt.tensor([[True, False, True], [False, False, False]])
    y = F.masked_softmax(x, mask)
    np.testing.assert_allclose(y[0, ::2].tolist(), mt.tensor([1.0, 3.0]).softmax(0).tolist(), 1e-6)
    assert y[1].tolist() == [0, 0, 0]
    y.square().sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    with pytest.raises(mt.DtypeError, match="the mask must be bool, true where an element counts"):
        F.masked_softmax(x, mask.float())
