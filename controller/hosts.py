"""The SessionHost of an engine, registered by the controller that serves it, as a Node is.

The heartbeat is the Lease; this object says who the engine is, what the host allows and how many
sessions it has, and is written only when that changed (law 15). Where the rights are a Role alone
it is left out.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controller.api.vocabulary import Phase
from controller.apiserver import ApiAbsent, ApiError, ApiForbidden, ApiServer
from controller.logs import event
from controller.reconcile.case import EngineView
from controller.reconcile.facts import Unknown
from controller.reconcile.statuspatch import merge_patch

LOGGER = logging.getLogger(__name__)
CHECK_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a SessionHost's status says."""

    engine: EngineView | Unknown
    allows: tuple[str, ...]
    phases: Mapping[Phase, int]


def host_status(report: HostReport, previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a host; an engine that is silent keeps what was known of it."""
    sessions = {str(phase): count for phase, count in sorted(report.phases.items()) if count}
    status: dict[str, Any] = {"allows": list(report.allows), "sessions": sessions}
    if isinstance(report.engine, Unknown):
        kept = ("engineId", "bootId", "epoch", "version")
        status |= {key: previous[key] for key in kept if key in previous}
        return {**status, "reachable": False, "message": report.engine.message[:1024]}
    facts = report.engine.facts
    return {
        **status,
        "engineId": facts.engine_id,
        "bootId": facts.boot_id,
        "epoch": f"{report.engine.epoch:%Y-%m-%dT%H:%M:%SZ}",
        "version": facts.version,
        "reachable": True,
    }


class HostRegistration:
    """Keeps one SessionHost right from a thread of its own."""

    def __init__(self, api: ApiServer, host: str, report: Callable[[], HostReport]) -> None:
        """Write what `report` returns."""
        self._api = api
        self._host = host
        self._report = report
        self._written: dict[str, Any] | None = None
        self._closed = threading.Event()
        self._said = ""

    def run(self) -> None:
        """Look every few seconds, and write what changed, until closed."""
        while not self._closed.wait(CHECK_SECONDS):
            try:
                self._write()
            except ApiForbidden as error:
                self._say(f"not registered: {error}")
            except ApiError as error:
                self._say(str(error))

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _write(self) -> None:
        if self._written is None:
            self._written = self._existing()
        status = host_status(self._report(), self._written)
        patch = merge_patch(self._written, status)
        if not patch:
            return
        try:
            answer = self._api.patch_host_status(self._host, patch)
        except ApiAbsent:
            self._written = None
            return
        self._written = dict(answer.get("status") or {})

    def _existing(self) -> dict[str, Any]:
        try:
            host = self._api.get_host(self._host)
        except ApiAbsent:
            host = self._api.create_host(self._host)
        return dict(host.get("status") or {})

    def _say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            event(LOGGER, logging.WARNING, "session host not written", host=self._host, why=what)
