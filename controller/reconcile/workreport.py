"""What the status says of a session's unsaved work, and of a purge that waits for its person."""

from typing import Any, Final

from controller.api.reasons import Reason
from controller.api.vocabulary import ConditionStatus, ConditionType, Phase, WorkState
from controller.reconcile.case import Case
from controller.reconcile.condition import Condition
from controller.reconcile.manifest import Manifest
from controller.reconcile.retention import expire
from controller.reconcile.steps import Hold
from controller.reconcile.work import to_status

BLOCKING: Final = frozenset(
    {
        Reason.STATUS_NOT_PERSISTED,
        Reason.APPROVAL_MISSING,
        Reason.APPROVAL_STALE,
        Reason.MASS_EXPIRY,
    }
)


def work_status(manifest: Manifest | None) -> dict[str, Any]:
    """Return `status.work`: the last verdict, said to be old while the session runs."""
    if manifest is None or manifest.work is None:
        return {"state": str(WorkState.UNKNOWN), "summary": "not assessed"}
    work = to_status(manifest.work)
    if _outdated(manifest):
        work["summary"] = f"{work['summary']}, before run {manifest.run_id}"[:256]
    return work


def _outdated(manifest: Manifest) -> bool:
    return manifest.work is not None and manifest.work.run_id != manifest.run_id


def work_assessed(manifest: Manifest | None) -> Condition:
    """`WorkAssessed`: whether there is a verdict on the work of the last run."""
    kind = ConditionType.WORK_ASSESSED
    if manifest is None or manifest.work is None or _outdated(manifest):
        message = "Work is assessed when its session is stopped to be kept or purged."
        return Condition(
            type=kind,
            status=ConditionStatus.FALSE,
            reason=Reason.NOT_YET_ASSESSED,
            message=message,
        )
    record = manifest.work
    known = record.work.state is not WorkState.UNKNOWN
    moved = any(tree.moved for tree in record.work.trees)
    failed = Reason.MOVED if moved else Reason.ASSESSMENT_FAILED
    return Condition(
        type=kind,
        status=ConditionStatus.TRUE if known else ConditionStatus.FALSE,
        reason=failed if record.reason is Reason.ASSESSED and not known else record.reason,
        message=record.work.message if not known else "",
    )


def purge_blocked(case: Case, manifest: Manifest | None, hold: Hold | None) -> Condition:
    """`PurgeBlocked`: whether a purge waits for a person, and how that person lets it go on.

    A kept session that waits with many others for the end of its keeping is healthy meanwhile.
    """
    purging = manifest is not None and manifest.phase is Phase.PURGING
    expiry = expire(case, manifest) if manifest is not None else None
    if expiry is not None and expiry.waits is not None:
        hold, purging = expiry.waits, True
    blocked = purging and hold is not None and hold.reason in BLOCKING
    if hold is None or not blocked:
        return Condition(
            type=ConditionType.PURGE_BLOCKED,
            status=ConditionStatus.FALSE,
            reason=Reason.NOT_BLOCKED,
            message="A purge happens when desiredState is set to Purged.",
        )
    return Condition(
        type=ConditionType.PURGE_BLOCKED,
        status=ConditionStatus.TRUE,
        reason=hold.reason,
        message=hold.message,
    )
