"""Metrics of a user's own: states by add_state, or attributes with an own reset."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.metrics import Metric
from minitorch.metrics.metric import Result


class Declared(Metric):
    """A mean in torchmetrics' style, which writes into its states."""

    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", default=mt.tensor(0.0), dist_reduce_fx="sum")
        self.add_state("count", default=0, dist_reduce_fx="sum")
        self.add_state("highest", default=mt.tensor(-1e9), dist_reduce_fx="max")
        self.add_state("seen", default=[], dist_reduce_fx="cat")

    def update(self, preds: Any, weight: float = 1.0) -> None:
        self.total += preds.sum() * weight
        self.count += preds.numel()
        self.highest = mt.maximum(self.highest, preds.max())
        self.seen.append(preds)

    def compute(self) -> Any:
        return self.total / self.count


class Plain(Metric):
    """The same mean, with attributes and without the base's __init__."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.parts: list[Any] = []
        self.sums = np.zeros(1)

    def update(self, preds: Any, weight: float = 1.0) -> None:
        self.parts.append(preds.numel())
        self.sums += preds.sum().item() * weight

    def compute(self) -> Any:
        return float(self.sums[0]) / sum(self.parts)


BATCHES = [mt.tensor([1.0, 2.0, 6.0]), mt.tensor([4.0]), mt.tensor([0.5, 7.0])]
MEAN = 20.5 / 6
KINDS = pytest.mark.parametrize("kind", [Declared, Plain])


@KINDS
def test_values_are_over_all_batches_and_reset_puts_the_start_back(kind: Any) -> None:
    metric = kind()
    for _ in range(2):
        for index, batch in enumerate(BATCHES):
            metric.update(batch)
            assert metric.updates == index + 1
        assert float(metric.compute()) == pytest.approx(MEAN)
        metric.reset()
        assert metric.updates == 0


@KINDS
def test_a_call_gives_the_value_of_its_batch(kind: Any) -> None:
    metric = kind()
    values = [float(metric(batch, weight=2.0)) for batch in BATCHES]
    assert values == pytest.approx([2 * float(batch.mean()) for batch in BATCHES])
    assert float(metric.compute()) == pytest.approx(2 * MEAN)
    assert metric.updates == 3


def test_values_of_calls_know_their_batches() -> None:
    metric = Declared()
    first, second = (metric(batch) for batch in BATCHES[:2])
    assert isinstance(first, Result)
    joined = copy.copy(first.measured_by[0]).merge(second.measured_by[0])
    assert float(joined.compute()) == pytest.approx(13 / 4)
    assert float(first.measured_by[0].compute()) == pytest.approx(3.0)


@KINDS
def test_states_are_saved_and_gone_back_to(kind: Any) -> None:
    metric = kind()
    metric.update(BATCHES[0])
    saved, snapshot = metric.state_dict(), metric._snapshot()
    for back in (lambda m: m.load_state_dict(saved), lambda m: m._restore(snapshot)):
        for _ in range(2):  # what was saved is not written into
            back(metric)
            assert float(metric.compute()) == pytest.approx(3.0)
            metric.update(BATCHES[1])
            assert float(metric.compute()) == pytest.approx(13 / 4)
            assert metric.updates == 2
    fresh = kind()
    fresh.load_state_dict(saved)
    fresh.update(BATCHES[1])
    assert float(fresh.compute()) == pytest.approx(13 / 4)


def parts() -> list[Declared]:
    found = [Declared(), Declared(), Declared()]
    found[0].update(BATCHES[0])
    found[2].update(BATCHES[1])
    found[2].update(BATCHES[2])
    return found


@pytest.mark.parametrize("first", [0, 1])
def test_states_are_merged_as_declared(first: int) -> None:
    metrics = parts()
    others = [m for i, m in enumerate(metrics) if i != first]
    merged = metrics[first].merge(*others)
    assert float(merged.compute()) == pytest.approx(MEAN)
    assert merged.updates == 3
    assert merged.count == 6
    assert type(merged.count) is int
    assert float(merged.highest) == 7.0
    assert len(merged.seen) == 3
    merged.update(mt.tensor([9.0]))
    assert sum(m.updates for m in others) == (2 if first == 0 else 3)
    assert float(others[-1].total) == pytest.approx(11.5)


REDUCTIONS: dict[str, tuple[Any, Any, Any]] = {
    "mean": ("mean", mt.tensor([1.0, 2.0]), [3.0, 6.0]),
    "min": ("min", mt.tensor([1.0, 2.0]), [1.0, 2.0]),
    "cat": ("cat", mt.tensor([1.0, 2.0]), [1.0, 2.0, 4.0, 8.0, 4.0, 8.0]),
    "function": (lambda stacked: stacked.prod(dim=0), mt.tensor([1.0, 2.0]), [16.0, 128.0]),
    "array": ("max", np.array([1.0, 2.0]), [4.0, 8.0]),
    "number": ("max", 1.5, 6.0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    reduction, start, expected = REDUCTIONS[name]

    def made(factor: float) -> Metric:
        metric = Metric()
        metric.add_state("held", start, reduction)
        metric.held, metric.updates = metric.held * factor, 1  # type: ignore[attr-defined]
        return metric

    merged = made(1.0).merge(made(4.0), made(4.0))
    assert type(merged.held) is type(start)  # type: ignore[attr-defined]
    np.testing.assert_allclose(np.asarray(merged.held), expected)  # type: ignore[attr-defined]


def test_a_metric_that_extends_another_counts_once() -> None:
    class Masked(mt.metrics.MeanSquaredError):
        def update(self, preds: Any, target: Any, mask: Any = None) -> None:
            super().update(preds[mask], target[mask])

    metric = Masked()
    metric.update(mt.tensor([1.0, 5.0]), mt.tensor([0.0, 0.0]), mask=mt.tensor([True, False]))
    assert metric.updates == 1
    assert metric.compute().item() == 1.0
    assert metric.clone().merge(metric).updates == 2
    metric.reset()
    assert metric.updates == 0


def test_contributions_may_be_numbers() -> None:
    class Count(Metric):
        def _contribution(self, preds: Any, target: Any) -> Any:
            return {"n": int(preds.size), "hits": [3]}

        def _value(self, state: Any) -> Any:
            return state["n"]

    metric = Count()
    metric.update(BATCHES[0], BATCHES[0])
    assert metric(BATCHES[1], BATCHES[1]).item() == 1
    assert metric.compute().item() == 4
    fresh = Count()
    fresh.load_state_dict(metric.state_dict())
    assert fresh.merge(metric).compute().item() == 8


class NoStart(Plain):
    pass


WRONG: dict[str, tuple[Any, str]] = {
    "taken": (lambda m: m.add_state("update", 0), "the name of a state is a free attribute"),
    "default": (lambda m: m.add_state("x", [1]), "default is a tensor, an array, a number or an"),
    "reduction": (lambda m: m.add_state("x", 0, "total"), 'dist_reduce_fx is "sum", "mean"'),
    "merge": (lambda m: Plain().merge(Plain()), "Declare them in __init__"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes(mistake: str) -> None:
    call, text = WRONG[mistake]
    with pytest.raises(mt.ArgumentError, match=text):
        call(Declared())


def test_a_state_without_a_reduction_cannot_be_merged() -> None:
    metric = Metric()
    metric.add_state("held", 0)
    metric.updates = 1
    with pytest.raises(mt.ArgumentError, match="Got None for 'held'"):
        metric.clone().merge(metric)


def test_attributes_that_nothing_puts_back_are_refused() -> None:
    class Forgetful(Metric):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0

        def update(self, preds: Any) -> None:
            self.n += 1

    metric = Forgetful()
    metric.reset()
    metric.update(BATCHES[0])
    with pytest.raises(mt.ArgumentError, match=r"Got neither add_state\(\) nor reset\(\) for n"):
        metric.reset()


def test_states_follow_the_inputs_to_their_device(pretend_gpu: Any) -> None:
    metric = Declared()
    metric.update(BATCHES[0].to("cuda"))
    assert metric.total.device.type == "cuda"
    state = metric.state_dict()["state"]
    assert {state["total"].device.type, state["seen"][0].device.type} == {"cpu"}
    assert float(metric.to("cpu").compute()) == pytest.approx(3.0)


def test_the_example_of_the_readme() -> None:
    readme = Path(__file__).parents[2] / "minitorch" / "metrics" / "README.md"
    (example,) = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
    names: dict[str, Any] = {"mt": mt}
    exec(compile(example, str(readme), "exec"), names)
    metric, twin = names["RootMeanSquare"](), mt.metrics.MeanSquaredError(squared=False)
    for one in (metric, twin):
        one.update(mt.tensor([1.0, 2.0, 5.0]), mt.tensor([0.0, 4.0, 5.0]))
        one.update(mt.tensor([3.0]), mt.tensor([0.0]))
    assert metric.compute().item() == pytest.approx(twin.compute().item(), rel=1e-6)
