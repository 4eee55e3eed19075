"""The first launch: from an object to a process, or to a setup failure that says what to mend."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import ABSENT, NOT_ASKED, Case, EffectFailed, FaultKind, HostRefusal
from controller.reconcile.facts import ContainerState, ImageAbsent, ImageFacts, Unknown
from controller.reconcile.manifest import RestoreRecord
from controller.reconcile.plan import plan
from controller.reconcile.recipe import UNPRIVILEGED_USER
from controller.reconcile.steps import Plan
from tests.unit.reconcile.builders import NOW, STARTED, case, container, engine, manifest, session
from tests.unit.reconcile.walk import walk

STARTS = (a.CreateAndStart, a.StartContainer)
REFUSED = HostRefusal(field="mounts[0]", reason=Reason.MOUNT_REFUSED, message="not allowed")


def pending(**fields: Any) -> Case:
    """A session whose first attempt left nothing; the image is there."""
    return case(manifest=manifest(Phase.PENDING), **fields)


def failed(kind: FaultKind, reason: Reason = Reason.START_REFUSED) -> EffectFailed:
    """An effect of a launch that was refused."""
    return EffectFailed(action="CreateAndStart", kind=kind, reason=reason, message="refused")


def kinds(answer: Plan) -> list[str]:
    """The names of a plan's actions."""
    return [type(action).__name__ for action in answer.actions]


def test_a_new_object_gets_its_record_before_anything_else() -> None:
    """*Order of writing*: the manifest, then the status, then the effect."""
    new = case(manifest=ABSENT, session=session(status_run_id=0))
    answer = plan(new)
    assert answer.actions == ()
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.run_id) == (Phase.PENDING, 0)


def test_a_launch_makes_home_run_directory_network_and_container() -> None:
    """In this order, with one number and one recipe throughout."""
    answer = plan(pending())
    assert kinds(answer) == ["PrepareHome", "WriteRunDirectory", "EnsureNetwork", "CreateAndStart"]
    assert answer.manifest is not None
    assert (answer.manifest.phase, answer.manifest.run_id) == (Phase.STARTING, 2)
    assert answer.manifest.recipe is not None
    created = answer.actions[-1]
    assert isinstance(created, a.CreateAndStart)
    assert (created.run_id, created.resumed) == (2, False)
    assert created.recipe == answer.manifest.recipe


def test_a_started_process_is_a_ready_run() -> None:
    """*A run is Ready*: by StartedAt; then its image is pinned."""
    end = walk(pending(image_pinned=False))
    assert (end.phase, end.manifest.ready_run) == (Phase.RUNNING, 2)
    assert end.did(a.PinImage)
    assert end.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.STARTING, Phase.FAILED])
def test_a_start_that_was_not_recorded_is_found(phase: Phase) -> None:
    """A crash between the start and its record does not undo it."""
    end = walk(case(container(), manifest=manifest(phase)))
    assert (end.phase, end.manifest.ready_run) == (Phase.RUNNING, 1)
    assert not end.did(*STARTS)


def test_a_process_that_ended_before_it_was_seen_is_no_setup_failure() -> None:
    """Law 9: SetupFailed is for runs that never got there."""
    ended = container(ContainerState.EXITED, exit_code=127, started_at=STARTED)
    end = walk(case(ended, manifest=manifest(Phase.STARTING)))
    assert (end.phase, end.manifest.cause) == (Phase.EXITED, Cause.CRASHED)


def test_what_an_attempt_left_is_replaced() -> None:
    """A container that never started holds nothing; the next attempt has a higher number."""
    half = container(ContainerState.CREATED)
    answer = plan(case(half, manifest=manifest(Phase.PENDING)))
    assert answer.actions[0] == a.RemoveContainer(container_id="c1")
    assert answer.manifest is not None
    assert answer.manifest.run_id == 2


def test_a_missing_image_is_fetched_first() -> None:
    """And the phase says so meanwhile."""
    answer = plan(pending(image=ImageAbsent(ref="i"), image_pinned=False))
    assert answer.actions == (a.PullImage(ref="i"),)
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.STARTING
    assert walk(pending(image=ImageAbsent(ref="i"))).phase is Phase.RUNNING


