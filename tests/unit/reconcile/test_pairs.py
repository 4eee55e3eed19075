"""Pairs of states that meet: what is, what comes, and what then follows."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controller.api.reasons import Reason
from controller.api.spec import Identity
from controller.api.vocabulary import Cause, DesiredState, Phase, Rung
from controller.reconcile import actions as a
from controller.reconcile.case import (
    ABSENT,
    Case,
    EffectFailed,
    EngineView,
    Epoch,
    FaultKind,
)
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    ImageAbsent,
    SessionOnBackend,
    Unknown,
)
from controller.reconcile.manifest import Decision, ExitRecord, RestoreRecord, Seen
from controller.reconcile.plan import plan
from tests.unit.reconcile.builders import (
    EPOCH,
    NOW,
    case,
    container,
    engine,
    manifest,
    session,
)
from tests.unit.reconcile.walk import walk

RUNNING, KEPT, PURGED = DesiredState.RUNNING, DesiredState.KEPT, DesiredState.PURGED
REMOVALS = (a.RemoveContainer, a.RemoveNetwork, a.RemoveInstance)
STARTS = (a.StartContainer, a.CreateAndStart)
SILENT = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="silent")
UNMOUNTED = Unknown(reason=Reason.STATE_ROOT_MISSING, message="unmounted")
STOPPED = container(ContainerState.EXITED, exit_code=137)


def returned() -> EngineView:
    """An engine that was away until a moment ago."""
    back = Epoch(started_at=NOW, lost_at=NOW - timedelta(seconds=2))
    return engine(epochs=(Epoch(started_at=EPOCH, lost_at=None), back))


def lost() -> Case:
    """A running session whose host took it away, and the engine that returned."""
    finished = NOW - timedelta(seconds=2)
    ended = container(ContainerState.EXITED, exit_code=255, finished_at=finished)
    return case(ended, engine=returned())


@pytest.mark.parametrize("phase", [Phase.KEEPING, Phase.PURGING])
@pytest.mark.parametrize(
    ("present", "tier"),
    [(container(), Rung.RECONNECT), (STOPPED, Rung.START)],
    ids=["live", "stopped"],
)
def test_running_is_honoured_until_the_destroy_record(
    phase: Phase, present: ContainerFacts, tier: Rung
) -> None:
    """Purging or Keeping meets Running: it comes back as it was, by rung 0 or 1."""
    end = walk(case(present, manifest=manifest(phase), session=session(RUNNING)))
    assert end.phase is Phase.RUNNING
    assert end.manifest.restore.tier is tier
    assert end.manifest.process is not None
    assert end.manifest.process.container_id == "c1"
    assert not end.did(*REMOVALS)


def test_keeping_past_recall_finishes_and_is_resumed() -> None:
    """Keeping meets Running after the destroy record: Kept, then rung 2."""
    record = manifest(Phase.KEEPING, destroy_recorded=True)
    end = walk(case(STOPPED, manifest=record, session=session(RUNNING)))
    assert Phase.KEPT in [entry.phase for entry in end.manifest.history]
    assert end.phase is Phase.RUNNING
    assert end.manifest.restore.tier is Rung.RECREATE
    assert end.manifest.restore.lost


@pytest.mark.parametrize("comes", [RUNNING, KEPT])
def test_purging_past_recall_finishes(comes: DesiredState) -> None:
    """Purging meets another wish after the destroy record: it is too late."""
    record = manifest(Phase.PURGING, destroy_recorded=True)
    end = walk(case(STOPPED, manifest=record, session=session(comes)))
    assert end.case.manifest is ABSENT
    assert not end.did(*STARTS)
    assert end.status["phase"] == Phase.PURGED


@pytest.mark.parametrize("comes", [RUNNING, KEPT])
def test_purged_meets_another_wish_and_refuses(comes: DesiredState) -> None:
    """Nothing is left to bring back: create anew."""
    gone = session(comes, status_phase=Phase.PURGED)
    end = walk(case(manifest=ABSENT, session=gone))
    assert end.actions == ()
    assert end.condition("Stalled")["reason"] == Reason.ALREADY_PURGED
    assert end.condition("Ready")["status"] == "False"


def test_restoring_meets_purged_and_undoes_the_half_rung() -> None:
    """Stopped, what the rung had created removed, and everything freed past recall only."""
    half = container(ContainerState.CREATED, container_id="c2", run_id=2)
    record = manifest(Phase.RESTORING, run_id=2, process=None, before=Phase.EXITED)
    end = walk(case(half, manifest=record, session=session(PURGED, status_run_id=2)))
    assert end.case.manifest is ABSENT
    assert not end.did(*STARTS)
    assert isinstance(end.case.backend, SessionOnBackend)
    assert end.case.backend == SessionOnBackend(containers=(), network_present=False)


@pytest.mark.parametrize("before", [Phase.EXITED, Phase.KEPT])
def test_a_failed_attempt_goes_back_to_the_phase_before(before: Phase) -> None:
    """Law 4: phase, cause and data as before; the condition and the attempts say so."""
    record = manifest(Phase.RESTORING, before=before, process=None, cause=Cause.HOST_LOST)
    refused = EffectFailed(
        action="x", kind=FaultKind.CONTAINER, reason=Reason.CONTAINER_BROKEN, message="broken"
    )
    answer = plan(case(manifest=record, session=session(RUNNING), failure=refused))
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.cause) == (before, Cause.HOST_LOST)
    assert answer.manifest.restore.attempts == 1
    assert answer.hold is not None
    assert answer.hold.reason is Reason.CONTAINER_BROKEN
    assert answer.wake_at is not None


def test_pending_meets_purged_at_once() -> None:
    """No process ever ran, so there is nothing to assess or keep."""
    record = manifest(Phase.PENDING, run_id=0, seen=Seen(run_id=0, generation=2))
    end = walk(case(manifest=record, session=session(PURGED, status_run_id=0)))
    assert end.case.manifest is ABSENT
    assert not end.did(*STARTS)
    new = case(manifest=ABSENT, session=session(PURGED, status_run_id=0))
    assert walk(new).actions == ()


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (Cause.CRASHED, Reason.CRASHED),
        (Cause.UNKNOWN, Reason.STOPPED_BY_HAND),
        (Cause.HOST_LOST, Reason.HOST_LOST),
    ],
)
def test_a_held_end_is_stalled_and_not_in_progress(cause: Cause, reason: Reason) -> None:
    """Exited and held: Ready=False, Stalled=True with the reason and the way on."""
    held = session(spec={"restore": {"onHostLoss": "Hold"}})
    record = manifest(Phase.EXITED, cause=cause, reason=reason, message="It ended.")
    end = walk(case(STOPPED, manifest=record, session=held))
    assert end.phase is Phase.EXITED
    assert end.condition("Ready")["status"] == "False"
    assert end.condition("Reconciling")["status"] == "False"
    assert end.condition("Stalled")["status"] == "True"
    assert end.condition("Stalled")["reason"] == reason
    assert "retryRun" in end.condition("Stalled")["message"]
    assert end.status["resumable"] is True


def test_a_host_that_nobody_serves_is_not_answered_by_another() -> None:
    """Pending with an unknown host: this controller neither claims nor reports it."""
    elsewhere = session(spec={"backend": {"docker": {"host": "nobody"}}}, served_by="")
    answer = plan(case(manifest=ABSENT, session=elsewhere))
    assert answer.actions == ()
    assert not answer.report


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.FAILED])
def test_a_launch_that_is_kept_resumes_as_the_first_launch(phase: Phase) -> None:
    """Starting or Failed meets Kept: cancelled, freed, Kept; then launched, not restored."""
    half = container(ContainerState.CREATED)
    kept = walk(case(half, manifest=manifest(phase), session=session(KEPT)))
    assert kept.phase is Phase.KEPT
    assert kept.case.backend == SessionOnBackend(containers=(), network_present=False)
    resumed = walk(replace(kept.case, session=session(RUNNING, generation=3)))
    assert resumed.phase is Phase.RUNNING
    created = [action for action in resumed.actions if isinstance(action, a.CreateAndStart)]
    assert [action.resumed for action in created] == [False]


def test_a_crash_that_is_kept_stays_in_the_history() -> None:
    """Exited (Crashed) meets Kept: the layer goes, the cause is the operator's."""
    end = walk(case(container(ContainerState.EXITED, exit_code=3)))
    kept = walk(replace(end.case, session=session(KEPT, generation=3)))
    assert (kept.phase, kept.manifest.cause) == (Phase.KEPT, Cause.OPERATOR_KEPT)
    assert Cause.CRASHED in [entry.cause for entry in kept.manifest.history]
    assert kept.did(a.RemoveContainer)


