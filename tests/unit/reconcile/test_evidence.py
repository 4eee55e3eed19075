"""Whose end it was, by stamps as they were measured on a real engine (law 9)."""

from datetime import timedelta

import pytest

from controller.api.vocabulary import Cause
from controller.reconcile.case import Epoch, Witness
from controller.reconcile.evidence import classify_end
from controller.reconcile.facts import ContainerState
from controller.reconcile.manifest import Confirmation
from tests.unit.reconcile.builders import EPOCH, NOW, STARTED, container, engine

LOST = NOW - timedelta(minutes=5)
BACK = LOST + timedelta(seconds=4)
AWAY = engine(epochs=(Epoch(started_at=EPOCH, lost_at=None), Epoch(started_at=BACK, lost_at=LOST)))
CONFIRMED = Confirmation(epoch=EPOCH, boot_id="b", at=STARTED)
WATCHED = Witness(watched=True)


@pytest.mark.parametrize("code", [0, 1, 137, 143, 255])
@pytest.mark.parametrize("offset", [-0.14, 0.0, 0.008, 0.29, 3.9])
def test_an_end_with_the_engine_is_the_hosts_whatever_its_code(code: int, offset: float) -> None:
    """Power cut and orderly stop alike: between the sentinel's end and its next start."""
    ended = container(
        ContainerState.EXITED, exit_code=code, finished_at=LOST + timedelta(seconds=offset)
    )
    end = classify_end(ended, confirmed=CONFIRMED, engine=AWAY, witness=Witness())
    assert end.cause is Cause.HOST_LOST
    assert not end.watched


@pytest.mark.parametrize(
    ("code", "cause"), [(0, Cause.CLEAN_EXIT), (3, Cause.CRASHED), (255, Cause.CRASHED)]
)
def test_an_end_before_the_engine_went_is_the_sessions_own(code: int, cause: Cause) -> None:
    """An end stamped before the engine went away, 255 included; nobody watched it."""
    ended = container(
        ContainerState.EXITED, exit_code=code, finished_at=LOST - timedelta(seconds=30)
    )
    end = classify_end(ended, confirmed=CONFIRMED, engine=AWAY, witness=WATCHED)
    assert end.cause is cause
    assert not end.watched


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
    """The engine was never away, so no code makes it a host loss."""
    ended = container(ContainerState.EXITED, exit_code=code, oom_killed=oom)
    end = classify_end(ended, confirmed=CONFIRMED, engine=engine(), witness=WATCHED)
    assert end.cause is cause
    assert end.watched


def test_a_stop_that_was_seen_is_a_persons_hand() -> None:
    """`docker stop` by somebody else: Unknown."""
    ended = container(ContainerState.EXITED, exit_code=137)
    hand = Witness(watched=True, stopped_by_hand="docker stop")
    end = classify_end(ended, confirmed=CONFIRMED, engine=engine(), witness=hand)
    assert end.cause is Cause.UNKNOWN


def test_an_orderly_engine_stop_looks_like_a_hand_and_is_none() -> None:
    """The engine sends kill and stop for each container as it goes: the stamps decide."""
    ended = container(ContainerState.EXITED, exit_code=137, finished_at=LOST)
    hand = Witness(watched=True, stopped_by_hand="docker stop")
    end = classify_end(ended, confirmed=CONFIRMED, engine=AWAY, witness=hand)
    assert end.cause is Cause.HOST_LOST


def test_the_epoch_of_the_last_confirmation_counts() -> None:
    """A run that was reconnected after a loss is judged by its later end."""
    ended = container(ContainerState.EXITED, exit_code=3)
    later = Confirmation(epoch=BACK, boot_id="b", at=NOW)
    end = classify_end(ended, confirmed=later, engine=AWAY, witness=WATCHED)
    assert end.cause is Cause.CRASHED


def test_a_run_that_began_after_the_return_is_judged_by_its_start() -> None:
    """A crash between the start and its record does not make an old loss its cause."""
    began = BACK + timedelta(seconds=10)
    ended = container(ContainerState.EXITED, exit_code=3, started_at=began)
    end = classify_end(ended, confirmed=CONFIRMED, engine=AWAY, witness=WATCHED)
    assert end.cause is Cause.CRASHED


def test_without_a_stamp_of_the_loss_the_cause_is_unknown() -> None:
    """Nothing shows when the engine went away: held, never restarted or cleaned by itself."""
    blind = engine(
        epochs=(Epoch(started_at=EPOCH, lost_at=None), Epoch(started_at=BACK, lost_at=None))
    )
    ended = container(ContainerState.EXITED, exit_code=255, finished_at=LOST)
    end = classify_end(ended, confirmed=CONFIRMED, engine=blind, witness=Witness())
    assert end.cause is Cause.UNKNOWN


def test_the_first_loss_after_the_confirmation_counts() -> None:
    """The engine was lost twice: the stamp of the first loss decides."""
    again = NOW - timedelta(minutes=1)
    twice = engine(
        epochs=(
            Epoch(started_at=EPOCH, lost_at=None),
            Epoch(started_at=BACK, lost_at=LOST),
            Epoch(started_at=again, lost_at=again - timedelta(seconds=3)),
        )
    )
    ended = container(ContainerState.EXITED, exit_code=255, finished_at=LOST)
    end = classify_end(ended, confirmed=CONFIRMED, engine=twice, witness=Witness())
    assert end.cause is Cause.HOST_LOST
