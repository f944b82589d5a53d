"""The models that are timed, written once for both libraries: `m` is minitorch or torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Workload:
    """A training step to time.

    Attributes:
        text: What it is.
        make: `make(m)` builds the module.
        batch: `batch(m)` draws an input and its targets.
        steps: How many are timed in one process.
        flops: Multiplications and additions of one step, forward and backward, if each product is
            computed in full. Of `lstm` 3.7e9 are left where distinct rows are multiplied once.
        loss: Name in `nn.functional`.
    """

    text: str
    make: Callable[[ModuleType], Any]
    batch: Callable[[ModuleType], tuple[Any, Any]]
    steps: int
    flops: float
    loss: str = "cross_entropy"


def _images(count: int, channels: int, size: int) -> Callable[[ModuleType], tuple[Any, Any]]:
    return lambda m: (m.randn(count, channels, size, size), m.randint(0, 10, (count,)))


def _texts(count: int, length: int, vocabulary: int) -> Callable[[ModuleType], tuple[Any, Any]]:
    def draw(m: ModuleType) -> tuple[Any, Any]:
        tokens = m.randint(0, vocabulary, (count, length + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous().flatten()

    return draw


def _mlp(m: ModuleType) -> Any:
    nn = m.nn
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )


def _cnn(m: ModuleType) -> Any:
    nn = m.nn
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(3136, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, 10)),
    )


def _resnet(m: ModuleType) -> Any:
    nn, relu = m.nn, m.nn.functional.relu

    class Residual(nn.Module):
        def __init__(self, inside: int, outside: int, stride: int = 1) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(outside)
            self.shortcut = nn.Identity()
            if inside != outside:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
                )

        def forward(self, x: Any) -> Any:
            y = self.norm2(self.conv2(relu(self.norm1(self.conv1(x)))))
            return relu(y + self.shortcut(x))

    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
        *(Residual(32, 32), Residual(32, 64, 2), Residual(64, 128, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
    )


def gpt(vocabulary: int, length: int, width: int, heads: int) -> Callable[[ModuleType], Any]:
    """A decoder of four blocks, as `make` of a Workload."""

    def make(m: ModuleType) -> Any:
        nn, F = m.nn, m.nn.functional

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                b, t, d = x.shape
                parts = self.qkv(self.norm1(x)).split(d, dim=2)
                q, k, v = (p.view(b, t, heads, d // heads).transpose(1, 2) for p in parts)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
                return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

        class GPT(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.tokens = nn.Embedding(vocabulary, width)
                self.positions = nn.Parameter(m.zeros(length, width))
                self.blocks = nn.Sequential(*[Block() for _ in range(4)])
                self.norm, self.head = (
                    nn.LayerNorm(width),
                    nn.Linear(width, vocabulary, bias=False),
                )

            def forward(self, x: Any) -> Any:
                x = self.blocks(self.tokens(x) + self.positions[: x.shape[1]])
                return self.head(self.norm(x)).flatten(0, 1)

        return GPT()

    return make


def _lstm(m: ModuleType) -> Any:
    nn = m.nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(96, 256)
            self.rnn = nn.LSTM(256, 256, batch_first=True)
            self.out = nn.Linear(256, 96)

        def forward(self, x: Any) -> Any:
            return self.out(self.rnn(self.embedding(x))[0]).flatten(0, 1)

    return Model()


WORKLOADS = {
    "tiny": Workload(
        "Linear(4, 1), batch of 2: the frameworks' own time",
        lambda m: m.nn.Linear(4, 1),
        lambda m: (m.randn(2, 4), m.randn(2, 1)),
        *(3000, 0.0, "mse_loss"),
    ),
    "logreg": Workload(
        "Linear(20, 2), batch of 32",
        lambda m: m.nn.Linear(20, 2),
        lambda m: (m.randn(32, 20), m.randint(0, 2, (32,))),
        *(2000, 5e3),
    ),
    "mlp": Workload(
        "784-256-256-10 with ReLU, batch of 64",
        *(_mlp, lambda m: (m.randn(64, 784), m.randint(0, 10, (64,))), 1000, 77e6),
    ),
    "cnn": Workload(
        "two convolutions, two poolings, two linear layers, batch of 64 of 28×28",
        *(_cnn, _images(64, 1, 28), 120, 1.5e9),
    ),
    "resnet": Workload(
        "three residual blocks with BatchNorm, batch of 32 of 3×32×32",
        *(_resnet, _images(32, 3, 32), 40, 9.2e9),
    ),
    "gpt": Workload(
        "4 layers of width 128, 4 heads, 64 tokens, batch of 12",
        *(gpt(96, 64, 128, 4), _texts(12, 64, 96), 120, 3.9e9),
    ),
    "gpt_wide": Workload(
        "4 layers of width 384, 6 heads, 128 tokens, batch of 8",
        *(gpt(512, 128, 384, 6), _texts(8, 128, 512), 25, 45e9),
    ),
    "lstm": Workload(
        "embedding, LSTM of 256, 64 tokens, batch of 32",
        *(_lstm, _texts(32, 64, 96), 40, 6.6e9),
    ),
}