@pytest.mark.parametrize("image", [Unknown(reason=Reason.TIMEOUT, message="m"), NOT_ASKED])
def test_an_image_that_is_not_known_launches_nothing(image: Any) -> None:
    """Unknown is not absent: nothing is pulled over it either."""
    assert plan(pending(image=image)).actions == ()


@pytest.mark.parametrize(
    ("spec_user", "image_user", "security", "user"),
    [
        ("7:8", "1000", "Restricted", "7:8"),
        ("", "7", "Restricted", "7:7"),
        ("9", "7", "Restricted", "9:9"),
        ("", "", "Restricted", UNPRIVILEGED_USER),
        ("", "0", "Restricted", UNPRIVILEGED_USER),
        ("", "00:0", "Restricted", UNPRIVILEGED_USER),
        ("", "", "Baseline", "0:0"),
        ("0", "7", "Baseline", "0:0"),
    ],
)
def test_the_user_is_resolved_once(
    spec_user: str, image_user: str, security: str, user: str
) -> None:
    """*uid*: the spec's, else the image's, else an unprivileged one where that is root."""
    spec = {"user": spec_user, "security": security}
    image = ImageFacts(image_id="sha256:1", digest="", user=image_user)
    answer = plan(pending(session=session(spec=spec), image=image))
    assert answer.manifest is not None
    assert answer.manifest.recipe is not None
    assert answer.manifest.recipe.user == user


@pytest.mark.parametrize(
    "broken",
    [
        {"session": session(spec={"security": "None"})},
        {"refused": (REFUSED,)},
        {"failure": failed(FaultKind.SPEC, Reason.COMMAND_NOT_FOUND)},
    ],
    ids=["spec", "host", "engine"],
)
def test_what_can_not_work_is_a_setup_failure_that_waits_for_a_person(
    broken: dict[str, Any],
) -> None:
    """Stalled with the reason, nothing left on the engine, and no further attempt."""
    half = container(ContainerState.CREATED)
    end = walk(case(half, **{"manifest": manifest(Phase.STARTING), **broken}))
    assert (end.phase, end.manifest.cause) == (Phase.FAILED, Cause.SETUP_FAILED)
    assert not end.did(*STARTS)
    assert end.did(a.RemoveContainer, a.RemoveNetwork)
    assert end.condition("Stalled")["status"] == "True"
    assert end.condition("Stalled")["reason"] == end.manifest.reason
    assert end.last.wake_at is None


def test_a_spec_that_was_faulty_from_the_start_is_only_refused() -> None:
    """Nothing is recorded of a session that can not begin."""
    answer = plan(
        case(manifest=ABSENT, session=session(spec={"security": "None"}, status_run_id=0))
    )
    assert (answer.manifest, answer.actions) == (None, ())
    assert answer.hold is not None
    assert answer.hold.reason is Reason.SPEC_INVALID


@pytest.mark.parametrize(
    "mend",
    [
        {"session": session(generation=3)},
        {"session": session(spec={"restore": {"retryRun": 1}})},
    ],
    ids=["edited", "asked"],
)
def test_a_setup_failure_is_tried_again_when_a_person_acts(mend: dict[str, Any]) -> None:
    """A changed spec is tried at once, and so is `retryRun` of this very run."""
    record = manifest(Phase.FAILED, reason=Reason.COMMAND_NOT_FOUND, cause=Cause.SETUP_FAILED)
    assert walk(case(manifest=record)).phase is Phase.FAILED
    assert walk(case(manifest=record, **mend)).phase is Phase.RUNNING


def test_a_source_that_the_owner_allowed_is_tried_by_itself() -> None:
    """The refusal is the host's; once it is gone nobody needs to edit the spec."""
    record = manifest(Phase.FAILED, reason=Reason.MOUNT_REFUSED, cause=Cause.SETUP_FAILED)
    assert walk(case(manifest=record, refused=(REFUSED,))).phase is Phase.FAILED
    assert walk(case(manifest=record)).phase is Phase.RUNNING


