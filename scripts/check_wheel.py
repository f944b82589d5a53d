"""Fails unless a wheel holds the import package minitorch, whole and alone."""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "minitorch": "minitorch",
    "trainer": "minitorch/trainer",
    "callbacks": "minitorch/callbacks",
    "loggers": "minitorch/loggers",
}


def main(wheel: str) -> int:
    """Compares the wheel's files with the source folders; prints what differs."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {"minitorch/py.typed"}
    for folder, package in FOLDERS.items():
        sources = (ROOT / folder).rglob("*.py")
        expected |= {f"{package}/{path.relative_to(ROOT / folder).as_posix()}" for path in sources}
    for name in sorted(packed - expected):
        print(f"{wheel} holds {name}, which no code folder has")
    for name in sorted(expected - packed):
        print(f"{wheel} lacks {name}: does its folder have an __init__.py?")
    return packed != expected


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
