"""The README tells the truth: its example runs, its commands and links exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert "max_epochs=50" in example
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(example.replace("max_epochs=50", "max_epochs=2"), "README.md", "exec"), names)
    assert list(tmp_path.rglob("events.out.tfevents*"))


def test_the_commands_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = README + (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


def test_the_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
