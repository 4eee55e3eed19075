"""From key to key: no way but the long one leads to a discard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.capsule.terminal.choices import (
    Cancel,
    Decision,
    Discard,
    Keep,
    Page,
    Start,
    State,
    opened,
    picker,
    pressed,
)
from controller.capsule.terminal.findings import Findings
from controller.capsule.terminal.keys import Event, Key
from tests.unit.capsule.terminal.builders import AGENTS, DIGEST, findings

DOWN, ENTER, ESCAPE = Key.DOWN, Key.ENTER, Key.ESCAPE
DIRTY, UNKNOWN = findings(), findings("Unknown")


def after(*events: Event, found: Findings = DIRTY) -> State | Decision:
    """Where these keys lead from the dialog as it opens."""
    state: State | Decision = opened(found, AGENTS)
    for event in events:
        assert isinstance(state, State), f"{event} comes after {state}"
        state = pressed(state, event)
    return state


def page_after(*events: Event) -> Page:
    """The page that these keys lead to."""
    state = after(*events)
    assert isinstance(state, State)
    return state.page


def test_the_default_loses_nothing() -> None:
    """Enter offers an agent (row J6)."""
    assert page_after(ENTER) is Page.PICK
    assert after(ENTER, ENTER) == Start(AGENTS[0])
    assert after(ENTER, DOWN, ENTER) == Start(AGENTS[1])


def test_keep() -> None:
    """By its item."""
    assert after(DOWN, DOWN, ENTER) == Keep()


def test_discard_is_asked_twice() -> None:
    """And names what was shown."""
    assert page_after(DOWN, DOWN, DOWN, ENTER) is Page.CONFIRM
    assert page_after(DOWN, DOWN, DOWN, ENTER, ENTER) is Page.CHOICES
    assert after(DOWN, DOWN, DOWN, ENTER, DOWN, ENTER) == Discard(DIGEST)


def test_inspect_and_back() -> None:
    """By Enter as by Escape; letters do nothing there."""
    assert page_after(DOWN, ENTER) is Page.INSPECT
    assert page_after(DOWN, ENTER, "x", DOWN) is Page.INSPECT
    assert after(DOWN, ENTER, ESCAPE) == opened(DIRTY, AGENTS)
    assert after(DOWN, ENTER, ENTER) == opened(DIRTY, AGENTS)


def test_escape_does_nothing() -> None:
    """On the dialog itself, also to what is typed or selected (row J5)."""
    for keys in ((), (DOWN,), ("k",), (DOWN, DOWN, DOWN)):
        assert after(*keys, ESCAPE) == after(*keys)


@pytest.mark.parametrize("way", [(), (ENTER,), (DOWN, ENTER), (DOWN, DOWN, DOWN, ENTER)])
def test_ctrl_q_keeps_from_every_page(way: tuple[Event, ...]) -> None:
    """Row J5."""
    assert after(*way, Key.KEEP) == Keep()


@pytest.mark.parametrize("way", [(ENTER,), (DOWN, ENTER), (DOWN, DOWN, DOWN, ENTER)])
def test_escape_leads_back(way: tuple[Event, ...]) -> None:
    """From every other page."""
    assert after(*way, ESCAPE) == opened(DIRTY, AGENTS)


def test_nothing_selected_chooses_nothing() -> None:
    """A filter that leaves none."""
    assert after("z", ENTER) == after("z")
    assert after(ENTER, "x", "x", ENTER) == after(ENTER, "x", "x")


def test_the_picker_of_a_tab() -> None:
    """Escape and Ctrl-Q leave it, and decide nothing for the session."""
    assert pressed(picker(AGENTS), ESCAPE) == Cancel()
    assert pressed(picker(AGENTS), Key.KEEP) == Cancel()
    assert pressed(picker(AGENTS), ENTER) == Start(AGENTS[0])


def test_scrolling_ends() -> None:
    """At both ends, with as many lines as there is room for."""
    state = after(DOWN, ENTER)
    assert isinstance(state, State)
    for event in (Key.UP, Key.DOWN, Key.PAGE_DOWN, Key.LAST, Key.PAGE_UP):
        moved = pressed(state, event, room=1)
        assert isinstance(moved, State)
        assert 0 <= moved.top < len(DIRTY.inspection())


EVENTS = st.one_of(st.sampled_from(list(Key)), st.sampled_from("exit&dscary "))


@given(st.lists(EVENTS, max_size=40))
def test_no_key_discards_the_unknown(events: list[Event]) -> None:
    """Whatever is pressed."""
    state: State | Decision = opened(UNKNOWN, AGENTS)
    for event in events:
        if not isinstance(state, State):
            break
        state = pressed(state, event)
    assert not isinstance(state, Discard)


@given(st.lists(EVENTS, max_size=40))
def test_only_two_enters_discard(events: list[Event]) -> None:
    """And only exactly what was shown."""
    state: State | Decision = opened(DIRTY, AGENTS)
    for event in events:
        if not isinstance(state, State):
            break
        before, state = state, pressed(state, event)
        if isinstance(state, Discard):
            assert (before.page, event) == (Page.CONFIRM, ENTER)
            assert state.digest == DIGEST
