"""Every reason a condition, an Event or a log line can carry, with what it means and what to do.

This table is the one source of `docs/reference/conditions.md`. A message may add the particulars
of one session; the meaning and the remedy stand here.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """The CamelCase reasons, as they appear in the API."""

    # what a session is doing or has reached
    SUCCEEDED = "Succeeded"
    RUNNING = "Running"
    STARTING = "Starting"
    RESTORING = "Restoring"
    KEEPING = "Keeping"
    KEPT = "Kept"
    PURGING = "Purging"
    PURGED = "Purged"
    PAUSED = "Paused"
    WAITING_TO_RETRY = "WaitingToRetry"
    NOT_RUNNING = "NotRunning"
    # how a run ended
    CLEAN_EXIT = "CleanExit"
    CRASHED = "Crashed"
    OOM_KILLED = "OOMKilled"
    HOST_LOST = "HostLost"
    ENDED_UNKNOWN = "EndUnknown"
    STOPPED_BY_HAND = "StoppedByHand"
    CONTAINER_REMOVED = "ContainerRemoved"
    # a launch or a restore that could not be done
    COMMAND_NOT_FOUND = "CommandNotFound"
    IMAGE_NOT_FOUND = "ImageNotFound"
    IMAGE_PULL_FAILING = "ImagePullFailing"
    IMAGE_MISSING = "ImageMissing"
    MOUNT_REFUSED = "MountRefused"
    SOURCE_REFUSED = "SourceRefused"
    PREPARATION_FAILED = "PreparationFailed"
    MOUNTS_UNVERIFIED = "MountsUnverified"
    RUN_AS_ROOT = "RunAsRoot"
    NETWORK_POOL_EXHAUSTED = "NetworkPoolExhausted"
    NO_SPACE = "NoSpace"
    ENGINE_BUSY = "EngineBusy"
    PORT_TAKEN = "PortTaken"
    CONTAINER_BROKEN = "ContainerBroken"
    CONTAINER_DEAD = "ContainerDead"
    START_REFUSED = "StartRefused"
    NAME_TAKEN = "NameTaken"
    ATTEMPTS_EXHAUSTED = "RestoreAttemptsExhausted"
    # a backend or a disk that cannot be believed
    BACKEND_ANSWERS = "BackendAnswers"
    ENGINE_UNREACHABLE = "EngineUnreachable"
    TIMEOUT = "Timeout"
    ENGINE_REPLACED = "EngineReplaced"
    STATE_ROOT_MISSING = "StateRootMissing"
    STATE_ROOT_NOT_WRITABLE = "StateRootNotWritable"
    STATE_ROOT_IN_USE = "StateRootInUse"
    INSTANCE_DIRECTORY_MISSING = "InstanceDirectoryMissing"
    MANIFEST_CORRUPT = "ManifestCorrupt"
    RECIPE_MISMATCH = "RecipeMismatch"
    STATUS_OLDER_THAN_MANIFEST = "StatusOlderThanManifest"
    STATUS_NOT_PERSISTED = "StatusNotPersisted"
    LEASE_LAPSED = "LeaseLapsed"
    # a spec that is not served
    SPEC_ACCEPTED = "SpecAccepted"
    SPEC_INVALID = "SpecInvalid"
    NOT_YET_SERVED = "NotYetServed"
    NOT_ALLOWED_BY_HOST = "NotAllowedByHost"
    FIELD_CHANGED = "FieldChanged"
    ALREADY_PURGED = "AlreadyPurged"
    HOST_DIVERGED = "HostDiverged"
    # work
    NOT_YET_ASSESSED = "NotYetAssessed"
    ASSESSED = "Assessed"
    ASSESSING = "Assessing"
    ASSESSMENT_FAILED = "AssessmentFailed"
    MOVED = "Moved"
    INSPECTOR_MISSING = "InspectorMissing"
    NOT_BLOCKED = "NotBlocked"
    APPROVAL_MISSING = "ApprovalMissing"
    APPROVAL_STALE = "ApprovalStale"
    MASS_EXPIRY = "MassExpiry"
    ARCHIVED = "Archived"
    WORKTREE_STAYS = "WorktreeStays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a reason means, and what the person who reads it can do."""

    meaning: str
    remedy: str


_NOTHING: Final = "Nothing: this is how it should be."
_WAIT: Final = "Wait: the controller goes on by itself."
_RETRY: Final = (
    "Mend the cause, then ask for one more run by setting spec.restore.retryRun to the number in "
    "status.runId."
)
_DECIDE: Final = (
    "Look at the container, then set spec.restore.retryRun to status.runId to start it again as it "
    "is, or desiredState to Kept or Purged."
)
_MEND_SPEC: Final = "Mend the spec; it is tried again at once."
_SEE_ENGINE: Final = (
    "Nothing was changed. Mend the engine; the session goes on by itself once it answers."
)


def _why(meaning: str, remedy: str) -> Explanation:
    return Explanation(meaning=meaning, remedy=remedy)


