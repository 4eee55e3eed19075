"""`plan` has an answer for everything, and no answer breaks a law."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import (
    ABSENT,
    NOT_ASKED,
    Case,
    EffectFailed,
    FaultKind,
    HostRefusal,
    SessionObject,
    Witness,
)
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    ImageAbsent,
    ImageFacts,
    MountVerdict,
    ProcessVerdict,
    SessionOnBackend,
    Unknown,
)
from controller.reconcile.manifest import Manifest, ProcessMark, RestoreRecord, Seen
from controller.reconcile.plan import plan
from controller.reconcile.steps import LIVE, Plan
from tests.unit.reconcile.builders import (
    IMAGE,
    NOW,
    UID,
    case,
    container,
    follow,
    manifest,
    session,
)

CONTAINERS: dict[str, tuple[ContainerFacts, ...]] = {
    "none": (),
    "created": (container(ContainerState.CREATED),),
    "running": (container(),),
    "another process": (container(started_at=NOW),),
    "another container": (container(container_id="c2", run_id=2),),
    "paused": (container(ContainerState.PAUSED),),
    "exited 0": (container(ContainerState.EXITED),),
    "exited 255": (container(ContainerState.EXITED, exit_code=255),),
    "dead": (container(ContainerState.DEAD),),
    "removing": (container(ContainerState.REMOVING),),
    "two": (container(), container(container_id="c2", run_id=2)),
    "aside": (container(ContainerState.EXITED, set_aside=True),),
    "foreign recipe": (container(ContainerState.EXITED, recipe_hash="x"),),
    "started and half made": (
        container(ContainerState.EXITED),
        container(ContainerState.CREATED, container_id="c2", run_id=2),
    ),
    "stray": (container(ContainerState.EXITED), container(container_id="c2", run_id=2)),
}
FAILURES = [None, *FaultKind]
SILENT = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="silent")
UNMOUNTED = Unknown(reason=Reason.STATE_ROOT_MISSING, message="unmounted")
CORRUPT = Unknown(reason=Reason.MANIFEST_CORRUPT, message="corrupt")
STARTS = (a.CreateAndStart, a.StartContainer)
NOT_ALLOWED = HostRefusal(field="mounts[0]", reason=Reason.NOT_ALLOWED_BY_HOST, message="no")
BY_HAND = {"c1": Witness(watched=True, stopped_by_hand="docker stop")}


def records(phase: Phase) -> Iterator[Manifest]:
    """The records that a phase can have."""
    yield manifest(phase)
    for cause in (Cause.HOST_LOST, Cause.UNKNOWN):
        yield manifest(phase, cause=cause)
    yield manifest(phase, destroy_recorded=True)
    yield manifest(phase, released=True)
    yield manifest(phase, restore=RestoreRecord(attempts=9, refusals=3))
    yield manifest(phase, process=ProcessMark(container_id="gone", started_at=NOW))


def objects() -> Iterator[SessionObject | None]:
    """The objects that there can be."""
    yield None
    for desired in (None, *DesiredState):
        yield session(desired)
        yield session(desired, deleting=True)
    yield session(has_finalizer=False)
    yield session(has_finalizer=False, deleting=True)
    yield session(spec={"sidecars": [{"name": "x"}]})
    yield session(spec={"restore": {"retryRun": 1, "onCrash": "Restore"}})
    yield session(served_by="another", status_run_id=0)


def cases(phase: Phase) -> Iterator[Case]:
    """Every combination for one phase."""
    for record, object_, present, failure in itertools.product(
        records(phase), objects(), CONTAINERS.values(), FAILURES
    ):
        failed = failure and EffectFailed(
            action="x", kind=failure, reason=Reason.NO_SPACE, message="m"
        )
        base = case(*present, manifest=record, session=object_, failure=failed)
        yield base
        yield replace(base, image=ImageAbsent(ref="i"), image_pinned=False)
        if failure is None:
            yield replace(base, image=SILENT, image_pinned=False)
            yield replace(base, image=NOT_ASKED, refused=(NOT_ALLOWED,))
            yield replace(base, mounts=MountVerdict.DIFFERS)
            yield replace(base, process=ProcessVerdict.DEAD, witness=BY_HAND)
            yield replace(base, engine=SILENT, backend=SILENT)
            yield replace(base, backend=SILENT)


def broken_disks() -> Iterator[Case]:
    """Every object and container set over a disk that can not be believed, or is empty."""
    for disk, object_, present in itertools.product(
        (UNMOUNTED, CORRUPT, ABSENT), objects(), CONTAINERS.values()
    ):
        base = case(*present, manifest=disk, session=object_)
        yield base
        yield replace(base, engine=SILENT, backend=SILENT)


def containers_of(given: Case) -> dict[str, ContainerFacts]:
    held = given.backend.containers if isinstance(given.backend, SessionOnBackend) else ()
    return {c.container_id: c for c in held}


def hold_the_laws(given: Case, answer: Plan) -> None:
    """What must be true of every answer."""
    silent = isinstance(given.engine, Unknown) or isinstance(given.backend, Unknown)
    session_ = given.session
    before = given.manifest if isinstance(given.manifest, Manifest) else None
    after = answer.manifest or before
    deleted = session_ is None or session_.deleting
    for action in answer.actions:
        if silent:
            assert isinstance(action, a.RemoveFinalizer | a.AddFinalizer | a.KeepRecord), "law 3"
        elif isinstance(given.manifest, Unknown) and not isinstance(action, a.AddFinalizer):
            assert deleted, "law 3"
        if isinstance(action, a.RemoveInstance):
            assert after is not None
            assert after.destroy_recorded or after.ready_run == 0, "law 1"
        if isinstance(action, a.ArchiveInstance | a.RemoveFinalizer):
            assert deleted, "law 12"
        if isinstance(action, STARTS):
            hold_the_laws_of_a_start(given, before, after, action)
        if isinstance(action, a.RemoveContainer):
            removed = containers_of(given)[action.container_id]
            assert removed.started_at is None or allowed_to_remove(given, after, action), "law 12"
        if isinstance(action, a.StopContainer):
            assert allowed_to_stop(given, before, after, action), "law 12"
    if session_ is not None and not session_.has_finalizer and answer.actions:
        assert answer.actions == (a.AddFinalizer(),), "case C19"


def hold_the_laws_of_a_start(
    given: Case,
    before: Manifest | None,
    after: Manifest | None,
    action: a.CreateAndStart | a.StartContainer,
) -> None:
    """A start is fenced by its number, made from the record, and alone."""
    assert before is not None
    assert after is not None
    assert after.run_id > before.run_id == 1, "law 6"
    assert action.run_id == after.run_id, "law 6"
    present = containers_of(given)
    assert not any(c.state in LIVE and not c.set_aside for c in present.values()), "law 6"
    assert after.recipe is not None
    if before.ready_run:
        assert after.recipe == before.recipe, "law 7"
    if isinstance(action, a.CreateAndStart):
        assert action.recipe == after.recipe, "law 7"
    else:
        assert present[action.container_id].recipe_hash == after.recipe.hash, "law 6"


def allowed_to_remove(given: Case, after: Manifest | None, action: a.RemoveContainer) -> bool:
    """A container that ran goes only past recall, in a deletion, or beside its Ready successor."""
    if given.session is None or given.session.deleting:
        return True
    if after is None or after.destroy_recorded:
        return True
    replaced = after.process is not None and after.process.container_id != action.container_id
    return after.phase is Phase.RUNNING and replaced


def allowed_to_stop(
    given: Case, before: Manifest | None, after: Manifest | None, action: a.StopContainer
) -> bool:
    """A process is ended for a wish, a deletion, a retry, wrong mounts, or a second one's sake."""
    if given.session is None or given.session.deleting:
        return True
    assert before is not None
    assert after is not None
    asked = after.phase in (Phase.KEEPING, Phase.PURGING) or after.restore.stop_first
    wrong = after.phase is Phase.EXITED and given.mounts is MountVerdict.DIFFERS
    second = after.process is not None and after.process.container_id != action.container_id
    return asked or wrong or (after.phase is Phase.RUNNING and second)


