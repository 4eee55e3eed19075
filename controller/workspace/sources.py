"""Which directories of the host a session may mount (law 17).

A source is opened one component at a time without following a link, so what is judged is what is
meant. It must lie inside a root that the host's owner allowed, and neither hold nor lie inside
what is the controller's or the engine's own.

The engine resolves a source anew at each start. A session that can write to a directory above it
could put a link in its place at that moment, and the process that then runs would have seen the
link's target before its mounts are verified. So no source lies inside what another session can
write (settled.md, *Binds*). Several may mount the very same directory, of which none can replace
the directory itself; of a repository that a session has a worktree of parts are mounted too, so
nobody else writes to it or in it (ADR 0005).
"""

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from controller.api.reasons import Reason
from controller.api.spec import MountSpec
from controller.api.vocabulary import Isolation
from controller.reconcile.case import HostRefusal


class SourcePolicy:
    """What this host allows, resolved once at the start of the controller."""

    def __init__(
        self, *, roots: Iterable[Path], forbidden: Iterable[Path], worktrees: bool = False
    ) -> None:
        """Allow sources inside `roots`; `forbidden` are the state root, run root and sockets.

        `worktrees` lets a session write to the repository of a source that it has a worktree of.
        """
        self._worktrees = worktrees
        self._roots = tuple(root.resolve() for root in roots)
        self._forbidden = tuple(path.resolve() for path in forbidden)

    def refusals(self, mounts: Iterable[MountSpec]) -> tuple[HostRefusal, ...]:
        """Return the mounts whose source is not given, each with the sentence that says why."""
        refused = []
        for mount in mounts:
            answer = self._judge(mount.host_path)
            if answer is None and mount.isolation is Isolation.WORKTREE:
                answer = self._judge_repository(Path(mount.host_path) / ".git")
            if answer is not None:
                reason, why = answer
                message = f"Mount {mount.name!r} asks for {mount.host_path}: {why}"
                refused.append(
                    HostRefusal(
                        field=f"mounts[{mount.name}].hostPath", reason=reason, message=message
                    )
                )
        return tuple(refused)

    def _judge_repository(self, git_dir: Path) -> tuple[Reason, str] | None:
        if not self._worktrees:
            return (
                Reason.NOT_ALLOWED_BY_HOST,
                "a Worktree writes to the repository itself, which this host does not allow; its "
                "owner can allow it with --allow-worktree. Isolation Clone needs no such leave.",
            )
        inner = (git_dir / name for name in ("logs", "objects", "refs", "worktrees"))
        checked = (git_dir, *(path for path in inner if os.path.lexists(path)))
        if any(_not_a_plain_directory(path) is not None for path in checked):
            return (
                Reason.MOUNT_REFUSED,
                "a Worktree needs the root of a repository with a .git directory of its own.",
            )
        return None

    def _judge(self, source: str) -> tuple[Reason, str] | None:
        if "\0" in source:
            return Reason.MOUNT_REFUSED, "no path holds a NUL."
        path = Path(source)
        if path == Path("/"):
            return Reason.NOT_ALLOWED_BY_HOST, "the root of the host is never given to a session."
        for own in self._forbidden:
            if path.is_relative_to(own) or own.is_relative_to(path):
                return (
                    Reason.NOT_ALLOWED_BY_HOST,
                    f"it holds, or lies in, {own}, which belongs to the controller or the engine.",
                )
        if not any(path.is_relative_to(root) for root in self._roots):
            return (
                Reason.NOT_ALLOWED_BY_HOST,
                "it is in no directory that this host allows; its owner can allow one with "
                "--allow-source.",
            )
        return _not_a_plain_directory(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A directory of the host that a session has mounted at each of its starts.

    Of a `worktree` it is the repository.
    """

    namespace: str
    name: str
    path: str
    writable: bool
    worktree: bool = False


def is_writable(mount: MountSpec) -> bool:
    """Whether a session can write to the source of a mount itself."""
    return mount.isolation is Isolation.SHARED and not mount.read_only


def source_of(mount: MountSpec) -> str:
    """Return the directory of the host that a session has of a mount at each of its starts."""
    return f"{mount.host_path}/.git" if mount.isolation is Isolation.WORKTREE else mount.host_path


def entangled(
    mounts: Iterable[MountSpec], others: Iterable[Held], *, namespace: str, first: bool
) -> tuple[HostRefusal, ...]:
    """Return the mounts whose source lies in what another session writes, or holds another's.

    So are those that write in a repository of another's worktree. All but the first is asked of a
    first launch only: whoever was there first is not kept from coming back by who came later. Two
    that start for the first time in the same moment do not see each other; that their mounts are
    verified after each start remains. Of another namespace neither names nor paths are told.
    """
    known = tuple(others)
    refused = []
    for mount in mounts:
        found = (_entanglement(mount, other, namespace, first=first) for other in known)
        why = next((why for why in found if why), None)
        if why is not None:
            refused.append(
                HostRefusal(
                    field=f"mounts[{mount.name}].hostPath",
                    reason=Reason.MOUNT_REFUSED,
                    message=f"Mount {mount.name!r} asks for {mount.host_path}: {why}",
                )
            )
    return tuple(refused)


def _entanglement(mount: MountSpec, other: Held, namespace: str, *, first: bool) -> str | None:
    path, theirs = PurePosixPath(source_of(mount)), PurePosixPath(other.path)
    worktree = mount.isolation is Isolation.WORKTREE
    if path == theirs and not worktree and not other.worktree:
        return None
    known = other.namespace == namespace
    who = f"session {other.name}" if known else "a session of another namespace"
    where = other.path if known else "a directory"
    if other.writable and path.is_relative_to(theirs):
        return (
            f"it lies in {where} that {who} can write to and so could put a link in its place. "
            "Mount the very same directory, or make the mount of the other session read-only."
        )
    if first and is_writable(mount) and theirs.is_relative_to(path):
        return (
            f"it holds {where} that {who} mounts, and this session could put a link in its place. "
            "Make the mount read-only, or mount the very same directory."
        )
    if first and worktree and other.writable and theirs.is_relative_to(path):
        return f"its repository holds {where} that {who} can write to; make that mount read-only."
    if first and other.worktree and is_writable(mount) and path.is_relative_to(theirs):
        return f"it lies in a repository of which {who} has a Worktree; make the mount read-only."
    return None


def _not_a_plain_directory(path: Path) -> tuple[Reason, str] | None:
    descriptor = os.open("/", os.O_PATH | os.O_DIRECTORY)
    try:
        for part in path.parts[1:]:
            try:
                following = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                return Reason.MOUNT_REFUSED, "it does not exist on the host."
            except OSError as error:
                return Reason.MOUNT_REFUSED, f"it can not be opened ({error.strerror})."
            os.close(descriptor)
            descriptor = following
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISLNK(mode):
                return Reason.MOUNT_REFUSED, f"{part!r} in it is a symbolic link."
            if not stat.S_ISDIR(mode):
                return Reason.MOUNT_REFUSED, f"{part!r} in it is not a directory."
    finally:
        os.close(descriptor)
    return None
