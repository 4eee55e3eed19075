"""The registrations of worktrees in the repositories of the host, kept true as trees move (law 13).

They are read and written as files, never by git, and no link is followed (law 14). The session
could write to its own registration; to the directory that holds all of them it could not.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from controller.capsule.source import LOCKED
from controller.reconcile.trees import TreeRecord, registered
from controller.workspace.opening import directory
from controller.workspace.trees import remove_from


def beside(records: Iterable[TreeRecord]) -> dict[str, frozenset[str]]:
    """Return, by mount, the worktrees that are registered in its source beside the session's own.

    A source that can not be read has none.
    """
    places = registered(records)
    own = set(places.values())
    found = {}
    for mount, place in places.items():
        top = Path(place).parent
        try:
            with directory(top) as descriptor:
                names = os.listdir(descriptor)
        except OSError:
            names = []
        found[mount] = frozenset(name for name in names if str(top / name) not in own)
    return found


def point(records: Iterable[TreeRecord], trees: Path) -> tuple[str, ...]:
    """Have each registration say that its tree lies in `trees`, and be locked.

    Returns those that could not be written, which keeps nothing from its place: a registration is
    missed by the git of its source's owner, and never by a session.
    """
    failed = []
    for mount, place in registered(records).items():
        try:
            with directory(Path(place)) as registration:
                _write(registration, "gitdir", f"{trees / mount}/.git\n")
                _write(registration, "locked", f"{LOCKED}\n")
        except OSError as error:
            failed.append(f"{place} ({error.strerror})")
    return tuple(failed)


def _write(registration: int, name: str, text: str) -> None:
    """Replace a file of a registration; it stays its owner's, whose git writes it too."""
    new = f".{name}.new"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=registration)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(new, flags, 0o644, dir_fd=registration)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
        owner = os.fstat(registration)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
        stream.flush()
        os.fsync(descriptor)
    os.rename(new, name, src_dir_fd=registration, dst_dir_fd=registration)


def forget(places: Mapping[str, str], trees: Path) -> tuple[str, ...]:
    """Remove registrations, by mount, of trees that lay in `trees`; return what could not be.

    One that tells of another tree by now is not removed.
    """
    failed = []
    for name, registration in places.items():
        try:
            _forget(Path(registration), f"{trees / name}/.git")
        except FileNotFoundError:
            continue
        except OSError as error:
            failed.append(f"{registration} ({error.strerror})")
    return tuple(failed)


def _forget(registration: Path, told: str) -> None:
    with directory(registration.parent) as top:
        with directory(registration) as descriptor:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            named = os.open("gitdir", flags, dir_fd=descriptor)
            with os.fdopen(named, "rb") as stream:
                regular = stat.S_ISREG(os.fstat(named).st_mode)
                if not regular or os.fsdecode(stream.read(4096)).strip() != told:
                    return
        remove_from(top, registration.name)
