"""A proxy before the real engine's socket, for faults that no engine shows when it is asked to.

Everything passes through unchanged, streams too, but for the requests that a rule names. One
request for each connection, so that a rule sees every one.
"""

import json
import re
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_HEAD_END = b"\r\n\r\n"


@dataclass(slots=True)
class Rule:
    """What to do with requests whose `METHOD /path` fits.

    `status` answers in the engine's place; without one the request waits for `release` (for ever,
    if it is never set) and then passes.
    """

    fits: re.Pattern[str]
    status: int | None = None
    message: str = "a fault of the test"
    release: threading.Event = field(default_factory=threading.Event)
    seen: int = 0
    under_way: int = 0


class EngineProxy:
    """Listens on a socket of its own until it is closed."""

    def __init__(self, upstream: str, path: Path) -> None:
        """Stand before the engine at `upstream` (`unix://…`)."""
        self._upstream = upstream.removeprefix("unix://")
        self.docker_host = f"unix://{path}"
        self.calls: list[str] = []
        self._rules: list[Rule] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
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

    def rule(self, fits: str, *, status: int | None = None, message: str = "a fault") -> Rule:
        """Add a rule, which counts from now on."""
        made = Rule(fits=re.compile(fits), status=status, message=message)
        self._rules.append(made)
        return made

    def drop(self, rule: Rule) -> None:
        """Take a rule off, and let pass what waits for it."""
        self._rules.remove(rule)
        rule.release.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            head = b""
            while _HEAD_END not in head:
                part = client.recv(65536)
                if not part:
                    return
                head += part
            what = " ".join(head.split(b"\r\n", 1)[0].decode().split()[:2])
            self.calls.append(what)
            rule = next((r for r in self._rules if r.fits.search(what)), None)
            if rule is not None and not self._pass(rule, client):
                return
            self._forward(client, head)

    def _pass(self, rule: Rule, client: socket.socket) -> bool:
        rule.seen += 1
        if rule.status is not None:
            body = json.dumps({"message": rule.message}).encode()
            client.sendall(
                f"HTTP/1.1 {rule.status} Fault\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            return False
        rule.under_way += 1
        rule.release.wait()
        rule.under_way -= 1
        return True

    def _forward(self, client: socket.socket, head: bytes) -> None:
        upgrade = b"upgrade:" in head.lower()
        if not upgrade:
            head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
            head = head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        with socket.socket(socket.AF_UNIX) as engine:
            try:
                engine.connect(self._upstream)
                engine.sendall(head)
                back = threading.Thread(target=_copy, args=(engine, client), daemon=True)
                back.start()
                _copy(client, engine)
                back.join()
            except OSError:
                return


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends, then end the target's side."""
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
