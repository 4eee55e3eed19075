"""The instance directories under the state root, each with its manifest beside what it describes.

    <state root>/host.json                  whose state root this is; without it nothing is believed
    <state root>/sessions/<uid>/manifest.json
    <state root>/sessions/<uid>/home/       mounted into the session
    <state root>/sessions/<uid>/trees/      its own trees, each mounted into the session
    <state root>/sessions/<uid>/logs/       the reflogs of its worktrees, which are its own
    <state root>/sessions/<uid>/requests/   what a preparer or inspector is asked
    <state root>/archive/<uid>[-n]/         what deletions moved here, with record.json

No name of a directory is under a session's control: a UID is checked to be one before it becomes
part of a path. Trees are removed by directory descriptors, without following links (law 14).
"""

import errno
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from controller.api.names import is_uid
from controller.api.reasons import Reason
from controller.reconcile.case import ABSENT, ManifestAbsent
from controller.reconcile.facts import Unknown
from controller.reconcile.manifest import Manifest, ManifestCorrupt, from_json, to_json
from controller.reconcile.trees import registered
from controller.workspace.durable import sync_directory, write_durably
from controller.workspace.locks import remove_stale_locks
from controller.workspace.trees import remove_tree

_MANIFEST: Final = "manifest.json"
LARGEST: Final = 16 << 20
HOME: Final = "home"
REQUESTS: Final = "requests"
TREES: Final = "trees"
LOGS: Final = "logs"
RECORD: Final = "record.json"


class StorageFault(Exception):
    """The state root could not be read or written; `reason` is the condition's."""

    def __init__(self, reason: Reason, message: str) -> None:
        """Carry the reason, and a sentence for the owner of the host."""
        super().__init__(message)
        self.reason = reason
        self.message = message


