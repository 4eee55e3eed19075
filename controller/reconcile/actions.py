"""What `plan` can ask for. Each action names one idempotent effect; `act` has a function for each.

Recording the manifest and the status is not among them: that is done before the first action of
every plan, in that order (settled.md, *Order of writing*).
"""

from dataclasses import dataclass

from controller.api.reasons import Reason
from controller.api.vocabulary import DesiredState, ExitPolicy
from controller.reconcile.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFinalizer:
    """Put our finalizer and the identity labels on the object, before anything else is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFinalizer:
    """Let the object go; other owners' finalizers stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDecision:
    """Write `spec.desiredState`, unless the spec was edited after `generation`."""

    desired: DesiredState
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """Delete the SessionInstance, whose time after Purged has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullImage:
    """Fetch an image that the engine does not hold."""

    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareHome:
    """Make the session's home, owned by its user, where it never was; never over an old one."""

    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRunDirectory:
    """Write the run directory anew for one run: what it is told in `in/`, and an empty `out/`."""

    run_id: int
    recipe: Recipe
    resumed: bool
    exit_policy: ExitPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsureNetwork:
    """Make the session's own network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAndStart:
    """Create the container of one run and start it; adopts this run's own leftover."""

    run_id: int
    recipe: Recipe
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StartContainer:
    """Start a container that is there (rung 1)."""

    container_id: str
    run_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopContainer:
    """Stop a container and keep it."""

    container_id: str
    grace_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveStaleLocks:
    """Remove what a git that was cut off left in the session's own trees (case C23)."""

    trees: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideContainer:
    """Rename a container that can not be started, so that a new run takes its name."""

    container_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveContainer:
    """Remove one container."""

    container_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNetwork:
    """Remove the session's own network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRunDirectory:
    """Remove the volatile run directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPreparer:
    """Have a throw-away container make the session's trees anew; `subject` names which."""

    recipe: Recipe
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReleaser:
    """Have a throw-away container take the session's worktrees out of their sources."""

    recipe: Recipe
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartInspector:
    """Have a throw-away container look at the session's work; `subject` names what is there."""

    run_id: int
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PinImage:
    """Keep the recorded image from being pruned."""

    image_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveInstance:
    """Remove the instance directory, the manifest last; only ever after `destroy_recorded`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SayEvent:
    """Write a Kubernetes Event about the session, once; that it fails holds nothing up."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRecord:
    """Write down beside the data what its object was, which is about to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    """Make an archived instance the directory of this session, as its host's owner ordered."""

    entry: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveInstance:
    """Move the instance directory whole to the archive, with a record of what it was."""


Action = (
    AddFinalizer
    | RemoveFinalizer
    | RecordDecision
    | DeleteObject
    | PullImage
    | PrepareHome
    | RemoveStaleLocks
    | WriteRunDirectory
    | EnsureNetwork
    | CreateAndStart
    | StartContainer
    | StopContainer
    | SetAsideContainer
    | RemoveContainer
    | RemoveNetwork
    | RemoveRunDirectory
    | StartPreparer
    | StartReleaser
    | StartInspector
    | PinImage
    | RemoveInstance
    | ArchiveInstance
    | SayEvent
    | KeepRecord
    | TakeOver
)
