"""The archive under the state root: what deletions and automatic cleans moved there, whole.

Each entry is an instance directory with `record.json`, which says whose it was. An entry comes back
by an order that only somebody with the rights of the state root can write: no object and no
annotation claims a directory (settled.md, *Trust*).

    <state root>/archive/<entry>/   home/, trees/, manifest.json, record.json
    <state root>/restores/<uid>     the entry that the object of this UID takes over
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.api.names import is_uid
from controller.reconcile.manifest import Manifest, ManifestCorrupt, from_json, to_json
from controller.workspace.durable import sync_directory, write_durably
from controller.workspace.instances import RECORD, read_regular, storage_fault
from controller.workspace.trees import remove_tree

MANIFEST: Final = "manifest.json"
_ENTRY: Final = re.compile(r"[0-9a-f][0-9a-f-]{35}(-[0-9]{1,6})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One archived session: its directory's name, whose it was, and what was known of its work.

    `record` is empty where it can not be read; the data is there all the same.
    """

    name: str
    path: Path
    record: Mapping[str, Any]
    archived_at: float

    @property
    def session(self) -> str:
        """`NAMESPACE/NAME` of the session that it was."""
        return f"{self.record.get('namespace', '?')}/{self.record.get('name', '?')}"

    @property
    def work(self) -> Mapping[str, Any]:
        """The last verdict on its work; empty if it was never assessed."""
        work = self.record.get("work")
        return work if isinstance(work, Mapping) else {}

    def manifest(self) -> Manifest | None:
        """Return the manifest as it was; None where it can not be read."""
        try:
            return from_json(read_regular(self.path / MANIFEST))
        except (OSError, ManifestCorrupt):
            return None


class Archive:
    """The archive of one state root."""

    def __init__(self, state_root: Path) -> None:
        """Read nothing yet."""
        self._top = state_root / "archive"
        self._sessions = state_root / "sessions"
        self._restores = state_root / "restores"

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, the oldest first."""
        try:
            names = [name for name in os.listdir(self._top) if _ENTRY.fullmatch(name)]
        except FileNotFoundError:
            return
        yield from sorted(
            (self._entry(name) for name in names), key=lambda e: (e.archived_at, e.name)
        )

    def find(self, name: str) -> Entry | None:
        """Return the entry of this name, if there is one."""
        if not _ENTRY.fullmatch(name) or not (self._top / name).is_dir():
            return None
        return self._entry(name)

    def _entry(self, name: str) -> Entry:
        path = self._top / name
        try:
            record = json.loads(read_regular(path / RECORD))
        except (OSError, ValueError):
            record = {}
        archived_at = path.lstat().st_ctime
        known = record if isinstance(record, dict) else {}
        return Entry(name=name, path=path, record=known, archived_at=archived_at)

    def remove(self, entry: Entry) -> None:
        """Remove an entry for good, its record last. Raises StorageFault."""
        try:
            for name in sorted(os.listdir(entry.path), key=lambda name: name == RECORD):
                remove_tree(entry.path / name)
            entry.path.rmdir()
            sync_directory(self._top)
        except OSError as error:
            raise storage_fault(error, entry.path) from error

    def order(self, entry: Entry, uid: str) -> None:
        """Have the object of this UID take over an entry. Raises StorageFault."""
        path = self._order(uid)
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_durably(path, entry.name)
        except OSError as error:
            raise storage_fault(error, path) from error

    def ordered(self, uid: str) -> Entry | None:
        """Return the entry that an object is to take over, if there is one.

        An order whose entry is gone was carried out already.
        """
        try:
            text = read_regular(self._order(uid)).decode(errors="replace")
        except OSError:
            return None
        return self.find(text)

    def take_over(self, entry: Entry, manifest: Manifest) -> None:
        """Make an entry the directory of a session that never ran. Raises StorageFault.

        The manifest is durable before the rename, so that a crash leaves an entry or an instance.
        """
        target = self._sessions / manifest.uid
        try:
            if target.is_dir():
                remove_tree(target)
            write_durably(entry.path / MANIFEST, to_json(manifest))
            entry.path.rename(target)
            sync_directory(self._sessions)
            sync_directory(self._top)
        except OSError as error:
            raise storage_fault(error, entry.path) from error
        self._order(manifest.uid).unlink(missing_ok=True)

    def _order(self, uid: str) -> Path:
        if not is_uid(uid):
            raise ValueError(f"{uid!r} is not the UID of an object")
        return self._restores / uid