EXPLANATIONS: Final[dict[Reason, Explanation]] = {
    Reason.SUCCEEDED: _why("There is nothing to report.", _NOTHING),
    Reason.RUNNING: _why("The process of the present run was started and lives.", _NOTHING),
    Reason.STARTING: _why("The first launch is under way.", _WAIT),
    Reason.RESTORING: _why("A rung of the restore ladder is being climbed.", _WAIT),
    Reason.KEEPING: _why("The runtime is being freed; the data stays.", _WAIT),
    Reason.KEPT: _why(
        "The runtime is freed; data, recipe and image pin stay.",
        "Set desiredState to Running to resume it.",
    ),
    Reason.PURGING: _why(
        "The session is stopped, its work looked at, and then all of it removed.", _WAIT
    ),
    Reason.PURGED: _why("Nothing of the session is left but its object.", _NOTHING),
    Reason.PAUSED: _why(
        "The container is paused on the engine.", "Run `docker unpause` on it to let it go on."
    ),
    Reason.WAITING_TO_RETRY: _why("The next attempt is due at a later time.", _WAIT),
    Reason.NOT_RUNNING: _why("No process of this session runs.", _WAIT),
    Reason.CLEAN_EXIT: _why("The process ended with exit code 0.", _DECIDE),
    Reason.CRASHED: _why("The process ended by itself with a code other than 0.", _DECIDE),
    Reason.OOM_KILLED: _why("The process outgrew its memory limit and was killed.", _DECIDE),
    Reason.HOST_LOST: _why("The engine or its host went away under the session.", _DECIDE),
    Reason.ENDED_UNKNOWN: _why("Nothing shows whether the host or the session ended it.", _DECIDE),
    Reason.STOPPED_BY_HAND: _why("Somebody stopped the container on the engine.", _DECIDE),
    Reason.CONTAINER_REMOVED: _why("Somebody removed the container on the engine.", _WAIT),
    Reason.COMMAND_NOT_FOUND: _why("The command does not exist in the image.", _MEND_SPEC),
    Reason.IMAGE_NOT_FOUND: _why("The registry answers that there is no such image.", _MEND_SPEC),
    Reason.IMAGE_PULL_FAILING: _why(
        "The registry can not be reached, says 'later', or does not give access.",
        "It is tried again by itself. Where access is denied, pull the image on the host as "
        "somebody who may, or mend spec.image.ref.",
    ),
    Reason.IMAGE_MISSING: _why(
        "The recorded image is not on the engine any more.",
        "Load or pull that image on the host; the session goes on by itself.",
    ),
    Reason.MOUNT_REFUSED: _why(
        "A mount's source is missing, is reached through a link, or is not what was meant.",
        "Mend the source on the host or the mount in the spec; it is tried again.",
    ),
    Reason.MOUNTS_UNVERIFIED: _why(
        "The controller can not see the engine's processes to verify the mounts.",
        "Run the controller in the host's PID namespace, then ask for a retry.",
    ),
    Reason.RUN_AS_ROOT: _why("The session asks to run as root and is Restricted.", _MEND_SPEC),
    Reason.NETWORK_POOL_EXHAUSTED: _why(
        "The engine has no address range left for another network.",
        "Remove networks that nobody uses (`docker network ls`), or give the engine more "
        "default-address-pools; it is tried again.",
    ),
    Reason.NO_SPACE: _why("A disk of the host is full.", "Make space on the host; it goes on."),
    Reason.ENGINE_BUSY: _why("The engine could not do it now.", _WAIT),
    Reason.PORT_TAKEN: _why(
        "A published port is in use on the host.", "Free the port, or change spec.ports."
    ),
    Reason.CONTAINER_BROKEN: _why(
        "The engine holds the container and can not run it.",
        "It is replaced by itself once others start. Where the engine can not even inspect it, "
        "mend its layer, or `docker rm` it: the session then returns without its writable layer.",
    ),
    Reason.CONTAINER_DEAD: _why(
        "The engine is removing the container, or failed to.",
        "See the engine's log; once it is gone the session goes on by itself.",
    ),
    Reason.START_REFUSED: _why("The engine refused to start the container.", _RETRY),
    Reason.NAME_TAKEN: _why("A foreign container has the name; another one is used.", _NOTHING),
    Reason.ATTEMPTS_EXHAUSTED: _why("As many restores failed as spec.restore allows.", _RETRY),
    Reason.BACKEND_ANSWERS: _why("The engine answers and is the one we know.", _NOTHING),
    Reason.ENGINE_UNREACHABLE: _why("The engine does not answer.", _SEE_ENGINE),
    Reason.TIMEOUT: _why("A call to the engine got no answer in time.", _SEE_ENGINE),
    Reason.ENGINE_REPLACED: _why(
        "An engine answers that is not the one this host had.",
        "Nothing was changed. Bring the old engine's data back, or accept the new engine with "
        "`sessionkeeper adopt --engine` while the controller is stopped.",
    ),
    Reason.STATE_ROOT_MISSING: _why(
        "The state root is not there or is not this host's: its disk is not mounted.",
        "Mount it; sessions go on by themselves.",
    ),
    Reason.STATE_ROOT_NOT_WRITABLE: _why(
        "The state root can not be written.", "Mend its permissions or mount options."
    ),
    Reason.STATE_ROOT_IN_USE: _why(
        "Another controller on this host holds the state root.",
        "Stop the other one, or give this one a state root of its own.",
    ),
    Reason.INSTANCE_DIRECTORY_MISSING: _why(
        "The session ran before and its directory is not under the state root.",
        "Mount the disk that holds it or bring the directory back; it goes on by itself.",
    ),
    Reason.MANIFEST_CORRUPT: _why(
        "The session's manifest can not be read.",
        "Nothing is started or purged. Bring the manifest back from a backup, or delete the "
        "object: its directory is then archived whole.",
    ),
    Reason.RECIPE_MISMATCH: _why(
        "The container and the recorded recipe do not belong together.",
        "Nothing is started or purged. Compare the container's label with status.recipe.hash.",
    ),
    Reason.STATUS_OLDER_THAN_MANIFEST: _why(
        "The API server holds an older state than the manifest: it was restored from a backup.",
        "Accept what the API server says now with `sessionkeeper adopt --session NAMESPACE/NAME` "
        "on the host while the controller is stopped.",
    ),
    Reason.STATUS_NOT_PERSISTED: _why(
        "The server dropped fields of the status: its CRD is older than the controller.",
        "Apply the CRDs of this release; `sessionkeeper doctor` names what is missing.",
    ),
    Reason.LEASE_LAPSED: _why(
        "The controller of the session's host has not renewed its Lease.",
        "See whether the host and its controller run.",
    ),
    Reason.SPEC_ACCEPTED: _why("The spec is served as it is.", _NOTHING),
    Reason.SPEC_INVALID: _why("A field of the spec is malformed.", _MEND_SPEC),
    Reason.NOT_YET_SERVED: _why("A field asks for what this release does not do.", _MEND_SPEC),
    Reason.NOT_ALLOWED_BY_HOST: _why(
        "The host's owner has not allowed what the spec asks for.",
        "Ask the host's owner for the flag that the message names, or change the spec.",
    ),
    Reason.FIELD_CHANGED: _why(
        "A field was changed that is fixed since the first launch.",
        "Set the field back, or create a new session.",
    ),
    Reason.ALREADY_PURGED: _why(
        "The session was purged and can not come back.", "Create a new session."
    ),
    Reason.HOST_DIVERGED: _why(
        "The repository on the host stands at another commit than when the session was kept.",
        "Name that commit in spec.restore.acceptDivergence, or leave the session Kept.",
    ),
    Reason.NOT_YET_ASSESSED: _why("Unsaved work was not assessed and counts as Unknown.", _NOTHING),
    Reason.SOURCE_REFUSED: _why(
        "A repository on the host can not be cloned as it is.",
        "Do what the message says in the source, then set spec.restore.retryRun to status.runId; "
        "or change the mount.",
    ),
    Reason.PREPARATION_FAILED: _why(
        "The session's own tree could not be made.", "Mend what the message names; it is retried."
    ),
    Reason.ASSESSED: _why("The work was assessed after its last run.", _NOTHING),
    Reason.ASSESSING: _why("An inspector is looking at the session's work.", _NOTHING),
    Reason.ASSESSMENT_FAILED: _why(
        "The work could not be assessed, so it counts as Unknown and nothing of it is discarded.",
        "Mend what the message names, then ask again; or look at the work yourself and approve.",
    ),
    Reason.MOVED: _why(
        "A worktree of the session is not where its repository has it registered.",
        "Move it back; or, where the state root was moved, stop the controller, run "
        "`sessionkeeper adopt --session NAMESPACE/NAME`, and start it again.",
    ),
    Reason.INSPECTOR_MISSING: _why(
        "The engine does not hold the image that assesses work.",
        "Load the image that --inspector-image names into the engine (`make images`).",
    ),
    Reason.APPROVAL_MISSING: _why(
        "The session holds work that exists nowhere else, and nobody has approved its loss.",
        "Look at status.work, then approve its digest, or set desiredState to Kept or Running.",
    ),
    Reason.APPROVAL_STALE: _why(
        "The work has changed since the approved evidence was seen.",
        "Look at status.work again and approve its present digest, or keep the session.",
    ),
    Reason.WORKTREE_STAYS: _why(
        "A purged session's worktree could not be taken out of its source (an Event).",
        "Look at the source with git worktree list, and remove there what is not wanted.",
    ),
    Reason.ARCHIVED: _why(
        "The session's directory was moved to the archive of its host.",
        "`sessionkeeper archive` lists, shows, restores and removes what is there.",
    ),
    Reason.MASS_EXPIRY: _why(
        "Too many kept sessions of the host came to the end of keepFor together.",
        "See whether clock and policies are right; then keep it for longer, purge it, or let the "
        "controller have --expire-at-once as great as that.",
    ),
    Reason.NOT_BLOCKED: _why("No purge is waiting for a person.", _NOTHING),
}
