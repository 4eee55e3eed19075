"""A choice in the terminal is executed once, for its run, and only on the work that was seen."""

import json
from typing import Any

import pytest

from controller.api.vocabulary import DecidedBy, DesiredState, ExitPolicy, Phase
from controller.capsule.exitaction import ExitAction, ExitChoice, read
from controller.reconcile import actions as a
from controller.reconcile.case import ABSENT, Witness
from controller.reconcile.facts import ContainerState
from controller.reconcile.work import Work
from tests.unit.reconcile.builders import (
    CLEAN,
    DIRTY,
    NOW,
    UNKNOWN,
    UNPUSHED,
    case,
    container,
    session,
)
from tests.unit.reconcile.walk import Walk, walk

DIGEST = "sha256:" + "0" * 64
WATCHED = {"c1": Witness(watched=True)}


def chosen(
    choice: ExitChoice | None,
    work: Work,
    *,
    digest: str = "",
    run_id: int = 1,
    policy: ExitPolicy = ExitPolicy.ASK,
) -> Walk:
    """A run that ended well, after its person chose something."""
    action = None
    if choice is not None:
        action = ExitAction(choice=choice, run_id=run_id, evidence_digest=digest)
    ended = container(ContainerState.EXITED, exit_code=0, finished_at=NOW)
    own = session(spec={"exitPolicy": str(policy)})
    return walk(case(ended, session=own, witness=WATCHED, inspection=work, exit_action=action))


@pytest.mark.parametrize("work", [DIRTY, UNPUSHED, UNKNOWN], ids=lambda w: str(w.state))
def test_discard_is_the_approval_of_what_was_seen(work: Work) -> None:
    """Row J5; it archives, since any program of the session could have written it."""
    end = chosen(ExitChoice.DISCARD, work, digest=work.digest)
    assert end.case.manifest is ABSENT
    assert end.did(a.ArchiveInstance)
    assert not end.did(a.RemoveInstance)
    assert a.RecordDecision(desired=DesiredState.PURGED, generation=2) in end.actions


@pytest.mark.parametrize("work", [DIRTY, UNPUSHED, UNKNOWN], ids=lambda w: str(w.state))
@pytest.mark.parametrize("digest", ["", DIGEST])
def test_on_other_work_it_is_kept(work: Work, digest: str) -> None:
    """The controller's own verdict decides (row J7)."""
    end = chosen(ExitChoice.DISCARD, work, digest=digest)
    assert end.phase is Phase.KEPT
    assert "not the work" in end.manifest.message
    assert end.case.session is not None
    assert end.case.session.spec.desired is DesiredState.KEPT


def test_clean_work_needs_no_digest() -> None:
    """There is nothing to be seen."""
    assert chosen(ExitChoice.DISCARD, CLEAN).case.manifest is ABSENT


@pytest.mark.parametrize("run_id", [0, 2])
def test_a_choice_for_another_run_says_nothing(run_id: int) -> None:
    """Row J9: an old one is never replayed."""
    end = chosen(ExitChoice.DISCARD, CLEAN, run_id=run_id)
    assert end.phase is Phase.KEPT
    assert end.manifest.exit is not None
    assert end.manifest.exit.decided_by is DecidedBy.DEFAULT


def test_keep_keeps() -> None:
    """And says who decided."""
    end = chosen(ExitChoice.KEEP, CLEAN)
    assert end.phase is Phase.KEPT
    assert end.manifest.exit is not None
    assert end.manifest.exit.decided_by is DecidedBy.CAPSULE


def test_only_ask_asks() -> None:
    """`Keep` and `Clean` never ask, so nobody chose."""
    kept = chosen(ExitChoice.DISCARD, CLEAN, policy=ExitPolicy.KEEP)
    assert kept.phase is Phase.KEPT
    cleaned = chosen(ExitChoice.KEEP, CLEAN, policy=ExitPolicy.CLEAN)
    assert cleaned.case.manifest is ABSENT


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "discard",
        {},
        {"action": "discard"},
        {"action": "purge", "runId": 1},
        {"action": "discard", "runId": "1"},
        {"action": "discard", "runId": True},
        {"action": "discard", "runId": 1, "evidenceDigest": 1},
    ],
)
def test_what_is_malformed_is_nothing(body: Any) -> None:
    """Which means keep."""
    assert read(json.dumps(body).encode()) is None


def test_a_choice_is_read() -> None:
    """A digest that can be none counts as none."""
    body = {"action": "discard", "runId": 3, "evidenceDigest": DIGEST}
    wanted = ExitAction(choice=ExitChoice.DISCARD, run_id=3, evidence_digest=DIGEST)
    assert read(json.dumps(body).encode()) == wanted
    odd = read(json.dumps({**body, "evidenceDigest": "sha256:x"}).encode())
    assert odd is not None
    assert odd.evidence_digest == ""
    assert read(b"\xff{") is None
    assert read(b"[" * 100_000) is None
