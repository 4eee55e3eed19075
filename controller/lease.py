"""The Lease of a host: heartbeat, mutual exclusion and takeover are this one mechanism.

A holder believes its Lease only for a part of its duration, counted by CLOCK_BOOTTIME from the
moment a renewal was begun: a process that was frozen, or a host that slept, finds it lapsed before
it acts again. A stand-by never compares clocks: it waits until the record has stayed the same for
a whole duration by its own clock, then takes over by the version that it read (design.md 7).
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from controller.api.names import LEASE_NAMESPACE
from controller.apiserver import ApiAbsent, ApiConflict, ApiError, ApiServer
from controller.logs import event

LOGGER = logging.getLogger(__name__)
DURATION_SECONDS: Final = 12.0
RENEW_SECONDS: Final = 4.0
RETRY_SECONDS: Final = 1.0
_MARGIN: Final = 0.75


def boot_seconds() -> float:
    """Return the seconds since boot, those asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    version: str
    seen_at: float


class HostLease:
    """Competes for one Lease in a thread of its own."""

    def __init__(
        self,
        api: ApiServer,
        *,
        name: str,
        on_acquired: Callable[[], None],
        on_lost: Callable[[], None],
        namespace: str = LEASE_NAMESPACE,
        duration: float = DURATION_SECONDS,
        renew_every: float = RENEW_SECONDS,
    ) -> None:
        """Compete once `start` is called; the callbacks run in the Lease's thread."""
        self._api = api
        self._name = name
        self._namespace = namespace
        self._on_acquired = on_acquired
        self._on_lost = on_lost
        self._duration = duration
        self._renew_every = renew_every
        self.identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
        self._valid_until = 0.0
        self._serving = False
        self._seen: _Record | None = None
        self._said = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def holds(self) -> bool:
        """Whether this process may act now."""
        return boot_seconds() < self._valid_until

    def start(self) -> None:
        """Begin to compete."""
        self._thread.start()

    def stop(self) -> None:
        """End, and give a held Lease back, so that a successor need not wait."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._duration)
        if self._valid_until:
            self._valid_until = 0.0
            self._release()

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = RETRY_SECONDS
            try:
                if self._turn():
                    pause = self._renew_every
            except ApiError as error:
                self._say("lease not reached", error=str(error))
            self._callbacks()
            self._stopping.wait(pause)

    def _callbacks(self) -> None:
        holds = self.holds()
        if holds and not self._serving:
            self._serving = True
            self._say("lease acquired", identity=self.identity)
            self._on_acquired()
        elif not holds and self._serving:
            self._serving = False
            self._say("lease lost")
            self._on_lost()

    def _turn(self) -> bool:
        """Renew, take over, or watch; return whether the Lease is held."""
        began = boot_seconds()
        try:
            lease = self._api.get_lease(self._namespace, self._name)
        except ApiAbsent:
            return self._create(began)
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in (self.identity, "") and not self._expired(lease, spec):
            self._valid_until = 0.0
            self._say("standing by", holder=holder)
            return False
        return self._take(lease, spec, holder, began)

    def _expired(self, lease: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
        version, now = str(lease["metadata"]["resourceVersion"]), boot_seconds()
        if self._seen is None or self._seen.version != version:
            self._seen = _Record(version=version, seen_at=now)
            return False
        return now - self._seen.seen_at >= float(spec.get("leaseDurationSeconds") or 0)

    def _take(
        self, lease: Mapping[str, Any], spec: Mapping[str, Any], holder: str, began: float
    ) -> bool:
        transitions = int(spec.get("leaseTransitions") or 0)
        changes = self._spec(transitions + (holder != self.identity))
        if holder == self.identity:
            changes.pop("acquireTime")
        try:
            self._api.update_lease(lease, {**spec, **changes})
        except ApiConflict:
            return False
        self._valid_until = began + self._duration * _MARGIN
        return True

    def _create(self, began: float) -> bool:
        try:
            self._api.create_lease(self._namespace, self._name, self._spec(0))
        except ApiConflict:
            return False
        except ApiAbsent:
            self._make_namespace()
            return False
        self._valid_until = began + self._duration * _MARGIN
        return True

    def _make_namespace(self) -> None:
        try:
            self._api.create_namespace(self._namespace)
        except ApiConflict:
            return

    def _spec(self, transitions: int) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(round(self._duration), 1),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _release(self) -> None:
        try:
            lease = self._api.get_lease(self._namespace, self._name)
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") == self.identity:
                self._api.update_lease(lease, {**spec, "holderIdentity": ""})
        except ApiError as error:
            event(LOGGER, logging.WARNING, "lease not released", error=str(error))

    def _say(self, message: str, **fields: object) -> None:
        """Say a thing once, until there is another to say."""
        said = f"{message} {fields.get('holder', '')}"
        if said != self._said:
            self._said = said
            event(LOGGER, logging.INFO, message, lease=self._name, **fields)
