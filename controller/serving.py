"""What runs only while this process holds the host's Lease: engine, workers, stream.

Made anew at each acquisition, so that nothing remembered from before an interruption is believed.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client.registry import Collector as MetricsCollector

from controller.api.reasons import Reason
from controller.apiserver import ApiAbsent, ApiError, ApiServer
from controller.backends.protocol import Backend
from controller.collector import Collector
from controller.enginestream import EngineStream
from controller.enginewatch import EngineWatch, read_record, write_record
from controller.events import EventWriter
from controller.hosts import HostRegistration, HostReport
from controller.index import Entry, ManifestIndex
from controller.logs import event
from controller.metrics import Metrics
from controller.patience import Patience
from controller.policies import Policies
from controller.queue import Lane, WorkQueue
from controller.reconcile.act import Checkpoint, Effects
from controller.reconcile.case import EngineView
from controller.reconcile.case import Settings as PlanSettings
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import Unknown
from controller.reconcile.inventory import Inventory
from controller.reconcile.jobcontainers import JobSettings
from controller.reconcile.manifest import Manifest
from controller.reconcile.observe import Observer
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.witnesses import Witnesses
from controller.sessions import SessionCache
from controller.settings import Settings
from controller.workspace.instances import InstanceStore, StorageFault, storage_fault
from controller.workspace.rundir import RunDirectories
from controller.workspace.sources import SourcePolicy

LOGGER = logging.getLogger(__name__)
# Whoever may write here is root on the host, whatever its owner allowed above it (law 17).
_HOSTS_OWN = tuple(
    Path(path)
    for path in (
        "/proc",
        "/sys",
        "/dev",
        "/var/lib/docker",
        "/var/lib/containerd",
        "/run/containerd",
        "/run/docker",
    )
)
WORKERS = 10
MASS_WORKERS = 8
FAULT_RETRY_SECONDS = 30.0


def open_state_root(
    settings: Settings, owner: str, *, had_sessions: Callable[[], bool]
) -> HostRecord:
    """Return the record of the state root, making one where this host never had any.

    Raises StorageFault where the disk is another host's, is damaged, or is not mounted: sessions
    of this host have run, and an empty directory is not theirs (law 3).
    """
    record = read_record(settings.state_root)
    if record is not None:
        if record.owner != owner:
            raise StorageFault(
                Reason.STATE_ROOT_MISSING,
                f"{settings.state_root} belongs to host {record.host!r} of another cluster or "
                "name. Nothing was changed; give this host a state root of its own.",
            )
        return record
    if had_sessions():
        raise StorageFault(
            Reason.STATE_ROOT_MISSING,
            f"{settings.state_root} has no host.json, and sessions of this host have run: its disk "
            "is not mounted. Nothing was changed; mount it.",
        )
    record = HostRecord(owner=owner, host=settings.host, created_at=datetime.now(UTC))
    try:
        settings.state_root.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.state_root.chmod(0o700)
        (settings.state_root / "sessions").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise storage_fault(error, settings.state_root) from error
    write_record(settings.state_root, record)
    return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a service is made of: settings, clients, what is remembered, and who may act.

    Without a record the state root is not to be used: the engine is not touched, and every session
    says why (law 3).
    """

    settings: Settings
    owner: str
    api: ApiServer
    backend: Backend
    cache: SessionCache
    store: InstanceStore
    index: ManifestIndex
    record: HostRecord | Unknown
    holds: Callable[[], bool]
    metrics: Metrics
    checkpoint: Checkpoint
    policies: Policies


