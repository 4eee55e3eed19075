"""Nothing is lost unseen: a purge waits for a verdict, and for its person's approval (law 5)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, Component, DecidedBy, DesiredState, ExitPolicy, Phase
from controller.reconcile import actions as a
from controller.reconcile.assessing import subject
from controller.reconcile.case import ABSENT, Case, EffectFailed, FaultKind, Witness
from controller.reconcile.facts import ContainerFacts, ContainerState, SessionOnBackend, Unknown
from controller.reconcile.jobs import LONGEST
from controller.reconcile.manifest import Manifest
from controller.reconcile.plan import plan
from controller.reconcile.work import Work
from tests.unit.reconcile.builders import (
    CLEAN,
    DIRTY,
    NOW,
    STARTED,
    UNKNOWN,
    UNPUSHED,
    assessed,
    case,
    container,
    engine,
    manifest,
    session,
)
from tests.unit.reconcile.walk import Walk, walk

PURGED = DesiredState.PURGED
STOPPED = container(ContainerState.EXITED, finished_at=NOW)
WATCHED = {"c1": Witness(watched=True)}
UNSAVED = pytest.mark.parametrize("work", [DIRTY, UNPUSHED, UNKNOWN], ids=lambda w: str(w.state))


def approving(work: Work, **fields: Any) -> Any:
    """A session that its person wants purged, having seen this evidence."""
    spec = {"discardApproval": {"evidenceDigest": work.digest}, **fields}
    return session(PURGED, spec=spec)


def inspector(given: Case, **fields: Any) -> Case:
    """The case with an inspector that looks at what is there."""
    assert isinstance(given.backend, SessionOnBackend)
    assert isinstance(given.manifest, Manifest)
    base = container(
        container_id="i1",
        component=Component.INSPECTOR,
        recipe_hash=subject(given, given.manifest),
        started_at=NOW,
    )
    looking: ContainerFacts = replace(base, **fields)
    return replace(given, backend=replace(given.backend, jobs=(looking,)))


def purging(*containers: ContainerFacts, **fields: Any) -> Case:
    """A purge whose container was stopped."""
    fields.setdefault("session", session(PURGED))
    return case(*(containers or (STOPPED,)), manifest=manifest(Phase.PURGING), **fields)


@UNSAVED
def test_unsaved_work_blocks_a_purge(work: Work) -> None:
    """Nothing is removed; the condition says exactly which command approves it."""
    end = walk(case(container(), session=session(PURGED), inspection=work))
    assert (end.phase, end.status["phase"]) == (Phase.PURGING, "Purging")
    blocked = end.condition("PurgeBlocked")
    assert (blocked["status"], blocked["reason"]) == ("True", "ApprovalMissing")
    assert f'"evidenceDigest":"{work.digest}"' in blocked["message"]
    assert end.condition("Stalled")["status"] == "True"
    assert not end.did(a.RemoveInstance, a.ArchiveInstance, a.RemoveNetwork)
    assert a.RemoveContainer(container_id="c1") not in end.actions
    assert not end.manifest.destroy_recorded
    assert end.status["work"]["state"] == str(work.state)


@UNSAVED
def test_an_event_tells_of_each_evidence_once(work: Work) -> None:
    """With the command that approves it; a purge that waits goes on to be quiet."""
    end = walk(case(container(), session=session(PURGED), inspection=work))
    (news,) = [action for action in end.actions if isinstance(action, a.SayEvent)]
    assert work.digest in news.message
    assert walk(end.case).actions == ()


@UNSAVED
def test_approved_work_goes(work: Work) -> None:
    """An approval of the present evidence lets the purge go on."""
    end = walk(case(container(), session=approving(work), inspection=work))
    assert end.case.manifest is ABSENT
    assert end.status["phase"] == "Purged"


@UNSAVED
def test_an_approval_of_other_evidence_is_stale(work: Work) -> None:
    """New work makes an old approval void."""
    end = walk(case(container(), session=approving(CLEAN), inspection=work))
    assert end.condition("PurgeBlocked")["reason"] == "ApprovalStale"
    assert not end.did(a.RemoveInstance, a.ArchiveInstance)


@pytest.mark.parametrize("policy", list(ExitPolicy))
def test_no_policy_opens_the_gate_of_a_person(policy: ExitPolicy) -> None:
    """`Clean` governs exits only: an explicit Purged meets the gate under every policy."""
    wanted = session(PURGED, spec={"exitPolicy": str(policy)})
    end = walk(case(container(), session=wanted, inspection=DIRTY))
    assert end.condition("PurgeBlocked")["status"] == "True"


def test_work_is_looked_at_again_when_the_container_is_gone() -> None:
    """What was written between the first look and the removal is not lost unseen."""
    end = walk(case(container(), session=session(PURGED)))
    names = [type(action).__name__ for action in end.actions]
    removed = end.actions.index(a.RemoveContainer(container_id="c1"))
    assert names.count("StartInspector") == 2
    assert (
        names.index("StartInspector") < removed < len(names) - names[::-1].index("StartInspector")
    )


def test_work_done_after_the_approval_blocks_again() -> None:
    """Even past recall: the second look decides."""
    record = replace(manifest(Phase.PURGING), destroy_recorded=True)
    given = case(manifest=record, session=approving(DIRTY), inspection=UNPUSHED)
    end = walk(given)
    assert end.condition("PurgeBlocked")["reason"] == "ApprovalStale"
    assert not end.manifest.destroy_recorded
    back = walk(replace(end.case, session=session(DesiredState.RUNNING)))
    assert (back.phase, back.manifest.restore.tier) == (Phase.RUNNING, 2)


def test_a_blocked_purge_can_be_taken_back() -> None:
    """Running | Purged, work unapproved: Running again is rung 1."""
    end = walk(case(container(), session=session(PURGED), inspection=DIRTY))
    back = walk(replace(end.case, session=session(DesiredState.RUNNING)))
    assert (back.phase, back.manifest.restore.tier) == (Phase.RUNNING, 1)
    kept = walk(replace(end.case, session=session(DesiredState.KEPT)))
    assert kept.phase is Phase.KEPT


@pytest.mark.parametrize("kind", [k for k in FaultKind if k is not FaultKind.RACE])
def test_an_inspector_that_is_refused_is_no_verdict(kind: FaultKind) -> None:
    """Law 2: the work is Unknown, and the message says what to mend."""
    failure = EffectFailed(
        action="StartInspector", kind=kind, reason=Reason.INSPECTOR_MISSING, message="no image"
    )
    end = walk(purging(failure=failure))
    assert end.condition("PurgeBlocked")["status"] == "True"
    assert end.condition("WorkAssessed")["reason"] == "InspectorMissing"
    assert "no image" in end.status["work"]["message"]


def test_an_inspection_that_failed_is_unknown() -> None:
    """Its output was no verdict."""
    said = Unknown(reason=Reason.ASSESSMENT_FAILED, message="code 1")
    end = walk(purging(inspection=said))
    assert end.status["work"]["state"] == "Unknown"
    assert end.condition("PurgeBlocked")["status"] == "True"


def test_an_inspector_at_work_is_waited_for() -> None:
    """Its end wakes the session; past its time, by the engine's clock, it is stopped (case C05)."""
    given = inspector(purging())
    answer = plan(given)
    assert (answer.actions, answer.wake_at) == ((), NOW + LONGEST)
    ahead = plan(replace(given, now=NOW + 3 * LONGEST))
    assert (ahead.actions, ahead.wake_at) == ((), NOW + 4 * LONGEST)
    facts = replace(engine().facts, now=NOW + LONGEST)
    late = plan(replace(given, engine=engine(facts=facts)))
    assert late.actions == (a.StopContainer(container_id="i1", grace_seconds=0),)


