"""An engine in memory behind the real protocol, with the stamps that a real one was seen to give.

Whatever ends with an engine, or is found ended by one that returns, is stamped between the
sentinel's own end and its next start; what ended before keeps its stamp and its code.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from controller.api.reasons import Reason
from controller.api.vocabulary import Component, WorkState
from controller.backends.errors import Absent, BackendUnreachable, Conflict, Fault, Refused
from controller.backends.protocol import BindMount, JobContainer, SessionContainer
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    EngineEvent,
    EngineFacts,
    ImageAbsent,
    ImageFacts,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
)
from controller.reconcile.steps import LIVE

IMAGE = "sha256:image"
INSPECTOR, INSPECTOR_IMAGE = "inspector", "sha256:inspector"
SECOND = timedelta(seconds=1)


class Truth(StrEnum):
    """What really ended a process."""

    OWN = "own"
    HAND = "hand"
    HOST = "host"
    OURS = "ours"


class Going(StrEnum):
    """How an engine goes."""

    POWER_CUT = "power cut"
    ORDERLY = "orderly stop"
    CUT_OFF = "orderly stop, cut off"
    DAEMON = "the daemon alone is killed"
    LIVE_RESTORE = "the daemon restarts and its containers live on"


@dataclass(slots=True)
class Container:
    """A container, the truth about its last end, and the work in its writable layer."""

    facts: ContainerFacts
    uid: str
    truth: Truth | None = None
    layer: set[str] = field(default_factory=set)

    @property
    def live(self) -> bool:
        """Whether it has a process."""
        return self.facts.state in LIVE


@dataclass(slots=True)
class Inspector:
    """A container of ours that looked at a session's work, and what it printed."""

    facts: ContainerFacts
    uid: str
    printed: bytes


@dataclass(slots=True)
class Holdings:
    """What one data directory of an engine holds; another engine has another one."""

    engine_id: str
    containers: dict[str, Container] = field(default_factory=dict)
    networks: set[str] = field(default_factory=set)
    pins: set[str] = field(default_factory=set)
    images: set[str] = field(default_factory=lambda: {IMAGE, INSPECTOR_IMAGE})
    inspectors: dict[str, Inspector] = field(default_factory=dict)
    sentinel: datetime | None = None
    sentinel_ended: datetime | None = None


def digest_of(uid: str, state: WorkState, seen: str) -> str:
    """Stands for exactly this evidence."""
    return f"sha256:{hashlib.sha256(f'{uid} {state} {seen}'.encode()).hexdigest()}"


