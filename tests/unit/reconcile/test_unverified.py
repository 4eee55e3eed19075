"""What is not yet believed is looked at again, and not written over."""

from dataclasses import replace

from controller.reconcile.case import NOT_ASKED
from controller.reconcile.plan import plan
from controller.reconcile.report import status_of
from tests.unit.reconcile.builders import NOW, case, container, session


def test_a_restored_api_server_keeps_its_own_word_until_it_is_accepted() -> None:
    """Writing our runId into it would thaw what a person has to accept."""
    given = case(container(), session=session(status_run_id=0))
    held = {"runId": 0, "phase": "Pending"}
    status = status_of(given, plan(given), held)
    assert (status["runId"], status["phase"]) == (0, "Pending")
    assert status["conditions"][0]["reason"] == "StatusOlderThanManifest"


def test_mounts_that_could_not_be_verified_are_looked_at_again() -> None:
    """Law 17: a running session is verified after each start, if need be later."""
    healthy = case(container())
    assert plan(healthy).wake_at is None
    wake_at = plan(replace(healthy, mounts=NOT_ASKED)).wake_at
    assert wake_at is not None
    assert wake_at > NOW
