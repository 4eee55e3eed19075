"""An engine in memory behind the real protocol, with the stamps that a real one was seen to give.

A container that was running when the engine was cut off ends, with code 255, as the engine comes
back; one that an orderly stop ended is stamped as the stop begins; the sentinel shows both.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from controller.api.reasons import Reason
from controller.api.vocabulary import Component
from controller.backends.errors import BackendUnreachable, Conflict, Fault, Refused
from controller.backends.protocol import BindMount, SessionContainer
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

IMAGE = "sha256:image"


@dataclass(slots=True)
class Container:
    """A container, the truth about its last end, and the work in its writable layer."""

    facts: ContainerFacts
    uid: str
    truth: str = ""
    layer: set[str] = field(default_factory=set)


class SimulatedEngine:
    """Implements `protocol.Backend`; the world's rules call the methods below the line."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.containers: dict[str, Container] = {}
        self.networks_held: set[str] = set()
        self.pinned: set[str] = set()
        self.images = {IMAGE}
        self.reachable = True
        self.epoch: datetime | None = None
        self.lost_at: datetime | None = None
        self.refusals: list[Fault] = []
        self.silences: list[str] = []
        self.removed_layers: list[tuple[str, str]] = []
        self._cut_off = False
        self._numbers = itertools.count(1)

    # The protocol -----------------------------------------------------------------------------

    def _ask(self) -> None:
        self.now += timedelta(milliseconds=1)
        if not self.reachable:
            raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, "it does not answer")

    def survey(self) -> EngineFacts:
        self._ask()
        return EngineFacts(
            engine_id="engine",
            boot_id="boot",
            version="1",
            now=self.now,
            epoch=self.epoch,
            sentinel_finished_at=self.lost_at,
        )

    def install_sentinel(self) -> None:
        self._ask()
        self.epoch = self.now

    def inventory(self) -> dict[str, tuple[ContainerFacts, ...]]:
        self._ask()
        found: dict[str, tuple[ContainerFacts, ...]] = {}
        for container in self.containers.values():
            found[container.uid] = (*found.get(container.uid, ()), container.facts)
        return found

    def networks(self) -> frozenset[str]:
        self._ask()
        return frozenset(self.networks_held)

    def observe(self, uid: str) -> SessionOnBackend:
        self._ask()
        found = tuple(c.facts for c in self.containers.values() if c.uid == uid)
        return SessionOnBackend(containers=found, network_present=uid in self.networks_held)

    def image(self, ref: str) -> ImageFacts | ImageAbsent:
        self._ask()
        if IMAGE not in self.images:
            return ImageAbsent(ref=ref)
        return ImageFacts(image_id=IMAGE, digest="", user="1000")

    def pull(self, ref: str) -> None:
        self._effect()
        raise Refused(Reason.IMAGE_PULL_FAILING, f"no {ref}", Fault.REGISTRY)

    def _effect(self) -> None:
        """Before an effect: an engine that is silent, or that refuses what it is asked."""
        self._ask()
        if self.refusals:
            fault = self.refusals.pop()
            raise Refused(Reason.NO_SPACE, "refused", fault)
        if self.silences and self.silences[-1] == "before":
            self.silences.pop()
            raise BackendUnreachable(Reason.TIMEOUT, "no answer")

    def _done(self) -> None:
        """After an effect: the answer may be lost although it happened."""
        if self.silences and self.silences[-1] == "after":
            self.silences.pop()
            raise BackendUnreachable(Reason.TIMEOUT, "no answer")

    def ensure_network(self, *, uid: str, namespace: str, name: str) -> None:
        del namespace, name
        self._effect()
        self.networks_held.add(uid)
        self._done()

    def create(self, container: SessionContainer) -> str:
        self._effect()
        for held in self.containers.values():
            if held.uid == container.uid and held.facts.run_id == container.run_id:
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
        self._done()
        return container_id

    def start(self, container_id: str) -> None:
        self._effect()
        self._start(container_id)
        self._done()

    def _start(self, container_id: str) -> None:
        container = self.containers[container_id]
        if container.facts.state is ContainerState.RUNNING:
            return
        container.truth = ""
        container.facts = replace(
            container.facts,
            state=ContainerState.RUNNING,
            exit_code=0,
            started_at=self.now,
            finished_at=None,
        )

    def stop(self, container_id: str, *, grace_seconds: int) -> None:
        del grace_seconds
        self._effect()
        if container_id in self.containers:
            self.end(container_id, 137, "ours")
        self._done()

    def remove(self, container_id: str) -> None:
        self._effect()
        container = self.containers.get(container_id)
        if container is None:
            return
        if container.facts.state is ContainerState.RUNNING:
            raise Conflict(Reason.CONTAINER_DEAD, "it runs")
        if container.layer and not container.facts.set_aside:
            self.removed_layers.append((container.uid, container_id))
        del self.containers[container_id]
        self._done()

    def set_aside(self, container_id: str) -> None:
        self._effect()
        container = self.containers[container_id]
        container.facts = replace(container.facts, set_aside=True)
        self._done()

    def remove_network(self, uid: str) -> None:
        self._effect()
        self.networks_held.discard(uid)
        self._done()

    def ensure_pin(self, image_id: str) -> None:
        self._effect()
        self.pinned.add(image_id)
        self._done()

    def pins(self) -> frozenset[str]:
        self._ask()
        return frozenset(self.pinned)

    def drop_pin(self, image_id: str) -> None:
        self._effect()
        self.pinned.discard(image_id)

    def probe(self, container_id: str) -> ProcessVerdict:
        self._ask()
        del container_id
        return ProcessVerdict.ALIVE

    def verify_mounts(self, container_id: str, mounts: tuple[BindMount, ...]) -> MountVerdict:
        self._ask()
        del container_id, mounts
        return MountVerdict.MATCHES

    def events(self, since: datetime) -> Iterator[EngineEvent | None]:
        raise NotImplementedError(f"the world wakes sessions itself (since {since})")

    def close_events(self) -> None:
        """There is no stream."""

    # What happens to an engine and its containers ----------------------------------------------

    def running(self) -> list[str]:
        """The containers that run."""
        return [
            c.facts.container_id
            for c in self.containers.values()
            if c.facts.state is ContainerState.RUNNING
        ]

    def end(self, container_id: str, code: int, truth: str) -> None:
        """A process ends now: by itself, by a hand, by ours, or with its host."""
        container = self.containers[container_id]
        if container.facts.state is not ContainerState.RUNNING:
            return
        container.truth = truth
        container.facts = replace(
            container.facts, state=ContainerState.EXITED, exit_code=code, finished_at=self.now
        )

    def cut_off(self) -> None:
        """The power is cut; what ran is found ended at the return."""
        self.reachable = False
        self._cut_off = True

    def stop_in_order(self) -> None:
        """The engine ends its containers and goes."""
        self.lost_at = self.now
        for number, container_id in enumerate(self.running()):
            self.end(container_id, (0, 137, 143)[number % 3], "host")
        self.reachable = False
        self._cut_off = False

    def come_back(self) -> None:
        """The engine returns, stamps what it lost, and starts the sentinel."""
        if self.reachable:
            return
        self.now += timedelta(minutes=1)
        if self._cut_off:
            self.lost_at = self.now
            for container_id in self.running():
                self.end(container_id, 255, "host")
        self.now += timedelta(seconds=2)
        self.reachable = True
        if self.epoch is not None:
            self.epoch = self.now
        self.now += timedelta(seconds=1)