@pytest.mark.parametrize("comes", [KEPT, PURGED])
@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.PURGED])
def test_a_wish_while_the_engine_is_silent_waits(phase: Phase, comes: DesiredState) -> None:
    """Frozen: no action, no other phase, and the condition says why."""
    given = case(manifest=manifest(phase), session=session(comes), engine=SILENT, backend=SILENT)
    end = walk(given)
    assert end.actions == ()
    assert end.phase is phase
    assert end.condition("BackendReachable")["status"] == "False"


@pytest.mark.parametrize("comes", [KEPT, PURGED])
def test_a_wish_made_meanwhile_is_done_at_the_return(comes: DesiredState) -> None:
    """A container found at 255 goes on to Keeping or Purging and is not restarted."""
    end = walk(replace(lost(), session=session(comes)))
    assert not end.did(*STARTS)
    assert end.did(a.RemoveContainer)
    assert end.status["phase"] == comes


@pytest.mark.parametrize(
    "silent",
    [
        {"engine": SILENT, "backend": SILENT},
        {"manifest": UNMOUNTED},
        {"manifest": UNMOUNTED, "engine": SILENT, "backend": SILENT},
    ],
    ids=["engine", "disk", "both"],
)
def test_a_deletion_lets_the_object_go_and_leaves_the_rest(silent: dict[str, Unknown]) -> None:
    """Law 13: nothing waits; what can not be reached stays, adoptable."""
    end = walk(case(**{"session": session(deleting=True), **silent}))
    assert end.actions in ((a.RemoveFinalizer(),), (a.KeepRecord(), a.RemoveFinalizer()))


