"""Whose end it was, by stamps as they were measured on a real engine (law 9)."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.api.reasons import Reason
from controller.api.vocabulary import Cause
from controller.reconcile.case import EngineView, Epoch, Witness
from controller.reconcile.evidence import SLACK, End, classify_end
from controller.reconcile.facts import ContainerFacts, ContainerState
from controller.reconcile.manifest import Confirmation
from tests.unit.reconcile.builders import EPOCH, NOW, STARTED, container, engine

FIRST = Epoch(started_at=EPOCH, lost_at=None)
LOST = NOW - timedelta(minutes=5)
CONFIRMED = Confirmation(epoch=EPOCH, boot_id="b", at=STARTED)
WATCHED = Witness(watched=True)
HAND = Witness(watched=True, stopped_by_hand="docker stop")
CODES = st.sampled_from([0, 1, 3, 126, 127, 137, 143, 255])


def away(seconds: float) -> EngineView:
    """An engine that went (or stamped its loss) at LOST and was back so many seconds later."""
    return engine(epochs=(FIRST, Epoch(started_at=after(seconds), lost_at=LOST)))


def after(seconds: float) -> datetime:
    """A moment so long after the sentinel's end."""
    return LOST + timedelta(seconds=seconds)


def ended(code: int, at: datetime, **fields: object) -> ContainerFacts:
    """A container whose process ended."""
    return container(ContainerState.EXITED, exit_code=code, finished_at=at, **fields)


def judged(
    present: ContainerFacts,
    view: EngineView,
    witness: Witness = WATCHED,
    confirmed: Confirmation | None = CONFIRMED,
) -> End:
    """The end of a run that was last confirmed in the first epoch."""
    return classify_end(present, confirmed=confirmed, engine=view, witness=witness)


@pytest.mark.parametrize(
    ("back", "code", "offset"),
    [
        (1.3, 255, 0.003),
        (1.3, 255, -0.003),
        (4.1, 255, 0.008),
        (4.1, 255, -0.008),
        (6.0, 0, -0.02),
        (6.0, 143, 0.04),
        (6.0, 0, -0.14),
        (6.0, 143, 0.29),
        (14.0, 137, 10.0),
        (9.0, 143, 0.0),
        (9.0, 255, 7.6),
        (16.0, 0, -0.02),
        (16.0, 137, 10.0),
        (3.0, 255, 0.0),
    ],
    ids=[
        "power cut, 12 containers",
        "power cut, a little before",
        "power cut, 50 containers",
        "power cut, 50, a little before",
        "orderly stop, ends well",
        "orderly stop, ends by the signal",
        "orderly stop, the first of 50",
        "orderly stop, the last of 50",
        "orderly stop, ignores the signal",
        "orderly stop cut off, the quick",
        "orderly stop cut off, the rest at the return",
        "the daemon alone was killed, stopped at its return",
        "the daemon alone was killed, ignores the signal",
        "survived the daemon, then the power was cut",
    ],
)
def test_an_end_with_the_engine_is_the_hosts(back: float, code: int, offset: float) -> None:
    """Between the sentinel's end and its next start, whatever the code."""
    end = judged(ended(code, after(offset)), away(back), Witness())
    assert (end.cause, end.reason) == (Cause.HOST_LOST, Reason.HOST_LOST)
    assert not end.watched


@pytest.mark.parametrize(
    ("code", "oom", "cause"),
    [
        (0, False, Cause.CLEAN_EXIT),
        (3, False, Cause.CRASHED),
        (137, False, Cause.CRASHED),
        (137, True, Cause.OOM_KILLED),
        (255, False, Cause.CRASHED),
    ],
)
@pytest.mark.parametrize("before", [3.0, 1800.0])
def test_an_end_before_the_engine_went_is_the_sessions_own(
    code: int, oom: bool, cause: Cause, before: float
) -> None:
    """An own end keeps its stamp and its code over a loss, 255 included; nobody watched it."""
    end = judged(ended(code, after(-before), oom_killed=oom), away(4.1))
    assert end.cause is cause
    assert not end.watched


def test_an_end_while_only_the_daemon_was_away_is_the_sessions_own() -> None:
    """Its shim kept the true code and time; the daemon stamped the sentinel as it came back."""
    end = judged(ended(137, after(-2.335)), away(8.0), Witness())
    assert end.cause is Cause.CRASHED


@pytest.mark.parametrize(
    ("code", "oom", "cause"),
    [
        (0, False, Cause.CLEAN_EXIT),
        (3, False, Cause.CRASHED),
        (255, False, Cause.CRASHED),
        (137, False, Cause.CRASHED),
        (137, True, Cause.OOM_KILLED),
    ],
)
def test_an_end_while_the_engine_stayed_is_the_sessions_own(
    code: int, oom: bool, cause: Cause
) -> None:
    """No new epoch, under live-restore too: no code makes it a host loss."""
    end = judged(ended(code, NOW, oom_killed=oom), engine())
    assert end.cause is cause
    assert end.watched


