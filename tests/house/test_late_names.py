"""Names that load on first use: each exists, and costs nothing before it is used."""

import importlib
import subprocess
import sys

import pytest

import minitorch as mt
from minitorch.lazy import lazy
from minitorch.ops import late

PACKAGES = [
    "minitorch",
    "minitorch.nn",
    "minitorch.nn.functional",
    "minitorch.optim",
    "minitorch.optim.lr_scheduler",
    "minitorch.distributions",
    "minitorch.metrics",
]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_loads(package: str) -> None:
    module = importlib.import_module(package)
    lost = [name for name in dir(module) if getattr(module, name, None) is None]
    assert set(lost) <= {"__getattr__", "__path__", "__spec__", "__file__"}


def test_every_late_method_loads() -> None:
    x = mt.tensor([1.0])
    assert all(callable(getattr(x, name)) for name in late.METHOD_HOLDER)
    assert set(late.METHOD_HOLDER) <= set(dir(x))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_that_of_its_holder(package: str) -> None:
    """Importing the holder would put the module in the name's place."""
    holders = vars(importlib.import_module(package))["_HOLDERS"]
    inside = {holder: names.split() for holder, names in holders.items() if "." not in holder}
    assert not [holder for holder, names in inside.items() if holder in names]


def test_nothing_late_is_loaded_by_the_import() -> None:
    code = "import minitorch, minitorch.trainer, sys; print(*sys.modules, sep='\\n')"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    late_files = {f"minitorch.ops.{file}" for file in (*late.FUNCTIONS, *late.METHODS)}
    assert not late_files & loaded


def test_an_unknown_name_says_whose_it_is() -> None:
    load, _ = lazy("minitorch", {"io": "save"})
    with pytest.raises(AttributeError, match="module 'minitorch' has no attribute 'nope'"):
        load("nope")
    with pytest.raises(AttributeError, match=r"no attribute 'savve'\. Did you mean 'save'\?"):
        load("savve")
    with pytest.raises(AttributeError, match=r"'cross_entropi'\. Did you mean 'cross_entropy'\?"):
        _ = mt.nn.functional.cross_entropi
    with pytest.raises(AttributeError, match="has no attribute '_savve'$"):
        load("_savve")
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nope'"):
        _ = mt.tensor([1.0]).nope
