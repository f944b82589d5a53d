"""One file from the network, checked before it takes its place."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 60.0


def fetch(
    url: str,
    path: Path,
    sha256: str | None = None,
    report: Callable[[int, int | None], object] | None = None,
) -> None:
    """Get a file; a stopped or damaged download leaves nothing behind.

    Args:
        url: where it is.
        path: where it goes.
        sha256: hex digits with which its SHA-256 must begin; None for no check.
        report: called with the bytes of each piece, and those of the whole where they are known;
            None for no report.

    Raises:
        OSError: the network or the file system refused.
        ValueError: the URL is none, or the file is another one.
    """
    import tempfile
    from urllib.request import Request, urlopen

    digest = hashlib.sha256()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            request = Request(url, headers={"User-Agent": "minitorch"})
            with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
                length = response.headers.get("Content-Length")
                total = int(length) if length and length.isdigit() else None
                read = 0
                while chunk := response.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
                    read += len(chunk)
                    if report is not None:
                        report(len(chunk), total)
            if total is not None and read != total:
                raise ValueError(f"it has {read} bytes, {total} were promised")
            file.flush()
            os.fsync(file.fileno())
        if sha256 is not None and not digest.hexdigest().startswith(sha256):
            raise ValueError(f"SHA-256 is {digest.hexdigest()}, expected {sha256}")
        os.chmod(temporary, 0o644)  # mkstemp makes files for the owner only
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