@pytest.mark.parametrize(
    "fields",
    [
        {"started_at": None, "state": ContainerState.CREATED},
        {"started_at": STARTED - timedelta(days=1), "state": ContainerState.EXITED},
        {"recipe_hash": "another", "state": ContainerState.EXITED},
    ],
    ids=["never started", "lost with its engine", "of what is no more"],
)
def test_an_inspector_of_no_use_is_replaced(fields: dict[str, Any]) -> None:
    """One that an interrupted pass left, or that looked at something else."""
    answer = plan(inspector(purging(inspection=CLEAN), **fields))
    assert answer.actions == (a.RemoveContainer(container_id="i1"),)
    assert answer.manifest is not None
    assert answer.manifest.work is None


def test_a_container_started_meanwhile_makes_the_verdict_void() -> None:
    """What was looked at has a name, and this is another thing."""
    given = assessed(purging())
    restarted = container(ContainerState.EXITED, finished_at=NOW, started_at=NOW)
    backend = SessionOnBackend(containers=(restarted,), network_present=True)
    answer = plan(replace(given, backend=backend))
    assert [type(action) for action in answer.actions] == [a.StartInspector]


@pytest.mark.parametrize("work", [CLEAN, DIRTY, UNPUSHED, UNKNOWN], ids=lambda w: str(w.state))
def test_a_keep_is_never_blocked(work: Work) -> None:
    """All of it stays; the verdict is shown."""
    end = walk(case(container(), session=session(DesiredState.KEPT), inspection=work))
    assert end.phase is Phase.KEPT
    assert end.status["work"]["state"] == str(work.state)
    assert end.condition("PurgeBlocked")["status"] == "False"


