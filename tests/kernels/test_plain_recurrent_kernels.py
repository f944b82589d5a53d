"""Compiled plain recurrent layers equal their plain bodies, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.kernels import loader

pytest.importorskip("numba")


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
@pytest.mark.parametrize("form", ["time first", "batch first", "packed"])
@pytest.mark.parametrize("bias", [False, True])
def test_layers(nonlinearity: str, form: str, bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    mt.manual_seed(0)
    model = nn.RNN(10, 37, 2, nonlinearity=nonlinearity, bias=bias, bidirectional=True)
    model.batch_first = form == "batch first"
    x, h0 = mt.randn(7, 13, 10, requires_grad=True), mt.randn(4, 13, 37, requires_grad=True)
    lengths = mt.tensor([7 - i // 2 for i in range(13)])

    def call() -> list[np.ndarray]:
        given = nn.utils.rnn.pack_padded_sequence(x, lengths) if form == "packed" else x
        given = x.transpose(0, 1).contiguous() if form == "batch first" else given
        y, last = model(given, h0)
        y = y.data if form == "packed" else y
        loss = (y * mt.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum() + (last * last).sum()
        grads = mt.autograd.grad(loss, [x, h0, *model.parameters()])
        return [y.detach().numpy(), last.detach().numpy(), *[g.numpy() for g in grads]]

    before, found = mt.get_num_threads(), []
    try:
        for number in (1, 2, 4):
            mt.set_num_threads(number)
            found.append(call())
    finally:
        mt.set_num_threads(before)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(loader, "load", lambda family: None)
    for a, b in zip(found[0], call(), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 2e-5)


def test_nan_stays_in_its_sequence() -> None:
    layer = nn.RNN(8, 40, nonlinearity="relu")
    x = mt.randn(6, 20, 8)
    x[2, 3, 1] = float("nan")
    y = layer(x)[0].detach().isnan().any(-1).numpy()
    wanted = np.zeros((6, 20), bool)
    wanted[2:, 3] = True
    np.testing.assert_array_equal(y, wanted)
