"""Losses at their edges: certain predictions, half types, autocast."""

import pytest
import torch

import minitorch as mt
from minitorch.nn import functional as F


@pytest.mark.parametrize("target", [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
def test_certain_predictions_have_finite_gradients(target):
    def gradients(m):
        x = m.tensor([20.0, -1.0], requires_grad=True)
        t = m.tensor(target)
        m.nn.functional.binary_cross_entropy(x.sigmoid(), t).backward()
        return x.grad.tolist()

    assert gradients(mt) == pytest.approx(gradients(torch), rel=1e-4, abs=1e-7)


def test_exact_probabilities_have_the_gradients_of_torch():
    def gradients(m):
        x = m.tensor([1.0, 0.0, 1.0, 0.0, 0.3], requires_grad=True)
        t = m.tensor([1.0, 0.0, 0.0, 1.0, 0.8])
        loss = m.nn.functional.binary_cross_entropy(x, t, reduction="sum")
        loss.backward()
        return [loss.item(), *x.grad.tolist()]

    assert gradients(mt) == pytest.approx(gradients(torch), rel=1e-5)


LOSSES = {
    "mse": lambda x, t: F.mse_loss(x, t),
    "l1": lambda x, t: F.l1_loss(x, t),
    "huber": lambda x, t: F.huber_loss(x, t),
    "smooth l1": lambda x, t: F.smooth_l1_loss(x, target=t),
    "bce": lambda x, t: F.binary_cross_entropy(x.sigmoid(), t.sigmoid()),
    "bce logits": lambda x, t: F.binary_cross_entropy_with_logits(x, t.sigmoid()),
    "kl": lambda x, t: F.kl_div(x, t),
    "cross entropy": lambda x, t: F.cross_entropy(x, mt.tensor([0, 1])),
    "nll": lambda x, t: F.nll_loss(x, mt.tensor([0, 1])),
    "gaussian": lambda x, t: F.gaussian_nll_loss(x, t, t * t + 1),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_losses_are_float32_within_autocast(name, dtype):
    kind = getattr(mt, dtype)
    x, t = mt.randn(2, 3).to(kind).requires_grad_(), mt.rand(2, 3).to(kind)
    assert LOSSES[name](x, t).dtype is kind
    with mt.amp.autocast("cpu", kind):
        loss = LOSSES[name](x, t)
    assert loss.dtype is mt.float32
    loss.backward()
    assert x.grad.dtype is kind


def test_autocast_still_finds_probabilities_in_place_of_logits():
    x = mt.ones(2, 3, dtype=mt.float16, requires_grad=True)
    with mt.amp.autocast("cpu"), pytest.raises(mt.ArgumentError, match="Leave softmax away"):
        F.cross_entropy(x.softmax(1), mt.tensor([0, 1]))