def test_an_unwatched_end_says_that_it_was() -> None:
    """It never leads to an automatic clean."""
    assert not judged(ended(0, NOW), engine(), Witness()).watched


@pytest.mark.parametrize("code", [0, 137, 143])
def test_a_stop_that_was_seen_is_a_persons_hand(code: int) -> None:
    """`docker stop` or `kill` by somebody else: Unknown, whatever the code."""
    end = judged(ended(code, NOW), engine(), HAND)
    assert (end.cause, end.reason) == (Cause.UNKNOWN, Reason.STOPPED_BY_HAND)
    assert "docker stop" in end.message


def test_a_hand_is_told_before_memory() -> None:
    """The engine's mark of a child that ran out of memory stays until the next start."""
    end = judged(ended(137, NOW, oom_killed=True), engine(), HAND)
    assert end.reason is Reason.STOPPED_BY_HAND


@pytest.mark.parametrize("code", [0, 137, 143])
def test_an_orderly_engine_stop_looks_like_a_hand_and_is_none(code: int) -> None:
    """The engine sends kill and stop for each container as it goes: the stamps decide."""
    assert judged(ended(code, after(0.02)), away(6.0), HAND).cause is Cause.HOST_LOST


def test_a_hand_before_the_engine_went_is_a_hand() -> None:
    """A person stopped it, then the host was lost."""
    assert judged(ended(137, after(-60)), away(6.0), HAND).reason is Reason.STOPPED_BY_HAND


def test_the_epoch_of_the_last_confirmation_counts() -> None:
    """A run that was reconnected after a loss is judged by its later end."""
    view = away(4.1)
    later = Confirmation(epoch=view.epoch, boot_id="b", at=NOW)
    assert judged(ended(3, NOW), view, confirmed=later).cause is Cause.CRASHED


def test_a_run_that_began_after_the_return_is_judged_by_its_start() -> None:
    """A crash between the start and its record does not make an old loss its cause."""
    present = ended(3, NOW, started_at=after(20))
    assert judged(present, away(4.1)).cause is Cause.CRASHED


@pytest.mark.parametrize("code", [0, 137, 255])
def test_without_a_stamp_of_the_loss_the_cause_is_unknown(code: int) -> None:
    """The sentinel was removed by hand: held, never restarted or cleaned by itself."""
    blind = engine(epochs=(FIRST, Epoch(started_at=after(4), lost_at=None)))
    end = judged(ended(code, LOST), blind, Witness())
    assert (end.cause, end.reason) == (Cause.UNKNOWN, Reason.ENDED_UNKNOWN)


def test_an_end_after_the_return_of_a_run_nobody_saw_alive_is_unknown() -> None:
    """It survived, or was started by hand, and ended before anybody looked."""
    end = judged(ended(255, after(60)), away(4.1), Witness())
    assert end.cause is Cause.UNKNOWN


def test_an_end_without_a_stamp_is_unknown() -> None:
    """A full disk can cost the engine its own state."""
    present = container(ContainerState.EXITED, exit_code=255, finished_at=None)
    assert judged(present, away(4.1)).cause is Cause.UNKNOWN


def test_the_first_loss_after_the_confirmation_counts() -> None:
    """The engine was lost twice before anybody looked: the stamp of the first loss decides."""
    again = NOW - timedelta(minutes=1)
    twice = engine(
        epochs=(
            FIRST,
            Epoch(started_at=after(4), lost_at=LOST),
            Epoch(started_at=again, lost_at=again - timedelta(seconds=3)),
        )
    )
    assert judged(ended(255, LOST), twice, Witness()).cause is Cause.HOST_LOST


def test_a_run_that_no_life_of_the_engine_explains_is_its_own() -> None:
    """Nothing was confirmed and it began before every known epoch: the code is all there is."""
    present = ended(3, NOW, started_at=EPOCH - timedelta(days=1))
    assert judged(present, engine(), confirmed=None).cause is Cause.CRASHED


@given(CODES, st.floats(0.0, 1.0), st.floats(0.5, 600.0), st.booleans())
def test_no_code_and_no_event_changes_an_end_with_the_engine(
    code: int, share: float, back: float, stopped: bool
) -> None:
    """Law 9, for every moment between going and return."""
    present = ended(code, after(share * back))
    assert judged(present, away(back), HAND if stopped else WATCHED).cause is Cause.HOST_LOST


@given(CODES, st.floats(SLACK.total_seconds() + 0.01, 10**6), st.floats(0.5, 600.0))
def test_no_code_makes_an_earlier_end_the_hosts(code: int, before: float, back: float) -> None:
    """Law 9, for every moment before it."""
    assert judged(ended(code, after(-before)), away(back)).cause is not Cause.HOST_LOST
