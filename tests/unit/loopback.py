"""A small HTTP server on loopback that answers as an API server, or as something else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Answer:
    """One answer of the server; `cut` ends it early, `withheld` never gives it."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    withheld: bool = False


def refusal(status: int, **headers: str) -> Answer:
    """A refusal as Kubernetes words it."""
    body = json.dumps({"kind": "Status", "code": status, "message": "its own words"}).encode()
    return Answer(status=status, body=body, headers=headers)


class Server(ThreadingHTTPServer):
    """An HTTP server on loopback that gives one answer to everything."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = Answer()
        self.wanted: str | None = None
        self.ending = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def end(self) -> None:
        self.ending.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Plays the answer of its server."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        answer = self.server.answer
        if self.server.wanted not in (None, self.headers["Authorization"]):
            answer = refusal(401)
        if answer.withheld:
            self.server.ending.wait(30)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(answer.body) + answer.cut))
        self.end_headers()
        self.wfile.write(answer.body)
        self.close_connection = answer.cut

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[Server]:
    """A server for the time of a block."""
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.end()
        thread.join()


def kubeconfig(directory: Path, url: str, **user: Any) -> Path:
    """Write a kubeconfig of this server and user."""
    written = directory / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }
    written.write_text(json.dumps(config))
    return written
