"""What a person pressed, out of the bytes that a terminal sends."""

import re
from enum import Enum, auto
from typing import Final


class Key(Enum):
    """The keys that mean something here; KEEP is Ctrl-Q (row J5)."""

    UP = auto()
    DOWN = auto()
    PAGE_UP = auto()
    PAGE_DOWN = auto()
    FIRST = auto()
    LAST = auto()
    ENTER = auto()
    ERASE = auto()
    CLEAR = auto()
    ESCAPE = auto()
    KEEP = auto()


Event = Key | str
"""A key, or one printable letter that was typed."""

MOST_PENDING: Final = 64
_SINGLE: Final = {
    b"\r": Key.ENTER,
    b"\n": Key.ENTER,
    b"\x7f": Key.ERASE,
    b"\x08": Key.ERASE,
    b"\x15": Key.CLEAR,
    b"\x11": Key.KEEP,
}
_SEQUENCES: Final = {
    b"A": Key.UP,
    b"B": Key.DOWN,
    b"H": Key.FIRST,
    b"F": Key.LAST,
    b"1~": Key.FIRST,
    b"7~": Key.FIRST,
    b"4~": Key.LAST,
    b"8~": Key.LAST,
    b"5~": Key.PAGE_UP,
    b"6~": Key.PAGE_DOWN,
}
_SEQUENCE: Final = re.compile(rb"\x1b(?:\[([0-?]*[ -/]*[@-~])|O([@-~]))")
_BEGUN: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?")


def decode(raw: bytes) -> tuple[list[Event], bytes]:
    """Return the events in what was read, and the rest that may be the beginning of a sequence.

    Sequences that mean nothing here, and bytes that are no text, are passed over.
    """
    events: list[Event] = []
    while raw:
        if _BEGUN.fullmatch(raw):
            return events, raw[:MOST_PENDING]
        found = _SEQUENCE.match(raw)
        if found:
            raw = raw[found.end() :]
            key = _SEQUENCES.get(found[1] or found[2])
            events += [key] if key else []
        elif raw[:1] == b"\x1b":
            events.append(Key.ESCAPE)
            raw = raw[1:]
        elif raw[0] < 0x80:
            events += _single(raw[:1])
            raw = raw[1:]
        else:
            letter, size = _letter(raw)
            if not size:
                return events, raw
            events += [letter] if letter and letter.isprintable() else []
            raw = raw[size:]
    return events, b""


def settle(rest: bytes) -> list[Event]:
    """Return what a rest means when nothing follows it: Escape was pressed, or nothing."""
    return [Key.ESCAPE] if rest[:1] == b"\x1b" else []


def _single(byte: bytes) -> list[Event]:
    if key := _SINGLE.get(byte):
        return [key]
    letter = byte.decode()
    return [letter] if letter.isprintable() else []


def _letter(raw: bytes) -> tuple[str, int]:
    """Decode one letter of UTF-8; the size is 0 while it is not complete."""
    length = 2 if raw[0] < 0xE0 else 3 if raw[0] < 0xF0 else 4
    try:
        return raw[:length].decode(), length
    except UnicodeDecodeError as error:
        whole = len(raw) >= length or error.reason != "unexpected end of data"
        return "", error.end if whole else 0
