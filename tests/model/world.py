"""The whole world of one host: engine, API server, a real disk, and controllers that die."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controller.apiserver import ApiError
from controller.enginewatch import EngineWatch, read_record, write_record
from controller.index import ManifestIndex
from controller.reconcile.act import Effects
from controller.reconcile.case import EngineView
from controller.reconcile.case import Settings as PlanSettings
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import EngineEvent
from controller.reconcile.inventory import Inventory
from controller.reconcile.manifest import Manifest
from controller.reconcile.observe import Observer
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.witnesses import Witnesses
from controller.sessions import SessionCache
from controller.workspace.instances import InstanceStore
from controller.workspace.rundir import RunDirectories
from controller.workspace.sources import SourcePolicy
from tests.model.apiserver import SimulatedApi
from tests.model.engine import SimulatedEngine

OWNER, HOST = "owner", "h"
SPEC = {
    "workspace": "w",
    "role": "r",
    "agent": "a",
    "backend": {"docker": {"host": HOST}},
    "image": {"ref": "i"},
    "user": "1000:1000",
    "restore": {"backoff": {"initial": "1s", "max": "1s"}, "maxAttempts": 3},
}


class Died(BaseException):
    """The controller was killed here."""


class World:
    """Everything there is; `controller` is what a process remembers, and is lost with it."""

    def __init__(self, root: Path) -> None:
        self.state_root, self.run_root = root / "state", root / "run"
        (self.state_root / "sessions").mkdir(parents=True)
        self.engine, self.api = SimulatedEngine(), SimulatedApi()
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.die_at: int | None = None
        self.uids: dict[str, str] = {}
        self.given_up: set[str] = set()
        write_record(self.state_root, HostRecord(owner=OWNER, host=HOST, created_at=self.now))
        self.restart()

    def restart(self) -> None:
        """A new controller process: it knows what is on disk, and nothing else."""
        self.die_at = None
        record = read_record(self.state_root)
        assert record is not None
        self.store = InstanceStore(self.state_root, OWNER)
        self.cache, self.index, self.witnesses = SessionCache(), ManifestIndex(), Witnesses()
        for uid in self.store.uids():
            manifest = self.store.read(uid)
            if isinstance(manifest, Manifest):
                self.index.put(manifest)
        run_directories, inventory = RunDirectories(self.run_root), Inventory(self.engine)
        self.inventory = inventory
        self.watch = EngineWatch(self.engine, self.state_root, record, expected=self.index.expected)
        observer = Observer(
            backend=self.engine,
            engine=self.watch,
            inventory=inventory,
            witnesses=self.witnesses,
            store=self.store,
            run_directories=run_directories,
            sources=SourcePolicy(roots=[], forbidden=[]),
            settings=PlanSettings(owner=OWNER, host=HOST),
            clock=lambda: self.now,
            chance=lambda: 0.0,
        )
        effects = Effects(
            api=self.api,  # type: ignore[arg-type]
            backend=self.engine,
            store=self.store,
            run_directories=run_directories,
            inventory=inventory,
            witnesses=self.witnesses,
            cache=self.cache,
            holds=lambda: True,
            checkpoint=self._checkpoint,
        )
        self.reconciler = Reconciler(
            api=self.api,  # type: ignore[arg-type]
            observer=observer,
            effects=effects,
            store=self.store,
            index=self.index,
            cache=self.cache,
            checkpoint=self._checkpoint,
        )
        self.look_at_engine()

    def _checkpoint(self, name: str) -> None:
        del name
        if self.die_at is not None:
            self.die_at -= 1
            if self.die_at < 0:
                raise Died

    def look_at_engine(self) -> None:
        """What the event stream does when it is subscribed or breaks."""
        if isinstance(self.watch.refresh(), EngineView):
            self.inventory.relist()
        else:
            self.inventory.forget()

    def deliver(self, name: str) -> None:
        """What the watch of the API server does."""
        body = self.api.objects.get(name)
        uid = self.uids[name]
        if body is not None and body["metadata"]["uid"] == uid:
            self.cache.put(json.loads(json.dumps(body)))
        else:
            self.cache.forget(uid)

    def reconcile(self, name: str) -> float | None:
        """One wake-up of one session's worker; a controller that dies is replaced."""
        if self.api.reachable:
            self.deliver(name)
        try:
            return self.reconciler.reconcile(self.uids[name]).wake_after
        except ApiError:
            return 1.0
        except Died:
            self.restart()
            return 0.0

    def apply(self, name: str) -> None:
        """A person applies a session."""
        body = self.api.person_applies(name, SPEC)
        self.uids[name] = body["metadata"]["uid"]

    def hand(self, container_id: str, action: str) -> None:
        """The event of a person's hand on a container, as the stream would show it."""
        container = self.engine.containers[container_id]
        self.witnesses.saw(
            EngineEvent(
                action=action,
                container_id=container_id,
                uid=container.uid,
                component=container.facts.component,
                at=self.engine.now,
            )
        )
        self.inventory.touch(container.uid)

    def touch(self, container_id: str) -> None:
        """Any event of a container makes its session be asked about anew."""
        self.inventory.touch(self.engine.containers[container_id].uid)

    def home(self, name: str) -> Path:
        """Where a session's home is, in place or archived."""
        uid = self.uids[name]
        archived = self.state_root / "archive" / uid / "home"
        return archived if archived.exists() else self.state_root / "sessions" / uid / "home"

    def manifest(self, name: str) -> Manifest | None:
        """A session's record on disk."""
        read = self.store.read(self.uids[name])
        return read if isinstance(read, Manifest) else None

    def status(self, name: str) -> dict[str, Any]:
        """What the API server shows of a session."""
        return dict(self.api.objects.get(name, {}).get("status") or {})

    def settle(self) -> None:
        """Faults stop and time passes until nothing more happens."""
        self.die_at = None
        self.engine.refusals.clear()
        self.engine.silences.clear()
        self.engine.come_back()
        self.api.reachable = True
        self.look_at_engine()
        for _ in range(12):
            self.now += timedelta(minutes=10)
            self.look_at_engine()
            for name in self.uids:
                self.reconcile(name)
