"""What the event stream showed of each container: whether its end was watched, and by whose hand.

Kept in memory only: after a restart of the controller an end is unwatched, and an unwatched end
never leads to an automatic clean (settled.md).
"""

import threading
from dataclasses import dataclass
from datetime import datetime

from controller.reconcile.case import Witness
from controller.reconcile.facts import EngineEvent


@dataclass(slots=True)
class _Seen:
    hand: str = ""
    hand_at: datetime | None = None
    died_at: datetime | None = None


class Witnesses:
    """Remembers stop, kill and die events; safe to use from several threads."""

    def __init__(self) -> None:
        """Start having seen nothing."""
        self._lock = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._ours: set[str] = set()

    def saw(self, event: EngineEvent) -> None:
        """Take an event of the engine into account; events may be late or repeated."""
        with self._lock:
            if event.action in ("destroy", "start"):
                self._ours.discard(event.container_id)
            if event.action == "destroy":
                self._seen.pop(event.container_id, None)
                return
            seen = self._seen.setdefault(event.container_id, _Seen())
            if event.action in ("kill", "stop") and event.container_id not in self._ours:
                signal = event.attributes.get("signal")
                seen.hand = f"docker kill, signal {signal}" if signal else "docker stop"
                seen.hand_at = event.at
            elif event.action == "die":
                seen.died_at = event.at

    def stopping(self, container_id: str) -> None:
        """Note that the stop which follows is ours."""
        with self._lock:
            self._ours.add(container_id)

    def of(self, container_id: str, started_at: datetime | None) -> Witness:
        """Return what was seen of the container's present run."""
        with self._lock:
            seen = self._seen.get(container_id)
            if seen is None or started_at is None:
                return Witness()
            by_hand = seen.hand_at is not None and seen.hand_at >= started_at
            watched = seen.died_at is not None and seen.died_at >= started_at
            return Witness(watched=watched, stopped_by_hand=seen.hand if by_hand else "")
