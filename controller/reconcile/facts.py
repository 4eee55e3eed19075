"""What was observed of the world, as plain values; `plan` decides on nothing else.

A probe that failed is a value, `Unknown(reason, message)`, never `None`, `False` or an empty list:
unknown is not clean (law 2) and unreachable is not gone (law 3). Times on containers are the
engine's own stamps and are compared with engine stamps only (settled.md, *Evidence of an end*).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from controller.api.reasons import Reason
from controller.api.vocabulary import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A probe that failed, timed out or was ambiguous: why, for programs and for people."""

    reason: Reason
    message: str


class ContainerState(StrEnum):
    """The engine's word for a container; `DEAD` and `REMOVING` are neither absent nor startable."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    REMOVING = "removing"
    EXITED = "exited"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFacts:
    """One container of this session, as a fresh inspection on a new connection showed it.

    `started_at` is None for a container that never started, `finished_at` for one that never
    ended. `error` is the engine's own text about a failed start, or empty. `run_id` and
    `recipe_hash` are the labels of the run that created it, not of the run in it now.
    """

    container_id: str
    name: str
    component: Component
    run_id: int
    recipe_hash: str
    state: ContainerState
    exit_code: int
    oom_killed: bool
    error: str
    started_at: datetime | None
    finished_at: datetime | None
    image_id: str
    set_aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """An image that the engine holds: its ID, its digest in a registry, the user it names.

    `volumes` are the directories for which an engine makes a volume with each container, and
    removes it with that container.
    """

    image_id: str
    digest: str
    user: str
    volumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageAbsent:
    """A definite answer of the engine that asked for an image it does not hold."""

    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """An engine that answered, and what tells it from another one or from its own past.

    `epoch` is the sentinel's StartedAt, None where it is missing; `sentinel_finished_at` is its
    FinishedAt; `now` is the engine's clock at the answer. `boot_id` is the kernel's where the
    controller can read it. `engine_started_at` is when the engine made its bridge network: a
    second witness of its start, None where it has no bridge.
    """

    engine_id: str
    boot_id: str
    version: str
    now: datetime
    epoch: datetime | None
    sentinel_finished_at: datetime | None
    engine_started_at: datetime | None = None


class MountVerdict(StrEnum):
    """Whether a started container really mounts what its recipe says (law 17)."""

    MATCHES = "matches"
    DIFFERS = "differs"
    UNVERIFIABLE = "unverifiable"


class ProcessVerdict(StrEnum):
    """Whether the process that an engine calls running is there (design.md 4, rung 0)."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOnBackend:
    """Everything of one session that the backend holds: containers and its own network.

    `jobs` are containers of ours that prepare its trees or look at its work; `containers` are the
    session's own.
    """

    containers: tuple[ContainerFacts, ...]
    network_present: bool
    jobs: tuple[ContainerFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEvent:
    """One event of the engine about an owned container: a wake-up, and evidence of a hand.

    `action` is the engine's verb (`die`, `kill`, `stop`, `start`, `pause`, `destroy`, …), `at` its
    own stamp, `uid` the session's label.
    """

    action: str
    container_id: str
    uid: str
    component: Component
    at: datetime
    attributes: Mapping[str, str] = field(default_factory=dict)