def test_a_released_session_is_freed_at_the_return() -> None:
    """What a deletion had to leave on a silent engine is freed and archived later."""
    record = manifest(released=True)
    end = walk(case(container(), session=None, manifest=record))
    assert end.did(a.ArchiveInstance)
    assert not end.did(a.RemoveInstance)
    assert end.case.manifest is ABSENT


def test_a_deletion_under_clean_archives() -> None:
    """Policy Clean with work that nobody assessed meets delete: the archive."""
    deleted = session(deleting=True, spec={"exitPolicy": "Clean"})
    end = walk(case(container(), session=deleted))
    assert end.did(a.ArchiveInstance)
    assert not end.did(a.RemoveInstance)
    assert end.case.session is None


def test_kept_whose_image_went_stays_kept_and_says_so() -> None:
    """Restorable=False, and nothing is pulled or dropped."""
    record = manifest(Phase.KEPT)
    end = walk(case(manifest=record, image=ImageAbsent(ref="i"), image_pinned=False))
    assert (end.phase, end.actions) == (Phase.KEPT, ())
    assert end.condition("Restorable")["status"] == "False"
    assert end.condition("Restorable")["reason"] == Reason.IMAGE_MISSING
    assert end.status["resumable"] is False


def test_a_wish_to_run_without_the_image_leaves_it_kept() -> None:
    """Law 7: restored from nothing else; it goes on by itself once the image is there."""
    gone = ImageAbsent(ref="i")
    record = manifest(Phase.KEPT)
    end = walk(case(manifest=record, session=session(RUNNING), image=gone, image_pinned=False))
    assert (end.phase, end.actions) == (Phase.KEPT, ())
    assert end.condition("Ready")["reason"] == Reason.IMAGE_MISSING


def test_a_kept_session_resumes_with_the_recorded_image() -> None:
    """Law 7: spec.image was changed; the recorded one wins, and the condition says so."""
    edited = session(RUNNING, spec={"image": {"ref": "other"}})
    end = walk(case(manifest=manifest(Phase.KEPT), session=edited))
    created = [action for action in end.actions if isinstance(action, a.CreateAndStart)]
    assert [action.recipe.image_ref for action in created] == ["i"]
    assert end.condition("SpecValid")["reason"] == Reason.FIELD_CHANGED


EXIT = ExitRecord(run_id=1, code=0, oom_killed=False, finished_at=NOW, watched=True, decision=KEPT)


@pytest.mark.parametrize(
    ("generation", "desired", "phase"),
    [(2, None, Phase.KEPT), (2, RUNNING, Phase.KEPT), (3, RUNNING, Phase.RUNNING)],
    ids=["unset", "as it was", "edited since"],
)
def test_a_newer_edit_wins_over_an_exit_decision(
    generation: int, desired: DesiredState | None, phase: Phase
) -> None:
    """The person wins; a tie keeps, and the decision is written to the spec."""
    record = manifest(
        Phase.KEEPING, exit=EXIT, decision=Decision(desired=KEPT, generation=2), desired=KEPT
    )
    given = case(
        container(ContainerState.EXITED),
        manifest=record,
        session=session(desired, generation=generation),
    )
    end = walk(given)
    assert end.phase is phase
    assert end.did(a.RecordDecision) == (phase is Phase.KEPT)


