"""The status that people and programs read: what each phase means to kstatus, times, and texts."""

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.reasons import EXPLANATIONS, Reason
from controller.api.vocabulary import Cause, ConditionType, DesiredState, Phase, Rung
from controller.reconcile.case import ABSENT, Case
from controller.reconcile.facts import ContainerState, ImageAbsent, Unknown
from controller.reconcile.manifest import ExitRecord, RestoreRecord, SkippedRung, Transition
from controller.reconcile.plan import plan
from controller.reconcile.report import status_of
from controller.reconcile.restoring import WRITABLE_LAYER
from controller.reconcile.steps import Hold, Plan
from tests.unit.reconcile.builders import NOW, case, container, manifest, session

SILENT = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="The engine does not answer.")
AWAY: dict[str, Any] = {"engine": SILENT, "backend": SILENT}
WISH = {Phase.KEPT: DesiredState.KEPT, Phase.PURGED: DesiredState.PURGED}
EXITED = container(ContainerState.EXITED, exit_code=3)


def status(given: Case, hold: Hold | None = None, previous: Any = None) -> dict[str, Any]:
    """The status of a case whose record stands, under a hold or under none."""
    return status_of(given, Plan(hold=hold), previous or {})


def conditions(found: dict[str, Any]) -> dict[str, str]:
    """The value of each condition."""
    return {c["type"]: c["status"] for c in found["conditions"]}


def condition(found: dict[str, Any], kind: ConditionType) -> dict[str, Any]:
    """One condition."""
    return next(c for c in found["conditions"] if c["type"] == kind)


def kstatus(found: dict[str, Any], generation: int) -> str:
    """What kstatus makes of it, as `kubectl wait`, Flux and Argo do."""
    values = conditions(found)
    if found["observedGeneration"] != generation or values["Reconciling"] == "True":
        return "InProgress"
    if values["Stalled"] == "True":
        return "Failed"
    return "Current" if values["Ready"] == "True" else "InProgress"


HELD = Hold(reason=Reason.CRASHED, message="It crashed.")
WAITING = Hold(reason=Reason.NO_SPACE, message="The disk is full.", waiting=True)


@pytest.mark.parametrize(
    ("phase", "hold", "meaning"),
    [
        (Phase.PENDING, None, "InProgress"),
        (Phase.STARTING, None, "InProgress"),
        (Phase.STARTING, WAITING, "InProgress"),
        (Phase.RUNNING, None, "Current"),
        (Phase.EXITED, HELD, "Failed"),
        (Phase.EXITED, WAITING, "InProgress"),
        (Phase.KEEPING, None, "InProgress"),
        (Phase.KEEPING, HELD, "Failed"),
        (Phase.KEPT, None, "Current"),
        (Phase.KEPT, WAITING, "InProgress"),
        (Phase.RESTORING, None, "InProgress"),
        (Phase.PURGING, None, "InProgress"),
        (Phase.PURGED, None, "Current"),
        (Phase.FAILED, HELD, "Failed"),
    ],
)
def test_each_phase_means_to_kstatus_what_it_is(
    phase: Phase, hold: Hold | None, meaning: str
) -> None:
    """What is desired is Current, what moves is InProgress, what waits for a person is Failed."""
    wish = session(WISH.get(phase))
    found = status(case(manifest=manifest(phase), session=wish), hold)
    assert kstatus(found, wish.generation) == meaning
    assert found["phase"] == phase


@pytest.mark.parametrize("phase", list(Phase))
def test_a_silent_engine_is_no_stall_and_no_failure(phase: Phase) -> None:
    """Law 3: what was so may still be so; Unknown, not False, and BackendReachable says why."""
    hold = Hold(reason=SILENT.reason, message=SILENT.message, backend=True)
    found = status(case(manifest=manifest(phase), session=session(WISH.get(phase)), **AWAY), hold)
    values = conditions(found)
    assert values["BackendReachable"] == "False"
    assert values["Stalled"] == "False"
    reached = phase in (Phase.RUNNING, Phase.KEPT, Phase.PURGED)
    assert values["Ready"] == ("Unknown" if reached else "False")
    assert values["Running"] == ("Unknown" if phase is Phase.RUNNING else "False")


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("desired", [None, *DesiredState])
def test_ready_means_what_is_desired_is_so(phase: Phase, desired: DesiredState | None) -> None:
    """Running and started, or Kept, or Purged; a Kept session is healthy."""
    record = manifest(phase)
    found = status(case(manifest=record, session=session(desired)))
    wanted = desired or record.desired
    assert (conditions(found)["Ready"] == "True") == (phase.value == wanted.value)