@pytest.mark.parametrize("phase", list(Phase))
def test_every_case_has_an_answer_that_holds_the_laws(phase: Phase) -> None:
    """Totality: phases by records by objects by containers by failures by images by engines.

    Law 15 with it: following `again` comes to an end, and what has settled plans nothing new.
    """
    for given in cases(phase):
        come_to_rest(given)


def come_to_rest(given: Case) -> None:
    """Look again and again: after few looks there is something to do, or nothing changes."""
    looked_at = given
    for _ in range(3):
        steps = list(follow(looked_at))
        for step, answer in steps:
            hold_the_laws(step, answer)
        last, answer = steps[-1]
        record = answer.manifest or last.manifest
        if answer.actions or last.failure is not None or record == looked_at.manifest:
            return
        looked_at = replace(last, manifest=record)
    raise AssertionError(f"law 15: still not settled: {given}")


def test_every_case_over_a_broken_disk_has_an_answer_that_holds_the_laws() -> None:
    """Totality: unmounted, damaged and empty."""
    for given in broken_disks():
        answer = plan(given)
        hold_the_laws(given, answer)
        assert not any(isinstance(action, STARTS) for action in answer.actions)


@pytest.mark.parametrize("disk", [UNMOUNTED, CORRUPT], ids=["unmounted", "corrupt"])
@pytest.mark.parametrize("desired", [None, *DesiredState])
def test_a_disk_that_is_not_believed_changes_nothing(
    disk: Unknown, desired: DesiredState | None
) -> None:
    """Law 3: no start, no purge; the reason is the disk's."""
    for present in CONTAINERS.values():
        answer = plan(case(*present, manifest=disk, session=session(desired)))
        assert answer.actions == ()
        assert answer.hold is not None
        assert answer.hold.reason is disk.reason


