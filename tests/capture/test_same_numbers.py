"""Compiled and eager runs give the same bits: models, modes and programs × steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.capture import Captured
from minitorch.nn import functional as F

STEPS = 9
Program = tuple[Any, Callable[..., Any], Callable[[], tuple[Any, ...]]]
PROGRAMS: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    """A row: gives the module, the function of it, and a function that draws arguments."""
    PROGRAMS[make.__name__] = make
    return make


def _classes(*shape: int, classes: int = 3) -> Callable[[], tuple[Any, ...]]:
    return lambda: (mt.randn(*shape), mt.randint(0, classes, (shape[0],)))


@program
def mlp() -> Program:
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(6, 5)


@program
def dropout() -> Program:
    net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3))
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(6, 5)


@program
def batch_norm() -> Program:
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    net.append(nn.Linear(4 * 16, 3))
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(4, 2, 6, 6)


@program
def shared_batch_norm() -> Program:
    norm = nn.BatchNorm1d(5)
    return norm, lambda x: (norm(norm(x) * 2.0) ** 3).mean(), lambda: (mt.randn(6, 5),)


@program
def convolutions() -> Program:
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    net.append(nn.Linear(4 * 16, 3))
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(4, 1, 8, 8)


@program
def residual() -> Program:
    a, b = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
    net = nn.ModuleList([a, b])
    return net, lambda x: F.relu(b(a(x)) + x).mean(), lambda: (mt.randn(2, 3, 5, 5),)


@program
def lstm() -> Program:
    net = nn.ModuleList([nn.Embedding(9, 6), nn.LSTM(6, 5, batch_first=True), nn.Linear(5, 9)])

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(net[2](net[1](net[0](x))[0]).flatten(0, 1), y)

    return net, loss, lambda: (mt.randint(0, 9, (3, 4)), mt.randint(0, 9, (12,)))


@program
def gru_and_layer_norm() -> Program:
    net = nn.ModuleList([nn.GRU(4, 5, num_layers=2), nn.LayerNorm(5)])
    return net, lambda x: net[1](net[0](x)[0]).square().mean(), lambda: (mt.randn(3, 2, 4),)


@program
def gpt() -> Program:
    width, heads = 8, 2
    net = nn.ModuleDict(
        {
            "tokens": nn.Embedding(11, width),
            "norm": nn.LayerNorm(width),
            "qkv": nn.Linear(width, 3 * width),
            "up": nn.Linear(width, 4 * width),
            "down": nn.Linear(4 * width, width),
            "head": nn.Linear(width, 11, bias=False),
        }
    )

    def loss(x: Any, y: Any) -> Any:
        b, t = x.shape
        h = net["tokens"](x) + mt.arange(t).float().unsqueeze(1) / t
        parts = net["qkv"](net["norm"](h)).split(width, dim=2)
        q, k, v = (p.view(b, t, heads, width // heads).transpose(1, 2) for p in parts)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
        h = h + a.transpose(1, 2).reshape(b, t, width)
        h = h + net["down"](F.gelu(net["up"](h), approximate="tanh"))
        return F.cross_entropy(net["head"](h).flatten(0, 1), y)

    return net, loss, lambda: (mt.randint(0, 11, (2, 5)), mt.randint(0, 11, (10,)))


@program
def transformer_encoder() -> Program:
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return net, lambda x: net(x).square().mean(), lambda: (mt.randn(2, 3, 8),)


@program
def frozen_part() -> Program:
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))
    net[0].requires_grad_(False)
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(6, 5)


@program
def shared_weights() -> Program:
    net = nn.Linear(4, 4)
    return net, lambda x: (net(net(x)) @ net.weight).square().mean(), lambda: (mt.randn(5, 4),)


@program
def in_place_activation() -> Program:
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(inplace=True), nn.Linear(7, 3))
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(6, 5)


@program
def moving_average() -> Program:
    net = nn.Linear(3, 3)
    net.register_buffer("mean", mt.zeros(3))

    def loss(x: Any) -> Any:
        y = net(x)
        with mt.no_grad():
            net.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        return (y - net.mean).square().mean()

    return net, loss, lambda: (mt.randn(5, 3),)


@program
def scratch_tensor() -> Program:
    net = nn.Linear(3, 2)

    def loss(x: Any) -> Any:
        total = mt.zeros(len(x), 2)
        total.add_(1.0)
        return (net(x) + total).square().mean()

    return net, loss, lambda: (mt.randn(4, 3),)


@program
def variational() -> Program:
    net = nn.ModuleList([nn.Linear(4, 6), nn.Linear(3, 4)])

    def loss(x: Any) -> Any:
        mean, log_var = net[0](x).chunk(2, dim=1)
        z = mean + mt.randn_like(mean) * (log_var * 0.5).exp()
        divergence = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(1).mean()
        return F.mse_loss(net[1](z), x) + 0.1 * divergence

    return net, loss, lambda: (mt.randn(5, 4),)


@program
def accuracy_beside() -> Program:
    net = nn.Linear(5, 3)

    def loss(x: Any, y: Any) -> Any:
        logits = net(x)
        hits = (logits.argmax(1) == y).float().mean()
        return {"loss": F.cross_entropy(logits, y), "hits": hits, "logits": logits, "n": len(x)}

    return net, loss, _classes(6, 5)


@program
def indices_and_masks() -> Program:
    net = nn.Linear(5, 4)

    def loss(x: Any, i: Any) -> Any:
        y = net(x)[i]
        y = mt.where(y > 0, y, y * 0.1).masked_fill(i.unsqueeze(1) == 2, 0.5)
        return mt.cat([y, y * 2], 1).clamp(-1, 1).gather(1, i.unsqueeze(1)).mean()

    return net, loss, lambda: (mt.randn(6, 5), mt.randint(0, 4, (7,)))


@program
def weighted_classes() -> Program:
    net, weight = nn.Linear(5, 3), mt.tensor([1.0, 2.0, 0.5])

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(net(x), y, weight, label_smoothing=0.1)

    return net, loss, _classes(6, 5)


@program
def binary() -> Program:
    net = nn.Linear(5, 1)

    def loss(x: Any) -> Any:
        y = net(x).squeeze(1)
        return F.binary_cross_entropy_with_logits(y, (x.sum(1) > 0).float()) + y.abs().max() * 0.1

    return net, loss, lambda: (mt.randn(6, 5),)


@program
def regression() -> Program:
    net = nn.Linear(5, 1)
    return net, lambda x, y: F.smooth_l1_loss(net(x), y), lambda: (mt.randn(6, 5), mt.randn(6, 1))


@program
def embedding_bag_of_words() -> Program:
    net = nn.ModuleList([nn.Embedding(7, 4, padding_idx=0), nn.Linear(4, 3)])

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(net[1](net[0](x).sum(1)), y)

    return net, loss, lambda: (mt.randint(0, 7, (5, 4)), mt.randint(0, 3, (5,)))


@program
def weights_made_of_others() -> Program:
    kinds = nn.utils.parametrizations
    net = nn.Sequential(kinds.weight_norm(nn.Linear(5, 7)), nn.Tanh())
    net.append(kinds.spectral_norm(nn.Linear(7, 3)))
    return net, lambda x, y: F.cross_entropy(net(x), y), _classes(6, 5)


@program
def parts_that_lie_in_order() -> Program:
    net = nn.Linear(6, 12)

    def loss(x: Any) -> Any:
        q, k, v = net(x).split(4, dim=1)
        return (q * k + v[:, :2].sum() + v[:, 2:].square().sum()).mean()

    return net, loss, lambda: (mt.randn(5, 6),)


@pytest.fixture(autouse=True)
def _seed() -> Iterator[None]:
    before = mt.random.state_dict()
    yield
    mt.random.load_state_dict(before)


def trained(make: Callable[[], Program], compiled: bool, **amp: Any) -> tuple[Any, Any, Any]:
    """Losses, final state, and what was called."""
    mt.manual_seed(3)
    net, step, draw = make()
    call = Captured(step) if compiled else step
    optimizer = mt.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.01)
    losses = []
    for i in range(STEPS):
        batch = draw()
        if i % 4 == 3:  # the smaller last batch
            batch = tuple(t[: len(t) // 2].clone() for t in batch if len(batch) == 1) or batch
        with mt.autocast("cpu", **amp) if amp else mt.enable_grad():
            out = call(*batch)
        loss = out["loss"] if isinstance(out, dict) else out
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rest = [v for v in out.values()] if isinstance(out, dict) else []
        losses.append([x.tolist() if isinstance(x, mt.Tensor) else x for x in (loss, *rest)])
    return losses, {k: v.tolist() for k, v in net.state_dict().items()}, call


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    eager, state, _ = trained(PROGRAMS[name], False)
    losses, same_state, call = trained(PROGRAMS[name], True)
    assert call.counts.breaks == {}
    assert call.counts.replays > 1
    assert losses == eager
    assert same_state == state


@pytest.mark.parametrize("name", ["mlp", "convolutions", "gpt", "batch_norm", "lstm"])
def test_half_precision(name: str) -> None:
    eager, state, _ = trained(PROGRAMS[name], False, dtype=mt.bfloat16)
    losses, same_state, call = trained(PROGRAMS[name], True, dtype=mt.bfloat16)
    assert call.counts.breaks == {}
    assert call.counts.replays > 1
    assert (losses, same_state) == (eager, state)


def test_inference_replays_without_a_graph() -> None:
    net = nn.Linear(3, 2)
    call = Captured(lambda x: net(x).relu())
    x = mt.randn(4, 3)
    with mt.no_grad():
        outs = [call(x) for _ in range(6)]
    assert call.counts.replays == 2
    assert not outs[-1].requires_grad
    assert call(x).requires_grad
    assert outs[-1].tolist() == net(x).relu().tolist()


def test_gradients_of_arguments_and_of_what_made_them() -> None:
    call = Captured(lambda x, y: (x * y).sin().sum())
    for _ in range(5):
        a, y = mt.randn(3, requires_grad=True), mt.randn(3, requires_grad=True)
        call(a * 2, y).backward()
        b, z = a.detach().requires_grad_(), y.detach().requires_grad_()
        ((b * 2) * z).sin().sum().backward()
        assert a.grad.tolist() == b.grad.tolist()
        assert y.grad.tolist() == z.grad.tolist()
    assert call.counts.replays == 1


def test_each_result_alone_and_together() -> None:
    w = mt.randn(3, requires_grad=True)

    def two(x: Any) -> Any:
        h = x * w
        return {"a": h.sin().sum(), "b": [h.cos().sum()]}

    call = Captured(two)
    for i in range(8):
        x, grads = mt.randn(3), []
        for f in (call, two):
            out = f(x)
            w.grad = None
            picked = [out["a"], out["b"][0], out["a"] + 2 * out["b"][0]][i % 3]
            picked.backward()
            grads.append(w.grad.tolist())
        assert grads[0] == grads[1]
    assert call.counts.replays == 4


def test_hooks_of_leaves_run() -> None:
    w, seen = mt.randn(3, requires_grad=True), []
    call = Captured(lambda x: (x * w).sum())
    w.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    for _ in range(6):
        w.grad = None
        call(mt.ones(3)).backward()
        assert w.grad.tolist() == [2.0] * 3
    assert call.counts.replays == 2
    assert len(seen) == 6


def test_results_with_graphs_apart_may_be_used_one_after_the_other() -> None:
    a, b = mt.randn(3, requires_grad=True), mt.randn(3, requires_grad=True)
    call = Captured(lambda x: ((x * a).sum(), (x * b).sin().sum()))
    for _ in range(6):
        a.grad = b.grad = None
        first, second = call(mt.ones(3))
        second.backward()
        first.backward()
        assert a.grad.tolist() == [1.0] * 3
        assert b.grad.tolist() == b.detach().cos().tolist()
        with pytest.raises(mt.errors.GraphError, match="consumed by an earlier backward"):
            first.backward()
    assert call.counts.replays >= 1


def test_an_lstm_whose_gates_have_room_between_them() -> None:
    net = nn.LSTM(3, 256, batch_first=True)
    call = Captured(lambda x: net(x)[0].square().mean())
    for _ in range(6):
        x, found = mt.randn(2, 3, 3), []
        for f in (call, call.function):
            net.zero_grad()
            f(x).backward()
            found.append([p.grad.tolist() for p in net.parameters()])
        assert found[0] == found[1]
    assert call.counts.breaks == {}
    assert call.counts.replays == 2
