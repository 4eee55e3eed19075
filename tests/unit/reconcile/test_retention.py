"""Age purges only what is all elsewhere, one by one, and never many at once (laws 2 and 16)."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause, ConditionStatus, DecidedBy, DesiredState, Phase
from controller.reconcile import actions as a
from controller.reconcile.case import Case, Expiring, Settings
from controller.reconcile.facts import SessionOnBackend
from controller.reconcile.manifest import ExitRecord, Manifest
from controller.reconcile.plan import plan
from controller.reconcile.report import status_of
from controller.reconcile.retention import (
    DEFAULT_KEEP_FOR,
    GATHERING,
    TOGETHER,
    Expiries,
    kept_until,
)
from controller.reconcile.steps import revived
from controller.reconcile.work import Work
from tests.unit.reconcile.builders import (
    CLEAN,
    DIRTY,
    HOST,
    NOW,
    OWNER,
    UNKNOWN,
    UNPUSHED,
    assessed,
    case,
    manifest,
    session,
)
from tests.unit.reconcile.walk import walk

LONG_AGO = NOW - timedelta(days=30)
ALONE = Expiring(since=NOW - GATHERING, together=1)
UNSAVED = pytest.mark.parametrize("work", [DIRTY, UNPUSHED, UNKNOWN], ids=lambda w: str(w.state))


def ended(decided_by: DecidedBy = DecidedBy.DEFAULT, **fields: Any) -> ExitRecord:
    """A clean exit of run 1 that was kept."""
    base = ExitRecord(
        run_id=1,
        code=0,
        oom_killed=False,
        finished_at=LONG_AGO,
        watched=True,
        decision=DesiredState.KEPT,
        decided_by=decided_by,
    )
    return replace(base, **fields)


def kept(work: Work = CLEAN, *, since: datetime = LONG_AGO, **fields: Any) -> Case:
    """A session that nobody decided about, kept for a month."""
    expiring = fields.pop("expiring", ALONE)
    inspection = fields.pop("inspection", CLEAN)
    spec = fields.pop("spec", {})
    settings = fields.pop("settings", Settings(owner=OWNER, host=HOST))
    record = {"cause": Cause.CLEAN_EXIT, "exit": ended(), **fields}
    return assessed(
        case(
            manifest=manifest(Phase.KEPT, transitioned_at=since, **record),
            session=session(DesiredState.KEPT, spec=spec),
            backend=SessionOnBackend(containers=(), network_present=False),
            run_directory_present=False,
            expiring=expiring,
            inspection=inspection,
            settings=settings,
        ),
        work,
    )


def until(given: Case) -> datetime | None:
    """Until when its session is kept."""
    assert given.session is not None
    assert isinstance(given.manifest, Manifest)
    return kept_until(given.session.spec, given.settings, given.manifest)


def test_what_nobody_decided_about_is_archived_after_three_days() -> None:
    """design.md 6: kept resumable for keepFor, then archived and purged."""
    assert until(kept()) == LONG_AGO + DEFAULT_KEEP_FOR
    decision, look, *_, last = walk(kept()).actions
    assert decision == a.RecordDecision(desired=DesiredState.PURGED, generation=2)
    assert isinstance(look, a.StartInspector)
    assert last == a.ArchiveInstance()


@UNSAVED
def test_what_turns_out_to_be_unsaved_is_kept(work: Work) -> None:
    """Laws 2 and 5: whatever the policy, the verdict of its keeping is too old to go by."""
    end = walk(kept(inspection=work, spec={"exitPolicy": "Clean"}))
    assert (end.phase, end.status["work"]["state"]) == (Phase.KEPT, str(work.state))
    assert not end.did(a.ArchiveInstance, a.RemoveInstance)
    assert end.case.session is not None
    assert end.case.session.spec.desired is DesiredState.KEPT
    assert str(work.state) in end.manifest.message


@UNSAVED
def test_age_never_selects_unsaved_work(work: Work) -> None:
    """Caps and TTLs never select Dirty, Unpushed or Unknown work (design.md 2)."""
    answer = plan(kept(work, spec={"retention": {"keepFor": "1h"}}))
    assert (answer.actions, answer.wake_at) == ((), None)


@pytest.mark.parametrize(
    "fields",
    [
        {"exit": None, "cause": Cause.OPERATOR_KEPT},
        {"exit": ended(DecidedBy.CAPSULE)},
        {"exit": ended(DecidedBy.POLICY)},
        {"exit": ended(watched=False)},
        {"exit": ended(run_id=0)},
        {"settings": Settings(owner=OWNER, host=HOST, clean_forbidden=True)},
    ],
    ids=["person", "terminal", "policy", "unwatched", "older run", "clean forbidden"],
)
def test_without_a_word_it_stays_for_ever(fields: dict[str, Any]) -> None:
    """What somebody kept stays, and an unwatched end leads to no automatic clean."""
    assert until(kept(**fields)) is None
    answer = plan(kept(**fields))
    assert (answer.actions, answer.wake_at) == ((), None)
    told = {**fields, "spec": {"retention": {"keepFor": "1h"}}}
    assert until(kept(**told)) == LONG_AGO + timedelta(hours=1)


def test_a_verdict_on_an_earlier_run_selects_nothing() -> None:
    """What the last run left was never looked at."""
    given = kept(spec={"retention": {"keepFor": "1h"}})
    assert isinstance(given.manifest, Manifest)
    later = replace(given.manifest, run_id=2, ready_run=2)
    assert until(replace(given, manifest=later)) is None


def test_the_session_is_nearer_than_its_policy() -> None:
    """The policy's keepFor holds for those that say nothing."""
    settings = Settings(owner=OWNER, host=HOST, keep_for=timedelta(hours=2))
    assert until(kept(settings=settings)) == LONG_AGO + timedelta(hours=2)
    both = kept(settings=settings, spec={"retention": {"keepFor": "30m"}})
    assert until(both) == LONG_AGO + timedelta(minutes=30)