@pytest.mark.parametrize("phase", list(Phase))
def test_every_condition_is_there_once_and_explained(phase: Phase) -> None:
    """Flipped, never left behind; never without a reason of ours and a sentence."""
    for desired, hold in itertools.product(DesiredState, [None, HELD, WAITING]):
        found = status(case(manifest=manifest(phase), session=session(desired)), hold)
        kinds = [c["type"] for c in found["conditions"]]
        assert len(kinds) == len(set(kinds))
        for entry in found["conditions"]:
            assert Reason(entry["reason"]) in EXPLANATIONS
            assert entry["message"].strip()
            assert entry["observedGeneration"] == found["observedGeneration"] == 2


def test_the_same_conditions_are_there_in_every_phase() -> None:
    """A reader need not know which apply."""
    kinds = {
        tuple(c["type"] for c in status(case(manifest=manifest(phase)))["conditions"])
        for phase in Phase
    }
    assert len(kinds) == 1


def test_a_hold_says_the_way_on() -> None:
    """What to do stands in the condition and in `status.message`, not only in a manual."""
    found = status(case(EXITED, manifest=manifest(Phase.EXITED)), HELD)
    remedy = EXPLANATIONS[Reason.CRASHED].remedy
    for text in (found["message"], condition(found, ConditionType.STALLED)["message"]):
        assert text.startswith("It crashed.")
        assert remedy in text


@pytest.mark.parametrize("reason", list(Reason))
def test_a_hold_of_any_reason_can_be_told(reason: Reason) -> None:
    """Every reason can stand in Ready."""
    hold = Hold(reason=reason, message="It is so.")
    found = status(case(EXITED, manifest=manifest(Phase.EXITED)), hold)
    assert condition(found, ConditionType.READY)["reason"] == reason