def test_nothing_is_created_anew_for_a_session_that_ran() -> None:
    """*Precedence*: runId > 0 and no directory is a missing disk."""
    answer = plan(case(manifest=ABSENT))
    assert answer.actions == ()
    assert answer.hold is not None
    assert answer.hold.reason is Reason.INSTANCE_DIRECTORY_MISSING


def test_an_object_that_vanished_without_us_leaves_its_data() -> None:
    """Law 12: the API server can lose objects too."""
    for phase, present in itertools.product(Phase, CONTAINERS.values()):
        assert plan(case(*present, session=None, manifest=manifest(phase))).actions == ()


def test_a_restored_api_server_freezes() -> None:
    """A status or generation less than was seen before: nothing is touched."""
    for object_ in (session(status_run_id=0), session(generation=1)):
        answer = plan(case(container(), session=object_))
        assert answer.actions == ()
        assert answer.hold is not None
        assert answer.hold.reason is Reason.STATUS_OLDER_THAN_MANIFEST


def test_a_status_that_was_ahead_and_was_written_back_freezes_nothing() -> None:
    """A forged number, or a disk that was restored: the next run is counted past it."""
    record = manifest(seen=Seen(run_id=9, generation=2))
    answer = plan(case(container(), manifest=record, session=session(status_run_id=1)))
    assert answer.hold is None


def test_the_image_of_a_case_is_what_the_builders_say() -> None:
    """A guard for the table itself: its plain session is healthy and quiet."""
    assert isinstance(IMAGE, ImageFacts)
    answer = plan(case(container()))
    assert answer.actions == ()
    assert answer.hold is None
    assert answer.manifest == manifest()
    assert answer.manifest.uid == UID
