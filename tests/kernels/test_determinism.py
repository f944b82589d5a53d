"""Every kernel gives the same bits with one, two and four threads, and what it stands for."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="without numba there are no kernels")

PROGRAM = """
import gc, hashlib, importlib, json, pkgutil
import minitorch as mt
from minitorch import nn
from minitorch.kernels import cpu, loader, threads
from minitorch.kernels.cpu import activation, elementwise
from minitorch.kernels.cpu.kernel import Kernel
from minitorch.nn import functional as F

used = set()

def noted(method):
    def call(kernel, *args):
        used.add(kernel.name)
        method(kernel, *args)
    return call

Kernel.__call__, Kernel.share = noted(Kernel.__call__), noted(Kernel.share)

def vary(*shape, dtype=mt.float32):
    return mt.randn(*shape, dtype=dtype, requires_grad=True)

def wide(*shape):
    return vary(*shape, dtype=mt.float64)

def conv(channels, size=3, **options):
    groups = options.get("groups", 1)
    x, w, b = vary(8, channels, 20, 20), vary(32, channels // groups, size, size), vary(32)
    return F.conv2d(x, w, b, **options), (x, w, b)

def of(function, *leaves):
    return function(*leaves), leaves

def moving_norm(x, w, b):
    mean, var = mt.zeros(24), mt.ones(24)
    y = F.batch_norm(x, mean, var, w, b, True)
    return F.batch_norm(y, mean, var)

def update(make):
    w = vary(300, 300)
    optimizer = make([w])
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return w * 1, (w,)

def clipped():
    w = vary(300, 300)
    scaler = mt.amp.GradScaler(init_scale=8.0)
    optimizer = mt.optim.SGD([w], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((w * w).sum()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update()
    return w * 1, (w,)

def captured(function, *leaves):
    step = mt.compile(function)
    for _ in range(6):
        mt.autograd.grad(step(*leaves), leaves)
    return step(*leaves), leaves

def recurrent(layer):
    x = vary(24, 17, 40)
    return layer(x)[0], (x, *layer.parameters())

def letters():
    table, layer = vary(97, 64), nn.LSTM(64, 50)
    rows = F.embedding((mt.arange(840) % 97).view(24, 35), table)
    return layer(rows)[0], (table, *layer.parameters())

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
    "conv 1x1 strided": lambda: conv(32, 1, stride=2),
    "conv 3x3": lambda: conv(16, padding=1),
    "conv strided": lambda: conv(16, stride=2, padding=1),
    "conv first": lambda: conv(3, 5, padding=2),
    "conv depthwise": lambda: conv(32, padding=1, groups=32),
    "conv depthwise strided": lambda: conv(32, 5, padding=2, stride=2, groups=32),
    "conv to few": lambda: of(
        lambda x, w: F.conv2d(x, w, padding=1), vary(8, 16, 20, 20), vary(3, 16, 3, 3)
    ),
    "conv float64": lambda: of(
        lambda x, w: F.conv2d(x, w, padding=1), wide(8, 16, 20, 20), wide(32, 16, 3, 3)
    ),
    "conv3d float64": lambda: of(
        lambda x, w: F.conv3d(x, w, padding=1), wide(4, 6, 9, 10, 11), wide(8, 6, 3, 3, 3)
    ),
    "linear float64": lambda: of(F.linear, wide(700, 130), wide(260, 130), wide(260)),
    "max_pool3d": lambda: of(lambda x: F.max_pool3d(x, 2), vary(4, 8, 10, 12, 14)),
    "max_pool2d overlapping": lambda: of(
        lambda x: F.max_pool2d(x, 3, 2, 1), vary(8, 16, 32, 32)
    ),
    "max_pool2d": lambda: of(lambda x: F.max_pool2d(x, 2), vary(8, 16, 32, 32)),
    "avg_pool2d": lambda: of(lambda x: F.avg_pool2d(x, 2), vary(8, 16, 32, 32)),
    "batch_norm": lambda: of(
        moving_norm,
        *(vary(16, 24, 15, 15), vary(24), vary(24)),
    ),
    "layer_norm": lambda: of(
        lambda x, w, b: F.layer_norm(x, (130,), w, b), vary(700, 130), vary(130), vary(130)
    ),
    "group_norm": lambda: of(lambda x: F.group_norm(x, 4), vary(16, 24, 15, 15)),
    "rms_norm": lambda: of(lambda x, w: F.rms_norm(x, (130,), w), vary(700, 130), vary(130)),
    "softmax": lambda: of(lambda x: x.softmax(1), vary(700, 130)),
    "log_softmax": lambda: of(lambda x: x.log_softmax(1), vary(700, 130)),
    "softmax float64": lambda: of(lambda x: x.softmax(1), wide(700, 130)),
    "log_softmax float64": lambda: of(lambda x: x.log_softmax(1), wide(700, 130)),
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
    "lstm of letters": letters,
    "instance_norm": lambda: of(F.instance_norm, vary(16, 24, 15, 15)),
    "rand": lambda: of(lambda x: x * mt.rand(300, 300), vary(300, 300)),
    "rand float64": lambda: of(
        lambda x: x * mt.rand(300, 300, dtype=mt.float64), wide(300, 300)
    ),
    "dropout": lambda: of(lambda x: F.dropout(x, 0.3), vary(300, 300)),
    "bilinear": lambda: of(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), vary(8, 8, 20, 20)
    ),
    "grid_sample": lambda: of(
        lambda x, places: F.grid_sample(x, places.tanh(), align_corners=False),
        *(vary(4, 8, 20, 20), vary(4, 30, 30, 2)),
    ),
    "sum": lambda: of(lambda x: x.sum(0), vary(700, 130)),
    **{
        name: lambda f=getattr(F, name): of(f, vary(300, 300))
        for name in (
            "relu gelu silu sigmoid tanh elu softplus mish leaky_relu hardtanh hardswish "
            "logsigmoid"
        ).split()
    },
    "gelu_tanh": lambda: of(lambda x: F.gelu(x, approximate="tanh"), vary(300, 300)),
    **{
        name: lambda f=getattr(mt, name): of(lambda x: f(x.abs() + 0.1), vary(300, 300))
        for name in ("exp", "expm1", "log", "log1p", "sqrt", "erf")
    },
    "erf float64": lambda: of(mt.erf, wide(300, 300)),
    "where": lambda: of(lambda x, y: mt.where(x > 0, x, y), vary(300, 300), vary(300, 300)),
    "where number": lambda: of(lambda x: mt.where(x > 0, x, 0.5), vary(300, 300)),
    "gradients scaled and clipped": clipped,
    "compiled chain": lambda: captured(lambda x: (x * (x * 1.7).sigmoid()).sum(), vary(700, 130)),
    **{
        name: lambda make=getattr(mt.optim, name): update(lambda p: make(p, lr=0.01))
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad")
    },
    "SGD, momentum": lambda: update(lambda p: mt.optim.SGD(p, lr=0.01, momentum=0.9)),
    "Adam, amsgrad": lambda: update(lambda p: mt.optim.Adam(p, lr=0.01, amsgrad=True)),
    "RMSprop, momentum": lambda: update(lambda p: mt.optim.RMSprop(p, lr=0.01, momentum=0.9)),
}

def results(program):
    mt.manual_seed(3)
    out, leaves = program()
    weights = mt.arange(out.numel(), dtype=out.dtype).cos()  # neighbours do not cancel
    (out * weights.view(out.shape)).sum().backward()
    return [a.numpy() for a in (out.detach(), *(leaf.grad for leaf in leaves))]

def digest(arrays):
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()

digests = {}
for number in (1, 2, 4):
    mt.set_num_threads(number)
    found = {name: results(program) for name, program in PROGRAMS.items()}
    digests[number] = {name: digest(arrays) for name, arrays in found.items()}
    assert threads.count() == number

loader._forked = True  # from now on there are no kernels
errors = {}
for name, program in PROGRAMS.items():
    pairs = zip(found[name], results(program), strict=True)
    errors[name] = max(float(abs(a - b).max() / abs(b).max()) for a, b in pairs)

for module in pkgutil.iter_modules(cpu.__path__):
    importlib.import_module(f"{cpu.__name__}.{module.name}")
for name in dir(activation):
    if name.endswith("_slope"):
        elementwise._compiled(elementwise._gradients, name)
        elementwise._compiled(elementwise._values, name.removesuffix("_slope"))
every = {x.name for x in gc.get_objects() if isinstance(x, Kernel)}
print(json.dumps([digests, errors, sorted(every - used)]))
"""


@functools.cache
def _found() -> tuple[dict[str, dict[str, str]], dict[str, float], list[str]]:
    """Digests for each number of threads, errors, and kernels that no program used.

    Also where the machine has fewer cores. Errors are those against a run without kernels, relative
    to the largest number.
    """
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"NUMBA_NUM_THREADS": "4", "OMP_NUM_THREADS": "4"},
        check=True,
    )
    digests, errors, unused = json.loads(result.stdout.splitlines()[-1])
    return digests, errors, unused


@pytest.mark.parametrize("number", [2, 4])
def test_bits_do_not_depend_on_the_number_of_threads(number: int) -> None:
    alone, together = (_found()[0][str(n)] for n in (1, number))
    assert [name for name in alone if alone[name] != together[name]] == []


def test_kernels_agree_with_what_runs_without_them() -> None:
    errors = _found()[1]
    assert {name: error for name, error in errors.items() if not error < 1e-4} == {}


def test_every_kernel_has_a_row_here() -> None:
    assert _found()[2] == []