def storage_fault(error: OSError, path: Path) -> StorageFault:
    """Return what an error of the file system means for the owner of the host."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFault(Reason.NO_SPACE, f"The disk of {path} is full; nothing was changed.")
    return StorageFault(
        Reason.STATE_ROOT_NOT_WRITABLE,
        f"{path} can not be written ({error.strerror}); nothing was changed.",
    )


class InstanceStore:
    """Reads and writes the state root of one owner."""

    def __init__(self, state_root: Path, owner: str) -> None:
        """Use a state root that `believed` is asked about before anything is read from it."""
        self._root = state_root
        self._owner = owner
        self._sessions = state_root / "sessions"
        self._archive = state_root / "archive"

    @property
    def root(self) -> Path:
        """The state root."""
        return self._root

    @property
    def owner(self) -> str:
        """Whose state root this is."""
        return self._owner

    def believed(self) -> Unknown | None:
        """Return why the state root can not be believed, or None: it is ours and mounted."""
        try:
            marker = json.loads(read_regular(self._root / "host.json"))
        except (OSError, ValueError):
            message = f"{self._root} is not there or has no host.json: its disk is not mounted."
            return Unknown(reason=Reason.STATE_ROOT_MISSING, message=message)
        if not isinstance(marker, Mapping) or marker.get("owner") != self._owner:
            message = f"{self._root} belongs to another host or cluster."
            return Unknown(reason=Reason.STATE_ROOT_MISSING, message=message)
        return None

    def directory(self, uid: str) -> Path:
        """Return a session's directory. Raises ValueError for what is not a UID."""
        if not is_uid(uid):
            raise ValueError(f"{uid!r} is not the UID of an object")
        return self._sessions / uid

    def home(self, uid: str) -> Path:
        """Return the directory that the session sees as its home."""
        return self.directory(uid) / HOME

    def uids(self) -> frozenset[str]:
        """Return the UIDs that have a directory here."""
        try:
            return frozenset(name for name in os.listdir(self._sessions) if is_uid(name))
        except FileNotFoundError:
            return frozenset()

    def read(self, uid: str) -> Manifest | ManifestAbsent | Unknown:
        """Read a session's manifest; a directory without one is an unmounted disk (law 3)."""
        directory = self.directory(uid)
        try:
            text = read_regular(directory / _MANIFEST)
        except FileNotFoundError:
            return self._without_manifest(directory)
        except OSError as error:
            return _corrupt(uid, error.strerror or "it can not be read")
        try:
            manifest = from_json(text)
        except ManifestCorrupt as error:
            return _corrupt(uid, str(error))
        if manifest.uid != uid or manifest.owner != self._owner:
            return _corrupt(uid, "it belongs to another session or owner")
        return manifest

    def _without_manifest(self, directory: Path) -> ManifestAbsent | Unknown:
        try:
            content = set(os.listdir(directory))
        except FileNotFoundError:
            return self.believed() or ABSENT
        if content <= {f".{_MANIFEST}.new"}:
            return ABSENT
        return Unknown(
            reason=Reason.INSTANCE_DIRECTORY_MISSING,
            message=(
                f"The directory {directory} has no manifest: what belongs there is not mounted, "
                "or was removed by hand. Nothing is created or started."
            ),
        )

    def write(self, manifest: Manifest) -> None:
        """Make a manifest durable. Raises StorageFault."""
        directory = self.directory(manifest.uid)
        try:
            if not directory.is_dir():
                unbelieved = self.believed()
                if unbelieved is not None:
                    raise StorageFault(unbelieved.reason, unbelieved.message)
                directory.mkdir(mode=0o700, parents=True)
                sync_directory(self._sessions)
            write_durably(directory / _MANIFEST, _bounded(to_json(manifest)))
        except OSError as error:
            raise storage_fault(error, self._root) from error

    def prepare_home(self, uid: str, user: str) -> None:
        """Make the home where it never was, for a numeric `uid[:gid]`. Raises StorageFault."""
        home = self.home(uid)
        owner, _, group = user.partition(":")
        try:
            home.mkdir(mode=0o700, exist_ok=True)
            os.chown(home, int(owner), int(group or owner), follow_symlinks=False)
        except OSError as error:
            raise storage_fault(error, home) from error

    def tree(self, uid: str, name: str) -> Path:
        """Return the directory of one of a session's own trees."""
        return self.directory(uid) / TREES / name

    def logs(self, uid: str, name: str) -> Path:
        """Return the directory of the reflogs of one of a session's worktrees."""
        return self.directory(uid) / LOGS / name

    def empty_trees(self, uid: str, names: Iterable[str], user: str, logs: Iterable[str]) -> None:
        """Make the session's trees as empty directories of its user, whatever was there.

        And `logs` for those that are worktrees. Only ever before the first run: until then nothing
        in them is work. Raises StorageFault.
        """
        self._empty(self.directory(uid) / TREES, names, user)
        self._empty(self.directory(uid) / LOGS, logs, user)

    def _empty(self, top: Path, names: Iterable[str], user: str) -> None:
        owner, _, group = user.partition(":")
        try:
            if top.exists():
                remove_tree(top)
            top.mkdir(mode=0o755)
            for name in names:
                (top / name).mkdir(mode=0o700)
                os.chown(top / name, int(owner), int(group or owner))
        except OSError as error:
            raise storage_fault(error, top) from error

    def unlock_trees(self, manifest: Manifest, names: Iterable[str]) -> None:
        """Remove the locks of a session's own trees, none of whose processes lives.

        Raises StorageFault.
        """
        places = registered(manifest.trees)
        for name in names:
            git_dir = Path(places.get(name) or self.tree(manifest.uid, name) / ".git")
            try:
                remove_stale_locks(git_dir)
            except OSError as error:
                raise storage_fault(error, git_dir) from error

    def requests(self, uid: str) -> Path:
        """Return the directory that holds what an inspector is asked."""
        return self.directory(uid) / REQUESTS

    def write_request(self, uid: str, text: str) -> None:
        """Write down what an inspector is asked; any user of a container may read it."""
        directory = self.requests(uid)
        try:
            directory.mkdir(mode=0o755, exist_ok=True)
            write_durably(directory / "request.json", text, mode=0o644)
        except OSError as error:
            raise storage_fault(error, directory) from error

    def remove(self, uid: str) -> None:
        """Remove a session's directory, the manifest last, so that a crash leaves it honest.

        Raises StorageFault, with what could not be removed still described by its manifest.
        """
        directory = self.directory(uid)
        try:
            for entry in sorted(os.listdir(directory)):
                if entry != _MANIFEST:
                    remove_tree(directory / entry)
            (directory / _MANIFEST).unlink(missing_ok=True)
            directory.rmdir()
            sync_directory(self._sessions)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_fault(error, directory) from error

    def keep_record(self, uid: str, record: Mapping[str, Any]) -> None:
        """Write the readable record beside a session's data. Raises StorageFault."""
        directory = self.directory(uid)
        try:
            if directory.is_dir():
                text = json.dumps(record, indent=2, sort_keys=True)
                write_durably(directory / RECORD, text)
        except OSError as error:
            raise storage_fault(error, directory) from error

    def archive(self, uid: str, record: Mapping[str, Any]) -> Path | None:
        """Move a session's directory whole to the archive; None if it is there no more.

        The readable record is written first, into the directory that then moves in one rename;
        one that was kept when the object went is better than one made without it. Raises
        StorageFault.
        """
        directory = self.directory(uid)
        if not directory.is_dir():
            return None
        if record.get("spec") is not None or not (directory / RECORD).exists():
            self.keep_record(uid, record)
        try:
            self._archive.mkdir(mode=0o700, exist_ok=True)
            target = self._free_name(uid)
            directory.rename(target)
            sync_directory(self._archive)
            sync_directory(self._sessions)
        except OSError as error:
            raise storage_fault(error, directory) from error
        return target

    def _free_name(self, uid: str) -> Path:
        target, number = self._archive / uid, 1
        while target.exists():
            target, number = self._archive / f"{uid}-{number}", number + 1
        return target


def read_regular(path: Path) -> bytes:
    """Read a file that must be a regular one of a sane size; links are not followed.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        if facts.st_size > LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST} bytes")
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return stream.read(LARGEST)
    finally:
        os.close(descriptor)


def _bounded(text: str) -> str:
    """Refuse to write what could not be read back."""
    if len(text.encode()) > LARGEST:
        raise StorageFault(
            Reason.SPEC_INVALID,
            f"The record of this session would be larger than {LARGEST} bytes; nothing was "
            "changed. Make its spec smaller.",
        )
    return text


def _corrupt(uid: str, why: str) -> Unknown:
    return Unknown(
        reason=Reason.MANIFEST_CORRUPT,
        message=f"The manifest of {uid} can not be used: {why}. Nothing is started or purged.",
    )
