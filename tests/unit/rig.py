"""One session with the real loop on simulated engine and API server, and all writes in order."""

import inspect
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controller.apiserver import ApiUnreachable
from controller.enginewatch import EngineWatch, write_record
from controller.events import EventWriter
from controller.index import ManifestIndex
from controller.reconcile.act import Effects
from controller.reconcile.case import Settings
from controller.reconcile.engine import HostRecord
from controller.reconcile.inventory import Inventory
from controller.reconcile.jobcontainers import JobSettings
from controller.reconcile.manifest import Manifest
from controller.reconcile.observe import Observer
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.witnesses import Witnesses
from controller.sessions import SessionCache
from controller.workspace.instances import InstanceStore
from controller.workspace.rundir import RunDirectories
from controller.workspace.sources import SourcePolicy
from tests.model.apiserver import Body, SimulatedApi
from tests.model.engine import INSPECTOR, SimulatedEngine
from tests.model.world import no_policies
from tests.unit.reconcile.builders import HOST, OWNER, raw_spec

NAME = "s"
AT_ONCE = 1.0


def nobody_listens() -> dict[str, Any]:
    """What the simulated engine calls in its world, where there is no world around it."""
    return {name: lambda *_, **__: None for name in inspect.signature(SimulatedEngine).parameters}


class NotedApi(SimulatedApi):
    """The simulated API server, with faults of statuses.

    It can drop fields, as an older CRD makes a server, and refuse what is longer than `largest`.
    """

    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log
        self.dropped: set[str] = set()
        self.largest = 0
        self.after_status: Callable[[], object] = lambda: None

    def patch_session_status(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        status: Mapping[str, Any],
        resource_version: str | None = None,
    ) -> Body:
        if self.largest and len(json.dumps(status)) > self.largest:
            raise ApiUnreachable("The API server answers 500: etcdserver: request is too large")
        self.log.append("status")
        kept = {key: value for key, value in status.items() if key not in self.dropped}
        written = super().patch_session_status(
            namespace, name, uid=uid, status=kept, resource_version=resource_version
        )
        self.after_status()
        return written


class Rig:
    """Notes each checkpoint and each status, and does at a checkpoint what a test says."""

    def __init__(self, root: Path) -> None:
        self.state_root = root / "state"
        (self.state_root / "sessions").mkdir(parents=True)
        record = HostRecord(owner=OWNER, host=HOST, created_at=datetime.now(UTC))
        write_record(self.state_root, record)
        self.log: list[str] = []
        self.at: dict[str, Callable[[], object]] = {}
        self.held = True
        self.uid = ""
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.witnesses, self.cache, self.index = Witnesses(), SessionCache(), ManifestIndex()
        self.store = InstanceStore(self.state_root, OWNER)
        self.api = NotedApi(self.log)
        self.engine = SimulatedEngine(**nobody_listens())
        self.inventory = Inventory(self.engine)
        self.watch = EngineWatch(self.engine, self.state_root, record, expected=self.index.expected)
        run_directories = RunDirectories(root / "run")
        self.effects = Effects(
            api=self.api,  # type: ignore[arg-type]
            backend=self.engine,
            store=self.store,
            run_directories=run_directories,
            inventory=self.inventory,
            witnesses=self.witnesses,
            cache=self.cache,
            holds=lambda: self.held,
            checkpoint=self._checkpoint,
            jobs=JobSettings(image=INSPECTOR),
            events=EventWriter(self.api, HOST),  # type: ignore[arg-type]
        )
        self.reconciler = Reconciler(
            api=self.api,  # type: ignore[arg-type]
            observer=self._observer(run_directories),
            effects=self.effects,
            store=self.store,
            index=self.index,
            cache=self.cache,
            checkpoint=self._checkpoint,
        )
        self.watch.refresh()
        self.inventory.relist()

    def _observer(self, run_directories: RunDirectories) -> Observer:
        return Observer(
            backend=self.engine,
            engine=self.watch,
            inventory=self.inventory,
            witnesses=self.witnesses,
            store=self.store,
            run_directories=run_directories,
            sources=SourcePolicy(roots=[], forbidden=[]),
            beside=self.index.sources_beside,
            settings=Settings(owner=OWNER, host=HOST),
            policies=no_policies(),
            clock=lambda: self.now,
            chance=lambda: 0.0,
        )

    def _checkpoint(self, name: str) -> None:
        self.log.append(name)
        self.at.pop(name, lambda: None)()

    def applied(self) -> None:
        """A person applies the session."""
        body = self.api.person_applies(NAME, raw_spec(user="1000:1000"))
        self.uid = body["metadata"]["uid"]

    def running(self) -> None:
        """The session is applied and runs; nothing of that is in the log."""
        self.applied()
        self.go()
        assert self.phase() == "Running"
        self.log.clear()

    def deliver(self) -> None:
        """The watch of the API server tells what there is."""
        body = self.api.objects.get(NAME)
        if body is not None and body["metadata"]["uid"] == self.uid:
            self.cache.put(body)
        else:
            self.cache.forget(self.uid)

    def reconcile(self) -> float | None:
        """One wake-up of the session's worker; return after how long it wants the next."""
        self.deliver()
        self.now += timedelta(seconds=AT_ONCE)
        return self.reconciler.reconcile(self.uid).wake_after

    def go(self, passes: int = 10) -> None:
        """Wake the session's worker until it asks for nothing soon."""
        for _ in range(passes):
            pause = self.reconcile()
            if pause is None or pause > AT_ONCE:
                return

    def wants(self, **spec: Any) -> None:
        """A person edits the session."""
        self.api.person_patches(NAME, **spec)

    def body(self) -> Body:
        """The object as the server holds it."""
        return self.api.get_session("ns", NAME)

    def status(self) -> dict[str, Any]:
        """What the object says."""
        return dict(self.body().get("status") or {})

    def phase(self) -> str:
        """The phase that the object shows."""
        return str(self.status().get("phase"))

    def manifest(self) -> Manifest | None:
        """The record on the disk."""
        read = self.store.read(self.uid)
        return read if isinstance(read, Manifest) else None

    def directory(self) -> Path:
        """The session's directory in place."""
        return self.state_root / "sessions" / self.uid

    def containers(self) -> list[str]:
        """What is on the engine."""
        return sorted(self.engine.containers)

    def emptied(self) -> None:
        """Everything of the session goes from the engine, and nobody was told."""
        self.engine.containers.clear()
        self.engine.remove_network(self.uid)
