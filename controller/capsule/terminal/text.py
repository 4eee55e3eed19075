"""Text from a repository, made fit for a terminal: it steers nothing and takes known room."""

import unicodedata
from typing import Final

from controller.capsule.evidence import printable

CUT: Final = "…"


def safe(text: str) -> str:
    """Return text in which all that could steer a terminal is escaped.

    Control characters, escape sequences, bidi controls and bytes that are no text are escaped as
    an assessment escapes them, so what is escaped already stays as it is.
    """
    return "".join(c if c.isprintable() else printable(c) for c in text)


def width(text: str) -> int:
    """Return how many columns a terminal gives to safe text."""
    return sum(_columns(letter) for letter in text)


def cut(text: str, columns: int) -> str:
    """Return safe text that takes no more than so many columns; an ellipsis says what is cut."""
    if width(text) <= columns:
        return text
    if columns < 1:
        return ""
    kept, room = [], columns - 1
    for letter in text:
        room -= _columns(letter)
        if room < 0:
            break
        kept.append(letter)
    return "".join(kept) + CUT


def wrap(text: str, columns: int) -> list[str]:
    """Break safe text between words into lines of so many columns; longer words are cut."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and width(longer) > columns:
            lines.append(cut(line, columns))
            longer = word
        line = longer
    return [*lines, cut(line, columns)] if line else lines


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1
