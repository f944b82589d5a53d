"""Sizes, docstrings and project files: what the house demands of the whole tree."""

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import minitorch

ROOT = Path(__file__).parents[2]
CODE = ("minitorch", "trainer", "callbacks", "loggers")
PLACES = (*CODE, "tests", "examples", "benchmarks", "scripts")
FILES = sorted(path.relative_to(ROOT) for place in PLACES for path in (ROOT / place).rglob("*.py"))
TEXTS = [*FILES, *(Path(n) for n in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"))]
MAX_FILE_LINES = 499
MAX_FUNCTION_LINES = 60
MAX_EXAMPLE_LINES = 120

# "path:function": reason. Empty is the goal.
LONG_FUNCTIONS: dict[str, str] = {}

PUBLIC = (
    *("minitorch", "minitorch.nn", "minitorch.nn.functional", "minitorch.nn.init"),
    *("minitorch.nn.utils", "minitorch.optim", "minitorch.optim.lr_scheduler"),
    *("minitorch.autograd", "minitorch.data", "minitorch.amp", "minitorch.io"),
    *("minitorch.backend", "minitorch.errors", "minitorch.random", "minitorch.metrics"),
    *("minitorch.trainer", "minitorch.callbacks", "minitorch.loggers"),
)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_files_are_short(path: Path) -> None:
    lines = len((ROOT / path).read_text().splitlines())
    assert lines <= MAX_FILE_LINES, f"{path} has {lines} lines: one algorithm a file"


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[0] == "examples"], ids=str)
def test_examples_fit_two_screens(path: Path) -> None:
    assert len((ROOT / path).read_text().splitlines()) <= MAX_EXAMPLE_LINES


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function's name and its lines, from `def` to the end, less its docstring."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                assert node.body[0].end_lineno is not None
                lines -= node.body[0].end_lineno - node.body[0].lineno + 1
            yield node.name, lines


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[0] in CODE], ids=str)
def test_functions_are_short(path: Path) -> None:
    for name, lines in functions(path):
        if f"{path}:{name}" not in LONG_FUNCTIONS:
            assert lines <= MAX_FUNCTION_LINES, f"{path}:{name} has {lines} lines"


def test_exemptions_are_still_needed() -> None:
    for place in LONG_FUNCTIONS:
        path, name = place.split(":")
        assert dict(functions(Path(path)))[name] > MAX_FUNCTION_LINES, f"{place} is short now"


def public_objects(module_name: str) -> Iterator[tuple[str, object]]:
    """Public classes and functions of a module that are defined in minitorch."""
    module = importlib.import_module(module_name)
    for name in getattr(module, "__all__", dir(module)):
        value = getattr(module, name)
        ours = (getattr(value, "__module__", "") or "").startswith("minitorch")
        if not name.startswith("_") and ours and (inspect.isclass(value) or callable(value)):
            yield f"{module_name}.{name}", value


@pytest.mark.parametrize("module_name", PUBLIC)
def test_public_names_have_a_docstring(module_name: str) -> None:
    bare = [
        name
        for name, value in public_objects(module_name)
        if not (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__)
    ]
    assert not bare, f"without a docstring: {', '.join(bare)}"


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_no_path_of_a_certain_machine(path: Path) -> None:
    found = re.findall(r"/(?:work|root|home/\w+)/\S*", (ROOT / path).read_text())
    assert not found, f"{path} names {found}"


def test_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert minitorch.__version__ == project["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    latest = re.search(r"^## \[?([\w.]+)", changelog, re.MULTILINE)
    assert latest, "CHANGELOG.md has no '## VERSION' heading"
    assert latest[1] in ("Unreleased", project["version"])


def test_each_dependency_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    dependencies = text[text.index("dependencies = [") : text.index("[project.optional-")]
    for line in dependencies.splitlines():
        if line.strip().startswith('"'):
            assert "#" in line, f"pyproject.toml: why does the package need {line.strip()}"


@pytest.mark.parametrize("folder", CODE)
def test_each_folder_with_code_is_a_package(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert (path.parent / "__init__.py").exists(), f"{path.parent} would miss in the wheel"
