"""Directories opened so that no link leads out of a place that a session could write (law 14)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def directory(path: Path) -> Iterator[int]:
    """Open a directory by its absolute path, no part of which is a link.

    Raises OSError where a part is missing, a link or no directory.
    """
    descriptor = os.open("/", _FLAGS)
    try:
        for part in path.parts[1:]:
            inner = os.open(part, _FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)
