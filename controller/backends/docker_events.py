"""The engine's event stream: the wake-up for whatever happens to a container of ours.

The engine keeps the last 256 events in memory and forgets them when it ends, so a stream only says
when to look. Whoever reads it lists anew after every subscription (C04).
"""

import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from docker import errors
from docker.types import CancellableStream

from controller.api.names import LABEL_OWNER
from controller.backends.docker_engine import Engine
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_facts import engine_event
from controller.reconcile.facts import EngineEvent

# Neither exec nor health events: a session may cause any number of those.
_ACTIONS: Final = (
    "create",
    "start",
    "die",
    "kill",
    "stop",
    "oom",
    "pause",
    "unpause",
    "restart",
    "rename",
    "destroy",
)


class Events:
    """At most one running subscription to an engine."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Work for one owner; events of others never arrive."""
        self._engine = engine
        self._owner = owner
        self._lock = threading.Lock()
        self._stream: CancellableStream[dict[str, Any]] | None = None

    def subscribe(self, since: datetime) -> Iterator[EngineEvent | None]:
        """Yield None once the engine has answered, then its events until the stream ends.

        The engine replays what it remembers from `since` on, so that nothing is missed between
        the answer and the subscription behind it.
        """
        client = self._engine.open(self._engine.limits.read)
        filters = {
            "type": ["container"],
            "event": list(_ACTIONS),
            "label": [f"{LABEL_OWNER}={self._owner}"],
        }
        try:
            with translated(Doing.READ, "subscribing to the engine's events"):
                stream = client.events(since=int(since.timestamp()), filters=filters, decode=True)
            with self._lock:
                self._stream = stream
            yield None
            with translated(Doing.READ, "reading the engine's events"):
                for raw in stream:
                    event = engine_event(raw)
                    if event is not None:
                        yield event
        finally:
            with self._lock:
                self._stream = None
            client.close()

    def close(self) -> None:
        """End the running subscription from another thread; none is well."""
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.close()
        except (OSError, errors.DockerException):
            return
