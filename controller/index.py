"""What the manifests on this host say, in memory: enough to count and to see what differs."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from controller.api.vocabulary import Isolation, Phase
from controller.reconcile.facts import ContainerFacts
from controller.reconcile.manifest import Manifest
from controller.reconcile.steps import LIVE
from controller.workspace.sources import Held, is_writable, source_of

QUIET = frozenset({Phase.KEPT, Phase.PURGED})
_HELD = frozenset({Phase.EXITED, Phase.FAILED})
_MOUNTS_NOTHING = frozenset({Phase.PENDING, Phase.FAILED, Phase.PURGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is remembered of one manifest."""

    namespace: str
    name: str
    phase: Phase
    image_id: str
    container_id: str
    released: bool
    sources: tuple[Held, ...]


class ManifestIndex:
    """Entries by UID; safe to use from several threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._unread: set[str] = set()

    def put(self, manifest: Manifest) -> None:
        """Take a manifest that is on disk."""
        entry = Entry(
            namespace=manifest.namespace,
            name=manifest.name,
            phase=manifest.phase,
            image_id=manifest.recipe.image_id if manifest.recipe else "",
            container_id=manifest.process.container_id if manifest.process else "",
            released=manifest.released,
            sources=_sources(manifest),
        )
        with self._lock:
            self._entries[manifest.uid] = entry
            self._unread.discard(manifest.uid)

    def unreadable(self, uid: str) -> None:
        """Note a directory whose manifest can not be read: what it needs is not known (law 2)."""
        with self._lock:
            self._unread.add(uid)

    def complete(self) -> bool:
        """Whether every directory's manifest was read: only then is anything known unneeded."""
        with self._lock:
            return not self._unread

    def drop(self, uid: str) -> None:
        """Forget a session whose directory is no more."""
        with self._lock:
            self._entries.pop(uid, None)
            self._unread.discard(uid)

    def get(self, uid: str) -> Entry | None:
        """Return the entry of a session."""
        with self._lock:
            return self._entries.get(uid)

    def expected(self) -> int:
        """Count the sessions that should be found on the engine: a process, or a pinned image."""
        with self._lock:
            return sum(bool(e.container_id or e.image_id) for e in self._entries.values())

    def images(self) -> frozenset[str]:
        """Return every image that a manifest names."""
        with self._lock:
            return frozenset(e.image_id for e in self._entries.values() if e.image_id)

    def phases(self) -> Counter[Phase]:
        """Count the sessions by phase."""
        with self._lock:
            return Counter(e.phase for e in self._entries.values())

    def uids(self) -> frozenset[str]:
        """Return the UIDs that have a manifest."""
        with self._lock:
            return frozenset(self._entries)

    def held(self, namespaces: Sequence[str]) -> frozenset[str]:
        """Return the sessions of some namespaces, or of all, that nobody has deleted."""
        with self._lock:
            return frozenset(
                uid
                for uid, entry in self._entries.items()
                if not entry.released and (not namespaces or entry.namespace in namespaces)
            )

    def sources_beside(self, uid: str) -> tuple[Held, ...]:
        """Return what the other sessions mount of the host, now or when they are resumed."""
        with self._lock:
            return tuple(
                source
                for other, entry in self._entries.items()
                if other != uid
                for source in entry.sources
            )

    def active(self) -> frozenset[str]:
        """Return the sessions that an engine's going or return concerns."""
        with self._lock:
            return frozenset(uid for uid, e in self._entries.items() if e.phase not in QUIET)

    def out_of_step(
        self, listed: dict[str, tuple[ContainerFacts, ...]], pins: frozenset[str]
    ) -> frozenset[str]:
        """Return the sessions that a listing of the engine shows to be other than recorded."""
        with self._lock:
            return frozenset(
                uid
                for uid, entry in self._entries.items()
                if _differs(entry, listed.get(uid, ())) or _unpinned(entry, pins)
            )


def _sources(manifest: Manifest) -> tuple[Held, ...]:
    if manifest.recipe is None or manifest.phase in _MOUNTS_NOTHING:
        return ()
    return tuple(
        Held(
            namespace=manifest.namespace,
            name=manifest.name,
            path=source_of(mount),
            writable=is_writable(mount),
            worktree=mount.isolation is Isolation.WORKTREE,
        )
        for mount in manifest.recipe.mounts
        if mount.isolation is not Isolation.CLONE
    )


def _unpinned(entry: Entry, pins: frozenset[str]) -> bool:
    """Whether the image of a session that relies on its pin could be pruned."""
    relies = entry.phase in (Phase.RUNNING, Phase.KEPT)
    return relies and bool(entry.image_id) and entry.image_id not in pins


def _differs(entry: Entry, listed: tuple[ContainerFacts, ...]) -> bool:
    live = {c.container_id for c in listed if c.state in LIVE}
    if entry.phase is Phase.RUNNING:
        return live != {entry.container_id} or len(listed) != 1
    if entry.phase in QUIET:
        return bool(listed) or entry.released
    if entry.phase in _HELD:
        return bool(live) or entry.released
    return True
