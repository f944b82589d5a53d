"""State in unusual places: reading it chooses recordings, changing it breaks them."""

from __future__ import annotations

import argparse
import functools
import sys
import threading
import types
import warnings
import weakref
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn, optim
from minitorch.capture import Captured, CaptureWarning


class Holder:
    factor: Any = 2.0

    def __init__(self) -> None:
        self.factor = 2.0

    def scaled(self, x: Any) -> Any:
        return x * self.factor

    @staticmethod
    def of_class() -> float:
        return 2.0


class Classwide:
    factor = 2.0
    held = Holder()
    seen: list[int] = []


class Sub(Classwide):
    pass


class Keyed(dict):
    factor = 2.0


class Doubling(nn.Module):
    factor = 2.0

    def forward(self, x: Any) -> Any:
        return x * self.factor


class Tripling(Doubling):
    factor = 3.0


class Slot:
    __slots__ = "factor"


class PrivateSlot:
    __slots__ = ("__factor",)

    def factor(self, value: Any = None) -> Any:
        if value is not None:
            self.__factor = value
        return self.__factor


NAMESPACE, PARSED, HELD = types.SimpleNamespace(), argparse.Namespace(), Holder()
KEYED, SLOT, PRIVATE, USER_DICT = Keyed(), Slot(), PrivateSlot(), UserDict[str, float]()
LOCAL, PLAIN, PARAMETER = threading.local(), {"factor": 2.0}, nn.Parameter(mt.ones(3))
PROXY, MAPPING = weakref.proxy(HELD), types.MappingProxyType(PLAIN)
REFERENCE, PARTIAL = weakref.ref(HELD), functools.partial(Holder.scaled, HELD)
BYTES, ORDERED = bytearray(1), {"a": 2.0, "b": 3.0}
OPTIMIZER = optim.SGD([nn.Parameter(mt.ones(2))], lr=2.0)
PARTS, LAYERS, SWAPPED = {"tanh": nn.Tanh(), "twice": Doubling()}, nn.ModuleDict(), Doubling()
INNER = Captured(HELD.scaled)
OUTER_MODULE, INNER_MODULE = types.ModuleType("outer_settings"), types.ModuleType("settings.inner")
OUTER_MODULE.inner = INNER_MODULE  # type: ignore[attr-defined]
OUTER_MODULE.__file__ = __file__


def _by_attribute(x: Any) -> Any:
    return x * _by_attribute.factor  # type: ignore[attr-defined]


def _imports(x: Any) -> Any:
    import outer_settings  # type: ignore[import-not-found]

    return x * outer_settings.factor


def _imports_the_name(x: Any) -> Any:
    from outer_settings import factor

    return x * factor


def _in_order(x: Any) -> Any:
    for value in ORDERED.values():
        x = (x - value) * value
    return x


def _reorder(value: float) -> None:
    first = "ab" if value == 2.0 else "ba"
    values = {"a": 2.0, "b": 3.0}
    ORDERED.clear()
    ORDERED.update({key: values[key] for key in first})


def _reorder_layers(value: float) -> None:
    LAYERS.clear()
    for name in ("tanh", "twice") if value == 2.0 else ("twice", "tanh"):
        LAYERS[name] = PARTS[name]


def _through_layers(x: Any) -> Any:
    for layer in LAYERS.values():
        x = layer(x)
    return x


def _swap_class(value: float) -> None:
    SWAPPED.__class__ = Doubling if value == 2.0 else Tripling


def _patch(value: float) -> None:
    Holder.of_class = staticmethod(lambda: value)  # type: ignore[method-assign]


def _attribute(holder: Any) -> Callable[[float], None]:
    return lambda value: setattr(holder, "factor", value)


