"""The spec of a SessionInstance as values (design.md 2)."""

from dataclasses import dataclass
from datetime import timedelta

from controller.api.reasons import Reason
from controller.api.vocabulary import (
    DesiredState,
    ExitPolicy,
    Isolation,
    OnCrash,
    OnHostLoss,
    Security,
)

DEFAULT_HOME = "/home/agent"
RUN_DIRECTORY = "/run/sessionkeeper"
DEFAULT_ATTEMPTS = 5
DEFAULT_BACKOFF = timedelta(seconds=10)
DEFAULT_BACKOFF_MAX = timedelta(minutes=5)
DEFAULT_EXPIRE_AT_ONCE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFault:
    """One thing that is refused: the field by its path, the reason, and a sentence."""

    field: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What never changes in the life of a session."""

    workspace: str
    role: str
    agent: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSpec:
    """A directory that the session sees: one of the host, or a tree of a repository.

    `branch` is the one to work on in a tree, empty for one that is made for the session. `url` is
    where a clone is fetched from that has no `host_path`.
    """

    name: str
    mount_path: str
    host_path: str
    read_only: bool
    isolation: Isolation = Isolation.SHARED
    branch: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortSpec:
    """A port of the session, published on the host's loopback; `host_port` 0 is any free one."""

    name: str
    container_port: int
    host_port: int
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSpec:
    """When and how often a session is brought back; None falls back to the policy."""

    on_host_loss: OnHostLoss | None
    on_crash: OnCrash | None
    max_attempts: int
    backoff: timedelta
    backoff_max: timedelta
    retry_run: int | None
    accept_divergence: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """A SessionInstance's spec with the schema's defaults applied."""

    desired: DesiredState | None
    identity: Identity
    image_ref: str
    home: str
    title: str
    working_dir: str
    user: str
    tty: bool
    command: tuple[str, ...] | None
    args: tuple[str, ...] | None
    resume_command: tuple[str, ...] | None
    env: tuple[tuple[str, str], ...]
    mounts: tuple[MountSpec, ...]
    ports: tuple[PortSpec, ...]
    memory_bytes: int
    nano_cpus: int
    exit_policy: ExitPolicy | None
    restore: RestoreSpec
    security: Security
    discard_approval: str
    keep_for: timedelta | None
    ttl_after_purged: timedelta | None
    faults: tuple[SpecFault, ...]
