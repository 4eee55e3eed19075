"""The closed sets of words that spec, status, labels, logs and metrics share (design.md 2)."""

from enum import IntEnum, StrEnum


class DesiredState(StrEnum):
    """The last decision of a person, or of an exit or retention rule on their behalf."""

    RUNNING = "Running"
    KEPT = "Kept"
    PURGED = "Purged"


class Phase(StrEnum):
    """Where a session is, derived for people; programs read the conditions."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    KEEPING = "Keeping"
    KEPT = "Kept"
    RESTORING = "Restoring"
    PURGING = "Purging"
    PURGED = "Purged"
    FAILED = "Failed"


class Cause(StrEnum):
    """Why a session is not running."""

    CLEAN_EXIT = "CleanExit"
    CRASHED = "Crashed"
    OOM_KILLED = "OOMKilled"
    HOST_LOST = "HostLost"
    SETUP_FAILED = "SetupFailed"
    OPERATOR_KEPT = "OperatorKept"
    POLICY_KEPT = "PolicyKept"
    SUPERSEDED = "Superseded"
    UNKNOWN = "Unknown"


class Rung(IntEnum):
    """A rung of the restore ladder (design.md 4); `status.restore.tier` shows its number."""

    RECONNECT = 0
    START = 1
    RECREATE = 2
    REBUILD = 3


class ExitPolicy(StrEnum):
    """What happens to a session whose process ended well."""

    ASK = "Ask"
    KEEP = "Keep"
    CLEAN = "Clean"


class Isolation(StrEnum):
    """How a session sees a source tree."""

    SHARED = "Shared"
    WORKTREE = "Worktree"
    CLONE = "Clone"


class OnHostLoss(StrEnum):
    """Whether a session that its host took away comes back by itself."""

    RESTORE = "Restore"
    HOLD = "Hold"


class OnCrash(StrEnum):
    """Whether a session that crashed is started again by itself."""

    HOLD = "Hold"
    RESTORE = "Restore"


class WorkState(StrEnum):
    """The verdict on a session's unsaved work."""

    CLEAN = "Clean"
    DIRTY = "Dirty"
    UNPUSHED = "Unpushed"
    UNKNOWN = "Unknown"


class Security(StrEnum):
    """Hardening by the names of the Pod Security Standards."""

    RESTRICTED = "Restricted"
    BASELINE = "Baseline"


class DecidedBy(StrEnum):
    """Who decided what follows an exit (requirement F6)."""

    OPERATOR = "Operator"
    POLICY = "Policy"
    CAPSULE = "Capsule"
    DEFAULT = "Default"


class Component(StrEnum):
    """What an owned container or network is for: the value of the component label."""

    SESSION = "session"
    NETWORK = "network"
    PIN = "pin"
    SENTINEL = "sentinel"
    INSPECTOR = "inspector"
    PREPARER = "preparer"
    RELEASER = "releaser"


JOBS = frozenset({Component.INSPECTOR, Component.PREPARER, Component.RELEASER})
"""The containers of ours that work for one session and are thrown away."""


class ConditionType(StrEnum):
    """The conditions of a SessionInstance; each is flipped, never left behind."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    RUNNING = "Running"
    RESTORABLE = "Restorable"
    WORK_ASSESSED = "WorkAssessed"
    WORK_PRESERVED = "WorkPreserved"
    SECRETS_RESOLVED = "SecretsResolved"
    SIDECARS_HEALTHY = "SidecarsHealthy"
    PURGE_BLOCKED = "PurgeBlocked"
    BACKEND_REACHABLE = "BackendReachable"
    SPEC_VALID = "SpecValid"


class ConditionStatus(StrEnum):
    """The three values of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"
