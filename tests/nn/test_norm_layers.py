"""Normalisation layers: running statistics, half types, and conversion to SyncBatchNorm."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.ops.primitive import version_of


def test_instance_statistics_are_the_means_over_the_samples() -> None:
    x = mt.randn(3, 2, 5)
    layer = nn.InstanceNorm1d(2, momentum=0.5, track_running_stats=True)
    layer(x)
    means, variances = x.mean(2).mean(0), x.var(2).mean(0)
    np.testing.assert_allclose(layer.running_mean.numpy(), (means * 0.5).numpy(), rtol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), (variances / 2 + 0.5).numpy(), rtol=1e-5)
    assert layer.num_batches_tracked.item() == 0
    layer.eval()
    y = (x[0] - layer.running_mean.unsqueeze(1)) / (layer.running_var.unsqueeze(1) + 1e-5).sqrt()
    np.testing.assert_allclose(layer(x[0]).numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


def test_running_statistics_of_half_types_stay_half() -> None:
    x = (mt.randn(64, 3) * 3 + 5).to(mt.bfloat16)
    layer = nn.BatchNorm1d(3).to(mt.bfloat16)
    y = layer(x)
    assert y.dtype is layer.running_mean.dtype is mt.bfloat16
    assert abs(y.float().mean().item()) < 0.05
    assert abs(y.float().var().item() - 1) < 0.05


def test_batch_statistics_without_momentum_are_averages() -> None:
    layer = nn.BatchNorm2d(2, momentum=None)
    batches = [mt.randn(3, 2, 4, 4) for _ in range(4)]
    for x in batches:
        layer(x)
    means = mt.stack([x.mean((0, 2, 3)) for x in batches]).mean(0)
    np.testing.assert_allclose(layer.running_mean.numpy(), means.numpy(), rtol=1e-4, atol=1e-6)
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0.0, 0.0]
    assert layer.num_batches_tracked.item() == 0


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 3, 0, 5)])
def test_an_empty_batch_leaves_the_running_statistics(shape: tuple[int, ...]) -> None:
    layer = nn.BatchNorm2d(3) if len(shape) == 4 else nn.BatchNorm1d(3)
    y = layer(mt.zeros(*shape))
    y.sum().backward()
    assert y.shape == shape
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0] * 3
    assert layer.running_mean.tolist() == [0] * 3
    assert layer.running_var.tolist() == [1] * 3


def test_sync_batch_norm_is_batch_norm_on_one_device() -> None:
    x = mt.randn(4, 3, 5)
    one, other = nn.SyncBatchNorm(3), nn.BatchNorm1d(3)
    for training in (True, False):
        one.train(training), other.train(training)
        assert mt.equal(one(x), other(x))
    assert one.state_dict().keys() == other.state_dict().keys()


def test_conversion_keeps_the_tensors_and_everything_else() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
            self.listed = [nn.BatchNorm1d(3), {"inner": nn.BatchNorm2d(2)}]
            self.kept = nn.InstanceNorm1d(3)

    net = Net().eval()
    weights = [p for p in net.parameters()]
    same = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert same is net
    assert type(net.first[1]) is type(net.listed[0]) is nn.SyncBatchNorm
    assert type(net.listed[1]["inner"]) is nn.SyncBatchNorm
    assert type(net.kept) is nn.InstanceNorm1d
    assert all(a is b for a, b in zip(net.parameters(), weights, strict=True))
    assert not net.first[1].training
    alone = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3, affine=False))
    assert isinstance(alone, nn.SyncBatchNorm)
    assert alone.weight is None


@pytest.mark.parametrize("layer", [nn.LocalResponseNorm(2), nn.InstanceNorm2d(3)])
def test_half_types_keep_their_dtype(layer: nn.Module) -> None:
    assert layer(mt.ones(2, 3, 4, 4).half()).dtype is mt.float16


def test_the_classes_are_where_pytorch_has_them() -> None:
    from minitorch.nn.modules.batchnorm import _BatchNorm
    from minitorch.nn.modules.conv import _ConvNd
    from minitorch.nn.modules.instancenorm import _InstanceNorm

    assert isinstance(nn.SyncBatchNorm(2), _BatchNorm)
    assert isinstance(nn.BatchNorm3d(2), nn.modules.batchnorm._BatchNorm)
    assert isinstance(nn.InstanceNorm1d(2), _InstanceNorm)
    assert not isinstance(nn.InstanceNorm1d(2), _BatchNorm)
    assert isinstance(nn.ConvTranspose1d(1, 1, 1), _ConvNd)
    assert isinstance(nn.Conv2d(1, 1, 1), _ConvNd)
    assert nn.modules.normalization.LayerNorm is nn.LayerNorm


def test_normalize_writes_to_a_given_tensor() -> None:
    x, out = mt.tensor([[3.0, 4.0]]), mt.zeros(1, 2)
    assert nn.functional.normalize(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [mt.int64, mt.float32])
def test_batches_are_counted_and_each_count_is_a_write(dtype: mt.dtype) -> None:
    layer = nn.BatchNorm1d(3)
    layer.num_batches_tracked = layer.num_batches_tracked.to(dtype)
    before = version_of(layer.num_batches_tracked)[0]
    for _ in range(2):
        layer(mt.randn(4, 3))
    layer.eval()(mt.randn(4, 3))
    assert layer.num_batches_tracked.item() == 2
    assert version_of(layer.num_batches_tracked)[0] == before + 2


@pytest.mark.parametrize("wrong", [True, 1.0, (1.0, 1.0), (True, True)])
def test_a_convolution_that_was_checked_before_is_checked_for_other_options(wrong: object) -> None:
    x, weight = mt.randn(1, 1, 4, 4), mt.randn(1, 1, 2, 2)
    assert nn.functional.conv2d(x, weight, stride=1).shape == (1, 1, 3, 3)
    assert nn.functional.conv2d(x, weight, stride=[1, 1]).shape == (1, 1, 3, 3)
    with pytest.raises(mt.errors.ArgumentError, match="stride must be a whole number"):
        nn.functional.conv2d(x, weight, stride=wrong)  # type: ignore[arg-type]
    with pytest.raises(mt.errors.ShapeError, match="must have 1 channels"):
        nn.functional.conv2d(mt.randn(1, 2, 4, 4), weight, stride=1)
