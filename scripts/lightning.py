"""Writes docs/lightning.md, what Lightning's names are here: `python scripts/lightning.py`.

The names stand in scripts/lightning_names.toml, with a note where the meaning is another or where a
name is missing. A name without a note means the same here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "lightning.md"
NAMES = ROOT / "scripts" / "lightning_names.toml"

HEAD = """# Lightning's names, and what they are here

Written by `scripts/lightning.py` from `scripts/lightning_names.toml`; tests compare both with the
code, and with Lightning where it is installed. `import minitorch.trainer as pl` and
`pl.LightningModule`, `pl.Trainer`, `pl.callbacks` … work in programs written for it, and a variable
such as PL_TRAINER_MAX_EPOCHS stands for an argument of the Trainer that is not passed.
"""

TITLES = {
    "argument": "Arguments of Trainer",
    "trainer": "Methods and properties of Trainer",
    "module": "LightningModule, here TaskModule",
    "datamodule": "LightningDataModule, here DataModule",
    "callback": "Callback",
    "package": "The package, here minitorch.trainer",
    "callbacks": "Callbacks, in minitorch.callbacks",
    "loggers": "Loggers, in minitorch.loggers",
    "profilers": "Profilers, in minitorch.trainer",
    "cli": "The command line, in minitorch.trainer.cli",
    "cli_argument": "Arguments of LightningCLI",
}
PACKAGES = {
    "package": "minitorch.trainer",
    "callbacks": "minitorch.callbacks",
    "loggers": "minitorch.loggers",
    "profilers": "minitorch.trainer",
    "cli": "minitorch.trainer.cli",
}
"""Where the names of a package of Lightning are looked for; an `import` there gives the rest."""


def ours(kind: str) -> set[str]:
    """The names of one kind that exist here."""
    from minitorch.callbacks import Callback
    from minitorch.trainer import DataModule, TaskModule, Trainer

    if kind == "argument":
        return set(inspect.signature(Trainer).parameters) - {"unknown"}
    if kind == "cli_argument":
        from minitorch.trainer.cli import TrainerCLI

        return set(inspect.signature(TrainerCLI).parameters)
    trainer = Trainer(enable_progress_bar=False) if kind == "trainer" else None
    homes: dict[str, Any] = {
        "trainer": trainer,
        "module": TaskModule,
        "datamodule": DataModule,
        "callback": Callback,
    }
    return set(dir(homes[kind]))


def held(package: str, names: list[str]) -> set[str]:
    """Those of the names that a package has, its modules too."""
    module = importlib.import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", ()))}
    return {name for name in names if name in modules or hasattr(module, name)}


def table() -> dict[str, dict[str, tuple[bool, str]]]:
    """For each kind and name: whether it exists here, and the note."""
    read = tomllib.loads(NAMES.read_text())
    found: dict[str, dict[str, tuple[bool, str]]] = {}
    for kind, rows in read.items():
        names, notes = rows["names"].split(), rows["notes"]
        here = held(PACKAGES[kind], names) if kind in PACKAGES else ours(kind)
        found[kind] = {name: (name in here, notes.get(name, "")) for name in names}
    return found


def text() -> str:
    """The page."""
    lines = [HEAD]
    for kind, rows in table().items():
        same = [f"`{name}`" for name, (here, note) in rows.items() if here and not note]
        lines += [f"## {TITLES[kind]}", "", f"The same: {', '.join(same)}.", ""]
        lines += ["| name | here |", "|---|---|"]
        for name, (here, note) in rows.items():
            if note:
                lines.append(f"| `{name}` | {note if here else f'missing: {note}'} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(text())
