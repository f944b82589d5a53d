"""Clients of services: imported at the first use, and named with their extra where missing."""

from importlib import import_module
from typing import Any


def client(owner: str, name: str, extra: str | None = None) -> Any:
    """The module of a client.

    Args:
        owner: the logger, for the message.
        name: the module.
        extra: the extra that installs it; default its top-level name.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    package = name.split(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"{owner} needs {package}, which is not installed. "
            f'Run: pip install "minitorch-trainer[{extra or package}]" (or use CSVLogger).',
            name=error.name,
        ) from error
