"""What the reconcile core asks of a place where sessions run.

Every method may raise `BackendUnreachable`; what else it raises is said with it. Every effect is
idempotent: it may be repeated after a crash at any instant and then ends in the same state. Every
call has a timeout. Methods are called from several threads at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controller.api.vocabulary import Component
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMount:
    """A directory of the host inside a session; the source must exist (settled.md, *Binds*)."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPort:
    """A port of the container on the host's loopback; `host_port` 0 lets the engine choose."""

    container_port: int
    host_port: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContainer:
    """The container that one run is to have: values only, no defaults left to the engine.

    `user` is numeric `uid[:gid]`; `memory_bytes` and `nano_cpus` are limits, 0 for none; `command`
    None keeps the image's entry point and `args` None its arguments. `restricted` means: no new
    privileges, all capabilities dropped. Never `--rm`, restart policy always `no`.
    """

    uid: str
    namespace: str
    name: str
    run_id: int
    recipe_hash: str
    image_id: str
    command: tuple[str, ...] | None
    args: tuple[str, ...] | None
    env: tuple[tuple[str, str], ...]
    working_dir: str
    user: str
    tty: bool
    restricted: bool
    memory_bytes: int
    nano_cpus: int
    mounts: tuple[BindMount, ...]
    ports: tuple[PublishedPort, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContainer:
    """A throw-away container of ours: it prepares a session's trees or looks at its work (law 14).

    It has the session's own identity and nothing else: no capability, a root that is read-only,
    bounded memory, processes and output, and no network unless it is `networked` to fetch.
    `request_hash` names what it was asked.
    """

    component: Component
    uid: str
    namespace: str
    name: str
    run_id: int
    request_hash: str
    image: str
    user: str
    mounts: tuple[BindMount, ...]
    command: tuple[str, ...]
    networked: bool = False


class Backend(Protocol):
    """A Docker engine or a cluster, as the core sees it."""

    def survey(self) -> EngineFacts:
        """Return who answers and since when; changes nothing.

        `epoch` is None where the sentinel is missing. An engine that has only just returned
        answers before it has started the sentinel again: wait for that for some seconds, and raise
        BackendUnreachable meanwhile. A sentinel that somebody stopped by hand is started again;
        `engine_started_at` then tells the caller that this is no new epoch.
        """
        ...

    def install_sentinel(self) -> None:
        """Create and start the sentinel of this owner and host where it is missing."""
        ...

    def inventory(self) -> dict[str, tuple[ContainerFacts, ...]]:
        """List all session containers of this owner by session UID, in one call.

        A listing has no exit code, error or stamps: those fields are empty, `started_at` and
        `finished_at` None. Use `observe` before deciding anything on them.
        """
        ...

    def networks(self) -> frozenset[str]:
        """Return the UIDs for which a network of this owner exists."""
        ...

    def observe(self, uid: str) -> SessionOnBackend:
        """Inspect everything of one session, by label and on a connection opened now."""
        ...

    def image(self, ref: str) -> ImageFacts | ImageAbsent:
        """Look an image up by name or ID, without fetching it."""
        ...

    def pull(self, ref: str) -> None:
        """Fetch an image. Raises Refused: ImageNotFound (SPEC) or ImagePullFailing (REGISTRY)."""
        ...

    def ensure_network(self, *, uid: str, namespace: str, name: str) -> None:
        """Make the session's own network. Raises Refused NetworkPoolExhausted (HOST)."""
        ...

    def create(self, container: SessionContainer) -> str:
        """Create, or adopt the labelled leftover of this very run and recipe; return the ID.

        A name that is taken by something foreign or by nothing is avoided by a fresh suffix; the
        foreign thing is left alone. Raises Refused: ImageMissing, MountRefused, PortTaken, NoSpace…
        """
        ...

    def start(self, container_id: str) -> None:
        """Start a created or stopped container; one that runs already is success.

        A stale endpoint of this session's own on its own network is disconnected by force and the
        start tried again; a network that vanished is made again and connected. Raises Absent,
        Conflict, or Refused: CommandNotFound (SPEC), ContainerBroken (CONTAINER), NoSpace (HOST)…
        """
        ...

    def stop(self, container_id: str, *, grace_seconds: int) -> None:
        """Stop a container; one that is stopped or gone is success."""
        ...

    def remove(self, container_id: str) -> None:
        """Remove a container with its anonymous volumes, by ID; one that is gone is success.

        A removal that is already in progress raises Conflict: absence has yet to be observed.
        """
        ...

    def set_aside(self, container_id: str) -> None:
        """Rename a container out of the way (`set_aside` is true from then on); keep its layer."""
        ...

    def remove_network(self, uid: str) -> None:
        """Remove the session's own network; endpoints left on it are disconnected first."""
        ...

    def ensure_pin(self, image_id: str) -> None:
        """Keep an image from being pruned: one running do-nothing container for each image."""
        ...

    def pins(self) -> frozenset[str]:
        """Return the IDs of the images whose pin is running now."""
        ...

    def drop_pin(self, image_id: str) -> None:
        """Remove the pin of an image that no manifest names any more."""
        ...

    def probe(self, container_id: str) -> ProcessVerdict:
        """Look whether the process that the engine calls running exists."""
        ...

    def verify_mounts(self, container_id: str, mounts: tuple[BindMount, ...]) -> MountVerdict:
        """Compare what the running container mounts with the directories meant (law 17)."""
        ...

    def start_job(self, job: JobContainer) -> str:
        """Create and start a job; return its ID. Raises Refused: InspectorMissing (HOST)…"""
        ...

    def job_output(self, container_id: str) -> bytes:
        """Return what a job that has ended printed, up to a limit."""
        ...

    def events(self, since: datetime) -> Iterator[EngineEvent | None]:
        """Yield events of owned containers from `since` (engine clock) on, in the order received.

        Yields None once when the subscription stands: what is listed after it cannot be missed.
        Ends, or raises BackendUnreachable, when the stream breaks; the caller lists and
        subscribes anew with an overlap. Duplicates are the caller's to drop.
        """
        ...

    def close_events(self) -> None:
        """End a running `events` from another thread."""
        ...
