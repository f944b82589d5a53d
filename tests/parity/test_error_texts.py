"""Wrong calls that PyTorch refuses are refused here, and the text says at least as much.

Every size, index and name of a dtype in PyTorch's message stands in ours, too, unless the row says
why not; ours names the operation besides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

NUMBER = re.compile(r"(?<![A-Za-z_.\d])\d+|(?<=\dx)\d+")
INTERNAL = "numbers of PyTorch's internals"
OTHER = "it is explained by other facts"


def _x(m: Any, *shape: int) -> Any:
    return m.ones(*shape)


# name: (call, the word that ours must hold, why numbers of PyTorch's text may miss)
ROWS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "matmul": (lambda m: _x(m, 8, 3) @ _x(m, 4, 5), "matmul", ""),
    "mm rank": (lambda m: m.mm(_x(m, 2, 3, 4), _x(m, 4, 5)), "mm", ""),
    "bmm batches": (lambda m: m.bmm(_x(m, 2, 3, 4), _x(m, 5, 4, 6)), "bmm", ""),
    "mv": (lambda m: m.mv(_x(m, 2, 3), _x(m, 4)), "mv", ""),
    "dot": (lambda m: m.dot(_x(m, 3), _x(m, 4)), "dot", ""),
    "add": (lambda m: _x(m, 2, 3) + _x(m, 2, 4), "add", ""),
    "mul": (lambda m: _x(m, 5) * _x(m, 4), "mul", OTHER),
    "view": (lambda m: _x(m, 2, 3).view(4, 2), "view", ""),
    "reshape": (lambda m: _x(m, 2, 3).reshape(-1, 4), "reshape", ""),
    "two unknown sizes": (lambda m: _x(m, 2, 3).reshape(-1, -1), "reshape", ""),
    "permute": (lambda m: _x(m, 2, 3).permute(0, 1, 2), "permute", ""),
    "transpose": (lambda m: _x(m, 2, 3).transpose(0, 5), "transpose", ""),
    "squeeze dim": (lambda m: _x(m, 2, 3).squeeze(4), "squeeze", ""),
    "unsqueeze dim": (lambda m: _x(m, 2, 3).unsqueeze(7), "unsqueeze", ""),
    "expand": (lambda m: _x(m, 2, 3).expand(4, 3), "expand", OTHER),
    "cat sizes": (lambda m: m.cat([_x(m, 2, 3), _x(m, 2, 4)]), "cat", ""),
    "cat nothing": (lambda m: m.cat([]), "cat", ""),
    "stack sizes": (lambda m: m.stack([_x(m, 2, 3), _x(m, 2, 4)]), "stack", OTHER),
    "split sizes": (lambda m: _x(m, 5).split([2, 2]), "split", ""),
    "chunk": (lambda m: _x(m, 5).chunk(0), "chunk", ""),
    "index range": (lambda m: _x(m, 3)[5], "index", ""),
    "index count": (lambda m: _x(m, 3)[0, 1], "index", ""),
    "mask shape": (lambda m: _x(m, 3)[m.ones(4, dtype=m.bool)], "index", ""),
    "gather range": (lambda m: _x(m, 3).gather(0, m.tensor([7])), "gather", ""),
    "index_select range": (lambda m: _x(m, 3).index_select(0, m.tensor([9])), "index_select", ""),
    "scatter rank": (lambda m: _x(m, 3).scatter(0, m.tensor([[0]]), 1.0), "scatter", ""),
    "sum axis": (lambda m: _x(m, 2, 3).sum(3), "sum", ""),
    "mean of integers": (lambda m: m.arange(3).mean(), "mean", ""),
    "max of nothing": (lambda m: m.ones(0).max(), "max", ""),
    "softmax axis": (lambda m: m.softmax(_x(m, 2, 3), 4), "softmax", ""),
    "item": (lambda m: _x(m, 3).item(), "item", ""),
    "truth": (lambda m: bool(_x(m, 3)), "bool", ""),
    "backward of many": (lambda m: m.ones(3, requires_grad=True).backward(), "backward", ""),
    "backward of nothing": (lambda m: _x(m).backward(), "backward", INTERNAL),
    "leaf in place": (lambda m: m.ones(3, requires_grad=True).add_(1), "add_", ""),
    "integers with grad": (lambda m: m.ones(3, dtype=m.int64, requires_grad=True), "grad", ""),
    "numpy with grad": (lambda m: m.ones(3, requires_grad=True).numpy(), "numpy", ""),
    "linear": (lambda m: m.nn.Linear(3, 4)(_x(m, 2, 5)), "linear", ""),
    "conv channels": (lambda m: m.nn.Conv2d(3, 4, 3)(_x(m, 1, 2, 8, 8)), "conv2d", ""),
    "conv kernel": (lambda m: m.nn.Conv2d(3, 4, 5)(_x(m, 1, 3, 2, 2)), "conv2d", ""),
    "conv groups": (lambda m: m.nn.Conv2d(3, 4, 3, groups=2), "groups", ""),
    "pool kernel": (lambda m: m.nn.MaxPool2d(5)(_x(m, 1, 3, 2, 2)), "pool", OTHER),
    "batch norm of one": (lambda m: m.nn.BatchNorm1d(3)(_x(m, 1, 3)), "batch_norm", ""),
    "batch norm features": (lambda m: m.nn.BatchNorm1d(3)(_x(m, 2, 4)), "batch_norm", ""),
    "layer norm": (lambda m: m.nn.LayerNorm(3)(_x(m, 2, 4)), "layer_norm", ""),
    "group norm": (lambda m: m.nn.GroupNorm(2, 5), "num_channels", ""),
    "embedding range": (lambda m: m.nn.Embedding(3, 2)(m.tensor([5])), "embedding", ""),
    "dropout": (lambda m: m.nn.Dropout(1.5), "p", ""),
    "cross entropy batch": (
        lambda m: m.nn.functional.cross_entropy(_x(m, 2, 3), m.tensor([0, 1, 2])),
        "cross_entropy",
        "",
    ),
    "cross entropy class": (
        lambda m: m.nn.functional.cross_entropy(_x(m, 2, 3), m.tensor([0, 5])),
        "cross_entropy",
        "",
    ),
    "bce range": (
        lambda m: m.nn.functional.binary_cross_entropy(_x(m, 2) * 2, _x(m, 2)),
        "binary_cross_entropy",
        "",
    ),
    "bce shape": (
        lambda m: m.nn.functional.binary_cross_entropy(_x(m, 2, 1), _x(m, 2)),
        "binary_cross_entropy",
        "",
    ),
    "attention heads": (lambda m: m.nn.MultiheadAttention(5, 2), "num_heads", ""),
    "lstm input": (lambda m: m.nn.LSTM(3, 4)(_x(m, 2, 1, 5)), "lstm", OTHER),
    "einsum sizes": (lambda m: m.einsum("ij,jk", _x(m, 2, 3), _x(m, 4, 5)), "einsum", OTHER),
    "inverse": (lambda m: m.linalg.inv(_x(m, 2, 3)), "inv", ""),
    "singular": (lambda m: m.linalg.inv(m.zeros(2, 2)), "inv", INTERNAL),
    "cholesky": (lambda m: m.linalg.cholesky(-m.eye(2)), "cholesky", OTHER),
    "optimizer without parameters": (lambda m: m.optim.SGD([], lr=0.1), "SGD", ""),
    "negative rate": (lambda m: m.optim.Adam([_x(m, 2)], lr=-1.0), "lr", ""),
    "missing key": (lambda m: m.nn.Linear(2, 2).load_state_dict({}), "weight", ""),
    "state shape": (
        lambda m: m.nn.Linear(2, 2).load_state_dict({"weight": _x(m, 3, 3), "bias": _x(m, 2)}),
        "weight",
        "",
    ),
    "unknown attribute": (lambda m: m.nn.Linear(2, 2).wieght, "wieght", ""),
}


def _refusal(m: Any, call: Callable[[Any], Any]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (the texts are what is compared)
        call(m)
    return str(caught.value)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_our_text_says_at_least_as_much(row: tuple[Callable[[Any], Any], str, str]) -> None:
    call, word, why = row
    theirs, ours = _refusal(torch, call), _refusal(mt, call)
    assert word.lower() in ours.lower(), ours
    missing = set(NUMBER.findall(theirs)) - set(re.findall(r"\d+", ours))
    assert bool(missing) == bool(why), f"{missing} of {theirs!r} miss in {ours!r}"
