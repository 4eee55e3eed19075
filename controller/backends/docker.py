"""The Docker backend: sessions as containers of one engine.

Everything is found by labels that carry the owner; nothing that lacks them is changed. An effect
is repeated safely after a crash at any instant. No error of the client library leaves the
`docker_*` modules.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from controller.api.names import (
    LABEL_COMPONENT,
    LABEL_OWNER,
    LABEL_RECIPE,
    LABEL_RUN,
    LABEL_UID,
    container_name,
)
from controller.api.reasons import Reason
from controller.api.vocabulary import JOBS, Component
from controller.backends.docker_engine import Client, Engine, TimeLimits
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_events import Events
from controller.backends.docker_facts import (
    ASIDE,
    Json,
    inspected_container,
    labels_of,
    listed_container,
    stamp,
)
from controller.backends.docker_idle import Pins, Sentinel, create_named
from controller.backends.docker_image import Images
from controller.backends.docker_jobs import Jobs
from controller.backends.docker_network import Networks
from controller.backends.docker_process import Processes
from controller.backends.docker_request import by_labels, session_body
from controller.backends.errors import Absent, BackendUnreachable, Conflict, Fault, Refused
from controller.backends.protocol import BindMount, JobContainer, SessionContainer
from controller.reconcile.facts import (
    ContainerFacts,
    EngineEvent,
    EngineFacts,
    ImageAbsent,
    ImageFacts,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
)

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
# The built-in networks of an engine are made together at its very first start; only the bridge is
# made anew at each later one.
_FIRST_START_SECONDS: Final = 5.0
_KILLED: Final = 137
_OF_SESSIONS: Final = frozenset({Component.SESSION, *JOBS})
_SETTLING_SECONDS: Final = 0.3


class DockerBackend:
    """One Docker engine, seen by one owner. Implements `protocol.Backend`."""

    def __init__(self, *, docker_host: str, owner: str, limits: TimeLimits | None = None) -> None:
        """Take the engine's address (`unix://…`, `tcp://…`); nothing is called yet."""
        self._engine = Engine(docker_host, limits or TimeLimits())
        self._owner = owner
        self._networks = Networks(self._engine, owner)
        self._images = Images(self._engine, owner)
        self._sentinel = Sentinel(self._engine, owner)
        self._pins = Pins(self._engine, owner)
        self._jobs = Jobs(self._engine, owner)
        self._processes = Processes(self._engine, self._sentinel)
        self._events = Events(self._engine, owner)
        self._settled_ends: set[tuple[str, str]] = set()

    def close(self) -> None:
        """End the event stream and close all connections."""
        self._events.close()
        self._engine.close()

    def survey(self) -> EngineFacts:
        """Return who answers and since when, each asked on a connection opened now.

        Where the sentinel ended after its engine had begun, somebody restarted it by hand, and
        its end says nothing of when the engine went away.
        """
        version = self._engine.negotiate()
        client = self._engine.fresh()
        with translated(Doing.READ, "asking about the engine"):
            info: Json = client.info()
            built_in: list[Json] = client.networks(filters={"type": ["builtin"]})
        sentinel = self._sentinel.inspect()
        began = engine_start(built_in)
        finished = stamp(str(sentinel["FinishedAt"])) if sentinel is not None else None
        now = stamp(str(info["SystemTime"]))
        if now is None:
            raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, "the engine does not tell its time")
        return EngineFacts(
            engine_id=str(info["ID"]),
            boot_id=_boot_id() if self._engine.is_local else "",
            version=version,
            now=now,
            epoch=stamp(str(sentinel["StartedAt"])) if sentinel is not None else None,
            sentinel_finished_at=None if began and finished and finished > began else finished,
            engine_started_at=began,
        )

    def install_sentinel(self) -> None:
        """Create and start the sentinel of this owner where it is missing."""
        self._images.sweep_lookups()
        self._sentinel.install()

    def inventory(self) -> dict[str, tuple[ContainerFacts, ...]]:
        """List all session containers of this owner by session UID, in one call."""
        sessions: defaultdict[str, list[ContainerFacts]] = defaultdict(list)
        for listed in self._list(self._engine.fresh(), {}):
            sessions[labels_of(listed).get(LABEL_UID, "")].append(listed_container(listed))
        return {uid: tuple(containers) for uid, containers in sessions.items()}

    def networks(self) -> frozenset[str]:
        """Return the UIDs for which a network of this owner exists."""
        return self._networks.uids()

    def observe(self, uid: str) -> SessionOnBackend:
        """Inspect everything of one session; what vanishes meanwhile is left out."""
        client = self._engine.fresh()
        found = []
        for listed in self._list(client, {LABEL_UID: uid}):
            try:
                with translated(Doing.INSPECT, f"inspecting container {listed['Id'][:12]}"):
                    found.append(inspected_container(self._inspect_settled(client, listed["Id"])))
            except Absent:
                continue
        network_present = bool(self._networks.of_session(client, uid))
        return SessionOnBackend(
            containers=tuple(c for c in found if c.component is Component.SESSION),
            network_present=network_present,
            jobs=tuple(c for c in found if c.component in JOBS),
        )

    def _inspect_settled(self, client: Client, container_id: str) -> Json:
        """Inspect a container; one that was just killed under a memory limit, a moment later too.

        The engine learns of the end and of the lack of memory by two events, in either order.
        """
        inspected: Json = client.inspect_container(container_id)
        state, limit = inspected["State"], inspected["HostConfig"].get("Memory", 0)
        killed = state["ExitCode"] == _KILLED and not state["OOMKilled"] and not state["Running"]
        end = (container_id, str(state["FinishedAt"]))
        if limit and killed and end not in self._settled_ends:
            time.sleep(_SETTLING_SECONDS)
            self._settled_ends.add(end)
            inspected = client.inspect_container(container_id)
        return inspected

    def _list(self, client: Client, labels: dict[str, str]) -> list[dict[str, Any]]:
        """List the sessions' containers and jobs; the host's own are left out."""
        wanted = {LABEL_OWNER: self._owner, **labels}
        with translated(Doing.READ, "listing containers"):
            found: list[dict[str, Any]] = client.containers(all=True, filters=by_labels(wanted))
        return [c for c in found if labels_of(c).get(LABEL_COMPONENT) in _OF_SESSIONS]

    def image(self, ref: str) -> ImageFacts | ImageAbsent:
        """Look an image up by name or ID, without fetching it."""
        return self._images.find(ref)

    def pull(self, ref: str) -> None:
        """Fetch an image."""
        self._images.pull(ref)

    def ensure_network(self, *, uid: str, namespace: str, name: str) -> None:
        """Make the session's own network where it is missing."""
        self._networks.ensure(uid=uid, namespace=namespace, name=name)

    def create(self, container: SessionContainer) -> str:
        """Create the container of one run, or adopt what an interrupted attempt left of it.

        The name is free to differ: what holds it, or holds it invisibly after a failed create
        (C01), is left alone.
        """
        adopted = self._leftover(container)
        if adopted is not None:
            return adopted
        network = self._networks.ensure(
            uid=container.uid, namespace=container.namespace, name=container.name
        )
        body = session_body(container, owner=self._owner, network=network)
        client = self._engine.changing()
        container_id = create_named(client, container_name(container.uid, container.run_id), body)
        return self._settle(container, container_id)

    def _leftover(self, container: SessionContainer) -> str | None:
        """Return the labelled container of this very run and recipe, where one is left."""
        labels = {
            LABEL_UID: container.uid,
            LABEL_RUN: str(container.run_id),
            LABEL_COMPONENT: Component.SESSION.value,
        }
        usable = []
        for listed in self._list(self._engine.reading(), labels):
            if listed["State"] in ("dead", "removing") or listed_container(listed).set_aside:
                continue
            if labels_of(listed).get(LABEL_RECIPE) != container.recipe_hash:
                message = f"run {container.run_id} already has a container of another recipe"
                raise Conflict(Reason.RECIPE_MISMATCH, message)
            usable.append(listed)
        usable.sort(key=lambda listed: (listed["Created"], listed["Id"]))
        return str(usable[0]["Id"]) if usable else None

    def _settle(self, container: SessionContainer, created: str) -> str:
        """Where two creates of one run raced, keep the one that both find first (law 6)."""
        kept = self._leftover(container)
        if kept is None or kept == created:
            return created
        self.remove(created)
        return kept

    def start(self, container_id: str) -> None:
        """Start a container; a network or endpoint of its own that is in the way is mended once."""
        client = self._engine.changing()
        self._networks.reconnect(container_id)
        try:
            with translated(Doing.START, "starting the container"):
                client.start(container_id)
        except (Absent, Refused) as error:
            if not _network_is_at_fault(error) or not self._mend(container_id, error):
                raise
            try:
                with translated(Doing.START, "starting the container on a mended network"):
                    client.start(container_id)
            except Absent as again:
                if not _network_is_at_fault(again):
                    raise
                raise Refused(Reason.CONTAINER_BROKEN, again.message, Fault.CONTAINER) from again

    def _mend(self, container_id: str, cause: Absent | Refused) -> bool:
        mended = self._networks.mend(container_id)
        if not mended and isinstance(cause, Absent):
            raise Refused(Reason.CONTAINER_BROKEN, cause.message, Fault.CONTAINER) from cause
        return mended

    def stop(self, container_id: str, *, grace_seconds: int) -> None:
        """Stop a container; one that is stopped or gone is success."""
        try:
            with translated(Doing.CHANGE, "stopping the container"):
                self._engine.changing().stop(container_id, timeout=grace_seconds)
        except Absent:
            return

    def remove(self, container_id: str) -> None:
        """Remove a stopped container with its anonymous volumes; one that is gone is success."""
        try:
            with translated(Doing.CHANGE, "removing the container"):
                self._engine.changing().remove_container(container_id, v=True)
        except Absent:
            return

    def set_aside(self, container_id: str) -> None:
        """Rename a container out of the way; its layer stays."""
        client = self._engine.changing()
        with translated(Doing.READ, "inspecting the container to set aside"):
            inspected: Json = client.inspect_container(container_id)
        facts = inspected_container(inspected)
        if facts.set_aside:
            return
        uid = labels_of(inspected).get(LABEL_UID, "")
        name = f"{container_name(uid, facts.run_id)}{ASIDE}{secrets.token_hex(3)}"
        with translated(Doing.CHANGE, "setting the container aside"):
            client.rename(container_id, name)

    def remove_network(self, uid: str) -> None:
        """Remove the session's own network."""
        self._networks.remove(uid)

    def ensure_pin(self, image_id: str) -> None:
        """Keep an image from being pruned."""
        self._pins.ensure(image_id)

    def pins(self) -> frozenset[str]:
        """Return the IDs of the images whose pin is running now."""
        return self._pins.running()

    def drop_pin(self, image_id: str) -> None:
        """Remove the pin of an image that no manifest names any more."""
        self._pins.drop(image_id)

    def probe(self, container_id: str) -> ProcessVerdict:
        """Look whether the process that the engine calls running exists."""
        return self._processes.probe(container_id)

    def verify_mounts(self, container_id: str, mounts: tuple[BindMount, ...]) -> MountVerdict:
        """Compare what the running container mounts with the directories meant."""
        return self._processes.verify_mounts(container_id, mounts)

    def start_job(self, job: JobContainer) -> str:
        """Create and start a job."""
        return self._jobs.start(job)

    def job_output(self, container_id: str) -> bytes:
        """Return what a job printed."""
        return self._jobs.output(container_id)

    def events(self, since: datetime) -> Iterator[EngineEvent | None]:
        """Yield None when the subscription stands, then the events of owned containers."""
        return self._events.subscribe(since)

    def close_events(self) -> None:
        """End a running `events` from another thread."""
        self._events.close()


def _boot_id() -> str:
    """Return the kernel's boot ID; nothing on a system that has none to read."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def engine_start(built_in: list[Json]) -> datetime | None:
    """Return when the engine's present life began; None if its networks do not tell.

    They do once the bridge is younger than the network "none", which is made once for ever: then
    this engine is seen to make its bridge anew at a start.
    """
    made = {str(network["Name"]): stamp(str(network["Created"])) for network in built_in}
    bridge, none = made.get("bridge"), made.get("none")
    if bridge is None or none is None:
        return None
    return bridge if (bridge - none).total_seconds() > _FIRST_START_SECONDS else None


def _network_is_at_fault(error: Absent | Refused) -> bool:
    text = error.message.lower()
    if isinstance(error, Absent):
        return ": network " in text
    return "endpoint with name" in text