READS: dict[str, tuple[Callable[[float], object], Callable[[Any], Any]]] = {
    "namespace": (_attribute(NAMESPACE), lambda x: x * NAMESPACE.factor),
    "parsed arguments": (_attribute(PARSED), lambda x: x * PARSED.factor),
    "class": (_attribute(Classwide), lambda x: x * Classwide.factor),
    "base of a class": (_attribute(Classwide), lambda x: x * Sub.factor),
    "object of a class": (_attribute(Classwide.held), lambda x: x * Classwide.held.factor),
    "method of a class": (_patch, lambda x: x * HELD.of_class()),
    "function": (_attribute(_by_attribute), _by_attribute),
    "module imported in the step": (_attribute(OUTER_MODULE), _imports),
    "name imported in the step": (_attribute(OUTER_MODULE), _imports_the_name),
    "module of a module": (_attribute(INNER_MODULE), lambda x: x * OUTER_MODULE.inner.factor),
    "partial": (_attribute(HELD), lambda x: PARTIAL(x)),
    "weak reference": (_attribute(HELD), lambda x: x * REFERENCE().factor),  # type: ignore[union-attr]
    "proxy": (_attribute(HELD), lambda x: x * PROXY.factor),
    "subclass of dict": (_attribute(KEYED), lambda x: x * KEYED.factor),
    "UserDict": (lambda v: USER_DICT.update(factor=v), lambda x: x * USER_DICT["factor"]),
    "one slot": (_attribute(SLOT), lambda x: x * SLOT.factor),  # type: ignore[attr-defined]
    "private slot": (PRIVATE.factor, lambda x: x * PRIVATE.factor()),
    "thread's own": (_attribute(LOCAL), lambda x: x * LOCAL.factor),
    "read-only mapping": (lambda v: PLAIN.update(factor=v), lambda x: x * MAPPING["factor"]),
    "bytes": (lambda v: BYTES.__setitem__(0, int(v)), lambda x: x * BYTES[0]),
    "order of a dict": (_reorder, _in_order),
    "order of a ModuleDict": (_reorder_layers, _through_layers),
    "class of a module": (_swap_class, lambda x: SWAPPED(x)),
    "parameter": (_attribute(PARAMETER), lambda x: x * PARAMETER.factor),
    "learning rate": (
        lambda v: OPTIMIZER.param_groups[0].update(lr=v),
        lambda x: x * OPTIMIZER.param_groups[0]["lr"],
    ),
    "object of a compiled method": (_attribute(HELD), lambda x: INNER(x) + 1),
}


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "outer_settings", OUTER_MODULE)
    yield
    _patch(2.0)


@pytest.mark.parametrize("name", READS)
def test_what_a_step_reads(name: str) -> None:
    put, f = READS[name]
    put(2.0)
    call, x = Captured(f), mt.randn(3)
    for _ in range(5):
        assert call(x).tolist() == f(x).tolist()
    assert call.counts.replays
    put(3.0)
    for _ in range(4):
        assert call(x).tolist() == f(x).tolist()


LARGE = np.zeros(5000)


def _repeat(call: Any, *args: Any) -> None:
    for _ in range(5):
        call(*args)


