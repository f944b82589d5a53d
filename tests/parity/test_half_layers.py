"""Half types against torch: results, gradients and running statistics, to their own precision."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

IMAGE = (3, 4, 6, 5)
CASES: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("F.batch_norm(x, a.detach(), b.detach() ** 2, a, b, True)", (IMAGE, (4,), (4,))),
    ("F.batch_norm(x, a.detach(), b.detach() ** 2 + 1, a, b)", (IMAGE, (4,), (4,))),
    ("F.instance_norm(x, None, None, a, b)", (IMAGE, (4,), (4,))),
    ("F.group_norm(x, 2, a, b)", (IMAGE, (4,), (4,))),
    ("F.layer_norm(x, (5,), a, b)", (IMAGE, (5,), (5,))),
    ("F.rms_norm(x, (5,), a, 1e-5)", (IMAGE, (5,))),
    ("F.local_response_norm(x, 3, 0.5)", (IMAGE,)),
    ("F.conv2d(x, a, b, 1, 1)", (IMAGE, (2, 4, 3, 3), (2,))),
    ("F.conv2d(x, a, None, 1, 1, 1, 4)", (IMAGE, (4, 1, 3, 3))),
    ("F.conv_transpose2d(x, a, b, 2)", (IMAGE, (4, 2, 3, 3), (2,))),
    ("F.conv3d(x, a)", ((1, 2, 4, 4, 4), (2, 2, 3, 3, 3))),
    ("F.max_pool2d(x, 3, 2, 1)", (IMAGE,)),
    ("F.avg_pool2d(x, 3, 2, 1)", (IMAGE,)),
    ("F.adaptive_avg_pool2d(x, 3)", (IMAGE,)),
    ("F.adaptive_max_pool2d(x, 3)", (IMAGE,)),
    ("F.interpolate(x, scale_factor=2)", (IMAGE,)),
    ("F.interpolate(x, size=(4, 7), mode='bilinear')", (IMAGE,)),
    ("F.interpolate(x, size=(4, 7), mode='bicubic')", (IMAGE,)),
    ("F.pixel_shuffle(x, 2)", (IMAGE,)),
    ("F.pad(x, (1, 2, 2, 1), 'reflect')", (IMAGE,)),
    ("F.unfold(x, 3, 1, 1)", (IMAGE,)),
]


def _results(m: Any, text: str, arrays: list[np.ndarray], dtype: str, mixed: bool) -> list[Any]:
    kinds = [dtype] + [("float32" if mixed else dtype)] * 2
    xs = [
        m.tensor(a).to(getattr(m, k)).requires_grad_() for a, k in zip(arrays, kinds, strict=False)
    ]
    names = {"F": m.nn.functional, **dict(zip("xab", xs, strict=False))}
    y = eval(text, names)
    weights = np.linspace(0.5, 1.5, y.numel(), dtype=np.float32).reshape(tuple(y.shape))
    (y.float() * m.tensor(weights)).sum().backward()
    return [y, *[x.grad for x in xs]]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("text", "shapes"), CASES, ids=[text for text, _ in CASES])
def test_half(text: str, shapes: Any, dtype: str, mixed: bool) -> None:
    rng = np.random.Generator(np.random.Philox(6))
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    arrays = [mt.tensor(a).bfloat16().float().numpy() for a in arrays]  # exact in all of them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = _results(torch, text, arrays, dtype, mixed)
        except RuntimeError:
            return  # torch has no such kernel on the CPU
    tolerance = {"bfloat16": 6e-2, "float16": 8e-3}[dtype]
    got = _results(mt, text, arrays, dtype, mixed)
    for a, b in zip(got, expected, strict=True):
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        scale = max(1.0, float(b.detach().abs().max()))
        np.testing.assert_allclose(
            a.detach().float().numpy(),
            b.detach().float().numpy(),
            rtol=tolerance,
            atol=tolerance * scale,
        )
