"""Models from the network, which are not fetched here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

_folder: list[Path] = []


def get_dir() -> str:
    """The folder for files of models: `$TORCH_HOME/hub`, or in the user's cache."""
    if _folder:
        return str(_folder[0])
    home = os.environ.get("TORCH_HOME", str(Path("~/.cache/minitorch").expanduser()))
    return str(Path(home) / "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder that `get_dir` names."""
    _folder[:] = [Path(d)]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"hub.{name}: nothing is downloaded here, and no code from elsewhere is run. Fetch the "
        "file yourself and read it with minitorch.load(path)."
    )


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: it would run code from the network."""
    _refuse("load")


def load_state_dict_from_url(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: nothing is downloaded."""
    _refuse("load_state_dict_from_url")


def download_url_to_file(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: nothing is downloaded."""
    _refuse("download_url_to_file")