@pytest.mark.parametrize("code", [0, 137, 143])
def test_our_own_stop_is_no_crash(code: int) -> None:
    """Keeping's own stop ends with any code: the cause is OperatorKept."""
    kept = walk(case(container(), session=session(KEPT)))
    assert kept.manifest.cause is Cause.OPERATOR_KEPT
    record = manifest(Phase.KEEPING, cause=Cause.OPERATOR_KEPT, desired=KEPT)
    ended = container(ContainerState.EXITED, exit_code=code)
    end = walk(case(ended, manifest=record, session=session(KEPT)))
    assert (end.phase, end.manifest.cause) == (Phase.KEPT, Cause.OPERATOR_KEPT)
    assert Cause.CRASHED not in [entry.cause for entry in end.manifest.history]


def restored_run(present: ContainerFacts, given_engine: EngineView) -> Case:
    """A restore whose process started and ended before anybody saw it."""
    record = manifest(
        Phase.RESTORING,
        run_id=2,
        before=Phase.EXITED,
        cause=Cause.HOST_LOST,
        restore=RestoreRecord(tier=Rung.START, started_at=NOW),
    )
    return case(present, manifest=record, engine=given_engine, session=session(status_run_id=2))


def test_a_crash_in_a_restore_counts_as_an_attempt() -> None:
    """Crashed, and one attempt of the few."""
    began = NOW - timedelta(seconds=3)
    ended = container(ContainerState.EXITED, exit_code=3, started_at=began)
    end = walk(restored_run(ended, engine()))
    assert (end.phase, end.manifest.cause) == (Phase.EXITED, Cause.CRASHED)
    assert end.manifest.restore.attempts == 1


def test_a_host_loss_in_a_restore_resumes_the_step_and_counts_none() -> None:
    """The host went away under the new run before anybody saw it."""
    began = NOW - timedelta(seconds=10)
    ended = container(
        ContainerState.EXITED,
        exit_code=255,
        started_at=began,
        finished_at=NOW - timedelta(seconds=2),
    )
    end = walk(restored_run(ended, returned()))
    assert end.phase is Phase.RUNNING
    assert Cause.HOST_LOST in [entry.cause for entry in end.manifest.history]
    assert end.manifest.restore.attempts == 0


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.RESTORING])
def test_a_host_loss_before_the_start_resumes_the_step(phase: Phase) -> None:
    """What was created and never started is undone, and the step is done again."""
    half = container(ContainerState.CREATED)
    record = manifest(phase, process=None, before=Phase.EXITED)
    end = walk(case(half, manifest=record, engine=returned()))
    assert end.phase is Phase.RUNNING
    assert end.manifest.restore.attempts == 0


def test_a_session_stays_with_the_host_that_has_its_manifest() -> None:
    """A server without CEL let the backend be edited: the old host keeps it and says so."""
    moved = session(spec={"backend": {"docker": {"host": "other"}}})
    end = walk(case(container(), session=moved))
    assert end.phase is Phase.RUNNING
    assert end.condition("SpecValid")["reason"] == Reason.FIELD_CHANGED


def test_the_new_host_of_an_edited_session_leaves_it_alone() -> None:
    """It was claimed by another installation first."""
    answer = plan(case(manifest=ABSENT, session=session(served_by="the old host")))
    assert answer.actions == ()
    assert not answer.report


def test_the_identity_that_counts_is_the_recorded_one() -> None:
    """An edited role changes nothing of the session."""
    record = manifest(identity=Identity(workspace="w", role="old", agent="a", host="h"))
    end = walk(case(container(), manifest=record))
    assert end.manifest.identity.role == "old"
    assert end.condition("SpecValid")["status"] == "False"


def test_work_that_was_not_assessed_is_unknown() -> None:
    """Law 2: a running session never shows Clean for want of a verdict."""
    assert walk(case(container())).status["work"]["state"] == "Unknown"


def test_a_wish_is_the_last_recorded_one_where_the_spec_has_none() -> None:
    """A manifest in Git without the field never restarts a Kept session."""
    end = walk(case(manifest=manifest(Phase.KEPT), session=session(None)))
    assert (end.phase, end.actions) == (Phase.KEPT, ())
