"""Every kernel gives the same bits with one, two and four threads."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="without numba there are no kernels")

PROGRAM = """
import hashlib, json
import minitorch as mt
from minitorch import nn
from minitorch.kernels import threads
from minitorch.nn import functional as F

def vary(*shape):
    return mt.randn(*shape, requires_grad=True)

def conv(channels, size=3, **options):
    groups = options.get("groups", 1)
    x, w, b = vary(8, channels, 20, 20), vary(32, channels // groups, size, size), vary(32)
    return F.conv2d(x, w, b, **options), (x, w, b)

def of(function, *leaves):
    return function(*leaves), leaves

def update(make):
    w = vary(300, 300)
    optimizer = make([w])
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return w * 1, (w,)

def recurrent(layer):
    x = vary(24, 17, 40)
    return layer(x)[0], (x, *layer.parameters())

def heads():
    return tuple(vary(6, 4, 70, 32) for _ in range(3))

PROGRAMS = {
    "matmul": lambda: of(lambda a, b: a @ b, vary(300, 200), vary(200, 170)),
    "batched matmul": lambda: of(lambda a, b: a @ b, vary(24, 60, 50), vary(24, 50, 40)),
    "arithmetic": lambda: of(
        lambda a, b, c: (a + b) * b / (a - 2) + c, vary(1200, 900), vary(1200, 900), vary(900)
    ),
    "linear": lambda: of(F.linear, vary(700, 130), vary(260, 130), vary(260)),
    "conv 1x1": lambda: conv(32, 1),
    "conv 3x3": lambda: conv(16, padding=1),
    "conv strided": lambda: conv(16, stride=2, padding=1),
    "conv first": lambda: conv(3, 5, padding=2),
    "conv depthwise": lambda: conv(32, padding=1, groups=32),
    "conv depthwise strided": lambda: conv(32, 5, padding=2, stride=2, groups=32),
    "conv to few": lambda: of(
        lambda x, w: F.conv2d(x, w, padding=1), vary(8, 16, 20, 20), vary(3, 16, 3, 3)
    ),
    "max_pool2d overlapping": lambda: of(
        lambda x: F.max_pool2d(x, 3, 2, 1), vary(8, 16, 32, 32)
    ),
    "max_pool2d": lambda: of(lambda x: F.max_pool2d(x, 2), vary(8, 16, 32, 32)),
    "avg_pool2d": lambda: of(lambda x: F.avg_pool2d(x, 2), vary(8, 16, 32, 32)),
    "batch_norm": lambda: of(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        *(vary(16, 24, 15, 15), vary(24), vary(24)),
    ),
    "layer_norm": lambda: of(
        lambda x, w, b: F.layer_norm(x, (130,), w, b), vary(700, 130), vary(130), vary(130)
    ),
    "group_norm": lambda: of(lambda x: F.group_norm(x, 4), vary(16, 24, 15, 15)),
    "rms_norm": lambda: of(lambda x, w: F.rms_norm(x, (130,), w), vary(700, 130), vary(130)),
    "softmax": lambda: of(lambda x: x.softmax(1), vary(700, 130)),
    "log_softmax": lambda: of(lambda x: x.log_softmax(1), vary(700, 130)),
    "cross_entropy": lambda: of(
        lambda x: F.cross_entropy(x, mt.arange(700) % 130), vary(700, 130)
    ),
    "embedding": lambda: of(
        lambda w: F.embedding(mt.arange(5000) % 97, w), vary(97, 64)
    ),
    "attention": lambda: of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *heads()
    ),
    "attention_dropout": lambda: of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, None, 0.1), *heads()
    ),
    "lstm": lambda: recurrent(nn.LSTM(40, 50)),
    "gru": lambda: recurrent(nn.GRU(40, 50)),
    "rnn": lambda: recurrent(nn.RNN(40, 50)),
    "instance_norm": lambda: of(F.instance_norm, vary(16, 24, 15, 15)),
    "rand": lambda: of(lambda x: x * mt.rand(300, 300), vary(300, 300)),
    "dropout": lambda: of(lambda x: F.dropout(x, 0.3), vary(300, 300)),
    "bilinear": lambda: of(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), vary(8, 8, 20, 20)
    ),
    "sum": lambda: of(lambda x: x.sum(0), vary(700, 130)),
    **{
        name: lambda f=getattr(F, name): of(f, vary(300, 300))
        for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "elu", "softplus", "mish")
    },
    "erf": lambda: of(mt.erf, vary(300, 300)),
    **{
        name: lambda make=getattr(mt.optim, name): update(lambda p: make(p, lr=0.01))
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
    },
}

digests = {}
for name, program in PROGRAMS.items():
    mt.manual_seed(3)
    out, leaves = program()
    (out * mt.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    arrays = [out.detach(), *(leaf.grad for leaf in leaves)]
    digests[name] = hashlib.sha256(b"".join(a.numpy().tobytes() for a in arrays)).hexdigest()
print(json.dumps([threads.count(), digests]))
"""


@functools.cache
def _digests(number: int) -> dict[str, str]:
    """What a process with so many threads finds, also where the machine has fewer cores."""
    environment = os.environ | {"NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": str(number)}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=True,
    )
    used, digests = json.loads(result.stdout.splitlines()[-1])
    assert used == number
    return digests


@pytest.mark.parametrize("number", [2, 4])
def test_bits_do_not_depend_on_the_number_of_threads(number: int) -> None:
    alone, together = _digests(1), _digests(number)
    assert len(alone) > 30
    assert [name for name in alone if alone[name] != together[name]] == []
