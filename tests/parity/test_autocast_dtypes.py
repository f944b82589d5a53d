"""Within autocast each operation gives the dtype that PyTorch's lists for the CPU give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

rng = np.random.default_rng(0)
DATA = {
    "x": rng.uniform(0.1, 0.9, size=(4, 6)),
    "w": rng.normal(size=(5, 6)),
    "square": rng.normal(size=(4, 4)),
    "target": rng.uniform(0.1, 0.9, size=(4, 6)),
    "image": rng.normal(size=(2, 3, 8, 8)),
    "kernel": rng.normal(size=(4, 3, 3, 3)),
    "kernel_t": rng.normal(size=(3, 4, 3, 3)),
    "grid": rng.uniform(-1, 1, size=(2, 4, 4, 2)),
    "one": np.ones(1),
    "six": np.ones(6),
}
Op = Callable[[Any, Any, Any], Any]

# t holds the tensors, by name; those of h are of the half type.
OPERATIONS: dict[str, Op] = {
    "linear": lambda m, t, h: m.nn.functional.linear(t.x, t.w),
    "linear, half input": lambda m, t, h: m.nn.functional.linear(h.x, t.w),
    "matmul": lambda m, t, h: t.x @ t.w.T,
    "mm": lambda m, t, h: m.mm(t.x, t.w.T),
    "bmm": lambda m, t, h: m.bmm(t.x[None], t.w.T[None]),
    "addmm": lambda m, t, h: m.addmm(t.x[:, :5], t.x, t.w.T),
    "addbmm": lambda m, t, h: m.addbmm(t.x[:, :5], t.x[None], t.w.T[None]),
    "baddbmm": lambda m, t, h: m.baddbmm(t.x[None, :, :5], t.x[None], t.w.T[None]),
    "einsum": lambda m, t, h: m.einsum("ij,kj->ik", t.x, t.w),
    "conv2d": lambda m, t, h: m.nn.functional.conv2d(t.image, t.kernel),
    "conv_transpose2d": lambda m, t, h: m.nn.functional.conv_transpose2d(t.image, t.kernel_t),
    "attention": lambda m, t, h: m.nn.functional.scaled_dot_product_attention(
        t.image, t.image, t.image
    ),
    "prelu": lambda m, t, h: m.nn.functional.prelu(h.x, t.one),
    "mse_loss": lambda m, t, h: m.nn.functional.mse_loss(h.x, h.target),
    "l1_loss": lambda m, t, h: m.nn.functional.l1_loss(h.x, h.target),
    "smooth_l1_loss": lambda m, t, h: m.nn.functional.smooth_l1_loss(h.x, h.target),
    "huber_loss": lambda m, t, h: m.nn.functional.huber_loss(h.x, h.target),
    "cross_entropy": lambda m, t, h: m.nn.functional.cross_entropy(h.x, t.index),
    "nll_loss": lambda m, t, h: m.nn.functional.nll_loss(h.x.log_softmax(-1), t.index),
    "bce": lambda m, t, h: m.nn.functional.binary_cross_entropy(h.x, t.target),
    "bce with logits": lambda m, t, h: m.nn.functional.binary_cross_entropy_with_logits(
        h.x, h.target
    ),
    "poisson": lambda m, t, h: m.nn.functional.poisson_nll_loss(h.x, h.target),
    "triplet": lambda m, t, h: m.nn.functional.triplet_margin_loss(h.x, h.target, h.x * 2),
    "prod": lambda m, t, h: h.x.prod(),
    "cdist": lambda m, t, h: m.cdist(h.x, h.target),
    "trace": lambda m, t, h: h.square.trace(),
    "quantile": lambda m, t, h: h.x.quantile(0.5),
    "nanquantile": lambda m, t, h: h.x.nanquantile(0.5),
    "grid_sample": lambda m, t, h: m.nn.functional.grid_sample(
        h.image, h.grid, align_corners=False
    ),
    "cat": lambda m, t, h: m.cat([h.x, t.x]),
    "stack": lambda m, t, h: m.stack([h.x, t.x]),
    "index_copy": lambda m, t, h: t.x.index_copy(0, t.index, h.x),
    "add": lambda m, t, h: h.x + t.x,
    "softmax": lambda m, t, h: h.x.softmax(-1),
    "log_softmax": lambda m, t, h: h.x.log_softmax(-1),
    "layer_norm": lambda m, t, h: m.nn.functional.layer_norm(h.x, (6,)),
    "layer_norm, wide weights": lambda m, t, h: m.nn.functional.layer_norm(h.x, (6,), t.six, t.six),
    "sum": lambda m, t, h: h.x.sum(),
    "mean": lambda m, t, h: h.x.mean(),
    "exp": lambda m, t, h: h.x.exp(),
    "pow": lambda m, t, h: h.x**2,
    "norm": lambda m, t, h: h.x.norm(),
    "gelu": lambda m, t, h: m.nn.functional.gelu(h.x),
    "avg_pool2d": lambda m, t, h: m.nn.functional.avg_pool2d(h.image, 2),
}


class Tensors:
    """The data as tensors of a library, in float32 or a half type."""

    def __init__(self, library: Any, dtype: Any = None) -> None:
        self.index = library.tensor([0, 1, 2, 3])
        for name, array in DATA.items():
            value = library.from_numpy(array.astype(np.float32))
            setattr(self, name, value if dtype is None else value.to(dtype))


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_dtype_within_autocast(name: str, half: str) -> None:
    dtypes = []
    for library, autocast in ((torch, torch.autocast), (mt, mt.amp.autocast)):
        tensors = Tensors(library), Tensors(library, getattr(library, half))
        with autocast("cpu", dtype=getattr(library, half)):
            out = OPERATIONS[name](library, *tensors)
        dtypes.append(str(out.dtype).rpartition(".")[2])
    assert dtypes[0] == dtypes[1]
