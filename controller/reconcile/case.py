"""One case for `plan`: everything known about one session at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Final

from controller.api.reasons import Reason
from controller.api.spec import DEFAULT_EXPIRE_AT_ONCE, SessionSpec
from controller.api.vocabulary import ExitPolicy, OnCrash, OnHostLoss, Phase
from controller.capsule.exitaction import ExitAction
from controller.reconcile.facts import (
    EngineFacts,
    ImageAbsent,
    ImageFacts,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
    Unknown,
)
from controller.reconcile.manifest import Manifest
from controller.reconcile.trees import Prepared, Released
from controller.reconcile.work import Work


class NotAsked(Enum):
    """The fact was not needed for this case, so nobody was asked."""

    NOT_ASKED = "not asked"


class ManifestAbsent(Enum):
    """The state root is there, as ours, and holds no directory for this session."""

    ABSENT = "absent"


NOT_ASKED: Final = NotAsked.NOT_ASKED
ABSENT: Final = ManifestAbsent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitOverride:
    """What a person wants of the end of one run, whatever spec and policy say (row J33)."""

    policy: ExitPolicy
    run_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionObject:
    """The SessionInstance as the API server holds it, with what `plan` needs of its status.

    `status_run_id`, `status_phase` and `served_by` are read for the checks of settled.md,
    *Precedence*; the rest of the status is output only. `exit_override` is read from an annotation.
    """

    uid: str
    namespace: str
    name: str
    generation: int
    deleting: bool
    has_finalizer: bool
    spec: SessionSpec
    served_by: str
    status_run_id: int
    status_phase: Phase | None
    purged_at: datetime | None
    exit_override: ExitOverride | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRefusal:
    """What this host does not give: the field that asks for it, and the sentence that says why."""

    field: str
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One uninterrupted life of the engine, by its own clock.

    `started_at` is the sentinel's StartedAt. `lost_at` is the sentinel's FinishedAt at that time:
    when the engine began to stop before this epoch, or, where it was cut off, when it stamped what
    it had lost as it came back. None where nothing shows it.
    """

    started_at: datetime
    lost_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """The engine now, its past epochs (oldest first, the present one last), and its health.

    `starts_succeed` is false only while starts of other sessions fail too.
    """

    facts: EngineFacts
    epochs: tuple[Epoch, ...]
    starts_succeed: bool = True

    @property
    def epoch(self) -> datetime:
        """When the present life of the engine began."""
        return self.epochs[-1].started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """What the event stream showed of the container's last end.

    `watched` means a die event arrived while the stream stood; `stopped_by_hand` names the engine
    event of a stop or kill that was not ours.
    """

    watched: bool = False
    stopped_by_hand: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiring:
    """A kept session that is due to go: since when that is known, and how many are due with it."""

    since: datetime
    together: int


class FaultKind(StrEnum):
    """Whose fault a failed effect is (controller.backends.errors)."""

    CONTAINER = "container"
    HOST = "host"
    SPEC = "spec"
    REGISTRY = "registry"
    RACE = "race"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed:
    """The last effect for this session was refused; consumed by the next plan, exactly once."""

    action: str
    kind: FaultKind
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the controller's flags, the SessionPolicy and our defaults say."""

    owner: str
    host: str
    exit_policy: ExitPolicy = ExitPolicy.ASK
    on_host_loss: OnHostLoss = OnHostLoss.RESTORE
    on_crash: OnCrash = OnCrash.HOLD
    clean_forbidden: bool = False
    keep_for: timedelta | None = None
    expire_at_once: int = DEFAULT_EXPIRE_AT_ONCE
    baseline_allowed: bool = False
    stop_grace_seconds: int = 10
    stable_after: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Spec, record, facts and the time: the whole input of `plan`.

    `session` is None for an object that is definitely gone (asked by UID). `manifest` is Unknown
    where the disk can not be believed. `backend` is Unknown while the engine is unreachable.
    `heads` are the commits of the sources, by mount, where they matter and can be told.
    `restores` names the archived instance that the host's owner ordered for this session,
    `expiring` is there for a kept one whose time is over;
    `jitter` is a number in [0, 1) for back-off.
    """

    settings: Settings
    session: SessionObject | None
    manifest: Manifest | ManifestAbsent | Unknown
    engine: EngineView | Unknown
    backend: SessionOnBackend | Unknown
    image: ImageFacts | ImageAbsent | Unknown | NotAsked = NOT_ASKED
    image_pinned: bool = False
    refused: tuple[HostRefusal, ...] = ()
    mounts: MountVerdict | NotAsked = NOT_ASKED
    process: ProcessVerdict | NotAsked = NOT_ASKED
    inspection: Work | Unknown | NotAsked = NOT_ASKED
    preparation: Prepared | Unknown | NotAsked = NOT_ASKED
    release: Released | Unknown | NotAsked = NOT_ASKED
    heads: Mapping[str, str] = field(default_factory=dict)
    exit_action: ExitAction | None = None
    run_directory_present: bool = False
    restores: str = ""
    expiring: Expiring | None = None
    witness: Mapping[str, Witness]
    failure: EffectFailed | None = None
    now: datetime
    jitter: float = 0.0