def clean_exit(work: Work, witness: dict[str, Witness], policy: ExitPolicy) -> Walk:
    """A process ended with 0 under a policy."""
    ended = container(ContainerState.EXITED, exit_code=0, finished_at=NOW)
    own = session(spec={"exitPolicy": str(policy)})
    return walk(case(ended, session=own, witness=witness, inspection=work))


@pytest.mark.parametrize("work", [CLEAN, DIRTY, UNPUSHED], ids=lambda w: str(w.state))
def test_the_policy_clean_archives_and_purges(work: Work) -> None:
    """No gate for Dirty and Unpushed; an automatic clean archives and never deletes."""
    end = clean_exit(work, WATCHED, ExitPolicy.CLEAN)
    assert end.case.manifest is ABSENT
    assert end.did(a.ArchiveInstance)
    assert not end.did(a.RemoveInstance)
    assert a.RecordDecision(desired=PURGED, generation=2) in end.actions


def test_the_policy_clean_never_discards_unknown() -> None:
    """It is kept, and its message says why."""
    end = clean_exit(UNKNOWN, WATCHED, ExitPolicy.CLEAN)
    assert end.phase is Phase.KEPT
    assert "no answer" in end.manifest.message
    assert end.case.session is not None
    assert end.case.session.spec.desired is DesiredState.KEPT
    assert not end.did(a.RemoveInstance, a.ArchiveInstance)


@pytest.mark.parametrize("work", [CLEAN, DIRTY, UNPUSHED, UNKNOWN], ids=lambda w: str(w.state))
@pytest.mark.parametrize("policy", list(ExitPolicy))
def test_an_end_that_nobody_watched_is_kept(work: Work, policy: ExitPolicy) -> None:
    """It never leads to an automatic clean (settled.md, *Unwatched ends*)."""
    end = clean_exit(work, {}, policy)
    assert end.phase is Phase.KEPT
    assert end.manifest.exit is not None
    assert end.manifest.exit.decided_by is not DecidedBy.OPERATOR


def test_a_purge_by_policy_that_is_taken_back_is_a_persons_again() -> None:
    """A later purge by a person meets the gate."""
    record = manifest(Phase.KEPT, automatic=True, cause=Cause.CLEAN_EXIT, process=None)
    end = walk(case(manifest=record, session=session(PURGED), inspection=DIRTY))
    assert end.condition("PurgeBlocked")["status"] == "True"


def test_a_deletion_during_an_automatic_purge_archives() -> None:
    """Law 13: nobody has seen the work."""
    record = manifest(Phase.PURGING, destroy_recorded=True, automatic=True)
    end = walk(case(manifest=record, session=session(PURGED, deleting=True)))
    assert end.did(a.ArchiveInstance)
    assert not end.did(a.RemoveInstance)
