"""What a SessionHost says: pure, from what the controller sees to the status of the object."""

from datetime import UTC, datetime

from controller.api.reasons import Reason
from controller.api.vocabulary import Phase
from controller.hosts import HostReport, host_status
from controller.reconcile.case import EngineView, Epoch
from controller.reconcile.facts import EngineFacts, Unknown

BORN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ENGINE = EngineView(
    facts=EngineFacts(
        engine_id="E1",
        boot_id="B1",
        version="20.10",
        now=BORN,
        epoch=BORN,
        sentinel_finished_at=None,
    ),
    epochs=(Epoch(started_at=BORN, lost_at=None),),
)
SILENT = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="It does not answer. " * 200)


def report(engine: EngineView | Unknown) -> HostReport:
    """Return what a controller of two running sessions and a kept one reports."""
    phases = {Phase.RUNNING: 2, Phase.KEPT: 1, Phase.FAILED: 0}
    return HostReport(engine=engine, allows=("security=Baseline",), phases=phases)


def test_an_engine_that_answers_is_described() -> None:
    """Who the engine is, since when, and how many sessions are in each phase."""
    assert host_status(report(ENGINE), {}) == {
        "engineId": "E1",
        "bootId": "B1",
        "epoch": "2026-01-02T03:04:05Z",
        "version": "20.10",
        "reachable": True,
        "allows": ["security=Baseline"],
        "sessions": {"Kept": 1, "Running": 2},
    }


def test_a_silent_engine_keeps_what_was_known_of_it() -> None:
    """Unreachable is not gone (law 3): only `reachable` changes, and a sentence says why."""
    before = host_status(report(ENGINE), {})
    after = host_status(report(SILENT), before)
    assert after == {**before, "reachable": False, "message": after["message"]}
    assert after["message"].startswith("It does not answer.")
    assert len(after["message"]) <= 4096


def test_an_engine_that_never_answered_is_not_invented() -> None:
    """Nothing is said of an engine that nobody has seen."""
    assert set(host_status(report(SILENT), {})) == {"allows", "sessions", "reachable", "message"}


def test_the_sentence_goes_when_the_engine_is_back() -> None:
    """A status does not keep a fault that is over."""
    silent = host_status(report(SILENT), host_status(report(ENGINE), {}))
    assert host_status(report(ENGINE), silent) == host_status(report(ENGINE), {})
