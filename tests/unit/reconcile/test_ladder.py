"""The restore ladder: the lowest rung that the facts allow, and what a failed one leaves."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, ExitPolicy, Phase, Rung
from controller.reconcile import actions as a
from controller.reconcile.case import Case, EffectFailed, FaultKind, HostRefusal
from controller.reconcile.facts import (
    ContainerFacts,
    ContainerState,
    ImageAbsent,
    SessionOnBackend,
    Unknown,
)
from controller.reconcile.manifest import ProcessMark, RestoreRecord
from controller.reconcile.plan import plan
from controller.reconcile.recipe import make_recipe
from controller.reconcile.restoring import REFUSALS_BEFORE_RECREATE, WRITABLE_LAYER
from controller.reconcile.steps import Plan
from tests.unit.reconcile.builders import (
    IMAGE,
    NOW,
    case,
    container,
    engine,
    manifest,
    recipe,
    session,
)
from tests.unit.reconcile.walk import walk

EXITED = container(ContainerState.EXITED, exit_code=255)
LONGEST_LOST = 1024
STARTS = (a.StartContainer, a.CreateAndStart)


def restoring(
    *present: ContainerFacts, record: dict[str, Any] | None = None, **fields: Any
) -> Case:
    """A restore after a host loss that has come to the ladder."""
    kept = manifest(
        Phase.RESTORING, before=Phase.EXITED, cause=Cause.HOST_LOST, reason=Reason.HOST_LOST
    )
    return case(*present, manifest=replace(kept, **(record or {})), **fields)


def kinds(answer: Plan) -> list[str]:
    """The names of a plan's actions."""
    return [type(action).__name__ for action in answer.actions]


def failed(kind: FaultKind) -> EffectFailed:
    """An effect that was refused."""
    return EffectFailed(action="x", kind=kind, reason=Reason.NO_SPACE, message="refused")


def test_rung_0_reconnects_to_what_runs() -> None:
    """Nothing is started; everything came back, the same process too."""
    end = walk(restoring(container()))
    assert end.actions == ()
    assert (end.phase, end.manifest.restore.tier) == (Phase.RUNNING, Rung.RECONNECT)
    assert end.manifest.run_id == 1
    assert end.manifest.restore.lost == ()


def test_rung_0_counts_a_process_of_another_hand_as_a_new_run() -> None:
    """*Precedence*: a start by somebody's hand is a new run by rung 0."""
    end = walk(restoring(container(started_at=NOW)))
    assert (end.manifest.restore.tier, end.manifest.run_id) == (Rung.RECONNECT, 2)
    assert end.manifest.process == ProcessMark(container_id="c1", started_at=NOW)


WRITING = a.WriteRunDirectory(run_id=2, recipe=recipe(), resumed=True, exit_policy=ExitPolicy.ASK)


def test_rung_1_starts_what_is_stopped() -> None:
    """The run directory is written anew, then the very container is started."""
    answer = plan(restoring(EXITED))
    assert answer.actions == (
        WRITING,
        a.StartContainer(container_id="c1", run_id=2),
    )
    assert answer.manifest is not None
    assert answer.manifest.restore.tier is Rung.START
    assert answer.manifest.restore.lost == ()


def test_rung_2_recreates_what_is_absent_and_says_what_was_lost() -> None:
    """From the recorded recipe, by image ID; why rung 1 was not taken is said."""
    answer = plan(restoring(record={"process": None}))
    assert answer.actions == (
        WRITING,
        a.EnsureNetwork(),
        a.CreateAndStart(run_id=2, recipe=recipe(), resumed=True),
    )
    assert answer.manifest is not None
    restore = answer.manifest.restore
    assert (restore.tier, restore.lost) == (Rung.RECREATE, (WRITABLE_LAYER,))
    assert [rung.tier for rung in restore.skipped] == [Rung.START]
    assert restore.skipped[0].reason


@pytest.mark.parametrize("rung", [Rung.START, Rung.RECREATE])
def test_locks_of_its_own_trees_go_before_a_session_starts(rung: Rung) -> None:
    """Case C23: while nothing of it lives, nobody holds them; a source of others is not touched."""
    mounts = [
        {"name": name, "mountPath": f"/{name}", "hostPath": f"/srv/{name}", "isolation": isolation}
        for name, isolation in (("own", "Clone"), ("all", "Shared"))
    ]
    made = make_recipe(session(spec={"mounts": mounts}).spec, IMAGE)
    if rung is Rung.START:
        stopped = replace(EXITED, recipe_hash=made.hash)
        answer = plan(restoring(stopped, record={"recipe": made}))
    else:
        answer = plan(restoring(record={"recipe": made, "process": None}))
    assert answer.actions[0] == a.RemoveStaleLocks(trees=("own",))
    assert answer.manifest is not None
    assert answer.manifest.restore.tier is rung


