"""A small disk that both this machine and an engine in a container see at the same place.

Mounts that are made after a container was started are not seen in it. So the mount is cloned, and
attached in the container's mount namespace as well.
"""

import ctypes
import os
import sys
from pathlib import Path

_OPEN_TREE = 428
_MOVE_MOUNT = 429
_CLONE = 1
_CLOEXEC = os.O_CLOEXEC
_EMPTY_SOURCE = 4
_HERE = -100
_NEW_NAMESPACE = 0x00020000


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def attach(path: Path, pid: int) -> None:
    """Attach the mount at a path at the same path of the mount namespace of a process.

    The caller, who must have one thread only, is in that namespace afterwards.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    where = str(path).encode()
    tree = _checked(libc.syscall(_OPEN_TREE, _HERE, where, _CLONE | _CLOEXEC))
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    _checked(libc.setns(namespace, _NEW_NAMESPACE))
    _checked(libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, where, _EMPTY_SOURCE))


if __name__ == "__main__":
    attach(Path(sys.argv[1]), int(sys.argv[2]))
