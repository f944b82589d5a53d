"""Every layer against torch: repr, names and shapes of the state, values and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

LAYERS: list[tuple[str, tuple[int, ...]]] = [
    ("Linear(4, 3)", (2, 4)),
    ("Linear(4, 3, bias=False)", (2, 5, 4)),
    ("Bilinear(4, 4, 3)", (2, 4)),
    ("Conv1d(3, 4, 3)", (2, 3, 8)),
    ("Conv1d(3, 6, 2, stride=2, padding=1, dilation=2, groups=3, bias=False)", (2, 3, 8)),
    ("Conv1d(3, 4, 3, padding='same', padding_mode='circular')", (2, 3, 8)),
    ("Conv2d(3, 4, 3)", (2, 3, 6, 5)),
    ("Conv2d(3, 6, (2, 3), (2, 1), (1, 2), (1, 2), groups=3)", (2, 3, 6, 7)),
    ("Conv2d(3, 4, 3, padding='same')", (3, 6, 5)),
    ("Conv2d(3, 4, 3, padding='valid', bias=False)", (2, 3, 6, 5)),
    ("Conv2d(3, 4, 3, padding=1, padding_mode='reflect')", (2, 3, 6, 5)),
    ("Conv2d(3, 4, 3, padding=(2, 1), padding_mode='replicate')", (2, 3, 6, 5)),
    ("Conv2d(3, 4, (3, 4), padding='same', padding_mode='circular')", (2, 3, 6, 5)),
    ("MaxPool1d(2)", (2, 3, 8)),
    ("MaxPool2d(3, 2, 1)", (2, 3, 6, 5)),
    ("MaxPool2d((2, 1), dilation=2, ceil_mode=True)", (2, 3, 6, 5)),
    ("AvgPool1d(2)", (2, 3, 8)),
    ("AvgPool2d(3, stride=2, padding=1, count_include_pad=False)", (2, 3, 6, 5)),
    ("AdaptiveAvgPool1d(3)", (2, 3, 8)),
    ("AdaptiveAvgPool2d((2, None))", (2, 3, 6, 5)),
    ("BatchNorm1d(3)", (4, 3)),
    ("BatchNorm1d(3, momentum=0.3, eps=0.01)", (4, 3, 5)),
    ("BatchNorm1d(3, momentum=None)", (4, 3)),
    ("BatchNorm2d(3)", (2, 3, 4, 5)),
    ("BatchNorm2d(3, affine=False)", (2, 3, 4, 5)),
    ("BatchNorm2d(3, track_running_stats=False)", (2, 3, 4, 5)),
    ("LayerNorm(5)", (2, 3, 5)),
    ("LayerNorm((3, 5), eps=0.01)", (2, 3, 5)),
    ("LayerNorm(5, bias=False)", (2, 3, 5)),
    ("LayerNorm(5, elementwise_affine=False)", (2, 3, 5)),
    ("RMSNorm(5)", (2, 3, 5)),
    ("RMSNorm((3, 5), eps=0.01, elementwise_affine=False)", (2, 3, 5)),
    ("GroupNorm(2, 4)", (2, 4, 3, 3)),
    ("GroupNorm(2, 4, affine=False)", (2, 4, 3)),
    ("Dropout(0.0)", (2, 3)),
    ("Dropout1d(0.0)", (2, 3, 4)),
    ("Dropout2d(0.0)", (2, 3, 4, 4)),
    ("AlphaDropout(0.0)", (2, 3)),
    ("Flatten()", (2, 3, 4)),
    ("Flatten(0, 1)", (2, 3, 4)),
    ("Unflatten(1, (2, 3))", (2, 6)),
    ("Identity()", (2, 3)),
    ("ReLU()", (2, 3)),
    ("ReLU6()", (2, 3)),
    ("LeakyReLU(0.2)", (2, 3)),
    ("PReLU()", (2, 3)),
    ("PReLU(3)", (2, 3, 2)),
    ("ELU(alpha=0.5)", (2, 3)),
    ("CELU(alpha=0.5)", (2, 3)),
    ("SELU()", (2, 3)),
    ("GELU()", (2, 3)),
    ("GELU('tanh')", (2, 3)),
    ("SiLU()", (2, 3)),
    ("Mish()", (2, 3)),
    ("Sigmoid()", (2, 3)),
    ("Tanh()", (2, 3)),
    ("Tanhshrink()", (2, 3)),
    ("Softplus(beta=2)", (2, 3)),
    ("Softmax(dim=1)", (2, 3)),
    ("LogSoftmax(dim=-1)", (2, 3)),
    ("Softmin(dim=-1)", (2, 3)),
    ("Hardtanh(-0.5, 0.7)", (2, 3)),
    ("Hardswish()", (2, 3)),
    ("Hardsigmoid()", (2, 3)),
    ("GLU()", (2, 4)),
    ("Softsign()", (2, 3)),
    ("LogSigmoid()", (2, 3)),
    ("Threshold(0.1, 2)", (2, 3)),
    ("Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))", (5, 4)),
]


def _pair(text: str) -> tuple[Any, Any]:
    """The layer of minitorch with the start values of torch's, and torch's."""
    torch.manual_seed(0)
    theirs = eval(f"nn.{text}", {"nn": torch.nn})
    ours = eval(f"nn.{text}", {"nn": mt.nn})
    state = {k: v.numpy() for k, v in theirs.state_dict().items()}
    if state:
        ours.load_state_dict(state)
    return ours, theirs


def _inputs(text: str, shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.Generator(np.random.Philox(1))
    count = 2 if text.startswith("Bilinear") else 1
    return [rng.normal(size=shape).astype(np.float32) for _ in range(count)]


def _step(m: Any, layer: Any, arrays: list[np.ndarray]) -> tuple[Any, list[Any]]:
    xs = [m.tensor(a).requires_grad_() for a in arrays]
    y = layer(*xs)
    weights = np.linspace(0.5, 1.5, math.prod(y.shape), dtype=np.float32).reshape(tuple(y.shape))
    (y * m.tensor(weights)).sum().backward()
    return y.detach(), [t.grad for t in (*xs, *layer.parameters())]


def _compare(ours: Any, theirs: Any, name: str) -> None:
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=3e-5, atol=3e-6, err_msg=name)


@pytest.mark.parametrize(("text", "shape"), LAYERS, ids=[text for text, _ in LAYERS])
def test_layer(text: str, shape: tuple[int, ...]) -> None:
    ours, theirs = _pair(text)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    arrays = _inputs(text, shape)
    for mode in (True, True, False):
        ours.train(mode).zero_grad()
        theirs.train(mode).zero_grad()
        y, grads = _step(mt, ours, arrays)
        expected, wanted = _step(torch, theirs, arrays)
        _compare(y, expected, f"output, training={mode}")
        for i, (g, w) in enumerate(zip(grads, wanted, strict=True)):
            _compare(g, w, f"gradient {i}, training={mode}")
        for name, value in theirs.state_dict().items():
            _compare(ours.state_dict()[name], value, name)


LOSSES: list[tuple[str, str]] = [
    ("MSELoss()", "regression"),
    ("L1Loss(reduction='sum')", "regression"),
    ("SmoothL1Loss(beta=0.5)", "regression"),
    ("HuberLoss(delta=0.5, reduction='none')", "regression"),
    ("BCELoss()", "probability"),
    ("BCELoss(weight=m.tensor([0.5, 2.0, 1.0]), reduction='sum')", "probability"),
    ("BCEWithLogitsLoss()", "probability"),
    ("BCEWithLogitsLoss(pos_weight=m.tensor([0.5, 2.0, 1.0]))", "probability"),
    ("KLDivLoss(reduction='batchmean')", "probability"),
    ("KLDivLoss(reduction='sum', log_target=True)", "regression"),
    ("NLLLoss()", "classes"),
    ("NLLLoss(m.tensor([0.5, 2.0, 1.0]), ignore_index=1)", "classes"),
    ("CrossEntropyLoss()", "classes"),
    ("CrossEntropyLoss(m.tensor([0.5, 2.0, 1.0]), ignore_index=1)", "classes"),
    ("CrossEntropyLoss(label_smoothing=0.1, reduction='none')", "classes"),
    ("CrossEntropyLoss()", "probability"),
]


@pytest.mark.parametrize(("text", "kind"), LOSSES)
def test_loss(text: str, kind: str) -> None:
    rng = np.random.Generator(np.random.Philox(2))
    x = rng.uniform(0.1, 0.9, (4, 3)).astype(np.float32)
    target: Any = rng.uniform(0.1, 0.9, (4, 3)).astype(np.float32)
    if kind == "classes":
        target = np.array([0, 1, 2, 2])
    results = []
    for m in (mt, torch):
        loss = eval(f"nn.{text}", {"nn": m.nn, "m": m})
        if m is mt:
            assert repr(loss) == f"{type(loss).__name__}()"
        z = m.tensor(x).requires_grad_()
        y = loss(z, m.tensor(target))
        y.sum().backward()
        results.append((y.detach(), z.grad))
    for ours, theirs in zip(*results, strict=True):
        _compare(ours, theirs, text)


def test_gaussian_nll() -> None:
    arrays = [np.full((2, 3), v, np.float32) for v in (0.5, 1.5, 0.25)]
    ours = mt.nn.GaussianNLLLoss(full=True)(*map(mt.tensor, arrays))
    theirs = torch.nn.GaussianNLLLoss(full=True)(*map(torch.tensor, arrays))
    _compare(ours, theirs, "GaussianNLLLoss")


@pytest.mark.parametrize("index", [[0, 3, 3], [[1, 2], [2, 4]]])
@pytest.mark.parametrize("padding", [None, 2, -1])
def test_embedding(index: Any, padding: int | None) -> None:
    theirs = torch.nn.Embedding(5, 3, padding_idx=padding)
    ours = mt.nn.Embedding(5, 3, padding_idx=padding)
    assert repr(ours) == repr(theirs)
    if padding is not None:
        assert ours.weight.tolist()[padding] == [0.0, 0.0, 0.0]
    ours.load_state_dict({"weight": theirs.weight.detach().numpy()})
    for m, layer in ((mt, ours), (torch, theirs)):
        (layer(m.tensor(index)) ** 2).sum().backward()
    _compare(ours(mt.tensor(index)).detach(), theirs(torch.tensor(index)).detach(), "output")
    _compare(ours.weight.grad, theirs.weight.grad, "gradient")


def test_max_pool_indices() -> None:
    x = np.random.Generator(np.random.Philox(3)).normal(size=(2, 3, 6, 5)).astype(np.float32)
    results = []
    for m in (mt, torch):
        results.append(m.nn.MaxPool2d(3, 2, 1, return_indices=True)(m.tensor(x)))
    for ours, theirs in zip(*results, strict=True):
        _compare(ours, theirs, "max_pool2d")


HALF = ["F.softmax(x, 1)", "F.log_softmax(x, 1)", "F.layer_norm(x, (64,))", "F.mse_loss(x, x * 2)"]


@pytest.mark.parametrize("text", HALF)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_accumulate_in_float32(text: str, dtype: str) -> None:
    x = np.random.Generator(np.random.Philox(4)).normal(size=(8, 64)).astype(np.float32)
    values = []
    for m in (mt, torch):
        half = m.tensor(x).to(getattr(m, dtype))
        values.append(eval(text, {"F": m.nn.functional, "x": half}))
    assert str(values[0].dtype).split(".")[1] == dtype
    np.testing.assert_allclose(
        values[0].float().numpy(),
        values[1].float().numpy(),
        rtol={"float16": 2e-3, "bfloat16": 2e-2}[dtype],
        atol=1e-3,
    )
