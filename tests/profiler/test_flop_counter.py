"""FLOPs of layers, against PyTorch's counter."""

from __future__ import annotations

from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.utils.flop_counter import FlopCounterMode

# A model by the namespace of its library, and the shape of its input.
MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (lambda nn: nn.Linear(5, 7), (3, 5)),
    "linear over axes": (lambda nn: nn.Linear(5, 7), (2, 3, 5)),
    "two layers": (lambda nn: nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2)), (3, 5)),
    "convolution": (lambda nn: nn.Conv2d(4, 6, 3, stride=2, padding=1), (2, 4, 9, 8)),
    "groups": (lambda nn: nn.Conv2d(4, 6, 3, groups=2), (2, 4, 9, 8)),
    "one axis": (lambda nn: nn.Conv1d(4, 6, 3, dilation=2), (2, 4, 9)),
    "transposed": (lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=2), (2, 4, 5, 5)),
}


def of_torch(make: Any, shape: tuple[int, ...], backward: bool) -> int:
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    with Theirs(display=False) as counter:
        out = make(torch.nn)(torch.ones(shape, requires_grad=True))
        if backward:
            out.sum().backward()
    return int(counter.get_total_flops())


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("name", MODELS)
def test_same_as_torch(name: str, backward: bool) -> None:
    make, shape = MODELS[name]
    with FlopCounterMode(display=False) as counter:
        out = make(nn)(mt.ones(*shape, requires_grad=True))
        if backward:
            out.sum().backward()
    if backward and name == "groups":  # there PyTorch counts the weight's gradient per group
        assert counter.get_total_flops() == 3 * of_torch(make, shape, False)
        return
    assert counter.get_total_flops() == of_torch(make, shape, backward)


def flops(call: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_products_of_every_form() -> None:
    a, b = mt.ones(2, 3, 4), mt.ones(2, 4, 5)
    expected = 2 * 2 * 3 * 4 * 5
    assert flops(lambda: a @ b) == expected
    assert flops(lambda: mt.bmm(a, b)) == expected
    assert flops(lambda: mt.einsum("bij,bjk->bik", a, b)) == expected
    assert flops(lambda: a + a) == 0


def test_backward_of_a_product() -> None:
    a, b = mt.ones(3, 4, requires_grad=True), mt.ones(4, 5)
    assert flops(lambda: (a @ b).sum().backward()) == 2 * 2 * 3 * 4 * 5


def test_attention_and_recurrence() -> None:
    q, k, v = mt.ones(2, 3, 4), mt.ones(2, 5, 4), mt.ones(2, 5, 6)
    expected = 2 * 2 * 3 * 5 * (4 + 6)
    attend = nn.functional.scaled_dot_product_attention
    assert flops(lambda: attend(q, k, v)) == expected
    for x in (q, k, v):
        x.requires_grad_()
    assert flops(lambda: attend(q, k, v).sum().backward()) == 3 * expected
    lstm = nn.LSTM(3, 4)
    rows = 5 * 2
    assert flops(lambda: lstm(mt.ones(5, 2, 3))) == 2 * rows * (16 * 3 + 16 * 4)


def test_by_module_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Linear(5, 7), nn.Sequential(nn.Linear(7, 2)))
    with FlopCounterMode(depth=2) as counter:
        net(mt.ones(3, 5))
    counts = counter.get_flop_counts()
    assert counts["Sequential.0"] == {"linear": 210}
    assert counts["Sequential.1"] == counts["Sequential.1.0"] == {"linear": 84}
    assert counts["Global"] == counts["Sequential"] == {"linear": 294}
    table = capsys.readouterr().out
    assert "Sequential.1 " in table
    assert "Sequential.1.0" not in table
    assert "71.43%" in table


def test_own_formulas() -> None:
    def formula(shapes: list[Any], out: tuple[int, ...]) -> int:
        return 10 * shapes[0][0]

    with FlopCounterMode(display=False, custom_mapping={"exp": formula}) as counter:
        mt.exp(mt.ones(4))
    assert counter.get_flop_counts() == {"Global": {"exp": 40}}
