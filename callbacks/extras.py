"""Optional packages: imported late, and named with their extra where they are missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needed(owner: str, package: str, extra: str | None = None) -> Iterator[None]:
    """Around imports of an optional package.

    Args:
        owner: Who needs it, in the message.
        package: Its import name.
        extra: The extra of this project that installs it; default the package's name.

    Raises:
        ModuleNotFoundError: It is not installed; says how to get it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"{owner} needs {package}, which is not installed. "
            f'Run: pip install "minitorch-trainer[{extra or package}]".',
            name=error.name,
        ) from error
