"""What the event stream showed of an end: whether it was watched, and by whose hand."""

from datetime import datetime, timedelta

import pytest

from controller.api.vocabulary import Component
from controller.reconcile.case import Witness
from controller.reconcile.facts import EngineEvent
from controller.reconcile.witnesses import Witnesses
from tests.unit.reconcile.builders import NOW, STARTED, UID

LATER = NOW + timedelta(minutes=1)


def happened(
    seen: Witnesses, *actions: str, at: datetime = NOW, signal: str = "", container_id: str = "c1"
) -> None:
    """Events of one container, in order."""
    for action in actions:
        seen.saw(
            EngineEvent(
                action=action,
                container_id=container_id,
                uid=UID,
                component=Component.SESSION,
                at=at,
                attributes={"signal": signal} if action == "kill" and signal else {},
            )
        )


def test_without_events_nothing_was_watched() -> None:
    """A controller that has just started knows of no end."""
    assert Witnesses().of("c1", STARTED) == Witness()


def test_an_end_that_came_through_the_stream_was_watched() -> None:
    """`die` alone: nobody's hand."""
    seen = Witnesses()
    happened(seen, "oom", "die")
    assert seen.of("c1", STARTED) == Witness(watched=True)


@pytest.mark.parametrize(
    ("actions", "hand"),
    [
        (("kill", "kill", "die", "stop"), "docker stop"),
        (("kill", "die"), "docker kill, signal 9"),
        (("stop", "die"), "docker stop"),
    ],
)
def test_a_stop_or_kill_is_a_persons_hand(actions: tuple[str, ...], hand: str) -> None:
    """In whatever order and number the events come."""
    seen = Witnesses()
    happened(seen, *actions, signal="9")
    assert seen.of("c1", STARTED) == Witness(watched=True, stopped_by_hand=hand)


def test_events_that_come_again_change_nothing() -> None:
    """A stream that was subscribed anew repeats some."""
    seen = Witnesses()
    happened(seen, "kill", "die", "stop")
    once = seen.of("c1", STARTED)
    happened(seen, "kill", "die", "stop")
    assert seen.of("c1", STARTED) == once


def test_what_was_before_the_present_start_is_of_another_run() -> None:
    """A container that was started again has not ended yet, and nobody stopped it."""
    seen = Witnesses()
    happened(seen, "kill", "die", "stop")
    assert seen.of("c1", LATER) == Witness()


def test_another_containers_end_is_its_own() -> None:
    """Remembered by container."""
    seen = Witnesses()
    happened(seen, "kill", "die", container_id="c2")
    assert seen.of("c1", STARTED) == Witness()


def test_our_own_stop_is_nobodys_hand() -> None:
    """It is watched all the same."""
    seen = Witnesses()
    seen.stopping("c1")
    happened(seen, "kill", "die", "stop")
    assert seen.of("c1", STARTED) == Witness(watched=True)


def test_a_hand_after_our_own_stop_and_start_is_a_hand() -> None:
    """A session that was taken back is stopped by a person later: held, not restarted."""
    seen = Witnesses()
    seen.stopping("c1")
    happened(seen, "kill", "die", "stop", "start")
    happened(seen, "kill", "die", "stop", at=LATER)
    assert seen.of("c1", NOW).stopped_by_hand == "docker stop"


def test_a_container_that_is_gone_is_forgotten() -> None:
    """Memory is bounded by what the engine holds."""
    seen = Witnesses()
    seen.stopping("c1")
    happened(seen, "kill", "die", "destroy")
    assert seen.of("c1", STARTED) == Witness()
    happened(seen, "kill", "die")
    assert seen.of("c1", STARTED).stopped_by_hand


def test_a_container_that_never_started_has_no_end() -> None:
    """There is no run to judge."""
    seen = Witnesses()
    happened(seen, "kill", "die")
    assert seen.of("c1", None) == Witness()
