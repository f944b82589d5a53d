"""The models of `minitorch.models` as plain torch functions of a state dict with public names."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

State = dict[str, Any]


def _heads(x: Any, heads: int) -> Any:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _attend(q: Any, k: Any, v: Any, heads: int, mask: Any, causal: bool) -> Any:
    q, k, v = (_heads(part, heads) for part in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    least = torch.finfo(scores.dtype).min
    if causal:
        length = scores.shape[-1]
        scores = scores.masked_fill(~torch.ones(length, length, dtype=torch.bool).tril(), least)
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None, :] == 0, least)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def _norm(x: Any, state: State, name: str, eps: float) -> Any:
    return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"], eps)


def _linear(x: Any, state: State, name: str) -> Any:
    return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def gpt2(state: State, ids: Any, mask: Any, *, layers: int, heads: int) -> Any:
    """Logits of GPT2LMHeadModel."""

    def conv1d(x: Any, name: str) -> Any:
        return x @ state[f"{name}.weight"] + state[f"{name}.bias"]

    body = "transformer"
    x = state[f"{body}.wte.weight"][ids] + state[f"{body}.wpe.weight"][: ids.shape[1]]
    for i in range(layers):
        block = f"{body}.h.{i}"
        y = conv1d(_norm(x, state, f"{block}.ln_1", 1e-5), f"{block}.attn.c_attn")
        y = _attend(*y.chunk(3, -1), heads, mask, True)
        x = x + conv1d(y, f"{block}.attn.c_proj")
        y = conv1d(_norm(x, state, f"{block}.ln_2", 1e-5), f"{block}.mlp.c_fc")
        x = x + conv1d(F.gelu(y, approximate="tanh"), f"{block}.mlp.c_proj")
    return _norm(x, state, f"{body}.ln_f", 1e-5) @ state["lm_head.weight"].T


def bert(state: State, ids: Any, mask: Any, types: Any, *, layers: int, heads: int) -> Any:
    """Last hidden states and pooled output of BertModel."""
    table = "embeddings.{}_embeddings.weight".format
    x = state[table("word")][ids] + state[table("token_type")][types]
    x = x + state[table("position")][: ids.shape[1]]
    x = _norm(x, state, "embeddings.LayerNorm", 1e-12)
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        parts = [
            _linear(x, state, f"{layer}.attention.self.{n}") for n in ("query", "key", "value")
        ]
        y = _linear(_attend(*parts, heads, mask, False), state, f"{layer}.attention.output.dense")
        x = _norm(y + x, state, f"{layer}.attention.output.LayerNorm", 1e-12)
        y = F.gelu(_linear(x, state, f"{layer}.intermediate.dense"))
        y = _linear(y, state, f"{layer}.output.dense")
        x = _norm(y + x, state, f"{layer}.output.LayerNorm", 1e-12)
    return x, _linear(x[:, 0], state, "pooler.dense").tanh()


def bert_head(state: State, hidden: Any) -> Any:
    """Logits of the masked-language head."""
    head = "cls.predictions"
    y = F.gelu(_linear(hidden, state, f"{head}.transform.dense"))
    y = _norm(y, state, f"{head}.transform.LayerNorm", 1e-12)
    return y @ state[f"{head}.decoder.weight"].T + state[f"{head}.bias"]


def _batch_norm(x: Any, state: State, name: str, training: bool) -> Any:
    mean, var = state[f"{name}.running_mean"], state[f"{name}.running_var"]
    weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
    return F.batch_norm(x, mean.clone(), var.clone(), weight, bias, training)


def resnet(state: State, x: Any, *, training: bool) -> Any:
    """Logits of a ResNet; the depth is what the state has."""

    def norm(x: Any, name: str) -> Any:
        return _batch_norm(x, state, name, training)

    x = norm(F.conv2d(x, state["conv1.weight"], stride=2, padding=3), "bn1").relu()
    x = F.max_pool2d(x, 3, 2, 1)
    for stage in range(1, 5):
        i = 0
        while f"layer{stage}.{i}.conv1.weight" in state:
            block, stride = f"layer{stage}.{i}", 2 if stage > 1 and i == 0 else 1
            deep = f"{block}.conv3.weight" in state
            y = x
            for j in range(1, 4 if deep else 3):
                kernel = state[f"{block}.conv{j}.weight"]
                step = stride if j == (2 if deep else 1) else 1
                y = F.conv2d(y, kernel, stride=step, padding=kernel.shape[-1] // 2)
                y = norm(y, f"{block}.bn{j}")
                y = y.relu() if j < (3 if deep else 2) else y
            if f"{block}.downsample.0.weight" in state:
                x = F.conv2d(x, state[f"{block}.downsample.0.weight"], stride=stride)
                x = norm(x, f"{block}.downsample.1")
            x = (x + y).relu()
            i += 1
    return _linear(x.mean((2, 3)), state, "fc")


def vgg(state: State, x: Any, stages: tuple[int, ...], batch_norm: bool) -> Any:
    """Logits of a VGG in eval mode."""
    place = 0
    for width in stages:
        if width == 0:
            x = F.max_pool2d(x, 2)
            place += 1
            continue
        kernel, bias = state[f"features.{place}.weight"], state[f"features.{place}.bias"]
        x = F.conv2d(x, kernel, bias, padding=1)
        x = _batch_norm(x, state, f"features.{place + 1}", False) if batch_norm else x
        x = x.relu()
        place += 3 if batch_norm else 2
    x = F.adaptive_avg_pool2d(x, 7).flatten(1)
    for place in (0, 3, 6):
        x = _linear(x, state, f"classifier.{place}")
        x = x.relu() if place < 6 else x
    return x


def unet(state: State, x: Any, *, depth: int, training: bool) -> Any:
    """Logits of a U-Net."""

    def double(x: Any, name: str) -> Any:
        for conv, norm in ((0, 1), (3, 4)):
            x = F.conv2d(x, state[f"{name}.double_conv.{conv}.weight"], padding=1)
            x = _batch_norm(x, state, f"{name}.double_conv.{norm}", training).relu()
        return x

    levels = [double(x, "inc")]
    for i in range(depth):
        levels.append(double(F.max_pool2d(levels[-1], 2), f"down{i + 1}.maxpool_conv.1"))
    x = levels.pop()
    for i in range(depth):
        name = f"up{i + 1}"
        if f"{name}.up.weight" in state:
            kernel, bias = state[f"{name}.up.weight"], state[f"{name}.up.bias"]
            x = F.conv_transpose2d(x, kernel, bias, stride=2)
        else:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        skipped = levels.pop()
        rows, columns = (skipped.shape[i] - x.shape[i] for i in (2, 3))
        x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        x = double(torch.cat([skipped, x], 1), f"{name}.conv")
    return F.conv2d(x, state["outc.conv.weight"], state["outc.conv.bias"])
