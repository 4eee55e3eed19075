"""What tabs and session tell each other arrives, and nonsense is passed over."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.capsule.terminal.channel import Channel, Closed, Message, Word, decode, encode


@given(st.sampled_from(list(Word)), st.integers(-300, 300), st.text(), st.text())
def test_round(word: Word, code: int, action: str, digest: str) -> None:
    """Every message, on one line."""
    message = Message(word=word, code=code, action=action, digest=digest)
    assert decode(encode(message)) == message
    assert encode(message).count(b"\n") == 1


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b'{"word": "stop"}', b"\xff", b"[" * 100_000])
def test_nonsense(line: bytes) -> None:
    """Any program of the session can write there."""
    assert decode(line) is None


def test_pieces() -> None:
    """A message may come in pieces, and several at once."""
    one, other = socket.socketpair()
    channel = Channel(one)
    raw = encode(Message(word=Word.ENDED, code=3))
    other.sendall(b"nonsense\n" + raw + raw[:5])
    assert channel.received() == [Message(word=Word.ENDED, code=3)]
    other.sendall(raw[5:])
    assert channel.received() == [Message(word=Word.ENDED, code=3)]
    other.close()
    with pytest.raises(Closed):
        channel.received()
    with pytest.raises(Closed):
        channel.send(Message(word=Word.ASK))
    channel.close()
