"""Each bad program of the catalogue gets its verdict, and each good twin stays silent."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import document
import pytest
from harness import CASES, CATALOGUE, Case

from minitorch.errors import PitfallWarning

for _file in sorted(Path(__file__).parent.glob("programs_*.py")):
    importlib.import_module(_file.stem)


def _name(case: Case) -> str:
    return f"{case.id}:{case.variant}"


def _params() -> list[Any]:
    params = []
    for case in CASES:
        reason = CATALOGUE[case.id].get("open")
        bad = case.verdict != "SILENT"
        marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason and bad else []
        params.append(pytest.param(case, id=_name(case), marks=marks))
    return params


def _run(case: Case, request: pytest.FixtureRequest) -> None:
    wanted = inspect.signature(case.run).parameters
    case.run(**{name: request.getfixturevalue(name) for name in wanted})


@pytest.mark.parametrize("case", _params())
def test_program(
    case: Case, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if case.verdict == "ERROR":
        with pytest.raises(Exception, match=case.message):
            _run(case, request)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _run(case, request)
    texts = [str(w.message) for w in caught if issubclass(w.category, PitfallWarning)]
    others = [w for w in caught if not issubclass(w.category, PitfallWarning)]
    assert not others, [str(w.message) for w in others]
    if case.verdict == "WARN":
        assert len(texts) == 1, texts
        assert re.search(case.message, texts[0], re.DOTALL), texts[0]
    elif case.verdict == "SILENT":
        assert not texts


@pytest.mark.parametrize(
    "pitfall",
    [
        pytest.param(n, marks=pytest.mark.xfail(strict=True, reason=row["open"]))
        if row.get("open")
        else n
        for n, row in CATALOGUE.items()
    ],
)
def test_row(pitfall: str) -> None:
    """Every pitfall that is not open has a bad program with the wanted verdict, and a twin."""
    row = CATALOGUE[pitfall]
    assert not row.get("open"), row["open"]
    verdicts = {case.verdict for case in CASES if case.id == pitfall}
    assert "SILENT" in verdicts, "a good twin is missing"
    assert row["wanted"] in verdicts, "a program with the wanted verdict is missing"


def test_the_catalogue_is_complete() -> None:
    assert len(CATALOGUE) == 90
    assert all(row["wanted"] in ("IMPOSSIBLE", "ERROR", "WARN") for row in CATALOGUE.values())


def test_the_page_is_up_to_date() -> None:
    assert document.PAGE.read_text() == document.text(), "run python tests/pitfalls/document.py"
