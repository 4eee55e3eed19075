"""A menu that is moved in and filtered."""

from hypothesis import given
from hypothesis import strategies as st

from controller.capsule.terminal.keys import Event, Key
from controller.capsule.terminal.menu import MOST_TYPED, Menu

MENU = Menu(items=("Start", "Inspect", "Keep", "Discard"))


def after(*events: Event) -> Menu:
    """The menu after these keys."""
    menu = MENU
    for event in events:
        menu = menu.after(event)
    return menu


def test_the_first_is_selected() -> None:
    """It is the default."""
    assert MENU.selected == 0


def test_arrows_stop_at_the_ends() -> None:
    """They do not go round: the last item is not next to the first."""
    assert after(Key.UP).selected == 0
    assert after(Key.DOWN, Key.DOWN).selected == 2
    assert after(*[Key.DOWN] * 9).selected == 3
    assert after(Key.LAST).selected == 3
    assert after(Key.LAST, Key.FIRST).selected == 0
    assert after(Key.PAGE_DOWN, Key.PAGE_UP).selected == 0


def test_what_is_typed_filters() -> None:
    """In whatever case; the first that is left is selected."""
    menu = after(Key.DOWN, Key.DOWN, "S")
    assert [MENU.items[n] for n in menu.left] == ["Start", "Inspect", "Discard"]
    assert menu.selected == 0
    assert after("d", "I", "s").selected == 3


def test_nothing_is_left() -> None:
    """Then nothing is selected, until some of it is erased."""
    assert after("x").selected is None
    assert after("x", Key.DOWN).selected is None
    assert after("x", Key.ERASE).selected == 0
    assert after("x", "y", Key.CLEAR).selected == 0


EVENTS = st.one_of(st.sampled_from(list(Key)), st.sampled_from("sie x"))


@given(st.lists(EVENTS))
def test_what_is_selected_is_shown(events: list[Event]) -> None:
    """Whatever was pressed, no item is chosen that the filter hides."""
    menu = after(*events)
    assert len(menu.typed) <= MOST_TYPED
    assert (menu.selected is None) == (not menu.left)
    assert menu.selected is None or menu.selected in menu.left
