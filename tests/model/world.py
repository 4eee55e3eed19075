"""The whole world of one host: engine, API server, a real disk, and controllers that die.

The loop is the real one; the watch of the API server and the event stream of the engine are queues
that the rules deliver, late or never.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controller.api.reasons import Reason
from controller.api.vocabulary import Phase, WorkState
from controller.apiserver import ApiError
from controller.collector import Collector
from controller.enginewatch import EngineWatch, read_record, write_record
from controller.events import EventWriter
from controller.index import ManifestIndex
from controller.policies import Policies
from controller.reconcile.act import Effects
from controller.reconcile.case import EngineView
from controller.reconcile.case import Settings as PlanSettings
from controller.reconcile.engine import HostRecord
from controller.reconcile.facts import EngineEvent, Unknown
from controller.reconcile.inventory import Inventory
from controller.reconcile.jobcontainers import JobSettings
from controller.reconcile.manifest import Manifest, ProcessMark, Seen, from_json
from controller.reconcile.observe import Observer
from controller.reconcile.reconciler import Reconciler
from controller.reconcile.steps import mark_of
from controller.reconcile.witnesses import Witnesses
from controller.sessions import SessionCache
from controller.workspace.instances import InstanceStore, StorageFault
from controller.workspace.rundir import RunDirectories
from controller.workspace.sources import SourcePolicy
from tests.model.apiserver import SimulatedApi
from tests.model.engine import (
    IMAGE,
    INSPECTOR,
    Container,
    Going,
    Holdings,
    SimulatedEngine,
    Truth,
    digest_of,
)

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


def no_policies() -> Policies:
    """It is known that there are none."""
    policies = Policies()
    policies.replace({})
    return policies


class Died(BaseException):
    """The controller was killed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A container with work in its layer that an effect removes, and the record at that moment."""

    key: str
    container: Container
    manifest: Manifest | None


class FullStore(InstanceStore):
    """A real store whose disk can be full; an archive or a manifest then does not fit."""

    full: Callable[[], bool]
    removing: Callable[[str], None]

    def remove(self, uid: str) -> None:
        if self.directory(uid).is_dir():
            self.removing(uid)
        super().remove(uid)

    def write(self, manifest: Manifest) -> None:
        self._fits()
        super().write(manifest)

    def archive(self, uid: str, record: Any) -> Path | None:
        self._fits()
        return super().archive(uid, record)

    def _fits(self) -> None:
        if self.full():
            raise StorageFault(Reason.NO_SPACE, "the disk is full")


class World:
    """Everything there is; what a controller process remembers is lost with it."""

    def __init__(self, root: Path) -> None:
        self.state_root, self.run_root = root / "state", root / "run"
        self.unmounted = root / "unmounted"
        (self.state_root / "sessions").mkdir(parents=True)
        self.pending: list[EngineEvent] = []
        self.streaming = False
        self.engine = SimulatedEngine(emit=self._emitted, removing=self._removing)
        self.api = SimulatedApi()
        self.removals: list[Removal] = []
        self.now = datetime(2026, 6, 1, tzinfo=UTC)
        self.going: Going | None = None
        self.die_at: int | None = None
        self.disk_full = False
        self.uids: dict[str, str] = {}
        self.hands_seen: set[ProcessMark] = set()
        self.states: dict[str, WorkState] = {}
        self.approvals: dict[str, set[str]] = {}
        self.unseen: list[str] = []
        self.engine.verdict = self._verdict
        self._lent: Holdings | None = None
        record = HostRecord(owner=OWNER, host=HOST, created_at=self.now)
        write_record(self.state_root, record)
        self._start(record)

    # The controller process

    def restart(self) -> None:
        """A new controller process: it knows what is on disk, and nothing else.

        Over an unmounted disk none is started: it would refuse to.
        """
        self.die_at = None
        if self.mounted:
            record = read_record(self.state_root)
            assert record is not None
            self._start(record)

    def _start(self, record: HostRecord) -> None:
        self.store = FullStore(self.state_root, OWNER)
        self.store.full = lambda: self.disk_full
        self.store.removing = self._discarding
        self.cache, self.index, self.witnesses = SessionCache(), ManifestIndex(), Witnesses()
        self.hands_seen.clear()
        for uid in self.store.uids():
            manifest = self.store.read(uid)
            if isinstance(manifest, Manifest):
                self.index.put(manifest)
            elif isinstance(manifest, Unknown):
                self.index.unreadable(uid)
        self.run_directories = RunDirectories(self.run_root)
        self.inventory = Inventory(self.engine)
        self.watch = EngineWatch(self.engine, self.state_root, record, expected=self.index.expected)
        self.collector = Collector(
            backend=self.engine,
            inventory=self.inventory,
            index=self.index,
            inspector_image=INSPECTOR,
        )
        self.reconciler = Reconciler(
            api=self.api,  # type: ignore[arg-type]
            observer=self._observer(),
            effects=self._effects(),
            store=self.store,
            index=self.index,
            cache=self.cache,
            checkpoint=self._checkpoint,
        )
        self.look_at_engine()

    def _observer(self) -> Observer:
        return Observer(
            backend=self.engine,
            engine=self.watch,
            inventory=self.inventory,
            witnesses=self.witnesses,
            store=self.store,
            run_directories=self.run_directories,
            sources=SourcePolicy(roots=[], forbidden=[]),
            beside=self.index.sources_beside,
            settings=PlanSettings(owner=OWNER, host=HOST),
            policies=no_policies(),
            clock=lambda: self.now,
            chance=lambda: 0.0,
        )

    def _effects(self) -> Effects:
        return Effects(
            api=self.api,  # type: ignore[arg-type]
            backend=self.engine,
            store=self.store,
            run_directories=self.run_directories,
            inventory=self.inventory,
            witnesses=self.witnesses,
            cache=self.cache,
            holds=lambda: True,
            checkpoint=self._checkpoint,
            jobs=JobSettings(image=INSPECTOR),
            events=EventWriter(self.api, HOST),  # type: ignore[arg-type]
        )

    def _checkpoint(self, name: str) -> None:
        del name
        if self.die_at is not None:
            self.die_at -= 1
            if self.die_at < 0:
                raise Died

    # What it hears

    def look_at_engine(self) -> None:
        """What the event stream does when it is subscribed or breaks: what was missed is gone."""
        self.pending.clear()
        self.streaming = isinstance(self.watch.refresh(), EngineView)
        if not self.streaming:
            self.inventory.forget()
            return
        self.inventory.relist()
        self.collector.collect()

    def _emitted(self, event: EngineEvent) -> None:
        if self.streaming:
            self.pending.append(event)

    def _removing(self, container: Container) -> None:
        key = next(key for key, uid in self.uids.items() if uid == container.uid)
        if container.layer:
            record = self.manifest(key)
            self.removals.append(Removal(key=key, container=container, manifest=record))

    def _verdict(self, uid: str) -> tuple[WorkState, str]:
        """What an inspector would find now: as the world says, and what is in the home."""
        key = next(key for key, known in self.uids.items() if known == uid)
        tokens = [p.name for home in self.homes(key) for p in sorted(home.iterdir())]
        return self.states.get(key, WorkState.CLEAN), " ".join(tokens)

    def _discarding(self, uid: str) -> None:
        """Somebody must have seen what goes now, unless it is clean or never ran (law 5)."""
        key = next(key for key, known in self.uids.items() if known == uid)
        record, (state, seen) = self.manifest(key), self._verdict(uid)
        approved = digest_of(uid, state, seen) in self.approvals.get(key, set())
        if (
            record is not None
            and record.ready_run
            and state is not WorkState.CLEAN
            and not approved
        ):
            self.unseen.append(key)

    def hear_engine(self, *, again: bool) -> None:
        """The events that are on their way arrive; some streams repeat what they sent."""
        arrived, self.pending = self.pending, []
        for event in (*arrived, *(arrived if again else ())):
            self.witnesses.saw(event)
            self.inventory.touch(event.uid)
            if event.action == "kill":
                self._hand_seen(event)

    def _hand_seen(self, event: EngineEvent) -> None:
        """A stop that was heard before the end was judged must be known for what it is."""
        container = self.engine.containers.get(event.container_id)
        key = next(key for key, uid in self.uids.items() if uid == event.uid)
        record = self.manifest(key)
        if container is None or record is None or container.truth is not Truth.HAND:
            return
        mark = mark_of(container.facts)
        if mark is not None and record.phase is Phase.RUNNING and record.process == mark:
            self.hands_seen.add(mark)

    def hear_api(self, key: str) -> None:
        """The watch of the API server delivers the newest object, or that there is none."""
        if not self.api.reachable:
            return
        body = self.body(key)
        if body is not None:
            self.cache.put(body)
        else:
            self.cache.forget(self.uids[key])

    def reconcile(self, key: str) -> None:
        """One wake-up of one session's worker; a controller that dies is replaced."""
        try:
            if self.reconciler.reconcile(self.uids[key]).freed_images:
                self.collector.collect()
        except ApiError:
            return
        except Died:
            self.restart()

    # What people and hosts do

    def apply(self, name: str) -> str:
        """A person applies a session; return the key of this one among all of its name."""
        key = f"{name}{len(self.uids)}"
        self.uids[key] = self.api.person_applies(name, SPEC)["metadata"]["uid"]
        return key

    def engine_goes(self, how: Going) -> None:
        """The engine is lost; the stream breaks with it, or shortly after what it still told."""
        self.going = how
        self.engine.goes(how)
        self.hear_engine(again=False)
        self.look_at_engine()

    def engine_returns(self) -> None:
        """The engine is back, and the stream is subscribed anew."""
        if self._lent is not None:
            self.engine.held, self._lent = self._lent, None
        if self.going is not None:
            going, self.going = self.going, None
            self.engine.returns(going)
        self.look_at_engine()

    def engine_replaced(self, *, engine_id: str) -> None:
        """Another engine answers, or the same one with another data directory."""
        self.engine_goes(Going.ORDERLY)
        self._lent, self.engine.held = self.engine.held, Holdings(engine_id=engine_id)
        self.engine.reachable = True
        self.look_at_engine()

    @property
    def stranger(self) -> Holdings | None:
        """What the engine that is not ours holds, while it is there."""
        return None if self._lent is None else self.engine.held

    @property
    def mounted(self) -> bool:
        """Whether the disk of the state root is there."""
        return not self.unmounted.exists()

    def unmount(self) -> None:
        """The disk goes; its mount point is an empty directory."""
        self.state_root.rename(self.unmounted)
        self.state_root.mkdir()

    def mount(self) -> None:
        """The disk comes back, over whatever was put into its mount point meanwhile."""
        assert list(self.state_root.iterdir()) == [], "law 3: written where a disk is missing"
        self.state_root.rmdir()
        self.unmounted.rename(self.state_root)

    def adopt(self, key: str) -> None:
        """The host's owner accepts what the API server says now, the controller being stopped."""
        manifest = self.manifest(key)
        if manifest is not None:
            self.store.write(replace(manifest, seen=Seen(run_id=0, generation=0)))

    # What is there

    @property
    def disk(self) -> Path:
        """The state root wherever it is."""
        return self.state_root if self.mounted else self.unmounted

    def directory(self, key: str) -> Path:
        """A session's directory in place."""
        return self.disk / "sessions" / self.uids[key]

    def homes(self, key: str) -> list[Path]:
        """Where a session's home is: in place, archived, or both after a restored backup."""
        archived = (self.disk / "archive").glob(f"{self.uids[key]}*/home")
        return [home for home in (self.directory(key) / "home", *archived) if home.is_dir()]

    def manifest(self, key: str) -> Manifest | None:
        """A session's record on the disk."""
        path = self.directory(key) / "manifest.json"
        return from_json(path.read_text()) if path.exists() else None

    def body(self, key: str) -> dict[str, Any] | None:
        """What the API server holds of a session; another one may have its name by now."""
        body = self.api.objects.get(key[0])
        return body if body is not None and body["metadata"]["uid"] == self.uids[key] else None

    def calm(self) -> None:
        """Every fault stops: what was away is back, and what refuses or dies no longer does."""
        self.die_at, self.disk_full = None, False
        self.engine.refusals.clear()
        self.engine.silences.clear()
        self.api.silences.clear()
        self.api.reachable = True
        self.engine.held.images.add(IMAGE)
        if not self.mounted:
            self.mount()
            self.restart()
        self.engine_returns()

    def settle(self) -> None:
        """Faults stop and time passes until nothing more happens."""
        self.calm()
        for _ in range(12):
            self.now += timedelta(minutes=10)
            self.hear_engine(again=False)
            self.look_at_engine()
            for key in self.uids:
                self.hear_api(key)
                self.reconcile(key)
