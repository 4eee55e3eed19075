"""One controller for a state root: a lock that dies with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.api.reasons import Reason
from controller.workspace.instances import StorageFault


@contextmanager
def lock(state_root: Path) -> Iterator[None]:
    """Hold the state root. Raises StorageFault where another process does, or it is not there."""
    path = state_root / ".lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageFault(
            Reason.STATE_ROOT_NOT_WRITABLE, f"{path} can not be opened ({error.strerror})."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StorageFault(
            Reason.STATE_ROOT_IN_USE,
            f"{state_root} is held by another controller on this host; it is waited for.",
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)
