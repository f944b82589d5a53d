"""Grad mode and autocast belong to the running call: decorators, generators, threads, devices."""

from __future__ import annotations

import threading

import pytest

import minitorch as mt
from minitorch.nn import functional as F


def test_a_decorated_generator_gets_what_its_caller_throws() -> None:
    seen: list[object] = []

    @mt.no_grad()
    def numbers():  # type: ignore[no-untyped-def]
        try:
            yield 1
        except KeyError:
            seen.append(mt.is_grad_enabled())
        try:
            yield 2
        finally:
            seen.append(mt.is_grad_enabled())

    generator = numbers()
    assert next(generator) == 1
    assert generator.throw(KeyError()) == 2
    generator.close()
    assert seen == [False, False]
    assert mt.is_grad_enabled()


def test_what_a_decorated_generator_does_not_catch_comes_out() -> None:
    @mt.no_grad()
    def numbers():  # type: ignore[no-untyped-def]
        got = yield 1
        yield got

    generator = numbers()
    next(generator)
    assert generator.send(7) == 7
    with pytest.raises(KeyError):
        generator.throw(KeyError())
    assert mt.is_grad_enabled()


def test_autocast_of_another_device_leaves_the_cpu_alone() -> None:
    x, layer, image = mt.ones(2, 3), mt.nn.Linear(3, 2), mt.ones(1, 1, 3, 3)
    with mt.autocast("cuda"):
        assert layer(x).dtype is mt.float32
        assert F.conv2d(image, image).dtype is mt.float32
        assert (x @ x.T).dtype is mt.float32
        assert mt.amp.is_autocast_enabled("cuda")
        assert not mt.amp.is_autocast_enabled("cpu")
    with mt.autocast("cpu"):
        assert layer(x).dtype is mt.bfloat16
        assert F.conv2d(image, image).dtype is mt.bfloat16


def test_a_decorated_function_may_run_in_several_threads() -> None:
    inside, leave = threading.Event(), threading.Event()

    @mt.autocast("cpu")
    def work(wait: bool) -> None:
        if wait:
            inside.set()
            leave.wait(60)

    left: list[bool] = []

    def slow() -> None:
        with mt.autocast("cpu"):
            work(True)
            left.append(mt.amp.is_autocast_enabled())

    thread = threading.Thread(target=slow)
    thread.start()
    inside.wait(60)
    outer = mt.autocast("cpu")
    with outer:
        leave.set()
        thread.join()
        work(False)
        assert mt.amp.is_autocast_enabled()
    assert left == [True]
    assert not mt.amp.is_autocast_enabled()