@pytest.mark.parametrize("kind", [FaultKind.HOST, FaultKind.REGISTRY])
def test_a_fault_of_host_or_registry_is_waited_out(kind: FaultKind) -> None:
    """Never a setup failure, however often; what was made is given back meanwhile."""
    record = manifest(Phase.STARTING, restore=RestoreRecord(attempts=99))
    half = container(ContainerState.CREATED)
    answer = plan(case(half, manifest=record, failure=failed(kind, Reason.NO_SPACE)))
    assert answer.manifest is not None
    assert answer.manifest.phase is Phase.PENDING
    assert answer.hold is not None
    assert (answer.hold.reason, answer.hold.waiting) == (Reason.NO_SPACE, False)
    assert kinds(answer) == ["RemoveContainer", "RemoveNetwork", "RemoveRunDirectory"]
    assert answer.wake_at is not None
    assert answer.wake_at > NOW


def test_a_container_that_never_starts_is_a_setup_failure_in_the_end() -> None:
    """After as many refusals as the spec allows attempts."""
    given = case(manifest=manifest(Phase.STARTING), failure=failed(FaultKind.CONTAINER))
    for _ in range(4):
        answer = plan(given)
        assert answer.manifest is not None
        assert answer.manifest.phase is Phase.PENDING
        given = replace(given, manifest=answer.manifest)
    last = plan(given)
    assert last.manifest is not None
    assert last.manifest.phase is Phase.FAILED


def test_a_refused_launch_is_not_repeated_before_it_is_due() -> None:
    """Law 16: the same wait whoever wakes the worker."""
    due = NOW + timedelta(seconds=9)
    waiting = RestoreRecord(attempts=1, next_attempt_at=due, fault_reason=Reason.NO_SPACE)
    record = manifest(Phase.PENDING, restore=waiting)
    early = plan(case(manifest=record))
    assert (early.manifest, early.actions, early.wake_at) == (record, (), due)
    assert walk(case(manifest=record, now=due)).phase is Phase.RUNNING


def test_a_lost_race_changes_nothing() -> None:
    """Another hand was at the same name: look again shortly."""
    record = manifest(Phase.STARTING)
    answer = plan(case(manifest=record, failure=failed(FaultKind.RACE)))
    assert (answer.manifest, answer.actions) == (record, ())
    assert answer.wake_at is not None


def test_an_edit_before_the_first_ready_is_tried_at_once() -> None:
    """*Recipe*: frozen at the first Ready, not before."""
    first = plan(pending())
    assert first.manifest is not None
    edited = session(spec={"env": [{"name": "A", "value": "b"}]}, generation=3)
    record = replace(first.manifest, phase=Phase.PENDING)
    answer = plan(case(manifest=record, session=edited))
    created = answer.actions[-1]
    assert isinstance(created, a.CreateAndStart)
    assert created.recipe.env == (("A", "b"),)


def test_an_edit_after_the_first_ready_changes_nothing() -> None:
    """*Recipe*: it shows as a condition."""
    edited = session(spec={"command": ["other"]}, generation=3)
    end = walk(case(container(), session=edited))
    assert (end.phase, end.actions) == (Phase.RUNNING, ())
    assert end.condition("SpecValid")["reason"] == Reason.FIELD_CHANGED
    assert "spec.command" in end.condition("SpecValid")["message"]


@pytest.mark.parametrize("desired", [DesiredState.KEPT, DesiredState.PURGED])
@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.STARTING, Phase.FAILED])
def test_a_person_can_end_a_launch_that_is_faulty(phase: Phase, desired: DesiredState) -> None:
    """Keep and purge need no valid spec."""
    wish = session(desired, spec={"security": "None"})
    end = walk(case(container(ContainerState.CREATED), manifest=manifest(phase), session=wish))
    assert end.status["phase"] == desired
    assert not end.did(*STARTS)


def test_the_epoch_is_noted_with_each_new_run() -> None:
    """A process that starts and dies with its host unseen is judged by that epoch."""
    answer = plan(pending())
    assert answer.manifest is not None
    assert answer.manifest.confirmed is not None
    assert answer.manifest.confirmed.epoch == engine().epoch