def _counts(holder: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        holder.count = getattr(holder, "count", 0) + 1
        return x * 2

    return f


def _grows_a_class(x: Any) -> Any:
    Classwide.seen.append(1)
    return x * 2


def _writes_an_array(x: Any) -> Any:
    LARGE[0] += 1
    return x * 2


WRITES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "namespace": (_counts(NAMESPACE), "the step changes .*count"),
    "class": (_counts(Classwide), "the step changes Classwide.count"),
    "list of a class": (_grows_a_class, "the step changes Classwide.seen"),
    "large NumPy array": (_writes_an_array, "the step changes the global LARGE"),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_a_step_changes(name: str) -> None:
    f, reason = WRITES[name]
    NAMESPACE.count = Classwide.count = 0  # type: ignore[attr-defined]
    call, x = Captured(f), mt.randn(3)
    with pytest.warns(CaptureWarning, match=reason):
        _repeat(call, x)
    assert not call.counts.replays


def _append(x: Any, given: list[Any]) -> Any:
    given.append(x * 2)
    return x * 3


def _replace(x: Any, given: dict[str, Any]) -> Any:
    given["k"] = given["k"] + x
    return x * 3


def _nested(x: Any, given: dict[str, Any]) -> Any:
    given["inner"].append(x)
    return x * 3


GIVEN: dict[str, tuple[Callable[[Any, Any], Any], Callable[[], Any]]] = {
    "list": (_append, list),
    "dict": (_replace, lambda: {"k": mt.ones(3)}),
    "list of a dict": (_nested, lambda: {"inner": [mt.ones(3)]}),
}


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", GIVEN)
def test_changed_arguments(name: str, by_name: bool) -> None:
    f, make = GIVEN[name]
    call, x = Captured(f), mt.ones(3)

    def run() -> None:
        mine, expected = make(), make()
        _ = call(x, given=mine) if by_name else call(x, mine)
        f(x, expected)
        assert str(mine) == str(expected)

    with pytest.warns(CaptureWarning, match="the step changes an argument"):
        _repeat(run)


def test_a_list_from_before_stays_the_same_object() -> None:
    call = Captured(lambda parts: parts)

    def run() -> None:
        parts = [mt.ones(3)]
        assert call(parts) is parts

    with pytest.warns(CaptureWarning, match="the result is a list from before"):
        _repeat(run)


def test_an_iterator_and_globals_break() -> None:
    numbers = iter([1.0] * 10)
    for f, reason in (
        (lambda x: x * next(numbers), "the variable numbers is an iterator"),
        (lambda x: x * len(globals()), r"globals\(\) may hold something else"),
    ):
        call = Captured(f)
        with pytest.warns(CaptureWarning, match=reason):
            _repeat(call, mt.ones(2))


@pytest.mark.parametrize(
    ("f", "first", "second"),
    [
        (lambda x, s: x * s, (mt.ones(2), 0.0), (mt.ones(2), -0.0)),
        (
            lambda x: x * (2 if x.is_contiguous() else 3),
            (mt.ones(2, 3),),
            (mt.ones(3, 2).t(),),
        ),
        (
            lambda x: x * (2 if x.is_leaf else 3),
            (mt.ones(2, requires_grad=True),),
            (mt.ones(2, requires_grad=True) * 1,),
        ),
    ],
    ids=("zero's sign", "contiguous", "leaf"),
)
def test_arguments_that_look_alike(f: Any, first: Any, second: Any) -> None:
    call = Captured(f)
    for args in (first,) * 6 + (second,) * 4:
        assert str(call(*args).tolist()) == str(f(*args).tolist())
    assert call.counts.replays


def test_a_result_made_of_constants_is_the_callers() -> None:
    call = Captured(lambda x: (x * 2, mt.zeros(3).reshape(3, 1)))
    for _ in range(6):
        part = call(mt.ones(2))[1]
        part.add_(1)
        assert part.tolist() == [[1.0]] * 3
    assert call.counts.replays


@pytest.mark.parametrize("several", [False, True])
def test_a_result_that_backward_needs_may_not_change(several: bool) -> None:
    call = Captured(lambda x: (x.exp(), x * 2) if several else (x.exp(),))
    for _ in range(6):
        x = mt.ones(2, requires_grad=True)
        out = call(x)
        with mt.no_grad():
            out[0].mul_(3)
        if several:
            out[1].sum().backward()
            assert x.grad is not None
            assert x.grad.tolist() == [2.0, 2.0]
        with pytest.raises(mt.GraphError, match="mul_ changed it in place"):
            out[0].sum().backward()
    assert call.counts.replays


def test_many_results_leave_other_parameters_without_gradients() -> None:
    weights = [nn.Parameter(mt.ones(2)) for _ in range(10)]
    call = Captured(lambda x: [x * w for w in weights])
    for _ in range(6):
        for w in weights:
            w.grad = None
        call(mt.ones(2))[0].sum().backward()
        assert [w.grad is None for w in weights] == [False] + [True] * 9
    assert call.counts.replays


def test_more_results_break() -> None:
    weights = [nn.Parameter(mt.ones(2)) for _ in range(33)]
    call = Captured(lambda x: [x * w for w in weights])
    with pytest.warns(CaptureWarning, match="more than 32 results with gradients"):
        _repeat(call, mt.ones(2))


def test_an_error_that_the_step_catches_breaks() -> None:
    layer = nn.Embedding(4, 3)

    def f(rows: Any) -> Any:
        try:
            return layer(rows)
        except IndexError:
            return mt.zeros(2, 3)

    call, bad, good = Captured(f), mt.tensor([1, 9]), mt.tensor([1, 2])

    def run() -> None:
        for rows in (bad, bad, bad, good, good):
            assert call(rows).tolist() == f(rows).tolist()

    with pytest.warns(CaptureWarning, match="raised an error"):
        run()


def test_threads_record_one_at_a_time() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    calls = [Captured(net.forward) for _ in range(4)]
    inputs = [mt.full((2, 3), float(i)) for i in range(4)]
    expected = [net.forward(x).tolist() for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(12):
            if calls[i](inputs[i]).tolist() != expected[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_warning_for_ordinary_steps() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call = Captured(lambda x, parts: [x * p for p in parts])
        for _ in range(5):
            call(mt.ones(2), [1.0, 2.0])
    assert call.counts.replays
