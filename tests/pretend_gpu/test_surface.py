"""The tables name functions that NumPy can compute, and CuPy has."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import pretend_gpu as gpu
from pretend_gpu import surface

NAMES = [*gpu.surface.FUNCTIONS, *surface.UFUNCS, *surface.FROM_NUMPY, *surface.VARIADIC]


def test_every_name_is_served() -> None:
    assert not [name for name in NAMES if not hasattr(gpu, name)]
    assert not [name for name in surface.LEFT_OUT if hasattr(gpu, name)]
    assert not [name for name in surface.METHODS if not hasattr(gpu.ndarray, name)]


def test_tables_do_not_overlap() -> None:
    names = [*NAMES, *surface.LEFT_OUT]
    assert len(names) == len(set(names))


def test_constants_are_numpys() -> None:
    assert gpu.float32 is np.float32
    assert gpu.newaxis is None


def test_lines_are_read() -> None:
    (one,) = surface.parse("! name *a &b c / d e").values()
    assert (one.positional, one.options) == (("a", "b", "c"), ("d", "e"))
    assert (one.arrays, one.sequences) == ({"a"}, {"b"})
    assert one.waits
    assert not one.views
    assert not one.on_host


def test_the_tables_match_cupy() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed here")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not [name for name in [*NAMES, *surface.LEFT_OUT] if not hasattr(cupy, name)]
        for name, signature in surface.FUNCTIONS.items():
            try:
                known = inspect.signature(getattr(cupy, name)).parameters
            except ValueError:
                continue
            if not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in known.values()):
                assert {*signature.positional, *signature.options} <= set(known), name
