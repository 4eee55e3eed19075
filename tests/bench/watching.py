"""A watch of sessions by the bench itself, with the time at which each event came."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.cluster.environment import Cluster


class Watch:
    """Collects (time, object) of every event; waits for one that fits."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._condition = threading.Condition()
        self._seen: list[tuple[float, dict[str, Any]]] = []

    def add(self, body: dict[str, Any]) -> None:
        """Note an event that came now."""
        with self._condition:
            self._seen.append((time.time(), body))
            self._condition.notify_all()

    def first(self, name: str, *, timeout: float = 60.0, **status: object) -> float:
        """Return when a session first had this status."""

        def found() -> float | None:
            for at, body in self._seen:
                have = body.get("status") or {}
                if body["metadata"]["name"] == name and status.items() <= have.items():
                    return at
            return None

        return self._wait(found, timeout, f"{name} {status}")

    def desired(self, name: str, state: str, *, timeout: float = 60.0) -> float:
        """Return when a session's spec first had this desired state."""

        def found() -> float | None:
            for at, body in self._seen:
                spec = body.get("spec") or {}
                if body["metadata"]["name"] == name and spec.get("desiredState") == state:
                    return at
            return None

        return self._wait(found, timeout, f"{name} desired {state}")

    def _wait(self, found: Any, timeout: float, what: str) -> float:
        with self._condition:
            if not self._condition.wait_for(lambda: found() is not None, timeout):
                raise RuntimeError(f"not within {timeout} s: {what}")
            return float(found())


@contextmanager
def watching(cluster: Cluster, namespace: str) -> Iterator[Watch]:
    """Watch the sessions of a namespace, until this process ends."""
    config = json.loads(cluster.kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]
    token = config["users"][0]["user"]["token"]
    path = f"/apis/sessionkeeper.io/v1alpha1/namespaces/{namespace}/sessioninstances?watch=1"
    watch = Watch()
    response = requests.get(
        server["server"] + path,
        headers={"Authorization": f"Bearer {token}"},
        verify=server["certificate-authority"],
        stream=True,
        timeout=(5, 3600),
    )

    def follow() -> None:
        try:
            for line in response.iter_lines(chunk_size=1):
                if line:
                    watch.add(json.loads(line)["object"])
        except (requests.RequestException, AttributeError, ValueError):
            return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    yield watch
