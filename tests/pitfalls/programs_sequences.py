"""Sequences: the order of axes, and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Regression, error, fit, good, impossible, loader

import minitorch as mt
from minitorch import nn
from minitorch.nn import functional as F


@impossible("mask-value-overflow")
def _() -> None:
    q = mt.randn(1, 3, 4).half().requires_grad_()
    allowed = mt.tensor([[True, False, True], [False] * 3, [True] * 3])
    lowest = mt.zeros(3, 3).half().masked_fill(~allowed, mt.finfo(mt.float16).min)
    with np.errstate(over="ignore"):
        twice, constant = lowest + lowest, lowest.float().sub(1e9 * ~allowed).half()
    for mask in (allowed, twice, constant):
        y = F.scaled_dot_product_attention(q, q, q, mask)
        y.sum().backward()
        assert y.isfinite().all()
        assert q.grad.isfinite().all()
        assert not y[0, 1].any()
    weights = F.masked_softmax(mt.full((3, 3), 60000.0).half(), allowed)
    assert weights.tolist() == [[0.5, 0, 0.5], [0] * 3, [weights[2, 0].item()] * 3]


@good("mask-value-overflow")
def _() -> None:
    class Weighs(Regression):
        def loss(self, batch: Any) -> Any:
            x, y = batch
            return F.mse_loss(self(x * F.masked_softmax(x, x > -1)), y)

    fit(Weighs())


class Sequences(Regression):
    """Reads series f[samples, time, 3] with an LSTM, or with attention and a mask."""

    options: Any = {}
    turned = False

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 3, **self.options)
        self.attention = nn.MultiheadAttention(3, 1, batch_first=True)

    def loss(self, batch: Any) -> Any:
        x, hidden = batch
        y = self.rnn(x)[0]
        y = self.attention(y, y, y, key_padding_mask=~hidden if self.turned else hidden)[0]
        return (self.net(y) ** 2).mean()


def padded() -> Any:
    """Batches of 4 series of 6 steps, and where they are padding."""
    x = np.random.default_rng(0).normal(size=(8, 6, 3)).astype(np.float32)
    return loader((x, np.arange(6) >= np.array([6, 4, 5, 3] * 2)[:, None]))


@error(
    "batch-first-and-mask-polarity", r"Got \[4, 6, …\] at .*programs_sequences.*batch_first=True"
)
def _() -> None:
    fit(Sequences(), padded())


@error("batch-first-and-mask-polarity", r"hides sequence 0 as a whole.*Pass ~mask", "padding")
def _() -> None:
    task = type("Turned", (Sequences,), {"options": {"batch_first": True}, "turned": True})
    fit(task(), padded())


@good("batch-first-and-mask-polarity")
def _() -> None:
    fit(type("Right", (Sequences,), {"options": {"batch_first": True}})(), padded())
    meant = mt.intended("batch-first-and-mask-polarity")(Sequences.loss)
    fit(type("Meant", (Sequences,), {"loss": meant})(), padded())
