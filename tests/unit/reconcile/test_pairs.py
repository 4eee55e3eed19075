"""The pairs of states that were settled beforehand, one test each; `settle` follows the plans."""

from dataclasses import replace

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, ExitPolicy, Phase, Rung
from controller.reconcile import actions as a
from controller.reconcile.case import ABSENT, Case, EffectFailed, FaultKind, Witness
from controller.reconcile.facts import ContainerState, ImageAbsent, Unknown
from controller.reconcile.manifest import Decision, Manifest, RestoreRecord
from controller.reconcile.plan import plan
from controller.reconcile.steps import Plan
from tests.unit.reconcile.builders import IMAGE, NOW, case, container, manifest, session, settle

RUNNING, KEPT, PURGED = DesiredState.RUNNING, DesiredState.KEPT, DesiredState.PURGED
EXITED = container(ContainerState.EXITED, exit_code=3)


def after(given: Case) -> tuple[Manifest, Plan]:
    """The record and the plan that a case settles in."""
    settled, answer = settle(given)
    record = answer.manifest or settled.manifest
    assert isinstance(record, Manifest)
    return record, answer


def kinds(answer: Plan) -> list[type]:
    """What is to be done, by kind."""
    return [type(action) for action in answer.actions]


@pytest.mark.parametrize("phase", [Phase.KEEPING, Phase.PURGING])
def test_running_takes_a_keep_or_purge_back_before_the_destroy_record(phase: Phase) -> None:
    """A living process by rung 0, a stopped one by rung 1."""
    record, answer = after(case(container(), manifest=manifest(phase), session=session(RUNNING)))
    assert (record.phase, record.restore.tier) == (Phase.RUNNING, Rung.RECONNECT)
    record, answer = after(case(EXITED, manifest=manifest(phase), session=session(RUNNING)))
    assert a.StartContainer in kinds(answer)
    assert record.restore.tier is Rung.START


@pytest.mark.parametrize("phase", [Phase.KEEPING, Phase.PURGING])
def test_running_comes_too_late_after_the_destroy_record(phase: Phase) -> None:
    """What was recorded past recall is finished first."""
    given = manifest(phase, destroy_recorded=True)
    record, answer = after(case(EXITED, manifest=given, session=session(RUNNING)))
    assert record.phase is phase
    assert a.RemoveContainer in kinds(answer)


def test_a_finished_keep_that_is_wanted_running_is_recreated() -> None:
    """Keeping finishes, then rung 2."""
    given = manifest(Phase.KEEPING, destroy_recorded=True)
    record, answer = after(case(manifest=given, session=session(RUNNING)))
    assert a.CreateAndStart in kinds(answer)
    assert record.restore.tier is Rung.RECREATE


@pytest.mark.parametrize("wanted", [RUNNING, KEPT])
def test_a_purged_session_is_refused(wanted: DesiredState) -> None:
    """Create a new one."""
    answer = plan(case(manifest=ABSENT, session=session(wanted, status_phase=Phase.PURGED)))
    assert answer.actions == ()
    assert answer.hold is not None
    assert answer.hold.reason is Reason.ALREADY_PURGED


def test_a_purge_that_was_cut_off_after_its_last_removal_is_purged() -> None:
    """The manifest is gone and the status says Purging: nothing is missing."""
    answer = plan(case(manifest=ABSENT, session=session(PURGED, status_phase=Phase.PURGING)))
    assert answer.hold is None
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.PURGED
    assert not answer.record


def test_a_restore_that_is_purged_stops_first() -> None:
    """Stop, undo the half rung, then everything goes."""
    given = manifest(Phase.RESTORING, before=Phase.EXITED)
    record, answer = after(case(container(), manifest=given, session=session(PURGED)))
    assert record.phase is Phase.PURGING
    assert kinds(answer) == [a.StopContainer]


@pytest.mark.parametrize("before", [Phase.EXITED, Phase.KEPT])
def test_a_failed_restore_goes_back_to_the_phase_before(before: Phase) -> None:
    """Phase and evidence stay; the condition and the count say so (law 4)."""
    failed = EffectFailed(
        action="CreateAndStart", kind=FaultKind.CONTAINER, reason=Reason.START_REFUSED, message="no"
    )
    given = manifest(Phase.RESTORING, before=before, cause=Cause.HOST_LOST, process=None)
    answer = plan(case(manifest=given, session=session(RUNNING), failure=failed))
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.cause) == (before, Cause.HOST_LOST)
    assert answer.manifest.restore.attempts == 1
    assert answer.hold is not None
    assert answer.hold.reason is Reason.START_REFUSED


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.STARTING, Phase.FAILED])
def test_a_session_that_never_ran_is_purged_at_once(phase: Phase) -> None:
    """Nothing of it is work."""
    _, answer = after(case(manifest=manifest(phase), session=session(PURGED)))
    assert kinds(answer) == [a.RemoveInstance]


@pytest.mark.parametrize(
    ("cause", "spec"),
    [
        (Cause.CRASHED, {}),
        (Cause.UNKNOWN, {}),
        (Cause.HOST_LOST, {"restore": {"onHostLoss": "Hold"}}),
    ],
)
def test_what_is_held_is_stalled_and_not_in_progress(cause: Cause, spec: dict[str, object]) -> None:
    """kstatus must not call it in progress: a hold that waits for a person."""
    given = manifest(Phase.EXITED, cause=cause, reason=Reason.CRASHED)
    _, answer = after(case(EXITED, manifest=given, session=session(spec=spec)))
    assert answer.actions == ()
    assert answer.hold is not None
    assert not answer.hold.waiting


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.FAILED])
def test_a_launch_that_is_kept_is_cancelled(phase: Phase) -> None:
    """Freed, Kept; resume is the first launch."""
    record, answer = after(case(manifest=manifest(phase), session=session(KEPT)))
    assert record.phase is Phase.KEPT
    record, answer = after(case(manifest=record, session=session(RUNNING)))
    assert a.CreateAndStart in kinds(answer)
    assert a.PrepareHome in kinds(answer)


