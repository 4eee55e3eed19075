"""One controller for a state root: a lock that dies with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.api.reasons import Reason
from controller.workspace.instances import StorageFault, storage_fault

_LENGTH = 512


@contextmanager
def lock(state_root: Path, identity: str, predecessor: str) -> Iterator[None]:
    """Hold the state root. Raises StorageFault where another process does, or it is not there.

    The lock says who holds it. A holder from which the host's Lease was taken over, and which is
    only frozen, keeps no successor out: it finds its Lease lapsed before it acts again. Any other
    holder does, for it is served by another API server.
    """
    path = state_root / ".lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise storage_fault(error, path) from error
    try:
        _take(descriptor, state_root, predecessor)
        os.pwrite(descriptor, identity.encode().ljust(_LENGTH), 0)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, state_root: Path, predecessor: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, _LENGTH, 0).decode(errors="replace").strip()
        if holder and holder == predecessor:
            return
        raise StorageFault(
            Reason.STATE_ROOT_IN_USE,
            f"{state_root} is held by another controller on this host ({holder or 'unknown'}); "
            "it is waited for.",
        ) from error
