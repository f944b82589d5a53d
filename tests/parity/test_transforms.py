"""Resizing against torch's antialiased interpolation and Pillow's resize."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from minitorch.data import transforms  # noqa: E402

RNG = np.random.default_rng(0)
SIZES = [
    ((7, 9), (3, 4)),
    ((7, 9), (14, 20)),
    ((5, 5), (5, 2)),
    ((30, 20), (4, 40)),
    ((1, 3), (2, 2)),
]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize(("old", "new"), SIZES)
def test_sizes_of_floating_images(mode: str, old: Any, new: Any) -> None:
    image = RNG.random((3, *old))
    ours = transforms.Resize(new, mode)(image)
    x = torch.tensor(image)[None]
    options = {"mode": "nearest-exact"} if mode == "nearest" else {"mode": mode, "antialias": True}
    theirs = torch.nn.functional.interpolate(x, new, **options)[0].numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize(("old", "new"), SIZES)
def test_sizes_of_pictures(mode: str, old: Any, new: Any) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="needs Pillow")
    image = RNG.integers(0, 256, (*old, 3), dtype=np.uint8)
    ours = transforms.Resize(new, mode)(image).astype(int)
    way = getattr(pillow.Resampling, mode.upper())
    theirs = np.asarray(pillow.fromarray(image).resize(new[::-1], way)).astype(int)
    # Pillow's weights have eight bits.
    assert np.abs(ours - theirs).max() <= (0 if mode == "nearest" else 2)