def test_rung_2_names_the_volumes_of_the_image_that_nothing_covers() -> None:
    """The engine made them with the container and removed them with it; the home came back."""
    declared = replace(IMAGE, volumes=("/data", recipe().home, "/var/cache"))
    answer = plan(restoring(image=declared))
    assert answer.manifest is not None
    layer, volumes = answer.manifest.restore.lost
    assert layer == WRITABLE_LAYER
    assert volumes == "what was in the volumes that its image declares (/data, /var/cache)"


def test_no_image_makes_a_status_grow() -> None:
    """Case C18: as many volumes as it likes, with names as long as it likes."""
    declared = replace(IMAGE, volumes=tuple(f"/{n}{'x' * 4000}" for n in range(500)))
    answer = plan(restoring(image=declared))
    assert answer.manifest is not None
    _, volumes = answer.manifest.restore.lost
    assert volumes.endswith(", 492 more)")
    assert len(volumes) <= LONGEST_LOST


def test_rung_2_for_a_container_that_the_engine_calls_dead() -> None:
    """It is neither startable nor absent: a new one is made beside it, and it goes once Ready."""
    end = walk(restoring(container(ContainerState.DEAD)))
    assert end.manifest.restore.tier is Rung.RECREATE
    assert end.did(a.RemoveContainer)
    assert end.manifest.process is not None
    assert end.manifest.process.container_id == "run2"


def test_a_missing_image_waits_for_a_person_and_goes_on_by_itself() -> None:
    """Rung 3 is not served: back to the phase before, and no attempt is counted."""
    given = restoring(record={"process": None}, image=ImageAbsent(ref="i"), image_pinned=False)
    answer = plan(given)
    assert answer.actions == ()
    assert answer.hold is not None
    assert answer.hold.reason is Reason.IMAGE_MISSING
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.restore.attempts) == (Phase.EXITED, 0)
    due = replace(given, manifest=answer.manifest, now=NOW + timedelta(hours=1))
    loaded = replace(due, image=case().image, image_pinned=True)
    assert walk(loaded).phase is Phase.RUNNING


def test_an_image_that_nobody_could_ask_for_decides_nothing() -> None:
    """Law 3: unknown is not absent."""
    silent = Unknown(reason=Reason.TIMEOUT, message="no answer")
    answer = plan(restoring(record={"process": None}, image=silent))
    assert answer.actions == ()
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.RESTORING
    assert answer.wake_at is not None


def test_an_image_is_no_matter_where_the_container_is_there() -> None:
    """Rung 1 needs none that has a name."""
    answer = plan(restoring(EXITED, image=ImageAbsent(ref="i"), image_pinned=False))
    assert kinds(answer) == ["WriteRunDirectory", "StartContainer"]


def test_a_removal_in_progress_is_waited_for() -> None:
    """`docker rm -f` shows `removing` in between: then rung 2."""
    answer = plan(restoring(container(ContainerState.REMOVING)))
    assert answer.actions == ()
    assert answer.wake_at is not None
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.RESTORING


def test_a_container_of_another_recipe_is_left_alone() -> None:
    """Law 6: neither started nor replaced, said in words."""
    answer = plan(restoring(replace(EXITED, recipe_hash="x")))
    assert answer.actions == ()
    assert answer.hold is not None
    assert answer.hold.reason is Reason.RECIPE_MISMATCH


def test_what_was_half_done_is_undone_before_the_next_rung() -> None:
    """Law 4: a container that was created and never started holds nothing."""
    half = container(ContainerState.CREATED, container_id="c2", run_id=2)
    answer = plan(restoring(half, record={"process": None, "run_id": 2}))
    assert kinds(answer)[0] == "RemoveContainer"
    assert answer.manifest is not None
    assert answer.manifest.run_id == 3


