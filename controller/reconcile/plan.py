"""What to do next for one session: pure and total (design.md 7).

An ordered tuple of guards looks at the case; the first that has an answer decides. A guard either
freezes (nothing changes but a condition), finishes a deletion, or hands over to the phase that the
manifest records. The laws stand here once, and nowhere else.
"""

from collections.abc import Callable

from controller.api.reasons import Reason
from controller.api.vocabulary import DesiredState, Phase
from controller.reconcile.actions import AddFinalizer, TakeOver
from controller.reconcile.case import ABSENT, Case
from controller.reconcile.deletion import plan_deletion
from controller.reconcile.facts import SessionOnBackend, Unknown
from controller.reconcile.freeing import plan_keeping, plan_purged, plan_purging
from controller.reconcile.launching import plan_failed, plan_launch
from controller.reconcile.living import plan_exited, plan_kept, plan_running
from controller.reconcile.manifest import Manifest
from controller.reconcile.restoring import plan_restoring
from controller.reconcile.steps import RECHECK, Hold, Plan, frozen, idle, new_manifest

PhasePlan = Callable[[Case, Manifest], Plan]

_PHASES: dict[Phase, PhasePlan] = {
    Phase.PENDING: plan_launch,
    Phase.STARTING: plan_launch,
    Phase.RUNNING: plan_running,
    Phase.EXITED: plan_exited,
    Phase.KEEPING: plan_keeping,
    Phase.KEPT: plan_kept,
    Phase.RESTORING: plan_restoring,
    Phase.PURGING: plan_purging,
    Phase.PURGED: plan_purged,
    Phase.FAILED: plan_failed,
}


def plan(case: Case) -> Plan:
    """Return the next manifest, the actions that follow from it, and when to look again."""
    for guard in _GUARDS:
        answer = guard(case)
        if answer is not None:
            return answer
    assert isinstance(case.manifest, Manifest)  # noqa: S101 - the guards leave nothing else
    return _PHASES[case.manifest.phase](case, case.manifest)


def _not_ours(case: Case) -> Plan | None:
    """A session of another installation or host is left alone (settled.md, *Owner*)."""
    session = case.session
    if session is None or isinstance(case.manifest, Manifest):
        return None
    claimed = session.served_by not in ("", case.settings.owner)
    elsewhere = session.spec.identity.host != case.settings.host
    return idle() if claimed or elsewhere else None


def _deleted(case: Case) -> Plan | None:
    if case.session is None or case.session.deleting:
        return plan_deletion(case)
    return None


def _finalizer(case: Case) -> Plan | None:
    """No effect before the finalizer is confirmed on the object (case C19)."""
    if case.session is None or case.session.has_finalizer:
        return None
    return Plan(actions=(AddFinalizer(),), again=True, report=False)


def _disk(case: Case) -> Plan | None:
    """A disk that can not be believed freezes: it is unmounted or damaged, not empty (law 3)."""
    if isinstance(case.manifest, Unknown):
        return frozen(case, Hold(reason=case.manifest.reason, message=case.manifest.message))
    return None


def _missing_directory(case: Case) -> Plan | None:
    """A session that ran before and has no directory is never created anew (*Precedence*)."""
    session = case.session
    if case.manifest is not ABSENT or session is None:
        return None
    if session.status_phase in (Phase.PURGED, Phase.PURGING):
        return plan_purged(case, new_manifest(case, phase=Phase.PURGED))
    if session.status_run_id == 0:
        return None
    return frozen(
        case,
        Hold(
            reason=Reason.INSTANCE_DIRECTORY_MISSING,
            message=(
                f"This session has run {session.status_run_id} time(s), and its directory is not "
                "under the state root. Nothing is created anew. Mount the disk that holds it, or "
                "restore the directory; the controller goes on by itself."
            ),
        ),
    )


def _api_went_back(case: Case) -> Plan | None:
    """A status older than the manifest: the API server was restored from a backup.

    A status that was ahead of the manifest (written by somebody, or of a disk that was restored)
    is written back to the manifest's own run, which is then no sign of a backup.
    """
    session, manifest = case.session, case.manifest
    if session is None or not isinstance(manifest, Manifest):
        return None
    seen = manifest.seen
    run_id = min(seen.run_id, manifest.run_id)
    if session.status_run_id >= run_id and session.generation >= seen.generation:
        return None
    return frozen(
        case,
        Hold(
            reason=Reason.STATUS_OLDER_THAN_MANIFEST,
            message=(
                f"The API server holds run {session.status_run_id}, generation "
                f"{session.generation}, and held run {run_id}, generation {seen.generation} "
                "before: it was restored from a backup. Nothing is touched."
            ),
        ),
    )


def _begin(case: Case) -> Plan | None:
    """The first record of a session, made before the engine is asked for anything."""
    if case.manifest is not ABSENT or case.session is None:
        return None
    desired = case.session.spec.desired or DesiredState.RUNNING
    phase = Phase.PURGED if desired is DesiredState.PURGED else Phase.PENDING
    if phase is Phase.PURGED:
        return plan_purged(case, new_manifest(case, phase=phase))
    if case.session.spec.faults:
        fault = case.session.spec.faults[0]
        return Plan(hold=Hold(reason=fault.reason, message=fault.message))
    return Plan(manifest=new_manifest(case, phase=phase), again=True)


def _restored(case: Case) -> Plan | None:
    """An archived session comes back as its host's owner ordered (settled.md, *Trust*).

    Only in the place of one that never ran, of which nothing is work.
    """
    manifest = case.manifest
    never_ran = manifest is ABSENT or (isinstance(manifest, Manifest) and manifest.ready_run == 0)
    if not case.restores or not never_ran:
        return None
    if isinstance(case.backend, SessionOnBackend) and case.backend.containers:
        return None
    if case.failure is not None:
        hold = Hold(reason=case.failure.reason, message=case.failure.message)
        return Plan(hold=hold, wake_at=case.now + RECHECK)
    return Plan(actions=(TakeOver(entry=case.restores),), again=True, report=False)


def _engine(case: Case) -> Plan | None:
    """Unreachable is not gone: the phase is frozen until the engine we know answers (law 3)."""
    for fact in (case.engine, case.backend):
        if isinstance(fact, Unknown):
            silent = fact.reason in _SILENT
            hold = Hold(reason=fact.reason, message=fact.message, backend=silent)
            return frozen(case, hold)
    return None


_SILENT = frozenset({Reason.ENGINE_UNREACHABLE, Reason.TIMEOUT, Reason.ENGINE_REPLACED})
_GUARDS: tuple[Callable[[Case], Plan | None], ...] = (
    _not_ours,
    _deleted,
    _finalizer,
    _disk,
    _missing_directory,
    _api_went_back,
    _restored,
    _begin,
    _engine,
)
