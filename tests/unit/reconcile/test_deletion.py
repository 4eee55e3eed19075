"""`kubectl delete` of a session: never wedges, never loses (law 13)."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import ABSENT, EffectFailed, FaultKind
from controller.reconcile.facts import ContainerState, SessionOnBackend, Unknown
from controller.reconcile.plan import plan
from controller.reconcile.steps import RECHECK, SETTLING
from tests.unit.reconcile.builders import NOW, case, container, manifest, session
from tests.unit.reconcile.walk import walk

SILENT = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="silent")
CORRUPT = Unknown(reason=Reason.MANIFEST_CORRUPT, message="corrupt")
UNMOUNTED = Unknown(reason=Reason.INSTANCE_DIRECTORY_MISSING, message="unmounted")
DELETED = session(deleting=True)
ENGINE_AWAY: dict[str, Any] = {"engine": SILENT, "backend": SILENT}
RAN = [Phase.RUNNING, Phase.EXITED, Phase.KEEPING, Phase.KEPT, Phase.RESTORING]


@pytest.mark.parametrize("phase", RAN)
@pytest.mark.parametrize("state", [None, *ContainerState])
def test_what_ran_is_stopped_freed_and_archived(phase: Phase, state: ContainerState | None) -> None:
    """Whatever the engine holds of it, the object goes after its data is in the archive."""
    present = () if state is None else (container(state),)
    end = walk(case(*present, manifest=manifest(phase), session=DELETED))
    names = [type(action).__name__ for action in end.actions]
    assert names[-2:] == ["ArchiveInstance", "RemoveFinalizer"]
    assert "RemoveInstance" not in names
    assert end.case.backend == SessionOnBackend(containers=(), network_present=False)
    assert end.case.session is None


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.STARTING, Phase.FAILED])
def test_what_never_ran_leaves_nothing(phase: Phase) -> None:
    """There is no work in it, so nothing is archived either."""
    half = container(ContainerState.CREATED)
    end = walk(case(half, manifest=manifest(phase), session=DELETED))
    assert end.did(a.RemoveInstance)
    assert not end.did(a.ArchiveInstance)
    assert end.case.session is None


def test_a_start_that_was_not_recorded_is_work() -> None:
    """Law 1: the engine shows a process that the record does not know yet."""
    end = walk(case(container(), manifest=manifest(Phase.STARTING), session=DELETED))
    assert end.did(a.ArchiveInstance)
    assert not end.did(a.RemoveInstance)


def test_that_it_was_work_is_recorded_before_its_container_goes() -> None:
    """Law 1: a crash after the removal leaves a record that archives."""
    stopped = container(ContainerState.EXITED)
    answer = plan(case(stopped, manifest=manifest(Phase.STARTING), session=DELETED))
    assert any(isinstance(action, a.RemoveContainer) for action in answer.actions)
    assert answer.manifest is not None
    crashed = case(manifest=answer.manifest, session=DELETED)
    assert walk(crashed).did(a.ArchiveInstance)


def test_what_a_person_purged_is_removed_and_not_archived() -> None:
    """A purge past recall that meets a delete."""
    record = manifest(Phase.PURGING, destroy_recorded=True)
    end = walk(case(manifest=record, session=session(DesiredState.PURGED, deleting=True)))
    assert end.did(a.RemoveInstance)
    assert not end.did(a.ArchiveInstance)


def test_a_purge_that_is_not_recorded_yet_meets_delete_and_archives() -> None:
    """The wish alone destroys nothing."""
    record = manifest(Phase.PURGING)
    end = walk(case(container(), manifest=record, session=session(deleting=True)))
    assert end.did(a.ArchiveInstance)


# Beside data that is left behind it is written what its object was, where that can be.
LETS_GO = ((a.RemoveFinalizer(),), (a.KeepRecord(), a.RemoveFinalizer()))


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize(
    "away",
    [
        ENGINE_AWAY,
        {"manifest": UNMOUNTED},
        {"manifest": UNMOUNTED, **ENGINE_AWAY},
        {"manifest": ABSENT},
    ],
    ids=["engine", "disk", "both", "nothing there"],
)
def test_it_never_waits(phase: Phase, away: dict[str, Any]) -> None:
    """What can not be reached is left as it is, and the object goes."""
    end = walk(case(**{"manifest": manifest(phase), "session": DELETED, **away}))
    assert end.actions in LETS_GO


@pytest.mark.parametrize("phase", RAN)
def test_what_a_silent_engine_holds_is_freed_when_it_answers(phase: Phase) -> None:
    """The release is recorded before the object goes; the rest is done without it."""
    let_go = plan(case(manifest=manifest(phase), session=DELETED, **ENGINE_AWAY))
    assert let_go.manifest is not None
    assert let_go.manifest.released
    gone = case(container(), manifest=let_go.manifest, session=None)
    assert plan(replace(gone, **ENGINE_AWAY)).actions == ()
    end = walk(gone)
    assert end.case.backend == SessionOnBackend(containers=(), network_present=False)
    assert end.did(a.ArchiveInstance)


def test_a_record_that_can_not_be_read_is_archived_whole() -> None:
    """The archive needs no manifest."""
    end = walk(case(container(), manifest=CORRUPT, session=DELETED))
    assert [type(action).__name__ for action in end.actions][-2:] == [
        "ArchiveInstance",
        "RemoveFinalizer",
    ]


@pytest.mark.parametrize(("phase", "present"), list(product(Phase, [(), (container(),)])))
def test_an_object_that_vanished_without_us_leaves_everything(
    phase: Phase, present: tuple[Any, ...]
) -> None:
    """Law 12: the API server can lose objects too; its data waits for adoption."""
    answer = plan(case(*present, manifest=manifest(phase), session=None))
    assert (answer.actions, answer.again, answer.report) == ((), False, False)


def test_a_record_is_kept_of_what_can_not_be_archived_yet() -> None:
    """The object is gone when it is; a disk that refuses the record holds up nothing."""
    given = case(session=DELETED, **ENGINE_AWAY)
    answer = plan(given)
    assert answer.actions == (a.KeepRecord(), a.RemoveFinalizer())
    assert answer.manifest is not None
    full = EffectFailed(
        action="KeepRecord", kind=FaultKind.HOST, reason=Reason.NO_SPACE, message="full"
    )
    again = plan(replace(given, manifest=answer.manifest, failure=full))
    assert again.actions == (a.RemoveFinalizer(),)


def test_an_object_without_our_finalizer_is_let_go() -> None:
    """A person took the finalizer away: the documented escape; the data stays."""
    answer = plan(case(container(), session=session(deleting=True, has_finalizer=False)))
    assert answer.actions == ()


def refused(kind: FaultKind) -> EffectFailed:
    """A removal that the engine or the disk refused."""
    return EffectFailed(action="x", kind=kind, reason=Reason.NO_SPACE, message="m")


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if kind is not FaultKind.RACE])
def test_a_refused_removal_lets_the_object_go_and_is_tried_on_without_it(kind: FaultKind) -> None:
    """Paced, never blocked: a full disk or a broken container holds up no deletion."""
    ended = container(ContainerState.EXITED)
    answer = plan(case(ended, session=DELETED, failure=refused(kind)))
    assert answer.actions in LETS_GO
    assert answer.manifest is not None
    assert answer.manifest.released
    alone = case(ended, session=None, manifest=answer.manifest)
    again = plan(replace(alone, failure=refused(kind)))
    assert (again.actions, again.wake_at) == ((), NOW + RECHECK)
    assert walk(alone).did(a.ArchiveInstance)


def test_a_lost_race_is_tried_again_and_the_object_stays() -> None:
    """Somebody else removed it at the same moment."""
    answer = plan(
        case(container(ContainerState.EXITED), session=DELETED, failure=refused(FaultKind.RACE))
    )
    assert answer.actions == ()
    assert answer.wake_at == NOW + SETTLING


@pytest.mark.parametrize("state", [ContainerState.REMOVING, ContainerState.DEAD])
def test_a_removal_that_the_engine_never_ends_holds_up_nothing(state: ContainerState) -> None:
    """What it calls removing or dead can stay so for days."""
    answer = plan(case(container(state), session=DELETED, failure=refused(FaultKind.RACE)))
    assert answer.actions in LETS_GO


def test_a_deletion_writes_no_status_and_starts_nothing() -> None:
    """The object is going; a restore that was due is not begun."""
    record = manifest(Phase.EXITED, cause=Cause.HOST_LOST)
    given = case(container(ContainerState.EXITED), manifest=record, session=DELETED)
    assert not plan(given).report
    assert not walk(given).did(a.StartContainer, a.CreateAndStart)


def test_a_kept_session_is_archived_too() -> None:
    """Retention of archives is what removes it in the end, never the delete."""
    end = walk(case(manifest=manifest(Phase.KEPT), session=DELETED))
    assert end.did(a.ArchiveInstance)


def test_a_session_of_another_installation_is_not_let_go() -> None:
    """Its finalizer is its own controller's to take."""
    other = session(deleting=True, served_by="another")
    assert plan(case(manifest=ABSENT, session=other)).actions == ()