class Serving:
    """Workers, stream and all they need, from `start` to `close`."""

    def __init__(self, parts: Parts) -> None:
        """Put the parts together; nothing is started yet."""
        self._parts = parts
        self._api = parts.api
        self._cache = parts.cache
        self._index = parts.index
        self._metrics = parts.metrics
        self._queue = WorkQueue(mass_limit=MASS_WORKERS)
        self._gone: set[str] = set()
        self._left: set[str] = set()
        self._patience = Patience()
        self._collected: MetricsCollector | None = None
        self._threads: list[threading.Thread] = []
        settings, backend = parts.settings, parts.backend
        inventory, witnesses = Inventory(backend), Witnesses()
        self.engine = _engine_watch(parts)
        self._collector = Collector(
            backend=backend,
            inventory=inventory,
            index=parts.index,
            inspector_image=parts.settings.inspector_image,
        )
        self._reconciler = _reconciler(parts, self.engine, inventory, witnesses)
        self._stream = EngineStream(
            backend=backend,
            engine=self.engine,
            inventory=inventory,
            witnesses=witnesses,
            index=parts.index,
            wake=self.wake,
            listed=self._collector.collect,
            resync_seconds=settings.resync_seconds,
        )
        self._registration = HostRegistration(parts.api, settings.host, self._host_report)

    def start(self) -> None:
        """Read every manifest, then follow the engine and work on every session."""
        for uid in self._parts.store.uids():
            self._read(uid)
        if isinstance(self._parts.record, HostRecord):
            self.engine.refresh()
            self._thread("engine-stream", self._stream.run)
            self._thread("resync", self._stream.resync)
        self._collected = self._metrics.collect_from(
            phases=self._index.phases,
            depth=self._queue.depth,
            reachable=lambda: isinstance(self.engine.view, EngineView),
        )
        self._thread("host-registration", self._registration.run)
        for number in range(WORKERS):
            self._thread(f"worker-{number}", self._work)
        self.wake(sorted(self._cache.uids() | self._index.active()), Lane.MASS)

    def _read(self, uid: str) -> None:
        manifest = self._parts.store.read(uid)
        if isinstance(manifest, Manifest):
            self._index.put(manifest)
        elif isinstance(manifest, Unknown):
            self._index.unreadable(uid)

    def _thread(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Let each worker finish the effect it is at, and end."""
        if self._collected is not None:
            self._metrics.registry.unregister(self._collected)
        self._queue.close()
        self._registration.close()
        self._stream.close()
        for thread in self._threads:
            thread.join(timeout=30)

    def wake(self, uids: Iterable[str], lane: Lane) -> None:
        """Ask for sessions to be worked on."""
        for uid in uids:
            self._queue.add(uid, lane)

    def deleted(self, uid: str) -> None:
        """Note that the watch says an object is gone; it counts once a GET says so too."""
        self._gone.add(uid)
        self._queue.add(uid)

    def held(self) -> frozenset[str]:
        """The sessions that have data here, but for those that are known to have no object."""
        return self._index.held(self._parts.settings.namespaces) - self._left

    def _work(self) -> None:
        while (uid := self._queue.get()) is not None:
            try:
                with self._metrics.reconcile_seconds.time():
                    worked = self._reconcile(uid)
                if worked:
                    self._patience.succeeded(uid)
            except ApiError as error:
                self._metrics.reconcile_errors.labels(type(error).__name__).inc()
                self._queue.add_after(uid, self._patience.failed(uid, error))
            except Exception:
                # A worker's edge: one session's fault must not end the others' service.
                self._metrics.reconcile_errors.labels("Unexpected").inc()
                LOGGER.exception(
                    "reconcile failed; it is tried again", extra={"fields": {"uid": uid}}
                )
                self._queue.add_after(uid, FAULT_RETRY_SECONDS)
            finally:
                self._queue.done(uid)

    def _reconcile(self, uid: str) -> bool:
        """Work on a session; False where it is not ours to act."""
        if not self._parts.holds():
            return False
        if uid in self._gone:
            self._confirm_gone(uid)
        if not self._index.complete():
            self._read(uid)
        outcome = self._reconciler.reconcile(uid)
        if outcome.freed_images:
            self._collector.collect()
        if outcome.wake_after is not None:
            self._queue.add_after(uid, outcome.wake_after)
        return True

    def _confirm_gone(self, uid: str) -> None:
        """A DELETED event counts only after a GET for that UID answers 404 (settled.md)."""
        body, entry = self._cache.get(uid), self._index.get(uid)
        if body is not None or entry is not None:
            namespace = body["metadata"]["namespace"] if body else entry and entry.namespace
            name = body["metadata"]["name"] if body else entry and entry.name
            try:
                found = self._api.get_session(str(namespace), str(name))
            except ApiAbsent:
                found = None
            if found is None or found["metadata"]["uid"] != uid:
                self._cache.forget(uid)
                self._say_left(uid, entry)
        self._gone.discard(uid)

    def _say_left(self, uid: str, entry: Entry | None) -> None:
        """Say once where the data is of an object that went without us (law 12, case C27)."""
        if entry is not None and not entry.released and uid not in self._left:
            self._left.add(uid)
            event(
                LOGGER,
                logging.WARNING,
                "object gone, data kept",
                session=f"{entry.namespace}/{entry.name}",
                directory=self._parts.store.directory(uid),
            )

    def _host_report(self) -> HostReport:
        return HostReport(
            engine=self.engine.view,
            allows=self._parts.settings.allows(),
            phases=self._index.phases(),
        )

    def has(self, uid: str) -> bool:
        """Whether a manifest of this session is on this host."""
        return self._index.get(uid) is not None


def _reconciler(
    parts: Parts, engine: EngineWatch, inventory: Inventory, witnesses: Witnesses
) -> Reconciler:
    settings, run_directories = parts.settings, RunDirectories(parts.settings.run_root)
    observer = Observer(
        backend=parts.backend,
        engine=engine,
        inventory=inventory,
        witnesses=witnesses,
        store=parts.store,
        run_directories=run_directories,
        sources=_source_policy(settings),
        beside=parts.index.sources_beside,
        settings=PlanSettings(
            owner=parts.owner,
            host=settings.host,
            baseline_allowed=settings.baseline_allowed,
            expire_at_once=settings.expire_at_once,
        ),
        policies=parts.policies,
    )
    effects = Effects(
        api=parts.api,
        backend=parts.backend,
        store=parts.store,
        run_directories=run_directories,
        inventory=inventory,
        witnesses=witnesses,
        cache=parts.cache,
        holds=parts.holds,
        checkpoint=parts.checkpoint,
        jobs=JobSettings(image=settings.inspector_image),
        events=EventWriter(parts.api, settings.host),
    )
    return Reconciler(
        api=parts.api,
        observer=observer,
        effects=effects,
        store=parts.store,
        index=parts.index,
        cache=parts.cache,
        checkpoint=parts.checkpoint,
    )


def _source_policy(settings: Settings) -> SourcePolicy:
    forbidden = [settings.state_root, settings.run_root, *_HOSTS_OWN]
    if settings.docker_socket is not None:
        forbidden.append(settings.docker_socket)
    if settings.kubeconfig is not None:
        forbidden.append(settings.kubeconfig)
    return SourcePolicy(
        roots=settings.allow_source, forbidden=forbidden, worktrees=settings.worktree_allowed
    )


def _engine_watch(parts: Parts) -> EngineWatch:
    record, unasked = parts.record, None
    if isinstance(record, Unknown):
        unasked = record
        record = HostRecord(
            owner=parts.owner, host=parts.settings.host, created_at=datetime.now(UTC)
        )
    return EngineWatch(
        parts.backend,
        parts.settings.state_root,
        record,
        expected=parts.index.expected,
        unasked=unasked,
    )
