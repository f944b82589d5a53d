"""Dropout and start values: distributions, streams and modes."""

import math

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.nn import functional as F


@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16], ids=str)
def test_uniform_numbers_of_half_types_are_below_1(dtype):
    values = mt.rand(20_000, dtype=dtype, generator=mt.Generator().manual_seed(5)).float().numpy()
    assert 0.99 < values.max() < 1
    assert values.min() >= 0


class TestDropout:
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_keeps_the_mean_and_the_share(self, p):
        y = F.dropout(mt.ones(200, 500), p).numpy()
        kept = y != 0
        assert abs(kept.mean() - (1 - p)) < 0.01
        np.testing.assert_allclose(y[kept], 1 / (1 - p), rtol=1e-4)
        assert abs(y.mean() - 1) < 0.03

    def test_gradient_has_the_same_mask(self):
        x = mt.ones(50, requires_grad=True)
        y = F.dropout(x)
        y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())

    def test_edges(self):
        x = mt.ones(3, 4)
        assert F.dropout(x, 0.5, training=False) is x
        assert F.dropout(x, 0.0) is x
        assert float(F.dropout(x, 1.0).sum()) == 0
        assert F.dropout(mt.ones(0, 3)).shape == (0, 3)

    def test_draws_from_its_own_stream_and_repeats(self):
        mt.manual_seed(7)
        first = F.dropout(mt.ones(100)).tolist()
        mt.manual_seed(7)
        mt.randn(5)
        assert F.dropout(mt.ones(100)).tolist() == first
        assert F.dropout(mt.ones(100)).tolist() != first

    def test_whole_channels(self):
        y = F.dropout2d(mt.ones(20, 30, 2, 2)).numpy().reshape(600, 4)
        assert set(np.unique(y.sum(1))) == {0, 8}
        y = F.dropout1d(mt.ones(30, 5)).numpy()
        assert set(np.unique(y.sum(1))) == {0, 10}

    def test_in_place(self):
        x = mt.ones(100)
        assert F.dropout(x, inplace=True) is x
        assert set(x.tolist()) == {0, 2}

    def test_alpha_dropout_keeps_mean_and_variance(self):
        y = F.alpha_dropout(mt.randn(300, 300), 0.3, training=True)
        assert abs(float(y.mean())) < 0.03
        assert abs(float(y.std()) - 1) < 0.03
        assert float(F.alpha_dropout(mt.ones(3), 1, training=True).sum()) == 0

    def test_layers_follow_the_mode(self):
        for layer in (nn.Dropout(), nn.AlphaDropout()):
            x = mt.randn(100)
            assert layer.eval()(x) is x
            assert layer.train()(x) is not x

    def test_second_order(self):
        def f(x):
            mt.manual_seed(3)
            return F.dropout(x, 0.3) ** 3

        x = mt.randn(5, dtype=mt.float64).requires_grad_()
        assert mt.autograd.gradgradcheck(f, [x])


def samples(fill, *shape):
    return fill(mt.empty(*(shape or (300, 200)))).numpy()


class TestInit:
    def test_uniform_and_normal(self):
        u = samples(lambda t: nn.init.uniform_(t, -2, 4))
        assert -2 <= u.min() < -1.99
        assert 3.99 < u.max() < 4
        n = samples(lambda t: nn.init.normal_(t, 1, 3))
        assert abs(n.mean() - 1) < 0.05
        assert abs(n.std() - 3) < 0.05

    @pytest.mark.parametrize(
        ("fill", "std"),
        [
            (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
            (nn.init.xavier_normal_, math.sqrt(2 / 500)),
            (lambda t: nn.init.xavier_normal_(t, gain=2), 2 * math.sqrt(2 / 500)),
            (nn.init.kaiming_uniform_, math.sqrt(2 / 200)),
            (nn.init.kaiming_normal_, math.sqrt(2 / 200)),
            (lambda t: nn.init.kaiming_normal_(t, mode="fan_out"), math.sqrt(2 / 300)),
            (lambda t: nn.init.kaiming_uniform_(t, nonlinearity="linear"), math.sqrt(1 / 200)),
        ],
    )
    def test_std(self, fill, std):
        values = samples(fill)
        assert abs(values.std() / std - 1) < 0.02
        assert abs(values.mean()) < 0.02 * std * 2

    def test_trunc_normal(self):
        values = samples(lambda t: nn.init.trunc_normal_(t, std=1.0, a=-1.0, b=0.5))
        assert -1 <= values.min() < -0.99
        assert 0.49 < values.max() <= 0.5

    def test_constants(self):
        assert samples(lambda t: nn.init.constant_(t, 3), 2).tolist() == [3, 3]
        assert samples(nn.init.ones_, 2).tolist() == [1, 1]
        assert samples(nn.init.zeros_, 2).tolist() == [0, 0]
        assert samples(nn.init.eye_, 2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]

    def test_dirac_hands_the_input_through(self):
        x = mt.randn(1, 4, 5, 5)
        w = nn.init.dirac_(mt.empty(4, 2, 3, 3), groups=2)
        np.testing.assert_array_equal(F.conv2d(x, w, padding=1, groups=2).numpy(), x.numpy())

    @pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 3)])
    def test_orthogonal(self, shape):
        w = samples(lambda t: nn.init.orthogonal_(t, gain=2), *shape).reshape(shape[0], -1)
        small = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-5)

    def test_sparse(self):
        w = samples(lambda t: nn.init.sparse_(t, 0.3), 10, 4)
        assert ((w == 0).sum(0) == 3).all()

    def test_gains(self):
        assert nn.init.calculate_gain("relu") == math.sqrt(2)
        assert nn.init.calculate_gain("leaky_relu", 0.5) == math.sqrt(2 / 1.25)
        assert nn.init.calculate_gain("tanh") == 5 / 3

    def test_default_of_layers_is_pytorchs(self):
        for layer, fan in ((nn.Linear(100, 80), 100), (nn.Conv2d(8, 40, 3), 72)):
            bound = 1 / math.sqrt(fan)
            for p in layer.parameters():
                largest = float(p.detach().abs().max())
                assert 0.9 * bound < largest <= bound

    def test_fills_in_place_without_recording(self):
        layer = nn.Linear(3, 3)
        assert nn.init.zeros_(layer.weight) is layer.weight
        assert layer.weight.is_leaf
        assert layer.weight.requires_grad

    def test_stream_and_generator(self):
        mt.manual_seed(1)
        first = nn.Linear(4, 4).weight.tolist()
        mt.manual_seed(1)
        mt.randn(10)
        F.dropout(mt.ones(10))
        assert nn.Linear(4, 4).weight.tolist() == first
        a, b = (
            nn.init.normal_(mt.empty(3), generator=mt.Generator().manual_seed(5)).tolist()
            for _ in range(2)
        )
        assert a == b

    def test_half_types(self):
        layer = nn.Linear(50, 50, dtype=mt.bfloat16)
        assert layer.weight.dtype is mt.bfloat16
        assert float(layer.weight.float().std()) > 0

    def test_empty_weights(self):
        assert nn.init.kaiming_uniform_(mt.empty(0, 3)).shape == (0, 3)
        assert nn.init.kaiming_normal_(mt.empty(0, 3)).shape == (0, 3)
        assert nn.init.orthogonal_(mt.empty(0, 3)).shape == (0, 3)
