"""How the engine's JSON becomes facts."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.api.names import LABEL_COMPONENT, LABEL_RECIPE, LABEL_RUN, LABEL_UID
from controller.api.vocabulary import Component
from controller.backends.docker_facts import (
    engine_event,
    inspected_container,
    listed_container,
    stamp,
)
from controller.backends.errors import BackendUnreachable
from controller.reconcile.facts import ContainerFacts, ContainerState

LABELS = {LABEL_COMPONENT: "session", LABEL_UID: "u", LABEL_RUN: "3", LABEL_RECIPE: "abc"}


def inspected(**state: Any) -> ContainerFacts:
    full = {
        "Status": "exited",
        "OOMKilled": False,
        "ExitCode": 0,
        "Error": "",
        "StartedAt": "2026-12-01T11:12:37.406725449Z",
        "FinishedAt": "2026-12-01T11:12:37.408258785Z",
        **state,
    }
    return inspected_container(
        {
            "Id": "c1",
            "Name": "/sk-u-3",
            "Image": "sha256:1",
            "Config": {"Labels": LABELS},
            "State": full,
        }
    )


def test_a_stamp_is_cut_to_microseconds_and_brought_to_utc() -> None:
    """Stamps of one clock compare, whatever the offset they are written with."""
    assert stamp("2026-12-01T11:12:37.406725449Z") == datetime(
        2026, 12, 1, 11, 12, 37, 406725, tzinfo=UTC
    )
    assert stamp("2026-12-01T12:12:37+01:00") == datetime(2026, 12, 1, 11, 12, 37, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "0001-01-01T00:00:00Z"])
def test_the_zero_time_is_no_time(text: str) -> None:
    """A container that never started has no start."""
    assert stamp(text) is None


def test_an_ended_container_keeps_its_code_and_stamps() -> None:
    """The engine's own words, unchanged."""
    facts = inspected(ExitCode=255)
    assert (facts.state, facts.exit_code, facts.run_id) == (ContainerState.EXITED, 255, 3)
    assert facts.finished_at is not None
    assert facts.recipe_hash == "abc"


@pytest.mark.parametrize("status", ["running", "paused"])
def test_a_live_process_has_no_end(status: str) -> None:
    """The engine keeps the end of the process before; it is not this one's."""
    assert inspected(Status=status).finished_at is None


@pytest.mark.parametrize(("code", "oom"), [(137, True), (0, False), (3, False)])
def test_only_a_killed_process_ran_out_of_memory(code: int, oom: bool) -> None:
    """The engine says so for ever once any child was killed (law 9: evidence)."""
    assert inspected(OOMKilled=True, ExitCode=code).oom_killed is oom


def test_a_listing_claims_no_stamps() -> None:
    """What a list does not show is None, not zero."""
    facts = listed_container(
        {"Id": "c1", "Names": ["/sk-u-3-aside-1"], "State": "dead", "Labels": LABELS}
    )
    assert (facts.started_at, facts.finished_at, facts.set_aside) == (None, None, True)
    assert facts.state is ContainerState.DEAD


@pytest.mark.parametrize("run", ["", "-1", "x", "9" * 3 + "a", "9" * 5000])
def test_a_forged_run_label_is_run_zero(run: str) -> None:
    """Labels are written by us; anything else must not break the reading of a whole host."""
    listed = {"Id": "c", "Names": [], "State": "exited", "Labels": {**LABELS, LABEL_RUN: run}}
    assert listed_container(listed).run_id == 0


def test_a_state_that_is_not_known_is_no_answer() -> None:
    """Neither running nor ended: nothing is decided on it (law 2)."""
    with pytest.raises(BackendUnreachable, match="hibernating"):
        inspected(Status="hibernating")


def test_an_event_carries_the_engines_stamp_and_the_session() -> None:
    """The wake-up names the session; its time is the engine's."""
    event = engine_event(
        {
            "Action": "die",
            "Actor": {"ID": "c1", "Attributes": {**LABELS, "exitCode": "137"}},
            "timeNano": 1796123910994815298,
        }
    )
    assert event is not None
    assert (event.action, event.uid, event.component) == ("die", "u", Component.SESSION)
    assert event.at == datetime(2026, 12, 1, 11, 18, 30, 994815, tzinfo=UTC)
    assert event.attributes["exitCode"] == "137"


def test_an_event_of_an_unknown_component_is_dropped() -> None:
    """A newer version's parts do not disturb this one."""
    attributes = {**LABELS, LABEL_COMPONENT: "of-tomorrow"}
    raw = {"Action": "die", "Actor": {"ID": "c", "Attributes": attributes}, "timeNano": 1}
    assert engine_event(raw) is None
