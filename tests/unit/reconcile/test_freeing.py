"""Keeping and purging: stop, record past recall, free, and only then call it done (law 1)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import ABSENT, Case, EffectFailed, FaultKind
from controller.reconcile.facts import ContainerState, ImageAbsent, SessionOnBackend
from controller.reconcile.freeing import STUCK_AFTER
from controller.reconcile.manifest import Manifest
from controller.reconcile.plan import plan
from tests.unit.reconcile.builders import NOW, assessed, case, container, follow, manifest, session
from tests.unit.reconcile.walk import walk

KEPT, PURGED = DesiredState.KEPT, DesiredState.PURGED
REMOVALS = (a.RemoveContainer, a.RemoveNetwork, a.RemoveRunDirectory, a.RemoveInstance)
STOPPED = container(ContainerState.EXITED)
BOTH = pytest.mark.parametrize(
    ("phase", "wish"), [(Phase.KEEPING, KEPT), (Phase.PURGING, PURGED)], ids=["keep", "purge"]
)


def past_recall(phase: Phase, *present: Any, **fields: Any) -> Case:
    """A keep or a purge whose destroy record is durable."""
    wish = KEPT if phase is Phase.KEEPING else PURGED
    record = manifest(phase, destroy_recorded=True, desired=wish)
    return case(*present, manifest=record, session=session(wish), **fields)


@BOTH
def test_a_live_process_is_stopped_before_anything_is_recorded(
    phase: Phase, wish: DesiredState
) -> None:
    """Until its end a person can take it back."""
    answer = plan(case(container(), manifest=manifest(phase), session=session(wish)))
    assert [type(action) for action in answer.actions] == [a.StopContainer]
    assert answer.manifest is not None
    assert not answer.manifest.destroy_recorded


@BOTH
def test_the_destroy_record_comes_before_the_first_removal(
    phase: Phase, wish: DesiredState
) -> None:
    """Law 1: durable with the plan whose actions remove."""
    given = assessed(case(STOPPED, manifest=manifest(phase), session=session(wish)))
    *_, (_, answer) = follow(given)
    assert any(isinstance(action, REMOVALS) for action in answer.actions)
    assert answer.manifest is not None
    assert answer.manifest.destroy_recorded


@BOTH
@pytest.mark.parametrize("state", [ContainerState.REMOVING, ContainerState.DEAD])
def test_nothing_is_done_until_absence_was_observed(
    phase: Phase, wish: DesiredState, state: ContainerState
) -> None:
    """Case C03: what is being removed, or is dead, is there; it is tried again."""
    answer = plan(past_recall(phase, container(state)))
    assert answer.actions == (a.RemoveContainer(container_id="c1"),)
    assert answer.manifest is not None
    assert answer.manifest.phase is phase
    assert answer.hold is not None
    assert answer.hold.reason is Reason.CONTAINER_DEAD
    assert answer.wake_at is not None


@BOTH
@pytest.mark.parametrize("kind", list(FaultKind))
def test_a_refused_removal_is_said_and_tried_again(
    phase: Phase, wish: DesiredState, kind: FaultKind
) -> None:
    """The phase stays; past a deadline it is called stalled, and is still tried."""
    refused = EffectFailed(action="x", kind=kind, reason=Reason.ENGINE_BUSY, message="busy")
    given = past_recall(phase, STOPPED, failure=refused)
    answer = plan(given)
    assert answer.actions == ()
    assert answer.hold is not None
    assert not answer.hold.waiting
    assert answer.wake_at is not None
    recent = replace(manifest(phase, destroy_recorded=True), transitioned_at=NOW)
    fresh = plan(replace(given, manifest=recent, now=NOW + STUCK_AFTER / 2))
    assert fresh.hold is not None
    assert fresh.hold.waiting


@BOTH
def test_a_removal_refused_again_and_again_writes_nothing(phase: Phase, wish: DesiredState) -> None:
    """Law 15: the step that tries again says what the refused one said."""
    refused = EffectFailed(
        action="x", kind=FaultKind.HOST, reason=Reason.ENGINE_BUSY, message="busy"
    )
    told = plan(assessed(past_recall(phase, STOPPED, failure=refused)))
    assert isinstance(told.manifest, Manifest)
    again = plan(case(STOPPED, manifest=told.manifest, session=session(wish)))
    assert again.actions
    assert (again.manifest, again.hold) == (told.manifest, told.hold)


@BOTH
def test_a_removal_that_succeeds_at_last_is_no_longer_a_fault(
    phase: Phase, wish: DesiredState
) -> None:
    """Nothing of it is in the status of what was kept or purged."""
    refused = EffectFailed(
        action="x", kind=FaultKind.HOST, reason=Reason.ENGINE_BUSY, message="busy"
    )
    told = plan(past_recall(phase, STOPPED, failure=refused))
    assert isinstance(told.manifest, Manifest)
    end = walk(case(STOPPED, manifest=told.manifest, session=session(wish)))
    assert "busy" not in str(end.status)


def test_a_kept_session_holds_what_resume_needs_and_no_more() -> None:
    """Law 11: recipe, home and pin; no container, network or run directory."""
    end = walk(case(container(), session=session(KEPT), image_pinned=False))
    assert end.phase is Phase.KEPT
    assert end.case.backend == SessionOnBackend(containers=(), network_present=False)
    assert not end.case.run_directory_present
    assert end.case.image_pinned
    assert end.manifest.recipe is not None
    assert not end.did(a.RemoveInstance, a.ArchiveInstance)


def test_an_image_that_is_gone_keeps_no_session_from_being_kept() -> None:
    """There is nothing to pin any more; the condition says so."""
    gone = ImageAbsent(ref="i")
    end = walk(case(STOPPED, session=session(KEPT), image=gone, image_pinned=False))
    assert end.phase is Phase.KEPT
    assert not end.did(a.PinImage)


@pytest.mark.parametrize("phase", [p for p in Phase if p not in (Phase.PURGED, Phase.PURGING)])
@pytest.mark.parametrize("state", [None, *ContainerState])
def test_a_purge_leaves_nothing(phase: Phase, state: ContainerState | None) -> None:
    """Law 10, from every phase and whatever the engine holds."""
    present = () if state is None else (container(state),)
    end = walk(case(*present, manifest=manifest(phase), session=session(PURGED)))
    end = walk(end.case)
    assert end.case.manifest is ABSENT
    assert end.case.backend == SessionOnBackend(containers=(), network_present=False)
    assert not end.case.run_directory_present
    assert end.condition("Ready")["status"] == "True"
    assert end.status["phase"] == Phase.PURGED


def test_a_purge_frees_what_was_set_aside_too() -> None:
    """Law 10: by label, whatever its name."""
    aside = container(ContainerState.EXITED, container_id="c0", set_aside=True)
    end = walk(case(container(), aside, session=session(PURGED)))
    assert end.case.backend == SessionOnBackend(containers=(), network_present=False)


def test_a_keep_past_recall_that_is_purged_finishes_first() -> None:
    """Then it is purged from Kept."""
    record = manifest(Phase.KEEPING, destroy_recorded=True, desired=KEPT)
    end = walk(case(STOPPED, manifest=record, session=session(PURGED)))
    assert end.case.manifest is ABSENT
    assert end.status["phase"] == Phase.PURGED


def test_a_purge_before_recall_that_is_kept_is_kept() -> None:
    """Nothing was removed yet."""
    end = walk(case(STOPPED, manifest=manifest(Phase.PURGING), session=session(KEPT)))
    assert (end.phase, end.manifest.cause) == (Phase.KEPT, Cause.OPERATOR_KEPT)


def purged(ttl: int | None, since: timedelta | None) -> Case:
    """A purged session, some time after it was."""
    spec = {} if ttl is None else {"retention": {"ttlSecondsAfterPurged": ttl}}
    at = None if since is None else NOW - since
    return case(
        manifest=ABSENT,
        session=session(PURGED, spec=spec, status_phase=Phase.PURGED, purged_at=at),
    )


@pytest.mark.parametrize(
    ("ttl", "since", "deleted"),
    [
        (None, timedelta(days=999), False),
        (60, timedelta(seconds=59), False),
        (60, timedelta(seconds=60), True),
        (0, timedelta(0), True),
        (60, None, False),
    ],
)
def test_the_object_goes_after_its_time(
    ttl: int | None, since: timedelta | None, deleted: bool
) -> None:
    """Law 10; unset: it stays, so that Git does not create it anew."""
    answer = plan(purged(ttl, since))
    assert (answer.actions == (a.DeleteObject(),)) is deleted
    if ttl == 60 and since is not None and not deleted:
        assert answer.wake_at == NOW + timedelta(seconds=1)


def test_a_purged_session_writes_nothing_to_the_disk() -> None:
    """Its directory is gone and is not made anew for its status."""
    answer = plan(purged(None, timedelta(0)))
    assert isinstance(answer.manifest, Manifest)
    assert not answer.record