def test_a_run_is_numbered_past_every_number_there_is() -> None:
    """Law 6: manifest, status and labels; the container's own label is of the run that made it."""
    by_label = plan(restoring(replace(EXITED, run_id=7)))
    by_status = plan(restoring(EXITED, session=session(status_run_id=9)))
    assert by_label.manifest is not None
    assert by_status.manifest is not None
    assert (by_label.manifest.run_id, by_status.manifest.run_id) == (8, 10)


@pytest.mark.parametrize(
    ("kind", "attempts"),
    [(FaultKind.CONTAINER, 1), (FaultKind.SPEC, 1), (FaultKind.HOST, 0), (FaultKind.REGISTRY, 0)],
)
def test_a_refused_rung_goes_back_and_waits(kind: FaultKind, attempts: int) -> None:
    """Law 4: only a condition and the count change; a fault of the host counts none."""
    answer = plan(restoring(EXITED, failure=failed(kind)))
    assert answer.actions == ()
    assert answer.manifest is not None
    after = answer.manifest
    assert (after.phase, after.cause, after.reason) == (
        Phase.EXITED,
        Cause.HOST_LOST,
        Reason.HOST_LOST,
    )
    assert after.restore.attempts == attempts
    assert after.restore.next_attempt_at is not None
    assert answer.wake_at == after.restore.next_attempt_at > NOW


def test_a_lost_race_is_looked_at_again_and_counts_nothing() -> None:
    """Somebody changed the container meanwhile."""
    given = restoring(EXITED, failure=failed(FaultKind.RACE))
    answer = plan(given)
    assert answer.manifest == given.manifest
    assert answer.wake_at is not None


@pytest.mark.parametrize("kind", list(FaultKind))
@pytest.mark.parametrize("starts_succeed", [True, False])
def test_only_a_container_that_will_not_start_opens_rung_2(
    kind: FaultKind, starts_succeed: bool
) -> None:
    """Again and again, while others start; a fault of the host never climbs a rung."""
    given = restoring(EXITED, engine=engine(starts_succeed=starts_succeed))
    for _ in range(REFUSALS_BEFORE_RECREATE):
        answer = plan(replace(given, failure=failed(kind)))
        assert answer.manifest is not None
        given = replace(given, manifest=answer.manifest, now=given.now + timedelta(hours=1))
        again = plan(given)
        while again.again and not again.actions and again.manifest is not None:
            given = replace(given, manifest=again.manifest)
            again = plan(given)
    aside = a.SetAsideContainer(container_id="c1") in again.actions
    assert aside == (kind is FaultKind.CONTAINER and starts_succeed)


def test_a_container_set_aside_is_removed_once_the_new_run_is_ready() -> None:
    """Not before: until then its layer is all there is. `lost` names the layer, and why."""
    refused = RestoreRecord(attempts=2, refusals=2, fault_message="broken link")
    given = restoring(EXITED, record={"restore": refused})
    first = plan(given)
    assert kinds(first)[0] == "SetAsideContainer"
    assert "RemoveContainer" not in kinds(first)
    end = walk(given)
    assert end.phase is Phase.RUNNING
    assert end.actions[-1] == a.RemoveContainer(container_id="c1")
    assert end.manifest.restore.lost == (WRITABLE_LAYER,)
    assert end.manifest.restore.skipped[0].tier is Rung.START
    assert "broken link" in end.manifest.restore.skipped[0].reason


def due_in(answer: Plan) -> timedelta:
    """How long a plan waits."""
    assert answer.wake_at is not None
    return answer.wake_at - NOW


def after_attempts(count: int, jitter: float = 0.0) -> timedelta:
    """How long the ladder waits after one more failure."""
    record = {"restore": RestoreRecord(attempts=count - 1)}
    return due_in(
        plan(restoring(EXITED, record=record, failure=failed(FaultKind.CONTAINER), jitter=jitter))
    )


def test_the_wait_doubles_to_a_bound_and_is_spread() -> None:
    """Law 16: with the spec's first and longest wait, and a fifth of it by chance."""
    assert [after_attempts(n).total_seconds() for n in (1, 2, 3, 6, 60)] == [10, 20, 40, 300, 300]
    assert after_attempts(1, jitter=0.5).total_seconds() == 11