def test_it_sleeps_until_its_time() -> None:
    """Law 15: one look at the time, and nothing before."""
    answer = plan(kept(since=NOW, expiring=None))
    assert (answer.actions, answer.wake_at) == ((), NOW + DEFAULT_KEEP_FOR)


def test_others_may_turn_out_to_expire_too() -> None:
    """The first of many must not go before the others are seen."""
    answer = plan(kept(expiring=Expiring(since=NOW, together=1)))
    assert (answer.actions, answer.wake_at) == ((), NOW + GATHERING)


def test_many_at_once_wait_for_a_person() -> None:
    """Law 16, case C05 b: none goes; the sessions stay healthy, and say what is to be done."""
    given = kept(expiring=Expiring(since=LONG_AGO, together=11))
    answer = plan(given)
    assert answer.actions == ()
    conditions = {c["type"]: c for c in status_of(given, answer, {})["conditions"]}
    assert conditions["Ready"]["status"] == ConditionStatus.TRUE
    blocked = conditions["PurgeBlocked"]
    assert (blocked["status"], blocked["reason"]) == (ConditionStatus.TRUE, Reason.MASS_EXPIRY)
    assert "--expire-at-once" in blocked["message"]
    assert walk(kept(expiring=Expiring(since=LONG_AGO, together=10))).did(a.ArchiveInstance)


def test_a_person_still_purges_one_that_waits() -> None:
    """The breaker holds up what nobody asked for."""
    given = kept(expiring=Expiring(since=LONG_AGO, together=11))
    asked = replace(given, session=session(DesiredState.PURGED))
    assert walk(asked).did(a.RemoveInstance)


def test_what_was_restored_from_the_archive_was_somebody_s_decision() -> None:
    """It does not go again by itself three days later."""
    given = kept()
    assert given.session is not None
    assert isinstance(given.manifest, Manifest)
    back = revived(given.manifest, given.session, owner=OWNER, now=LONG_AGO)
    assert until(replace(given, manifest=back)) is None


def test_those_that_are_due_are_counted_together() -> None:
    """Begun ones for an hour, waiting ones for as long as they wait."""
    seen = Expiries()
    assert seen.due("a", NOW) == Expiring(since=NOW, together=1)
    later = NOW + timedelta(minutes=30)
    assert seen.due("b", later) == Expiring(since=later, together=2)
    much_later = NOW + TOGETHER + timedelta(minutes=1)
    assert seen.due("b", much_later) == Expiring(since=later, together=1)
    seen.stays("b")
    assert seen.due("c", much_later).together == 1
