"""Kubernetes Events: what a person should read beside the status, said once and best effort.

An Event is news, never a record: where it can not be written (a namespace that is being deleted
takes none), the log has it and the work goes on.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from controller.api.names import API_VERSION
from controller.api.reasons import Reason
from controller.apiserver import ApiError, ApiServer
from controller.logs import event

LOGGER = logging.getLogger(__name__)
COMPONENT: Final = "sessionkeeper"
MOST_MESSAGE: Final = 1024


class EventWriter:
    """Writes Events about sessions in the name of one host's controller."""

    def __init__(self, api: ApiServer, host: str) -> None:
        """Write through this API server."""
        self._api = api
        self._host = host

    def say(
        self, session: Mapping[str, Any], reason: Reason, message: str, *, warning: bool
    ) -> None:
        """Say something about a session once."""
        metadata = session["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "generateName": f"{metadata['name'][:200]}.",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": "SessionInstance",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "type": "Warning" if warning else "Normal",
            "reason": str(reason),
            "message": _shown(message),
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": COMPONENT, "host": self._host},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._host,
        }
        name = f"{metadata['namespace']}/{metadata['name']}"
        try:
            self._api.create_event(body)
        except ApiError as error:
            event(
                LOGGER,
                logging.WARNING,
                "event not written",
                session=name,
                reason=reason,
                said=_shown(message),
                why=error,
            )


def _shown(message: str) -> str:
    """Bound a text and strip what a terminal would obey."""
    clean = "".join(letter if letter.isprintable() else " " for letter in message)
    return clean if len(clean) <= MOST_MESSAGE else f"{clean[: MOST_MESSAGE - 1]}…"
