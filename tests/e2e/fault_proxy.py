"""A proxy before a real server, for faults that no server shows when it is asked to.

Everything passes through unchanged, hijacked and streamed answers too, but for the requests that a
rule names. One request for each connection, so that a rule sees every one.
"""

import http.client
import json
import re
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Self

_HEAD_END = b"\r\n\r\n"
_UPGRADE = b"\r\nupgrade:"
_POLL_SECONDS = 0.05


@dataclass(slots=True, kw_only=True)
class Rule:
    """What to do with requests whose `METHOD /path?query` fits, until one fits `until`.

    With `times` it counts for so many requests only.

    A `held` one waits for `release`, for ever if need be, or for `delay` seconds. Then `status`
    answers in the server's place, after the server has done it if `done` is true; `rewrite` changes
    the JSON of the server's own answer, `lines` each line of a stream; without any of them the
    request passes.
    """

    fits: re.Pattern[str]
    until: re.Pattern[str] | None = None
    times: int | None = None
    status: int | None = None
    body: bytes = b""
    done: bool = False
    held: bool = False
    delay: float = 0.0
    rewrite: Callable[[Any], Any] | None = None
    lines: Callable[[bytes], Iterable[bytes]] | None = None
    release: threading.Event = field(default_factory=threading.Event)
    seen: int = 0
    under_way: int = 0
    most_under_way: int = 0

    def wait(self, client: socket.socket) -> None:
        """Count the request, and hold it up for as long as anybody waits for its answer."""
        self.seen += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        if self.delay:
            self.release.wait(self.delay)
        elif self.held:
            while not self.release.wait(_POLL_SECONDS) and not _gone(client):
                pass
        self.under_way -= 1


class FaultProxy:
    """Passes from a listener to a server, which `connect` reaches, until it is closed."""

    def __init__(self, listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
        """Stand before the server; `listener` is bound already."""
        self.calls: list[str] = []
        self._connect = connect
        self._rules: list[Rule] = []
        self._listener = listener
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        """Stand there."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let everything that waits pass, and listen no more."""
        for rule in self._rules:
            rule.release.set()
        self._listener.close()

    def rule(self, fits: str, *, until: str | None = None, **fault: Any) -> Rule:
        """Add a rule, which counts from now on; of two that fit, the newer one does."""
        last = re.compile(until) if until is not None else None
        made = Rule(fits=re.compile(fits), until=last, **fault)
        self._rules.insert(0, made)
        return made

    def refuse(self, fits: str, status: int, message: str, *, until: str | None = None) -> Rule:
        """Answer in the server's place; it learns of nothing."""
        body = json.dumps({"message": message}).encode()
        return self.rule(fits, until=until, status=status, body=body)

    def drop(self, rule: Rule) -> None:
        """Take a rule off, and let pass what waits for it."""
        rule.release.set()
        if rule in self._rules:
            self._rules.remove(rule)

    def seen(self, fits: str) -> list[str]:
        """The requests so far that fit."""
        return [call for call in self.calls if re.search(fits, call)]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                head = _head(client)
                if head:
                    self._answer(client, head)
            except (OSError, http.client.HTTPException):
                return

    def _rule_for(self, what: str) -> Rule | None:
        self.calls.append(what)
        for rule in [r for r in self._rules if r.until is not None and r.until.search(what)]:
            self.drop(rule)
        rule = next((r for r in self._rules if r.fits.search(what)), None)
        if rule is not None and rule.times is not None:
            rule.times -= 1
            if not rule.times:
                self._rules.remove(rule)
        return rule

    def _answer(self, client: socket.socket, head: bytes) -> None:
        rule = self._rule_for(" ".join(head.split(b"\r\n", 1)[0].decode().split()[:2]))
        request = _closing(head)
        if rule is None:
            self._forward(client, request)
            return
        rule.wait(client)
        if rule.lines is not None:
            self._stream(rule.lines, client, request)
        elif rule.rewrite is not None:
            with self._ask(client, request) as found:
                _reply(client, found.status, json.dumps(rule.rewrite(json.load(found))).encode())
        elif rule.status is not None:
            if rule.done:
                with self._ask(client, request) as found:
                    found.read()
            _reply(client, rule.status, rule.body)
        else:
            self._forward(client, request)

    def _ask(self, client: socket.socket, request: bytes) -> http.client.HTTPResponse:
        """Send a whole request, and return the server's answer to read from."""
        request += _rest(client, request)
        with self._connect() as server:
            server.sendall(request)
            response = http.client.HTTPResponse(server)
            response.begin()
            return response

    def _stream(
        self, lines: Callable[[bytes], Iterable[bytes]], client: socket.socket, request: bytes
    ) -> None:
        with self._ask(client, request) as found:
            client.sendall(_head_of(found.status, "Transfer-Encoding: identity"))
            while line := found.readline():
                for sent in lines(line):
                    client.sendall(sent)

    def _forward(self, client: socket.socket, request: bytes) -> None:
        with self._connect() as server:
            server.sendall(request)
            _relay(client, server, hijacked=_UPGRADE in request.lower())


def _head(client: socket.socket) -> bytes:
    """Read up to the end of a request's head at least; nothing if there is no request."""
    head = b""
    while _HEAD_END not in head:
        part = client.recv(65536)
        if not part:
            return b""
        head += part
    return head


def _closing(head: bytes) -> bytes:
    """The request, asking that the connection ends with its answer unless it is hijacked."""
    if _UPGRADE in head.lower():
        return head
    head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
    return head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


def _rest(client: socket.socket, request: bytes) -> bytes:
    """What of a request's body has not been read yet."""
    head, _, body = request.partition(_HEAD_END)
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    left = (int(length[1]) if length else 0) - len(body)
    rest = b""
    while len(rest) < left:
        part = client.recv(left - len(rest))
        if not part:
            break
        rest += part
    return rest


def _head_of(status: int, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Fault",
        "Content-Type: application/json",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def _reply(client: socket.socket, status: int, body: bytes) -> None:
    client.sendall(_head_of(status, f"Content-Length: {len(body)}") + body)


def _gone(client: socket.socket) -> bool:
    """Whether nobody waits for an answer any more."""
    readable, _, _ = select.select([client], [], [], 0)
    try:
        return bool(readable) and client.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def _relay(client: socket.socket, server: socket.socket, *, hijacked: bool) -> None:
    """Copy both ways until the server ends, or nobody waits for it any more."""
    ends = {client: server, server: client}
    while True:
        for source in _readable(ends):
            part = source.recv(65536)
            if part:
                ends[source].sendall(part)
            elif source is server or not hijacked:
                return
            else:
                del ends[client]
                server.shutdown(socket.SHUT_WR)


def _readable(sockets: Iterable[socket.socket]) -> list[socket.socket]:
    """Wait for what can be read; TLS may hold what it has decrypted already."""
    waiting = list(sockets)
    held = [one for one in waiting if isinstance(one, ssl.SSLSocket) and one.pending()]
    return held or select.select(waiting, [], [])[0]
