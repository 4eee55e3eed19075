"""A registry of images as small as the tests need: it serves one, and says "no" in several ways.

It runs where an engine reaches it by loopback, for there engines ask without TLS. Its directory
holds `answers.json` (name of an image: status, code and message of every answer for it), and in
`blobs/` the manifests by `name:tag` and all else by digest. `asked` has a line for each request.
"""

import hashlib
import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry(BaseHTTPRequestHandler):
    """Answers `/v2/`, `/v2/<name>/manifests/<tag or digest>` and `/v2/<name>/blobs/<digest>`."""

    directory = Path()

    def do_GET(self) -> None:
        """Answer, with a body."""
        with (self.directory / "asked").open("a") as asked:
            asked.write(f"{self.path}\n")
        if self.path == "/v2/":
            self.answer(200, b"{}", "application/json")
            return
        if self.path.startswith("/token"):
            self.answer(200, b'{"token": "of somebody who may nothing"}', "application/json")
            return
        name, kind, wanted = self.path.removeprefix("/v2/").rsplit("/", 2)
        told = json.loads((self.directory / "answers.json").read_text()).get(name)
        kept = self.directory / "blobs" / (f"{name}:{wanted}" if kind == "manifests" else wanted)
        if told:
            self.refuse(**told)
        elif kept.exists():
            self.answer(200, kept.read_bytes(), MANIFEST if kind == "manifests" else "")
        else:
            self.refuse(status=404, code="MANIFEST_UNKNOWN", message="manifest unknown")

    def do_HEAD(self) -> None:
        """Answer without the body."""
        self.do_GET()

    def refuse(self, *, status: int, code: str, message: str) -> None:
        """Answer with an error as registries write it."""
        body = json.dumps({"errors": [{"code": code, "message": message}]})
        self.answer(status, body.encode(), "application/json")

    def answer(self, status: int, body: bytes, kind: str) -> None:
        """Send an answer; its body only where it was asked for."""
        headers: dict[str, Any] = {
            "Docker-Distribution-Api-Version": "registry/2.0",
            "Docker-Content-Digest": f"sha256:{hashlib.sha256(body).hexdigest()}",
            "Content-Type": kind or "application/octet-stream",
            "Content-Length": len(body),
        }
        if status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = f'Bearer realm="http://{self.headers["Host"]}/token"'
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


if __name__ == "__main__":
    Registry.directory = Path(sys.argv[1])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Registry).serve_forever()
