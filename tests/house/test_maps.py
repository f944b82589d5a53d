"""Every folder with a README is on a map: its modules and its packages each have a line there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("minitorch", "trainer", "callbacks", "loggers")
MAPPED = sorted(path.parent for folder in CODE for path in (ROOT / folder).rglob("README.md"))


def places(folder: Path) -> set[str]:
    """The modules of a folder and the packages in it, as a map names them; siblings are apart."""
    modules = {path.name for path in folder.glob("*.py") if not path.name.startswith("__")}
    packages = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    return modules | packages


def named(text: str) -> set[str]:
    """What stands in back quotes or in an indented plan, and looks like a module or a folder."""
    return set(re.findall(r"(?<![\w/.])(?:\w+/|\w+\.py)(?!\w)", text))


def test_the_four_folders_have_a_map() -> None:
    assert {ROOT / folder for folder in CODE} <= set(MAPPED)


@pytest.mark.parametrize("folder", MAPPED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_module_is_on_the_map(folder: Path) -> None:
    lost = places(folder) - named((folder / "README.md").read_text())
    assert not lost, "a stranger would not find these: say in README.md what they hold"


@pytest.mark.parametrize("folder", MAPPED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_map_names_no_module_that_is_gone(folder: Path) -> None:
    known = {path.name for part in CODE for path in (ROOT / part).rglob("*.py")}
    known |= {path.name for part in ("tests", "scripts") for path in (ROOT / part).rglob("*.py")}
    modules = {name for name in named((folder / "README.md").read_text()) if name.endswith(".py")}
    assert modules <= known
