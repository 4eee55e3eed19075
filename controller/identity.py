"""Who a process is, such that another one on the same machine can prove that it ended.

A process ID alone proves nothing: it is used again, and means another process in another PID
namespace or after a boot (requirement D2). With boot, namespace and start time it does. Whatever
can not be proven counts as alive.
"""

import os
import re
import socket
import uuid
from pathlib import Path
from typing import Final

_IDENTITY: Final = re.compile(
    r"(?P<host>.+)_(?P<boot>[0-9a-f]{32})_(?P<space>[0-9]+)_(?P<pid>[0-9]+)_(?P<start>[0-9]+)"
    r"_(?P<nonce>[0-9a-f]{8})"
)


def own_identity() -> str:
    """Return an identity of this process that no other ever has."""
    pid = os.getpid()
    parts = (_boot(), _pid_space(), str(pid), str(_start_time(pid)), uuid.uuid4().hex[:8])
    return "_".join((socket.gethostname(), *parts))


def provably_ended(identity: str) -> bool:
    """Whether the process of an identity ran here, since this boot, and is no more."""
    match = _IDENTITY.fullmatch(identity)
    if match is None or (match["boot"], match["space"]) != (_boot(), _pid_space()):
        return False
    pid = int(match["pid"])
    started = _start_time(pid)
    if started is not None:
        return started != int(match["start"])
    return _runs_no_more(pid)


def _runs_no_more(pid: int) -> bool:
    """What /proc does not show may be hidden from us: only ESRCH, or our own zombie, is proof."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return Path(f"/proc/{pid}/stat").exists()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")


def _pid_space() -> str:
    return re.sub(r"[^0-9]", "", str(Path("/proc/self/ns/pid").readlink()))


def _start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it runs no more."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in ("Z", "X") else int(fields[18])
