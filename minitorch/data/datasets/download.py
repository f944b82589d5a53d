"""Downloads that are checked before they take a file's place."""

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from ...errors import DataError

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 60.0


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
            _download_one(url, path, sha256)
            return
        except (OSError, ValueError) as error:  # URLError and socket errors are OSErrors
            reasons.append(f"{url}: {error}")
    raise DataError(
        f"download: {path.name} could not be had from any of {len(urls)} places. "
        f"{'; '.join(reasons)}. Check the network, or put the file into {path.parent}."
    )


def _download_one(url: str, path: Path, sha256: str) -> None:
    import tempfile
    from urllib.request import Request, urlopen

    digest = hashlib.sha256()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            request = Request(url, headers={"User-Agent": "minitorch"})
            with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
                while chunk := response.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != sha256:
            raise ValueError(f"SHA-256 is {digest.hexdigest()}, expected {sha256}")
        os.chmod(temporary, 0o644)  # mkstemp makes files for the owner only
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
