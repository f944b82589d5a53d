"""Work that profile functions do not see: it belongs to no step."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """This thread's profile function, if it is written in Python, is not called meanwhile.

    Importing and running a compiler makes millions of calls, each of which it would be told.
    """
    before = sys.getprofile()
    if not callable(before):  # none, or a profiler written in C, which is quick
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(before)
