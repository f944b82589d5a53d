"""Every exported name says what it is, and every argument of it what it means."""

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("minitorch", "trainer", "callbacks", "loggers")
INNER = ("minitorch.ops", "minitorch.kernels")  # bodies of operations, which users do not call
# They mean the same wherever they stand: the one array that a function is about, what PyTorch
# takes everywhere, and its old or unused arguments.
KNOWN = {
    *"input x value A a tensor inputs data_source iterable function fn model".split(),
    *"device dtype requires_grad generator inplace training".split(),
    *"reduction size_average reduce _stacklevel cache_size".split(),
}
# Where a name in a docstring is looked up, beside its own module.
PLACES = [
    f"minitorch{name}"
    for name in ("", ".nn", ".nn.functional", ".linalg", ".fft", ".trainer", ".callbacks")
]


def modules() -> list[str]:
    """Modules of the four folders that say what is public, by `__all__`."""
    found = []
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        if re.search(r"^__all__ =", path.read_text(), re.MULTILINE):
            parts = path.relative_to(ROOT).parts
            parts = parts if parts[0] == "minitorch" else ("minitorch", *parts)
            found.append(".".join(parts).removesuffix(".py").removesuffix(".__init__"))
    return found


def exported(module_name: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of `__all__`, also those that load on first use."""
    module = importlib.import_module(module_name)
    for name in module.__all__:
        value = getattr(module, name)
        ours = (getattr(value, "__module__", None) or "").startswith("minitorch")
        if callable(value) and ours and not name.startswith("_"):
            yield name, value


def text_of(value: Any) -> str:
    """The docstring of a function; of a class also those of its constructor and its bases."""
    if not inspect.isclass(value):
        return value.__doc__ or ""
    texts = []
    for kind in value.__mro__:
        if kind.__module__.startswith("minitorch"):
            made = vars(kind).get("__init__")
            texts += [vars(kind).get("__doc__") or "", getattr(made, "__doc__", None) or ""]
    return "\n".join(texts)


def arguments(value: Any) -> list[str]:
    """Names of the arguments that a user passes."""
    if inspect.isclass(value) and issubclass(value, Enum):
        return []
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # written in C
        return []
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.kind not in stars and p.name != "self"]


def pointed_at(text: str, module: Any) -> list[Any]:
    """The exported names that a docstring points to, as `name` or as a class."""
    names = re.findall(r"`(?:[\w.]+\.)?(\w+)[`(]|\b([A-Z]\w*[a-z]\w*)", text)
    found = []
    for name in {one or other for one, other in names}:
        values = [
            getattr(place, name, None) for place in (module, *map(importlib.import_module, PLACES))
        ]
        found += [value for value in values if callable(value) and text_of(value)][:1]
    return found


def explained(value: Any, module: Any) -> set[str]:
    """The words of its docstring, and of what that points to, three steps far."""
    seen, now = {id(value)}, [value]
    words: set[str] = set()
    for _ in range(4):
        texts = [text_of(one) for one in now]
        words |= {word for text in texts for word in re.findall(r"\w+", text)}
        now = [one for text in texts for one in pointed_at(text, module) if id(one) not in seen]
        seen |= {id(one) for one in now}
    return words


@pytest.mark.parametrize("module_name", modules())
def test_exported_names_have_a_docstring(module_name: str) -> None:
    bare = []
    for name, value in exported(module_name):
        own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        if not own:
            bare.append(name)
    assert not bare


@pytest.mark.parametrize("module_name", [n for n in modules() if not n.startswith(INNER)])
def test_docstrings_name_every_argument(module_name: str) -> None:
    module, lost = importlib.import_module(module_name), {}
    for name, value in exported(module_name):
        wanted = [argument for argument in arguments(value) if argument not in KNOWN]
        missing = set(wanted) - explained(value, module) if wanted else set()
        if missing:
            lost[name] = missing
    assert not lost, "say what they mean, or name the function in `back quotes` that does"
