"""What begins with an underscore belongs to its own file, above all in a `Trainer`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("minitorch", "trainer", "callbacks", "loggers")
TRAINERS = ("trainer", "_trainer")
# Elsewhere some private names are those that PyTorch's programs import.
FOLDERS = ("minitorch/kernels", "minitorch/capture")

# "path:name": reason. Empty is the goal.
ALLOWED: dict[str, str] = {}


def private_reads(path: Path) -> Iterator[str]:
    """The names `_x` of every `trainer._x`, `self.trainer._x` and `self._trainer._x` in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        owner = node.value
        name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
        if name in TRAINERS and not node.attr.startswith("__"):
            yield node.attr


def test_private_names_of_a_trainer_stay_in_its_file() -> None:
    files = [path for folder in CODE for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for path in files
        if path != ROOT / "trainer" / "trainer.py"
        for name in private_reads(path)
    }
    assert found == ALLOWED.keys(), "give it a public name, described in Status or View"


def private_imports(path: Path) -> Iterator[str]:
    """The names `_x` that a file takes from others."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name.startswith("_"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_takes_private_names_of_another(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    found = {path.name: list(private_imports(path)) for path in files}
    assert not {name: names for name, names in found.items() if names}, "give it a public name"


def test_private_imports_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from .b import _c, d\nfrom .e import f")
    assert list(private_imports(tmp_path / "a.py")) == ["_c"]


def test_private_reads_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("trainer._a\nself._trainer._b = 1\nrun.trainer._c\ntrainer.d")
    assert set(private_reads(tmp_path / "a.py")) == {"_a", "_b", "_c"}