def test_times_stay_while_a_status_does() -> None:
    """`lastTransitionTime` moves when True, False or Unknown does, never with a text."""
    given = case(EXITED, manifest=manifest(Phase.EXITED))
    first = status(given, HELD)
    later = replace(given, now=NOW + timedelta(hours=1))
    reworded = Hold(reason=Reason.OOM_KILLED, message="Other words.")
    same = status(later, reworded, first)
    for kind in ConditionType:
        if kind not in conditions(first):
            continue
        before, after = condition(first, kind), condition(same, kind)
        assert before["lastTransitionTime"] == after["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    moved = status(replace(later, manifest=manifest(Phase.RUNNING)), None, first)
    assert condition(moved, ConditionType.READY)["lastTransitionTime"] == "2026-01-01T13:00:00Z"
    kept = condition(moved, ConditionType.BACKEND_REACHABLE)["lastTransitionTime"]
    assert kept == "2026-01-01T12:00:00Z"


@pytest.mark.parametrize("phase", list(Phase))
def test_the_same_facts_give_the_same_status(phase: Phase) -> None:
    """Law 15: nothing is written when nothing changed, however much time has passed."""
    given = case(EXITED, manifest=manifest(phase))
    first = status_of(given, plan(given), {})
    later = replace(given, now=NOW + timedelta(days=1))
    assert status_of(later, plan(given), first) == first


@pytest.mark.parametrize("previous", [None, [], ["x"], [None], [{"type": 1}], [{"type": "Ready"}]])
def test_a_status_that_others_wrote_does_no_harm(previous: Any) -> None:
    """*Trust*: it is writable by others, so nothing in it is believed or raises."""
    found = status(case(container()), None, {"conditions": previous, "phase": "Purged"})
    assert found["phase"] == Phase.RUNNING
    assert conditions(found)["Ready"] == "True"


@given(st.text(max_size=3000))
def test_texts_are_cut_and_printable(text: str) -> None:
    """An engine's error may quote what a hostile session wrote: no terminal obeys it."""
    record = manifest(Phase.EXITED, message=text)
    entry = Transition(phase=Phase.EXITED, cause=None, run_id=1, tier=None, at=NOW, message=text)
    skipped = RestoreRecord(skipped=(SkippedRung(tier=Rung.START, reason=text),))
    record = replace(record, history=(entry,), restore=skipped)
    found = status(case(manifest=record), Hold(reason=Reason.CRASHED, message=text))
    texts = [c["message"] for c in found["conditions"]] + [found["message"]]
    texts += [e["message"] for e in found["history"] if "message" in e]
    texts += [rung["reason"] for rung in found["restore"]["skipped"]]
    assert all(len(t) <= 1024 and (t.isprintable() or not t) for t in texts)


def test_an_exit_is_shown_with_its_decision() -> None:
    """Code, memory, time by the engine's clock, and who decided what follows."""
    record = manifest(
        Phase.EXITED,
        exit=ExitRecord(
            run_id=1, code=137, oom_killed=True, finished_at=NOW, watched=True, decision=None
        ),
    )
    found = status(case(EXITED, manifest=record), HELD)
    assert found["exit"] == {"code": 137, "oomKilled": True, "finishedAt": "2026-01-01T12:00:00Z"}


def test_what_did_not_come_back_is_said() -> None:
    """The promise: the status tells the truth, including what could not return."""
    restored = RestoreRecord(
        tier=Rung.RECREATE,
        completed_at=NOW,
        lost=(WRITABLE_LAYER,),
        skipped=(SkippedRung(tier=Rung.START, reason="the container is gone"),),
    )
    found = status(case(container(), manifest=manifest(restore=restored)))
    assert found["restore"]["tier"] == 2
    assert found["restore"]["lost"] == [WRITABLE_LAYER]
    assert found["restore"]["skipped"] == [{"tier": 1, "reason": "the container is gone"}]
    assert WRITABLE_LAYER in found["message"]
    assert condition(found, ConditionType.READY)["status"] == "True"


@pytest.mark.parametrize(
    ("phase", "image", "present", "resumable"),
    [
        (Phase.KEPT, True, False, True),
        (Phase.KEPT, False, False, False),
        (Phase.EXITED, True, True, True),
        (Phase.EXITED, False, True, True),
        (Phase.EXITED, False, False, False),
        (Phase.RUNNING, True, True, False),
        (Phase.PURGED, True, False, False),
    ],
)
def test_resumable_is_what_a_wish_can_bring_back(
    phase: Phase, image: bool, present: bool, resumable: bool
) -> None:
    """`kubectl get sessions -l sessionkeeper.io/resumable=true` lists exactly these."""
    given = case(*([EXITED] if present else []), manifest=manifest(phase))
    given = given if image else replace(given, image=ImageAbsent(ref="i"), image_pinned=False)
    assert status(given)["resumable"] is resumable


def test_a_kept_session_that_never_ran_can_be_launched() -> None:
    """It is healthy and Kept, and there is nothing to resume yet."""
    record = manifest(Phase.KEPT, ready_run=0, recipe=None)
    found = status(case(manifest=record, session=session(DesiredState.KEPT)))
    assert conditions(found)["Ready"] == "True"
    assert conditions(found)["Restorable"] == "False"


def test_a_record_that_can_not_be_read_leaves_the_status_as_it_was() -> None:
    """Law 3: phase, cause and history stay; only conditions say what is wrong."""
    before = status(case(EXITED, manifest=manifest(Phase.EXITED, cause=Cause.CRASHED)), HELD)
    corrupt = Unknown(reason=Reason.MANIFEST_CORRUPT, message="It can not be read.")
    blind = case(manifest=corrupt)
    after = status_of(blind, plan(blind), before)
    for field in ("phase", "cause", "runId", "history", "recipe"):
        assert after.get(field) == before.get(field)
    assert condition(after, ConditionType.STALLED)["reason"] == Reason.MANIFEST_CORRUPT


def test_a_session_without_a_record_is_pending() -> None:
    """Before the first record, and refused before it."""
    found = status(case(manifest=ABSENT, session=session(status_run_id=0)))
    assert (found["phase"], found["runId"], found["resumable"]) == (Phase.PENDING, 0, False)


def test_no_value_of_the_environment_is_in_the_status() -> None:
    """Law 8: names only."""
    secret = session(spec={"env": [{"name": "TOKEN", "value": "hunter2"}]})
    launched = plan(case(manifest=manifest(Phase.PENDING), session=secret))
    assert launched.manifest is not None
    found = status_of(case(manifest=launched.manifest, session=secret), launched, {})
    assert {"name": "TOKEN"} in found["recipe"]["env"]
    assert "hunter2" not in repr(found)


def test_the_history_is_bounded() -> None:
    """The last twenty transitions, with cause and time."""
    given = case(container())
    for _ in range(40):
        for wish in (DesiredState.KEPT, DesiredState.RUNNING):
            answer = plan(replace(given, session=session(wish)))
            given = replace(given, manifest=answer.manifest or given.manifest)
    found = status(given)
    assert len(found["history"]) == 20
    assert all(entry["time"] and entry["phase"] for entry in found["history"])


def test_the_container_is_named_while_it_is_there() -> None:
    """`docker logs` needs it."""
    assert status(case(container()))["containerName"] == "sk-1"
    assert "containerName" not in status(case(manifest=manifest(Phase.KEPT)))