class SimulatedEngine:
    """Implements `protocol.Backend`; the world's rules call what stands in `hands`."""

    def __init__(
        self, *, emit: Callable[[EngineEvent], None], removing: Callable[[Container], None]
    ) -> None:
        """`emit` hears what happens, `removing` is told what an effect is about to remove."""
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.held = Holdings(engine_id="engine")
        self.bridge_made = self.now
        self.boots = 1
        self.effects = 0
        self.reachable = True
        self.refusals: list[Fault] = []
        self.silences: list[str] = []
        self.made: list[SessionContainer] = []
        self.emit, self.removing = emit, removing
        self.verdict: Callable[[str], tuple[WorkState, str]] = lambda _: (WorkState.CLEAN, "")
        self._numbers = itertools.count(1)

    @property
    def containers(self) -> dict[str, Container]:
        """What is there now."""
        return self.held.containers

    def of(self, uid: str) -> list[Container]:
        """The containers of one session."""
        return [c for c in self.containers.values() if c.uid == uid]

    def event(self, container_id: str, action: str) -> None:
        """Tell whoever listens."""
        container = self.containers[container_id]
        self.emit(
            EngineEvent(
                action=action,
                container_id=container_id,
                uid=container.uid,
                component=Component.SESSION,
                at=self.now,
            )
        )

    # Questions ---------------------------------------------------------------------------------

    def _ask(self) -> None:
        self.now += timedelta(milliseconds=1)
        if not self.reachable:
            raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, "it does not answer")

    def survey(self) -> EngineFacts:
        self._ask()
        ended = self.held.sentinel_ended
        by_hand = ended is not None and ended > self.bridge_made
        return EngineFacts(
            engine_id=self.held.engine_id,
            boot_id=f"boot {self.boots}",
            version="1",
            now=self.now,
            epoch=self.held.sentinel,
            sentinel_finished_at=None if by_hand else ended,
            engine_started_at=self.bridge_made,
        )

    def inventory(self) -> dict[str, tuple[ContainerFacts, ...]]:
        self._ask()
        found: dict[str, tuple[ContainerFacts, ...]] = {}
        for container in self.containers.values():
            found[container.uid] = (*found.get(container.uid, ()), container.facts)
        for inspector in self.held.inspectors.values():
            found[inspector.uid] = (*found.get(inspector.uid, ()), inspector.facts)
        return found

    def networks(self) -> frozenset[str]:
        self._ask()
        return frozenset(self.held.networks)

    def observe(self, uid: str) -> SessionOnBackend:
        self._ask()
        found = tuple(c.facts for c in self.of(uid))
        looking = tuple(i.facts for i in self.held.inspectors.values() if i.uid == uid)
        return SessionOnBackend(
            containers=found, network_present=uid in self.held.networks, jobs=looking
        )

    def image(self, ref: str) -> ImageFacts | ImageAbsent:
        self._ask()
        if ref == INSPECTOR:
            return ImageFacts(image_id=INSPECTOR_IMAGE, digest="", user="")
        if IMAGE not in self.held.images:
            return ImageAbsent(ref=ref)
        return ImageFacts(image_id=IMAGE, digest="", user="1000")

    def pins(self) -> frozenset[str]:
        self._ask()
        return frozenset(self.held.pins)

    def probe(self, container_id: str) -> ProcessVerdict:
        self._ask()
        return ProcessVerdict.ALIVE if self.containers[container_id].live else ProcessVerdict.DEAD

    def verify_mounts(self, container_id: str, mounts: tuple[BindMount, ...]) -> MountVerdict:
        self._ask()
        del container_id, mounts
        return MountVerdict.MATCHES

    def events(self, since: datetime) -> Iterator[EngineEvent | None]:
        raise NotImplementedError(f"the world delivers events itself (since {since})")

    def close_events(self) -> None:
        """There is no stream."""

    # Effects -----------------------------------------------------------------------------------

    def _effect(self) -> None:
        """Before an effect: an engine that is silent, or that refuses what it is asked."""
        self._ask()
        self.effects += 1
        if self.refusals:
            fault = self.refusals.pop()
            raise Refused(Reason.NO_SPACE, "refused", fault)
        self._silent("before")

    def _silent(self, when: str) -> None:
        """The answer may be lost before the effect, or after it."""
        if self.silences and self.silences[-1] == when:
            self.silences.pop()
            raise BackendUnreachable(Reason.TIMEOUT, "no answer")

    def _container(self, container_id: str) -> Container:
        container = self.containers.get(container_id)
        if container is None:
            raise Absent(Reason.NOT_RUNNING, f"no container {container_id}")
        return container

    def install_sentinel(self) -> None:
        self._ask()
        if self.held.sentinel is None:
            self.held.sentinel, self.held.sentinel_ended = self.now, None

    def pull(self, ref: str) -> None:
        self._effect()
        raise Refused(Reason.IMAGE_PULL_FAILING, f"no {ref}", Fault.REGISTRY)

    def ensure_network(self, *, uid: str, namespace: str, name: str) -> None:
        del namespace, name
        self._effect()
        self.held.networks.add(uid)
        self._silent("after")

    def create(self, container: SessionContainer) -> str:
        self._effect()
        if IMAGE not in self.held.images:
            raise Refused(Reason.IMAGE_MISSING, "no such image", Fault.HOST)
        for held in self.of(container.uid):
            if held.facts.run_id == container.run_id:
                return held.facts.container_id
        container_id = f"c{next(self._numbers)}"
        facts = ContainerFacts(
            container_id=container_id,
            name=f"sk-{container.uid}-{container.run_id}",
            component=Component.SESSION,
            run_id=container.run_id,
            recipe_hash=container.recipe_hash,
            state=ContainerState.CREATED,
            exit_code=0,
            oom_killed=False,
            error="",
            started_at=None,
            finished_at=None,
            image_id=container.image_id,
        )
        self.containers[container_id] = Container(facts=facts, uid=container.uid)
        self.made.append(container)
        self.event(container_id, "create")
        self._silent("after")
        return container_id

    def start(self, container_id: str) -> None:
        self._effect()
        self._container(container_id)
        self.started(container_id)
        self._silent("after")

    def start_job(self, inspector: JobContainer) -> str:
        self._effect()
        container_id = f"i{next(self._numbers)}"
        facts = ContainerFacts(
            container_id=container_id,
            name=f"sk-{inspector.uid}-inspector",
            component=Component.INSPECTOR,
            run_id=inspector.run_id,
            recipe_hash=inspector.request_hash,
            state=ContainerState.EXITED,
            exit_code=0,
            oom_killed=False,
            error="",
            started_at=self.now,
            finished_at=self.now,
            image_id=INSPECTOR_IMAGE,
        )
        state, seen = self.verdict(inspector.uid)
        printed = {
            "state": str(state),
            "digest": digest_of(inspector.uid, state, seen),
            "runId": inspector.run_id,
            "summary": seen,
            "mounts": [],
        }
        self.held.inspectors[container_id] = Inspector(
            facts=facts, uid=inspector.uid, printed=json.dumps(printed).encode()
        )
        self._silent("after")
        return container_id

    def job_output(self, container_id: str) -> bytes:
        self._ask()
        return self.held.inspectors[container_id].printed

    def stop(self, container_id: str, *, grace_seconds: int) -> None:
        del grace_seconds
        self._effect()
        if container_id in self.containers:
            self.ended(container_id, 137, Truth.OURS)
        self._silent("after")

    def remove(self, container_id: str) -> None:
        self._effect()
        if self.held.inspectors.pop(container_id, None) is not None:
            self._silent("after")
            return
        container = self.containers.get(container_id)
        if container is None:
            return
        if container.live:
            raise Conflict(Reason.CONTAINER_DEAD, "it runs")
        if container.facts.state is ContainerState.REMOVING:
            raise Conflict(Reason.CONTAINER_DEAD, "removal is in progress")
        self.removing(container)
        self.destroyed(container_id)
        self._silent("after")

    def set_aside(self, container_id: str) -> None:
        self._effect()
        container = self._container(container_id)
        container.facts = replace(container.facts, set_aside=True)
        self._silent("after")

    def remove_network(self, uid: str) -> None:
        self._effect()
        self.held.networks.discard(uid)
        self._silent("after")

    def ensure_pin(self, image_id: str) -> None:
        self._effect()
        if image_id not in self.held.images:
            raise Refused(Reason.IMAGE_MISSING, "no such image", Fault.HOST)
        self.held.pins.add(image_id)
        self._silent("after")

    def drop_pin(self, image_id: str) -> None:
        self._effect()
        self.held.pins.discard(image_id)
        self._silent("after")

    # What happens to containers ----------------------------------------------------------------

    def running(self) -> list[str]:
        """The containers that have a process."""
        return [c.facts.container_id for c in self.containers.values() if c.live]

    def started(self, container_id: str) -> None:
        """A process begins, by ours or by a hand."""
        container = self.containers[container_id]
        if container.live:
            return
        container.truth = None
        container.facts = replace(
            container.facts,
            state=ContainerState.RUNNING,
            exit_code=0,
            oom_killed=False,
            started_at=self.now,
            finished_at=None,
        )
        self.event(container_id, "start")

    def ended(self, container_id: str, code: int, truth: Truth, *, oom: bool = False) -> None:
        """A process ends now; the events are those of its kind of end."""
        container = self.containers[container_id]
        if not container.live:
            return
        if truth is not Truth.OWN:
            self.event(container_id, "kill")
        container.truth = truth
        container.facts = replace(
            container.facts,
            state=ContainerState.EXITED,
            exit_code=code,
            oom_killed=oom,
            finished_at=self.now,
        )
        self.event(container_id, "die")

    def destroyed(self, container_id: str) -> None:
        """A container goes, whoever removed it."""
        self.event(container_id, "destroy")
        del self.containers[container_id]

    # What happens to the engine ----------------------------------------------------------------

    def goes(self, how: Going) -> None:
        """The engine ends; what it ends first is stamped now."""
        self.now += 5 * SECOND
        if how in (Going.ORDERLY, Going.CUT_OFF):
            self.held.sentinel_ended = self.now
            for number, container_id in enumerate(self.running()):
                if how is Going.ORDERLY or number % 2:
                    self.now += timedelta(milliseconds=20)
                    self.ended(container_id, (0, 137, 143)[number % 3], Truth.HOST)
        self.reachable = False

    def returns(self, how: Going) -> None:
        """The engine is back, has stamped what it lost, and started the sentinel."""
        self.now += 60 * SECOND
        if how is not Going.LIVE_RESTORE:
            if how in (Going.POWER_CUT, Going.DAEMON):
                self.held.sentinel_ended = self.now
            self.now += timedelta(milliseconds=3)
            for container_id in self.running():
                self.ended(container_id, 143 if how is Going.DAEMON else 255, Truth.HOST)
            self.boots += how is not Going.DAEMON
            self.now += 2 * SECOND
            self.bridge_made = self.now
            self.now += SECOND
            if self.held.sentinel is not None:
                self.held.sentinel = self.now
        self.reachable = True
        self.now += 5 * SECOND