def test_a_crash_that_is_kept_stays_in_the_history() -> None:
    """The container and its layer go; the cause is the operator's."""
    given = manifest(Phase.EXITED, cause=Cause.CRASHED, destroy_recorded=False)
    record, answer = after(case(EXITED, manifest=given, session=session(KEPT)))
    assert (record.phase, record.cause) == (Phase.KEEPING, Cause.OPERATOR_KEPT)
    assert record.destroy_recorded
    assert a.RemoveContainer in kinds(answer)


@pytest.mark.parametrize("wanted", [KEPT, PURGED])
def test_a_decision_while_the_engine_is_silent_waits(wanted: DesiredState) -> None:
    """Frozen; on return as if just said."""
    silent = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="silent")
    answer = plan(case(session=session(wanted), engine=silent, backend=silent))
    assert (answer.actions, answer.manifest) == ((), None)
    lost = container(ContainerState.EXITED, exit_code=255)
    record, _ = after(case(lost, session=session(wanted)))
    assert record.phase in (Phase.KEEPING, Phase.PURGING)


def test_a_deletion_while_the_engine_is_silent_lets_go() -> None:
    """The object goes; what is left is freed later."""
    silent = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="silent")
    answer = plan(case(session=session(deleting=True), engine=silent, backend=silent))
    assert kinds(answer) == [a.RemoveFinalizer]
    assert answer.manifest is not None
    assert answer.manifest.released
    back = plan(case(container(), session=None, manifest=answer.manifest))
    assert kinds(back) == [a.StopContainer]


def test_a_kept_session_without_its_image_stays_kept() -> None:
    """Said so, and not restored from anything else (law 7)."""
    gone = ImageAbsent(ref="i")
    given = case(
        manifest=manifest(Phase.KEPT), session=session(RUNNING), image=gone, image_pinned=False
    )
    record, answer = after(given)
    assert record.phase is Phase.KEPT
    assert answer.hold is not None
    assert answer.hold.reason is Reason.IMAGE_MISSING


def test_a_newer_edit_wins_over_an_exit_decision() -> None:
    """The person wins; ties keep."""
    decided = manifest(Phase.KEEPING, desired=KEPT, decision=Decision(desired=KEPT, generation=2))
    _, tie = after(case(EXITED, manifest=decided, session=session(RUNNING, generation=2)))
    assert tie.actions == (a.RecordDecision(desired=KEPT, generation=2),)
    record, newer = after(case(EXITED, manifest=decided, session=session(RUNNING, generation=3)))
    assert record.phase is Phase.RESTORING
    assert a.StartContainer in kinds(newer)


def test_our_own_stop_is_no_crash() -> None:
    """Keeping's stop gives an exit code; the cause stays the operator's."""
    killed = container(ContainerState.EXITED, exit_code=137)
    given = manifest(Phase.KEEPING, cause=Cause.OPERATOR_KEPT)
    record, _ = after(case(killed, manifest=given, session=session(KEPT)))
    assert record.cause is Cause.OPERATOR_KEPT


def test_another_host_in_the_spec_leaves_the_session_where_it_is() -> None:
    """A server without CEL: the old host keeps it by its manifest, the new one refuses."""
    moved = session(spec={"backend": {"docker": {"host": "other"}}})
    kept = plan(case(container(), session=moved))
    assert kept.actions == ()
    assert kept.manifest == manifest()
    refused = plan(case(manifest=ABSENT, session=replace(moved, served_by="another")))
    assert (refused.actions, refused.report) == ((), False)


@pytest.mark.parametrize("policy", list(ExitPolicy))
def test_a_clean_exit_is_never_cleaned_without_an_assessment(policy: ExitPolicy) -> None:
    """Unknown is not clean (law 2)."""
    ended = container(ContainerState.EXITED, exit_code=0)
    given = case(
        ended,
        session=session(spec={"exitPolicy": str(policy)}),
        witness={"c1": Witness(watched=True)},
    )
    record, answer = after(given)
    assert record.phase is Phase.KEEPING
    assert answer.actions == (a.RecordDecision(desired=KEPT, generation=2),)


def test_a_container_that_will_not_start_twice_opens_the_next_rung() -> None:
    """It is set aside, not removed; `skipped` quotes the engine (case C08)."""
    refused = RestoreRecord(refusals=2, fault_message="broken link")
    given = manifest(Phase.RESTORING, before=Phase.EXITED, restore=refused)
    record, answer = after(case(EXITED, manifest=given))
    assert kinds(answer)[0] is a.SetAsideContainer
    assert a.RemoveContainer not in kinds(answer)
    assert "broken link" in record.restore.skipped[0].reason


def test_a_fault_of_the_host_climbs_no_rung() -> None:
    """A full disk is waited for, however often."""
    full = EffectFailed(
        action="StartContainer", kind=FaultKind.HOST, reason=Reason.NO_SPACE, message="full"
    )
    record = manifest(Phase.EXITED, cause=Cause.HOST_LOST)
    for turn in range(6):
        restoring, answer = after(
            case(EXITED, manifest=record, now=NOW.replace(hour=13 + turn), session=session())
        )
        assert kinds(answer)[-1] is a.StartContainer
        back = plan(case(EXITED, manifest=restoring, failure=full))
        assert back.manifest is not None
        record = back.manifest
    assert record.restore.attempts == 0
    assert IMAGE.image_id == "sha256:1"
