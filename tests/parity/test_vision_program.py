"""A small image model with one layer of many kinds follows torch's loss curve over 20 steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402


def _model(m: Any) -> Any:
    nn, F = m.nn, m.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"),
                nn.InstanceNorm2d(8, affine=True),
                nn.ReLU(),
            )
            self.down = nn.Sequential(
                nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.SiLU()
            )
            self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
            self.up, self.norm = nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8)
            self.last = nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))

        def forward(self, x: Any) -> Any:
            wide = self.first(x)
            small = self.depthwise(self.down(wide))
            back = self.norm(self.up(small))
            back = back + F.interpolate(small, scale_factor=2, mode="bilinear")[:, :8]
            y = self.last(back + wide)
            theta = m.tensor([[[1.0, 0.1, 0.0], [0.05, 0.9, 0.1]]]).expand(len(x), 2, 3)
            grid = F.affine_grid(theta, y.shape, align_corners=False)
            return F.grid_sample(y, grid, align_corners=False)

    return Net()


def test_the_loss_curve_is_torchs() -> None:
    torch.manual_seed(0)
    theirs, ours = _model(torch), _model(mt)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    rng = np.random.Generator(np.random.Philox(0))
    x = rng.normal(size=(4, 3, 16, 16)).astype(np.float32)
    target = rng.normal(size=(4, 3, 32, 32)).astype(np.float32)
    curves: list[list[float]] = []
    for m, model in ((torch, theirs), (mt, ours)):
        optimizer = m.optim.Adam(model.parameters(), lr=1e-2)
        curves.append([])
        for _ in range(20):
            optimizer.zero_grad()
            loss = ((model(m.tensor(x)) - m.tensor(target)) ** 2).mean()
            loss.backward()
            optimizer.step()
            curves[-1].append(loss.item())
    np.testing.assert_allclose(curves[1], curves[0], rtol=1e-4)
    assert curves[1][-1] < curves[1][0]
