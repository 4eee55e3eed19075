"""What a running container really mounts, read from the kernel and not from its engine.

An engine resolves the source of a bind anew at each start: a directory that was swapped for a link
after the check is followed (settled.md, *Binds*). The kernel's mount table of the container's
process names the filesystem and the directory within it, and the same can be said of a source
opened without following links. Nothing inside the container is resolved by name.
"""

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_MOUNT_ID: Final = re.compile(r"^mnt_id:\s*(\d+)$", re.MULTILINE)
_NAMESPACE_PIDS: Final = re.compile(r"^NSpid:\s*(.+)$", re.MULTILINE)
_DEAD_STATES: Final = "ZXx"


class ProcUnreadable(Exception):
    """The kernel's tables cannot be read from here, or do not show what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of a mount table: a directory of a filesystem, and where it is seen."""

    mount_id: int
    device: str
    root: str
    mount_point: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A directory by filesystem and place within it, the same from every mount namespace."""

    device: str
    root: str


def parse_mountinfo(text: str) -> tuple[Mount, ...]:
    """Read a mount table as `proc(5)` describes it."""
    mounts = []
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) < 6 or not fields[0].isdigit():
            raise ProcUnreadable(f"not a line of a mount table: {line[:100]!r}")
        mounts.append(
            Mount(
                mount_id=int(fields[0]),
                device=fields[2],
                root=_unescape(fields[3]),
                mount_point=_unescape(fields[4]),
                read_only="ro" in fields[5].split(","),
            )
        )
    return tuple(mounts)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)


def mounts_of(pid: int) -> tuple[Mount, ...]:
    """Return the mount table of a process. Raises ProcUnreadable."""
    return parse_mountinfo(_read(Path(f"/proc/{pid}/mountinfo")))


def locate(source: str) -> Directory:
    """Say which directory, or file, a path of this host is, without following any link.

    Raises OSError when the path does not exist or passes through a link.
    """
    descriptor = open_without_links(source)
    try:
        match = _MOUNT_ID.search(_read(Path(f"/proc/self/fdinfo/{descriptor}")))
        if match is None:
            raise ProcUnreadable("this kernel does not tell the mount of a descriptor")
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        return _place(path, int(match[1]), parse_mountinfo(_read(Path("/proc/self/mountinfo"))))
    finally:
        os.close(descriptor)


def open_without_links(path: str) -> int:
    """Open an absolute path, each part of it refused if it is a link; return the descriptor."""
    if not path.startswith("/"):
        raise OSError(f"{path!r} is not an absolute path")
    current = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    parts = [part for part in path.split("/") if part not in {"", "."}]
    for index, part in enumerate(parts):
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        if index < len(parts) - 1:
            flags |= os.O_DIRECTORY
        try:
            following = os.open(part, flags, dir_fd=current)
        finally:
            os.close(current)
        current = following
    if stat.S_ISLNK(os.fstat(current).st_mode):
        os.close(current)
        raise OSError(f"{path!r} is a symbolic link")
    return current


def _place(path: str, mount_id: int, table: Iterable[Mount]) -> Directory:
    for mount in table:
        if mount.mount_id != mount_id:
            continue
        point = mount.mount_point.rstrip("/")
        if path != (point or "/") and not path.startswith(f"{point}/"):
            break
        inner = path[len(point) :].rstrip("/")
        return Directory(device=mount.device, root=mount.root.rstrip("/") + inner or "/")
    raise ProcUnreadable(f"the mount that holds {path} is not in this process's mount table")


def find_init(container_id: str, *, hint: int) -> int | None:
    """Return the process that a container was started with, as this process numbers it.

    `hint` is the number that the engine gave, which is right where both see the same processes.
    Where the engine runs in a container its numbers mean nothing here, and the control group tells.
    None means that no such process can be seen. Raises ProcUnreadable when there is no /proc.
    """
    if hint > 0 and _belongs(hint, container_id) and _depth_of_init(hint) is not None:
        return hint
    found: dict[int, int] = {}
    for pid in _pids():
        if _belongs(pid, container_id) and (depth := _depth_of_init(pid)) is not None:
            found[pid] = depth
    return min(found, key=lambda pid: found[pid]) if found else None


def _pids() -> list[int]:
    try:
        names = os.listdir("/proc")
    except OSError as error:
        raise ProcUnreadable(f"/proc cannot be listed: {error}") from error
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)


def _belongs(pid: int, container_id: str) -> bool:
    try:
        return container_id in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False


def _depth_of_init(pid: int) -> int | None:
    """How many process namespaces a live first process of one is nested in; None if it is none."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    numbers = match[1].split() if (match := _NAMESPACE_PIDS.search(status)) else []
    state = next((line for line in status.splitlines() if line.startswith("State:")), "State: X")
    if not numbers or numbers[-1] != "1" or state.split()[1] in _DEAD_STATES:
        return None
    return len(numbers)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ProcUnreadable(f"{path} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A directory that must be mounted, and whether it must be read-only."""

    directory: Directory
    read_only: bool


def all_mounted(expected: Iterable[Expected], actual: Iterable[Mount]) -> bool:
    """Say whether each expected directory is mounted, each by a line of its own.

    What an engine adds of its own is not looked at: had it followed a link for one of the expected
    directories, that one would be missing here.
    """
    free = list(actual)
    for wanted in sorted(expected, key=lambda item: not item.read_only):
        matching = [mount for mount in free if _serves(mount, wanted)]
        if not matching:
            return False
        free.remove(min(matching, key=lambda mount: mount.read_only is not wanted.read_only))
    return True


def _serves(mount: Mount, wanted: Expected) -> bool:
    same = (mount.device, mount.root) == (wanted.directory.device, wanted.directory.root)
    return same and (mount.read_only or not wanted.read_only)
