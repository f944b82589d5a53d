"""The score of the pitfalls, printed after their tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

_failed: set[str] = set()
_seen: set[str] = set()


def pytest_runtest_logreport(report: Any) -> None:
    """Notes which pitfalls have a test that does not pass."""
    if "/pitfalls/test_pitfalls.py" not in report.nodeid or "[" not in report.nodeid:
        return
    pitfall = report.nodeid.split("[")[1].split(":")[0].rstrip("]")
    _seen.add(pitfall)
    if report.outcome != "passed" or hasattr(report, "wasxfail"):
        _failed.add(pitfall)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for the score and one for each open pitfall."""
    from harness import CATALOGUE

    if not _seen >= CATALOGUE.keys():
        return
    write = terminalreporter.write_line
    held = [name for name in CATALOGUE if name not in _failed]
    write(f"pitfalls: {len(held)} of {len(CATALOGUE)} hold")
    for name in CATALOGUE:
        if name in _failed:
            write(f"  open: {name}: {CATALOGUE[name].get('open', 'its tests fail')}")
