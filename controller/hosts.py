"""The SessionHost of an engine, registered by the controller that serves it, as a Node is.

The heartbeat is the Lease; this object says who the engine is, what the host allows and how many
sessions it has, and is written only when that changed (law 15). Where the rights are a Role alone
it is left out.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controller.api.vocabulary import Phase
from controller.apiserver import ApiAbsent, ApiError, ApiForbidden, ApiRefused, ApiServer
from controller.logs import event
from controller.reconcile.case import EngineView
from controller.reconcile.facts import Unknown
from controller.reconcile.statuspatch import merge_patch
from controller.unserved import DRAIN_MESSAGE, not_served

LOGGER = logging.getLogger(__name__)
CHECK_SECONDS: Final = 2.0
REREAD_SECONDS: Final = 30.0
REFUSED_SECONDS: Final = 60.0
_MESSAGE_LENGTH: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What a SessionHost's status says."""

    engine: EngineView | Unknown
    allows: tuple[str, ...]
    phases: Mapping[Phase, int]
    drain_asked: bool = False
    generation: int = 0


def host_status(report: HostReport, previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a host; an engine that is silent keeps what was known of it."""
    sessions = {str(phase): count for phase, count in sorted(report.phases.items()) if count}
    status: dict[str, Any] = {"allows": list(report.allows), "sessions": sessions}
    if report.drain_asked:
        status["conditions"] = not_served(
            previous, generation=report.generation, message=DRAIN_MESSAGE
        )
    if isinstance(report.engine, Unknown):
        kept = ("engineId", "bootId", "epoch", "version")
        status |= {key: previous[key] for key in kept if key in previous}
        return {**status, "reachable": False, "message": report.engine.message[:_MESSAGE_LENGTH]}
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

    def __init__(
        self,
        api: ApiServer,
        host: str,
        report: Callable[[], HostReport],
        *,
        check_seconds: float = CHECK_SECONDS,
        reread_seconds: float = REREAD_SECONDS,
    ) -> None:
        """Write what `report` returns, and look now and then whether it is still there."""
        self._api = api
        self._host = host
        self._report = report
        self._check_seconds = check_seconds
        self._reread_seconds = reread_seconds
        self._sent: dict[str, Any] | None = None
        self._stored: dict[str, Any] = {}
        self._drain_asked = False
        self._generation = 0
        self._reread_at = 0.0
        self._closed = threading.Event()
        self._said = ""

    def run(self) -> None:
        """Look every few seconds, and write what changed, until closed.

        What the server refuses is asked for again rarely: where the rights are a Role alone, or
        the CRD is not installed, that is for as long as the controller lives.
        """
        while not self._closed.is_set():
            pause = self._check_seconds
            try:
                self._write()
                self._said = ""
            except (ApiForbidden, ApiAbsent, ApiRefused) as error:
                self._sent = None
                self._say(str(error))
                pause = REFUSED_SECONDS
            except ApiError as error:
                self._say(str(error))
            self._closed.wait(pause)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _write(self) -> None:
        sent = self._sent
        if sent is None or time.monotonic() >= self._reread_at:
            sent = self._read(sent)
        report = replace(self._report(), drain_asked=self._drain_asked, generation=self._generation)
        status = host_status(report, sent)
        patch = merge_patch(sent, status)
        if patch:
            try:
                answer = self._api.patch_host_status(self._host, patch)
            except ApiAbsent:
                self._reread_at = 0.0
                return
            self._stored = dict(answer.get("status") or {})
        self._sent = status

    def _read(self, sent: dict[str, Any] | None) -> dict[str, Any]:
        """Return what the next status is compared with.

        That is what was sent, not what came back: a field that an older CRD drops would be written
        again and again (law 15). It is what is there if somebody changed that since.
        """
        try:
            host = self._api.get_host(self._host)
        except ApiAbsent:
            host = self._api.create_host(self._host)
        stored = dict(host.get("status") or {})
        self._drain_asked = bool((host.get("spec") or {}).get("drain"))
        self._generation = int(host["metadata"].get("generation", 0))
        self._reread_at = time.monotonic() + self._reread_seconds
        return sent if sent is not None and stored == self._stored else stored

    def _say(self, why: str) -> None:
        """Say a thing once, until there is another to say."""
        if why != self._said:
            self._said = why
            event(LOGGER, logging.WARNING, "session host not written", host=self._host, why=why)
