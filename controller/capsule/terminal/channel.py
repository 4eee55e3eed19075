"""What a tab and its session tell each other, a line of JSON at a time."""

import json
import socket
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

MOST_LINE: Final = 4096


class Word(StrEnum):
    """What is said: the first six by a tab, the others by the session."""

    PICKING = "picking"
    RUNNING = "running"
    ENDED = "ended"
    CANCELLED = "cancelled"
    CLEAN = "clean"
    CHOSE = "chose"
    CLOSE = "close"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A word; an end has its exit code, a choice has its action and the digest that was shown."""

    word: Word
    code: int = 0
    action: str = ""
    digest: str = ""


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One side of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        """Use a connected socket."""
        self._connection = connection
        self._rest = b""

    @staticmethod
    def to(path: Path) -> "Channel":
        """Connect to a session. Raises OSError."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(str(path))
        return Channel(connection)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Say something; raises Closed."""
        try:
            self._connection.sendall(encode(message))
        except OSError:
            raise Closed from None

    def received(self) -> list[Message]:
        """Wait for what is said next; lines that are no message are passed over. Raises Closed."""
        try:
            raw = self._connection.recv(MOST_LINE)
        except OSError:
            raise Closed from None
        if not raw:
            raise Closed
        *lines, rest = (self._rest + raw).split(b"\n")
        self._rest = rest[:MOST_LINE]
        return [message for line in lines if (message := decode(line)) is not None]

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def encode(message: Message) -> bytes:
    """Write a message as a line."""
    body = {
        "word": str(message.word),
        "code": message.code,
        "action": message.action,
        "digest": message.digest,
    }
    return json.dumps(body).encode() + b"\n"


def decode(line: bytes) -> Message | None:
    """Read a message; None for what is none."""
    try:
        body = json.loads(line)
        return Message(
            word=Word(body["word"]),
            code=int(body["code"]),
            action=str(body["action"]),
            digest=str(body["digest"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
