"""2 000 random calls of attention and the Transformer's parts against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

from fuzz import Call, Rng, run  # noqa: E402

import minitorch as mt  # noqa: E402


def _coin(rng: Rng, p: float = 0.5) -> bool:
    return bool(rng.random() < p)


def _size(rng: Rng, high: int = 4) -> int:
    return int(rng.integers(1, high + 1))


def _filled(layer: Any, values: np.ndarray, m: Any) -> Any:
    layer = layer.double()
    for k, p in enumerate(layer.parameters()):
        p.data.copy_(m.tensor(np.resize(np.roll(values, k * 7), tuple(p.shape))))
    return layer


def _with_weights(m: Any, layer: Any, outs: list[Any]) -> Any:
    """The results, and the gradients of a number made of them with respect to the parameters."""
    kept = [y for y in outs if y is not None]
    total = sum(((p * p).sum() for p in kept), start=0.0)
    weights = list(layer.parameters())
    return [*kept, *m.autograd.grad(total, weights, retain_graph=True, allow_unused=True)]


def _sdpa(rng: Rng) -> Call:
    lead = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
    rows, columns, width, out = _size(rng), _size(rng), _size(rng), _size(rng)
    gqa = len(lead) > 0 and _coin(rng, 0.3)
    few = (*lead[:-1], _size(rng, 2)) if gqa else lead
    if lead and not gqa and _coin(rng, 0.1):
        few = (1, *lead[1:])
    odd = int(_coin(rng, 0.03))
    arrays = [
        rng.normal(size=(*lead, rows, width)),
        rng.normal(size=(*few, columns, width + odd)),
        rng.normal(size=(*few, columns, out)),
    ]
    if _coin(rng, 0.03):
        arrays[2] = arrays[2].astype(np.float32)
    options: dict[str, Any] = {"is_causal": True} if _coin(rng, 0.3) else {}
    if _coin(rng, 0.3):
        options["scale"] = float(rng.choice([0.5, 2.0]))
    if gqa:
        options["enable_gqa"] = True
    if _coin(rng) and ("is_causal" not in options or _coin(rng, 0.05)):
        part = lead[int(rng.integers(0, len(lead) + 1)) :]
        part = tuple(1 if _coin(rng, 0.3) else n for n in part)
        shape = (*part, rows if _coin(rng, 0.8) else 1, columns + int(_coin(rng, 0.03)))
        mask = rng.random(shape) < 0.7 if _coin(rng) else rng.normal(size=shape)
        arrays.append(mask)

    def call(m: Any, *xs: Any) -> Any:
        return m.nn.functional.scaled_dot_product_attention(*xs, **options)

    return Call(f"attention({options})", call, arrays)


def _mask(rng: Rng, rows: int, columns: int) -> np.ndarray:
    """A mask that leaves at least the first column to every row."""
    mask = rng.random((rows, columns)) < 0.3
    mask[:, 0] = False
    return mask if _coin(rng) else rng.normal(size=(rows, columns))


def _multi_head(rng: Rng) -> Call:
    heads = _size(rng, 2)
    width = heads * _size(rng, 3) + int(_coin(rng, 0.02))
    options: dict[str, Any] = {
        "bias": _coin(rng),
        "add_bias_kv": _coin(rng, 0.3),
        "add_zero_attn": _coin(rng, 0.3),
        "batch_first": _coin(rng),
    }
    if _coin(rng, 0.3):
        options |= {"kdim": _size(rng), "vdim": _size(rng)}
    rows, columns, batch = _size(rng), _size(rng), _size(rng, 3)
    itself = _coin(rng, 0.3) and "kdim" not in options
    columns = rows if itself else columns
    batched = _coin(rng, 0.7)

    def made(steps: int, features: int) -> np.ndarray:
        shape = (batch, steps, features) if options["batch_first"] else (steps, batch, features)
        return rng.normal(size=shape if batched else (steps, features))

    arrays = [made(rows, width)]
    if not itself:
        odd = int(_coin(rng, 0.03))
        arrays.append(made(columns, options.get("kdim", width)))
        arrays.append(made(columns + odd, options.get("vdim", width)))
    call_options: dict[str, Any] = {
        "need_weights": _coin(rng),
        "average_attn_weights": _coin(rng),
    }
    masks: dict[str, np.ndarray] = {}
    if _coin(rng, 0.4):
        mask = _mask(rng, rows + int(_coin(rng, 0.05)), columns)
        if _coin(rng, 0.3):
            mask = np.stack([mask] * (batch * heads if batched else heads))
        masks["attn_mask"] = mask
    if _coin(rng, 0.4):
        padding = _mask(rng, batch if batched else 1, columns)
        masks["key_padding_mask"] = padding if batched else padding[0]
    if _coin(rng, 0.03):
        call_options["is_causal"] = True
        masks.pop("attn_mask", None)
    values = rng.uniform(-0.7, 0.7, 211)

    def call(m: Any, *xs: Any) -> Any:
        layer = _filled(m.nn.MultiheadAttention(width, heads, **options), values, m)
        given = {k: m.tensor(v) for k, v in masks.items()}
        three = (xs[0], xs[0], xs[0]) if itself else xs
        return _with_weights(m, layer, list(layer(*three, **given, **call_options)))

    shown = {**options, **call_options, **{k: (v.shape, v.dtype) for k, v in masks.items()}}
    return Call(f"MultiheadAttention({width}, {heads}, {shown})", call, arrays)


def _layer(rng: Rng) -> Call:
    decoder, stack = _coin(rng), _coin(rng)
    kind = "TransformerDecoderLayer" if decoder else "TransformerEncoderLayer"
    first = _coin(rng)
    options: dict[str, Any] = {
        "batch_first": first,
        "norm_first": _coin(rng),
        "bias": _coin(rng),
        "dropout": 0.0,
        "activation": str(rng.choice(["relu", "gelu"])),
    }
    rows, columns, batch = _size(rng), _size(rng), _size(rng, 3)

    def made(steps: int) -> np.ndarray:
        return rng.normal(size=(batch, steps, 4) if first else (steps, batch, 4))

    arrays = [made(rows), made(columns)] if decoder else [made(rows)]
    masks: dict[str, np.ndarray] = {}
    names = (
        ("tgt_mask", "tgt_key_padding_mask") if decoder else ("src_mask", "src_key_padding_mask")
    )
    if _coin(rng, 0.4):
        masks[names[0]] = _mask(rng, rows, rows)
    if _coin(rng, 0.4):
        masks[names[1]] = _mask(rng, batch, rows)
    if decoder and _coin(rng, 0.4):
        masks["memory_mask"] = _mask(rng, rows, columns)
    causal = _coin(rng, 0.2)
    if causal:
        name = "tgt_is_causal" if decoder else "is_causal"
        masks[names[0]] = np.triu(np.full((rows, rows), -np.inf), 1)
    if stack and not decoder and names[0] in masks:
        masks["mask"] = masks.pop(names[0])
    values = rng.uniform(-0.7, 0.7, 211)

    def call(m: Any, *xs: Any) -> Any:
        layer = getattr(m.nn, kind)(4, 2, 6, **options)
        if stack:
            layer = getattr(m.nn, kind.removesuffix("Layer"))(layer, 2, m.nn.LayerNorm(4))
        layer = _filled(layer, values, m)
        given: dict[str, Any] = {k: m.tensor(v) for k, v in masks.items()}
        if causal:
            given[name] = True
        return _with_weights(m, layer, [layer(*xs, **given)])

    return Call(f"{kind}({options}, {list(masks)}, stack={stack})", call, arrays)


def _whole(rng: Rng) -> Call:
    first, norm_first = _coin(rng), _coin(rng)
    rows, columns, batch = _size(rng), _size(rng), _size(rng, 3)
    shapes = [(rows, batch, 4), (columns, batch + int(_coin(rng, 0.05)), 4)]
    arrays = [rng.normal(size=(b, s, f) if first else (s, b, f)) for s, b, f in shapes]
    values = rng.uniform(-0.7, 0.7, 211)

    def call(m: Any, src: Any, tgt: Any) -> Any:
        options = {"batch_first": first, "norm_first": norm_first}
        layer = _filled(m.nn.Transformer(4, 2, 1, 1, 6, 0.0, **options), values, m)
        mask = layer.generate_square_subsequent_mask(columns, dtype=m.float64)
        return _with_weights(m, layer, [layer(src, tgt, tgt_mask=mask)])

    return Call(f"Transformer({first}, {norm_first})", call, arrays)


MAKERS: list[tuple[Callable[[Rng], Call], int]] = [
    (_sdpa, 900),
    (_multi_head, 800),
    (_layer, 250),
    (_whole, 50),
]


@pytest.mark.parametrize(("make", "count"), MAKERS, ids=lambda x: getattr(x, "__name__", "")[1:])
def test_random_calls(make: Callable[[Rng], Call], count: int) -> None:
    run(mt, torch, make, count, seed=3)
