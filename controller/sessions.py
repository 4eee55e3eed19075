"""The SessionInstances as the watch last delivered them, small enough to hold thousands.

What nobody reads (managed fields, the last applied configuration) is dropped, and a body is kept
as text until it is needed.
"""

import json
import threading
from collections.abc import Mapping
from typing import Any

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _resource_version(body: Mapping[str, Any]) -> int:
    text = str(body["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


class SessionCache:
    """Bodies by UID; safe to use from several threads."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._bodies: dict[str, tuple[int, bytes]] = {}

    def put(self, body: Mapping[str, Any]) -> bool:
        """Take a delivered body; an older one than is held is dropped. Return whether it is new."""
        metadata = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(_LAST_APPLIED, None)
        metadata["annotations"] = annotations
        slim = {"metadata": metadata, "spec": body.get("spec"), "status": body.get("status")}
        version, uid = _resource_version(body), metadata["uid"]
        with self._lock:
            held = self._bodies.get(uid)
            if held is not None and version and held[0] >= version:
                return False
            self._bodies[uid] = (version, json.dumps(slim, separators=(",", ":")).encode())
            return True

    def get(self, uid: str) -> dict[str, Any] | None:
        """Return the body of a session, or None."""
        with self._lock:
            held = self._bodies.get(uid)
        return None if held is None else json.loads(held[1])

    def forget(self, uid: str) -> None:
        """Drop a session whose object is definitely gone."""
        with self._lock:
            self._bodies.pop(uid, None)

    def of(self, namespace: str) -> tuple[str, ...]:
        """Return the UIDs of a namespace's sessions."""
        with self._lock:
            held = list(self._bodies.items())
        return tuple(
            uid for uid, (_, text) in held if json.loads(text)["metadata"]["namespace"] == namespace
        )

    def uids(self) -> frozenset[str]:
        """Return the UIDs held."""
        with self._lock:
            return frozenset(self._bodies)