def test_nothing_is_tried_before_it_is_due() -> None:
    """A wake-up that comes early changes nothing and asks for the same time."""
    due = NOW + timedelta(seconds=7)
    waiting = RestoreRecord(attempts=1, next_attempt_at=due, fault_reason=Reason.NO_SPACE)
    record = manifest(Phase.EXITED, cause=Cause.HOST_LOST, restore=waiting)
    early = plan(case(EXITED, manifest=record))
    assert (early.manifest, early.actions, early.wake_at) == (record, (), due)
    assert early.hold is not None
    assert not early.hold.waiting
    assert walk(case(EXITED, manifest=record, now=due)).phase is Phase.RUNNING


def test_attempts_come_to_an_end_and_a_person_begins_anew() -> None:
    """Held with all that failed said; `retryRun` forgets the count."""
    record = manifest(Phase.EXITED, cause=Cause.HOST_LOST, restore=RestoreRecord(attempts=5))
    held = walk(case(EXITED, manifest=record))
    assert held.actions == ()
    assert held.condition("Stalled")["reason"] == Reason.ATTEMPTS_EXHAUSTED
    asked = session(spec={"restore": {"retryRun": 1}})
    end = walk(case(EXITED, manifest=record, session=asked))
    assert (end.phase, end.manifest.restore.attempts) == (Phase.RUNNING, 0)


@pytest.mark.parametrize("number", [0, 2, 99])
def test_a_retry_of_another_run_is_ignored(number: int) -> None:
    """`retryRun` is a fence: old and future numbers do nothing."""
    record = manifest(Phase.EXITED, cause=Cause.CRASHED, reason=Reason.CRASHED)
    asked = session(spec={"restore": {"retryRun": number}})
    assert walk(case(EXITED, manifest=record, session=asked)).actions == ()


def test_a_retry_is_done_once() -> None:
    """The number in the spec is old after it."""
    asked = session(spec={"restore": {"retryRun": 1}})
    record = manifest(Phase.EXITED, cause=Cause.CRASHED, reason=Reason.CRASHED)
    end = walk(case(EXITED, manifest=record, session=asked))
    assert end.manifest.run_id == 2
    crashed = container(
        ContainerState.EXITED, exit_code=1, started_at=_started(end.manifest.process)
    )
    again = walk(
        replace(end.case, backend=SessionOnBackend(containers=(crashed,), network_present=True))
    )
    assert again.phase is Phase.EXITED
    assert not again.did(*STARTS)


def _started(mark: ProcessMark | None) -> datetime:
    assert mark is not None
    return mark.started_at


def test_a_retry_restarts_what_runs() -> None:
    """The process is ended first, then the same container is started."""
    end = walk(case(container(), session=session(spec={"restore": {"retryRun": 1}})))
    assert [type(action).__name__ for action in end.actions] == [
        "StopContainer",
        "WriteRunDirectory",
        "StartContainer",
    ]
    assert (end.phase, end.manifest.run_id) == (Phase.RUNNING, 2)


def test_law_17_is_asked_again_before_a_restore() -> None:
    """*Trust*: what the host no longer allows is not started, and nothing else changes."""
    refusal = HostRefusal(field="mounts[0]", reason=Reason.NOT_ALLOWED_BY_HOST, message="no")
    answer = plan(restoring(EXITED, refused=(refusal,)))
    assert answer.actions == ()
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.EXITED
    assert answer.hold is not None
    assert answer.hold.reason is Reason.NOT_ALLOWED_BY_HOST


def test_a_resume_from_kept_uses_the_recorded_recipe() -> None:
    """Law 7: image, user, mounts and environment of the first launch."""
    edited = session(DesiredState.RUNNING, spec={"user": "7", "env": [{"name": "A", "value": "b"}]})
    end = walk(case(manifest=manifest(Phase.KEPT), session=edited))
    created = [action for action in end.actions if isinstance(action, a.CreateAndStart)]
    assert [action.recipe for action in created] == [recipe()]


def test_a_failed_resume_leaves_kept_with_nothing_on_the_engine() -> None:
    """Laws 4 and 11: what the attempt made is undone."""
    half = container(ContainerState.CREATED, container_id="c2", run_id=2)
    record = manifest(Phase.RESTORING, before=Phase.KEPT, process=None, run_id=2)
    wish = session(DesiredState.RUNNING)
    given = case(half, manifest=record, session=wish, failure=failed(FaultKind.HOST))
    answer = plan(given)
    assert kinds(answer) == ["RemoveContainer", "RemoveNetwork", "RemoveRunDirectory"]
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.KEPT
