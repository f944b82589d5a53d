"""Writes docs/pitfalls.md from the catalogue: `python tests/pitfalls/document.py`."""

from __future__ import annotations

import tomllib
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "pitfalls.md"
CATALOGUE = Path(__file__).parent / "catalogue.toml"

HEAD = """# Ninety training pitfalls, and what happens here

Written by `tests/pitfalls/document.py` from `tests/pitfalls/catalogue.toml`; `make pitfalls`
runs a bad program and a good twin for each and prints the score. IMPOSSIBLE: the bad program trains
to the right numbers. ERROR and WARN: a message with the fix. "Open" rows do not hold yet.

`Trainer(checks=...)`: "on" is the default, "strict" makes errors of the
warnings, "warn" makes warnings of the errors, "off" looks at nothing. What a check objects to can
be meant; then say so at the place, as the last column shows. `intended` is a context manager
(`with mt.intended("double-softmax"):`) and a decorator of the methods of a task, with patterns for
names where that makes sense.
"""


def text() -> str:
    """The page."""
    rows = tomllib.loads(CATALOGUE.read_text())
    held = sum(not row.get("open") for row in rows.values())
    lines = [HEAD, f"{held} of {len(rows)} hold.", ""]
    lines += ["| # | pitfall | PyTorch and Lightning | here | verdict | if it is meant |"]
    lines += ["|---|---|---|---|---|---|"]
    for number, (name, row) in enumerate(rows.items(), 1):
        verdict = f"open: {row['open']}" if row.get("open") else row["wanted"]
        cells = [str(number), f"`{name}`: {row['title']}", row["elsewhere"], row["here"]]
        lines.append("| " + " | ".join([*cells, verdict, row.get("meant", "")]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
