"""Random calls of embeddings and bags of embeddings against torch."""

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


def _options(rng: Rng, rows: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if _coin(rng, 0.3):
        options["padding_idx"] = int(rng.integers(-rows, rows + _coin(rng, 0.05)))
    if _coin(rng, 0.3):
        options["max_norm"] = float(rng.choice([0.5, 1.0, 5.0]))
        if _coin(rng):
            options["norm_type"] = float(rng.choice([1.0, 3.0]))
    if _coin(rng, 0.3):
        options["scale_grad_by_freq"] = True
    return options


def _embedding(rng: Rng) -> Call:
    rows, width = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(0, 4, int(rng.integers(0, 4))))
    index = np.asarray(rng.integers(0, rows + _coin(rng, 0.03), shape))
    options = _options(rng, rows)
    table = rng.normal(size=(rows, width))

    def call(m: Any, index: Any) -> Any:
        layer = m.nn.Embedding.from_pretrained(m.tensor(table), freeze=False, **options)
        y = layer(index)
        (grad,) = m.autograd.grad((y * y).sum(), layer.weight, retain_graph=True)
        return [y, layer.weight.detach(), grad]

    return Call(f"Embedding({rows}, {width}, {options}, {index.tolist()})", call, [index])


def _bag(rng: Rng) -> Call:
    rows, width = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    options = _options(rng, rows)
    # torch divides by the frequency of another row in bags.
    options.pop("scale_grad_by_freq", None)
    options["mode"] = mode = str(rng.choice(["sum", "mean", "max"]))
    table = rng.normal(size=(rows, width))
    arrays: list[np.ndarray] = []
    if _coin(rng):
        count = int(rng.integers(0, 9))
        index = rng.integers(0, rows + _coin(rng, 0.03), count)
        starts = np.sort(rng.integers(0, count + 1, int(rng.integers(1, 5))))
        starts[0] = int(_coin(rng, 0.03))
        if _coin(rng, 0.3):
            options["include_last_offset"] = True
            starts = np.append(starts, count)
        arrays = [index, starts]
    else:
        arrays = [rng.integers(0, rows, tuple(rng.integers(1, 5, 2)))]
    factors = _coin(rng, 0.3)
    if factors and (mode == "sum" or _coin(rng, 0.1)):
        arrays.append(rng.normal(size=arrays[0].shape))
    offsets = len(arrays) > 1 and arrays[1].dtype.kind == "i"

    def call(m: Any, index: Any, *rest: Any) -> Any:
        layer = m.nn.EmbeddingBag.from_pretrained(m.tensor(table), freeze=False, **options)
        given = {"offsets": rest[0]} if offsets else {}
        if len(rest) > offsets:
            given["per_sample_weights"] = rest[-1]
        y = layer(index, **given)
        (grad,) = m.autograd.grad((y * y).sum(), layer.weight, retain_graph=True)
        return [y, layer.weight.detach(), grad]

    shown = [a.tolist() for a in arrays]
    return Call(f"EmbeddingBag({rows}, {width}, {options}, {shown})", call, arrays)


MAKERS: list[Callable[[Rng], Call]] = [_embedding, _bag]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[1:])
def test_random_calls(make: Callable[[Rng], Call]) -> None:
    run(mt, torch, make, 600, seed=4)
