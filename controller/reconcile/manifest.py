"""The manifest of an instance: the durable record beside a session's data.

It is written before the status, and the status before the effect (settled.md, *Order of
writing*), so that after a crash at any instant the next start finds what was begun. It lies beside
the directories that are mounted, never inside one.
"""

from dataclasses import dataclass
from datetime import datetime

from cattrs import ClassValidationError, transform_error
from cattrs.preconf.json import make_converter

from controller.api.reasons import Reason
from controller.api.spec import Identity
from controller.api.vocabulary import Cause, DecidedBy, DesiredState, Phase, Rung
from controller.reconcile.recipe import Recipe
from controller.reconcile.trees import TreeRecord
from controller.reconcile.work import WorkRecord

MANIFEST_VERSION = 1
HISTORY_LENGTH = 20


class ManifestCorrupt(Exception):
    """A manifest that can not be read as one; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """Which process is a run: (container ID, StartedAt), by the engine's stamp."""

    container_id: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The epoch of the engine in which the run was last confirmed alive, and when."""

    epoch: datetime
    boot_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """How a run ended, and what was decided about it."""

    run_id: int
    code: int
    oom_killed: bool
    finished_at: datetime | None
    watched: bool
    decision: DesiredState | None = None
    decided_by: DecidedBy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A change of `spec.desiredState` that is ours to record, and against which edit it stands."""

    desired: DesiredState
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRung:
    """A rung that was not taken, and why."""

    tier: Rung
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRecord:
    """A restore in progress or the last one that was.

    `attempts` counts failures in a row, `refusals` those in which the container itself would not
    start; `stop_first` asks to end the present process before the next run; `asked` that a person
    wants this restore, whatever cause and policy say.
    """

    tier: Rung | None = None
    attempts: int = 0
    refusals: int = 0
    stop_first: bool = False
    asked: bool = False
    started_at: datetime | None = None
    completed_at: datetime | None = None
    next_attempt_at: datetime | None = None
    lost: tuple[str, ...] = ()
    skipped: tuple[SkippedRung, ...] = ()
    fault_reason: Reason | None = None
    fault_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHead:
    """The commit at which the repository of a mount's source stood as the session was kept."""

    mount: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One entry of the history."""

    phase: Phase
    cause: Cause | None
    run_id: int
    tier: Rung | None
    at: datetime
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the API server was last seen to hold: less than this later is a restored backup."""

    run_id: int
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything that must survive of one session.

    `before` is the phase that a restore in progress came from, `ready_run` the last run whose
    process was started, `retried_run` the last run of which a person's retry was begun,
    `destroy_recorded` that freeing or removing has been decided past recall, `released` that the
    object was deleted while something of it remained, `automatic` that a purge was decided by
    nobody, at an exit or, where it has `expired`, by age, `discard` the digest of the work that its
    person then saw, `work` the last verdict on unsaved work, `trees` the session's own trees as
    they were made, `trees_made` of what, `trees_released` that its worktrees were taken out of
    their sources, and `told` the digest of the evidence that an Event has told of.
    """

    uid: str
    namespace: str
    name: str
    owner: str
    identity: Identity
    created_at: datetime
    desired: DesiredState
    phase: Phase
    seen: Seen
    before: Phase | None = None
    cause: Cause | None = None
    reason: Reason | None = None
    message: str = ""
    run_id: int = 0
    ready_run: int = 0
    tried_generation: int = 0
    retried_run: int = 0
    recipe: Recipe | None = None
    process: ProcessMark | None = None
    confirmed: Confirmation | None = None
    exit: ExitRecord | None = None
    decision: Decision | None = None
    restore: RestoreRecord = RestoreRecord()
    destroy_recorded: bool = False
    released: bool = False
    automatic: bool = False
    expired: bool = False
    discard: str = ""
    work: WorkRecord | None = None
    trees: tuple[TreeRecord, ...] = ()
    trees_made: str = ""
    trees_released: bool = False
    told: str = ""
    kept_heads: tuple[SourceHead, ...] = ()
    transitioned_at: datetime | None = None
    history: tuple[Transition, ...] = ()


_CONVERTER = make_converter(forbid_extra_keys=True)


def to_json(manifest: Manifest) -> str:
    """Return the manifest as the text that is stored, with the hash of its recipe."""
    return _CONVERTER.dumps(
        _Envelope(
            version=MANIFEST_VERSION,
            recipe_hash=manifest.recipe.hash if manifest.recipe else None,
            manifest=manifest,
        )
    )


def from_json(text: str | bytes) -> Manifest:
    """Read a stored manifest. Raises ManifestCorrupt, with a sentence, for what is not one."""
    try:
        envelope = _CONVERTER.loads(text, _Envelope)
    except (ValueError, TypeError, AttributeError, ClassValidationError, RecursionError) as error:
        raise ManifestCorrupt(f"it can not be read ({_first_line(error)})") from error
    if envelope.version != MANIFEST_VERSION:
        raise ManifestCorrupt(f"its version is {envelope.version} and this release reads 1")
    recipe = envelope.manifest.recipe
    if (recipe.hash if recipe else None) != envelope.recipe_hash:
        raise ManifestCorrupt("its recipe does not match the recorded hash")
    return envelope.manifest


def _first_line(error: Exception) -> str:
    if isinstance(error, ClassValidationError):
        return transform_error(error)[0]
    return str(error).partition("\n")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Envelope:
    version: int
    recipe_hash: str | None
    manifest: Manifest
