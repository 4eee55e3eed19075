"""Pages fit on every screen, and hold nothing that steers it."""

from hypothesis import given
from hypothesis import strategies as st

from controller.capsule.terminal.agents import Agent
from controller.capsule.terminal.choices import Page, State, opened, picker, pressed
from controller.capsule.terminal.keys import Key
from controller.capsule.terminal.screens import Line, Style, fits, looking, paint, render
from controller.capsule.terminal.text import width
from tests.unit.capsule.terminal.builders import AGENTS, findings, mount


def pages() -> list[State]:
    """Each page once, with long and many names."""
    mounts = [mount(f"repository-{n}-" + "x" * 4 * n, message="words " * n) for n in range(12)]
    begun = opened(findings("Dirty", *mounts), AGENTS)
    made = [begun, picker(AGENTS), opened(findings("Unknown"), AGENTS)]
    for keys in ([], [Key.DOWN], [Key.DOWN] * 3):
        state = begun
        for key in [*keys, Key.ENTER]:
            after = pressed(state, key)
            assert isinstance(after, State)
            state = after
        made.append(state)
    assert {state.page for state in made} == set(Page)
    return made


PAGES = pages()


def texts(lines: list[Line]) -> list[str]:
    """What stands on them."""
    return [line.text for line in lines]


@given(st.sampled_from(PAGES), st.integers(1, 120), st.integers(1, 60))
def test_every_page_fits(state: State, columns: int, rows: int) -> None:
    """On a screen of any size."""
    lines = render(state, columns=columns, rows=rows)
    assert len(lines) <= rows
    assert all(width(line.text) <= columns for line in lines)
    assert all(line.text.isprintable() for line in lines)


@given(st.sampled_from(PAGES), st.integers(20, 120), st.integers(12, 60))
def test_what_is_selected_is_on_the_screen(state: State, columns: int, rows: int) -> None:
    """On every screen that pages are shown on."""
    assert fits(columns, rows)
    selected = [s for s in render(state, columns=columns, rows=rows) if s.style is Style.SELECTED]
    assert len(selected) == (0 if state.page is Page.INSPECT else 1)


@given(st.integers(20, 120), st.integers(12, 60))
def test_all_choices_are_on_the_screen(columns: int, rows: int) -> None:
    """However much there is to tell above them."""
    lines = texts(render(PAGES[0], columns=columns, rows=rows))
    assert "> Start a new agent" in lines
    assert "  Exit & discard" in lines


def test_many_agents_are_scrolled() -> None:
    """The selected one is on the screen."""
    agents = tuple(Agent(name=f"agent-{n}", command=("a",)) for n in range(40))
    state = picker(agents)
    for _ in range(25):
        after = pressed(state, Key.DOWN)
        assert isinstance(after, State)
        state = after
    lines = texts(render(state, columns=40, rows=12))
    assert "> agent-25" in lines
    assert len(lines) <= 12


def test_what_is_left_out_is_counted() -> None:
    """Repositories for which there is no room."""
    lines = texts(render(PAGES[0], columns=60, rows=12))
    assert any("more lines" in line for line in lines)


def test_names_of_agents_steer_nothing() -> None:
    """An image's file can hold any."""
    lines = render(picker((Agent(name="a\x1b[2J", command=("a",)),)), columns=40, rows=12)
    assert "> a\\x1b[2J" in texts(lines)


def test_colours() -> None:
    """None without leave."""
    lines = [Line("a", Style.WARNING), Line("b", Style.BAD), Line("c", Style.SELECTED)]
    assert b"\x1b[1;33ma" in paint(lines, coloured=True)
    bare = paint(lines, coloured=False)
    assert b"\x1b[1ma" in bare
    assert b"33m" not in bare
    assert b"31m" not in bare


def test_looking() -> None:
    """A wait is explained, in any width."""
    assert all(width(line.text) <= 7 for line in looking(7))
