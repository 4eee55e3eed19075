"""Text that a session chose neither steers a terminal nor takes more room than it has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.capsule.evidence import printable
from controller.capsule.terminal.text import cut, safe, width, wrap


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain name", "plain name"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\rb\nc\td", "a\\x0db\\x0ac\\x09d"),
        ("\x9b2J", "\\u{9b}2J"),
        ("\u202eright", "\\u{202e}right"),
        ("\u2066isolated", "\\u{2066}isolated"),
        ("\u200bnothing", "\\u{200b}nothing"),
        ("\udcff", "\\xff"),
        ("\ud800", "\\u{d800}"),
        ("\\", "\\"),
        ("あé", "あé"),
    ],
)
def test_what_would_steer_is_escaped(text: str, shown: str) -> None:
    """Control characters, bidi controls, and bytes that are no text."""
    assert safe(text) == shown


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    """Whatever the text; what an assessment escaped stays as it is."""
    assert safe(text).isprintable()
    assert safe(printable(text)) == printable(text)


@given(st.text(alphabet=st.characters(categories=["L", "M", "N", "P", "S"])), st.integers(0, 40))
def test_cut_text_fits(text: str, columns: int) -> None:
    """And is whole where there is room."""
    assert width(cut(text, columns)) <= columns
    assert cut(text, width(text)) == text


def test_cut_text_says_so() -> None:
    """By an ellipsis; a wide letter that does not fit goes whole."""
    assert cut("abcdef", 4) == "abc…"
    assert cut("ああ", 3) == "あ…"
    assert cut("ああ", 2) == "…"
    assert cut("abc", 0) == ""


@given(st.text(alphabet="ab あ"), st.integers(1, 20))
def test_wrapped_lines_fit(text: str, columns: int) -> None:
    """Each of them, and none is empty."""
    lines = wrap(text, columns)
    assert all(0 < width(line) <= columns for line in lines)


def test_wrapped_between_words() -> None:
    """A word longer than a line is cut."""
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("incomprehensible it is", 6) == ["incom…", "it is"]
    assert wrap("", 5) == []
