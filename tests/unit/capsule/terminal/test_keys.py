"""Bytes of a terminal become keys, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.capsule.terminal.keys import MOST_PENDING, Event, Key, decode, settle


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        (b"a", ["a"]),
        ("é".encode(), ["é"]),
        ("あ".encode(), ["あ"]),
        ("😀".encode(), ["😀"]),
        (b"\r", [Key.ENTER]),
        (b"\n", [Key.ENTER]),
        (b"\x11", [Key.KEEP]),
        (b"\x7f\x08\x15", [Key.ERASE, Key.ERASE, Key.CLEAR]),
        (b"\x1b[A\x1b[B", [Key.UP, Key.DOWN]),
        (b"\x1bOA\x1bOB", [Key.UP, Key.DOWN]),
        (b"\x1b[5~\x1b[6~", [Key.PAGE_UP, Key.PAGE_DOWN]),
        (b"\x1b[H\x1b[F\x1b[1~\x1b[4~", [Key.FIRST, Key.LAST, Key.FIRST, Key.LAST]),
        (b"\x1b\x1b[A", [Key.ESCAPE, Key.UP]),
        (b"\x1b\x11", [Key.ESCAPE, Key.KEEP]),
        (b"\x1b[1;5A", []),
        (b"\x1b[200~", []),
        (b"\x01\x03\x1a", []),
        (b"\xff\xfea", ["a"]),
        (b"\xc3(", ["("]),
        ("\u202e".encode(), []),
    ],
)
def test_keys(raw: bytes, events: list[Event]) -> None:
    """What means nothing is passed over."""
    assert decode(raw) == (events, b"")


@pytest.mark.parametrize("rest", [b"\x1b", b"\x1b[", b"\x1b[1", b"\x1bO", b"\xe3\x81"])
def test_a_beginning_waits(rest: bytes) -> None:
    """For the bytes that may follow."""
    assert decode(b"a" + rest) == (["a"], rest)


def test_escape_alone() -> None:
    """Is known when nothing follows."""
    assert settle(b"\x1b") == [Key.ESCAPE]
    assert settle(b"\xe3") == []
    assert settle(b"") == []


KEYS = st.sampled_from([b"\x1b[A", b"\x1bOB", b"a", "あ".encode(), b"\r", b"\x11", b"\x1b[5~"])


@given(st.lists(KEYS), st.data())
def test_cut_anywhere(keys: list[bytes], data: st.DataObject) -> None:
    """The same keys come out, wherever what was read ended."""
    raw = b"".join(keys)
    at = data.draw(st.integers(0, len(raw)))
    first, rest = decode(raw[:at])
    second, left = decode(rest + raw[at:])
    assert (first + second, left) == decode(raw)
    assert len(first + second) == len(keys)


@given(st.binary())
def test_anything(raw: bytes) -> None:
    """No bytes break it, and no more than a little is held back."""
    _, rest = decode(raw)
    assert len(rest) <= MOST_PENDING
