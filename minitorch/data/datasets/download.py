"""Downloads that are checked before they take a file's place."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ...errors import DataError
from ...io.fetch import fetch


def has_sha256(path: Path, sha256: str) -> bool:
    """Whether a file is there and has this hash."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def download(urls: Sequence[str], path: Path, sha256: str) -> None:
    """Get a file from the first of several places that has it.

    The data goes to a temporary file in the same folder, which takes the name `path` only when its
    hash is right: a stopped or damaged download leaves nothing behind.

    Args:
        urls: places of the same file, in the order in which they are tried.
        path: where it goes.
        sha256: hash that it must have.

    Raises:
        DataError: no place gave the right file; the text has the reason of each.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for url in urls:
        try:
            fetch(url, path, sha256)
            return
        except (OSError, ValueError) as error:  # URLError and socket errors are OSErrors
            reasons.append(f"{url}: {error}")
    raise DataError(
        f"download: {path.name} could not be had from any of {len(urls)} places. "
        f"{'; '.join(reasons)}. Check the network, or put the file into {path.parent}."
    )
