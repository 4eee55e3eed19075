"""The Lease of a host: heartbeat, mutual exclusion and takeover are this one mechanism.

A holder believes its Lease only for a part of its duration, counted by CLOCK_BOOTTIME from the
moment a renewal was begun: a process that was frozen, or a host that slept, finds it lapsed before
it acts again. A stand-by never compares clocks: it waits until the record has stayed the same for
a whole duration by its own clock, then takes over by the version that it read (design.md 7). Only
a holder that is proven to have ended on this very machine is not waited for.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from controller.api.names import LEASE_NAMESPACE
from controller.apiserver import ApiAbsent, ApiConflict, ApiError, ApiForbidden, ApiServer
from controller.identity import own_identity, provably_ended
from controller.logs import event

LOGGER = logging.getLogger(__name__)
DURATION_SECONDS: Final = 12.0
RENEW_SECONDS: Final = 4.0
RETRY_SECONDS: Final = 1.0
_MARGIN: Final = 0.75
_ABSENT: Final = ""


def boot_seconds() -> float:
    """Return the seconds since boot, those asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def lease_name(host: str) -> str:
    """Return the name of the Lease of a Docker host, in `LEASE_NAMESPACE`."""
    return f"docker-{host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sight:
    """A version of the record, and when this process first saw it."""

    version: str
    since: float


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
        self.identity = own_identity()
        self._lock = threading.Lock()
        self._valid_until = 0.0
        self._serving = False
        self._owns_record = False
        self._sight: _Sight | None = None
        self._predecessor = ""
        self._said = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    @property
    def predecessor(self) -> str:
        """Whose Lease this process took over, or nothing."""
        return self._predecessor

    def holds(self) -> bool:
        """Whether this process may act now.

        Once it said no, it says so until the Lease is acquired anew: a worker that was told no
        dropped what it was to do, and only a new start of the service looks at it again.
        """
        with self._lock:
            if boot_seconds() < self._valid_until and not self._stopping.is_set():
                return True
            self._valid_until = 0.0
            return False

    def start(self) -> None:
        """Begin to compete."""
        self._thread.start()

    def stop(self) -> None:
        """End, and give a held Lease back, so that a successor need not wait."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._duration)
        if self._owns_record:
            self._owns_record = False
            self._release()

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = RETRY_SECONDS
            try:
                renewed = self._turn()
                if renewed:
                    pause = self._renew_every
                self._callbacks(renewed=renewed)
            except Exception:
                # The thread's edge: without it the host would stay unserved in a live process.
                LOGGER.exception("lease turn failed; it is tried again")
            self._stopping.wait(pause)

    def _turn(self) -> bool:
        try:
            return self._compete()
        except ApiError as error:
            self._say(logging.WARNING, "lease not reached", error=str(error))
            return False

    def _callbacks(self, *, renewed: bool) -> None:
        holds = self.holds()
        if not holds:
            self._end_service()
        elif not self._serving:
            self._serving = True
            message = "lease taken over" if self._predecessor else "lease acquired"
            self._say(
                logging.INFO,
                message,
                identity=self.identity,
                predecessor=self._predecessor or None,
            )
            self._on_acquired()
        elif renewed and self._said.startswith("lease not reached"):
            self._say(logging.INFO, "lease renewed again")

    def _end_service(self) -> None:
        if self._serving:
            self._serving = False
            self._say(logging.WARNING, "lease lost")
            self._on_lost()

    def _compete(self) -> bool:
        """Renew, take over, or watch; return whether the record is ours."""
        began = boot_seconds()
        try:
            lease = self._api.get_lease(self._namespace, self._name)
        except ApiAbsent:
            return self._create(began)
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        unchanged = self._unchanged(str(lease["metadata"]["resourceVersion"]))
        waiting = unchanged < self._patience(spec) and not provably_ended(holder)
        if holder not in (self.identity, "") and waiting:
            self._disbelieve()
            self._end_service()
            self._say(logging.INFO, "standing by", holder=holder)
            return False
        return self._take(lease, spec, holder, began)

    def _unchanged(self, version: str) -> float:
        """Return for how long this process has seen the record as it is."""
        now = boot_seconds()
        if self._sight is None or self._sight.version != version:
            self._sight = _Sight(version=version, since=now)
        return now - self._sight.since

    def _patience(self, spec: Mapping[str, Any]) -> float:
        return float(spec.get("leaseDurationSeconds") or 0) or self._duration

    def _take(
        self, lease: Mapping[str, Any], spec: Mapping[str, Any], holder: str, began: float
    ) -> bool:
        ours = holder == self.identity
        if not ours:
            self._disbelieve()
            self._predecessor = holder
        changes = self._spec(int(spec.get("leaseTransitions") or 0) + (not ours))
        if ours:
            changes.pop("acquireTime")
        try:
            self._api.update_lease(lease, {**spec, **changes})
        except ApiConflict:
            return False
        self._believe(began)
        return True

    def _create(self, began: float) -> bool:
        """Make the record that is not there.

        Somebody may have deleted it under a holder, who makes it again at its next renewal: who
        saw it before and does not hold it waits as if it were held.
        """
        seen_before = self._sight is not None
        if seen_before and not self.holds() and self._unchanged(_ABSENT) < self._duration:
            self._say(logging.INFO, "standing by: the lease was deleted")
            return False
        try:
            self._api.create_lease(self._namespace, self._name, self._spec(0))
        except ApiConflict:
            return False
        except ApiAbsent:
            self._make_namespace()
            return False
        self._predecessor = ""
        self._believe(began)
        return True

    def _make_namespace(self) -> None:
        try:
            self._api.create_namespace(self._namespace)
        except ApiConflict:
            return
        except ApiForbidden as error:
            raise ApiForbidden(
                f"Namespace {self._namespace} does not exist and may not be made by this account. "
                f"Make it: kubectl create namespace {self._namespace}"
            ) from error

    def _believe(self, began: float) -> None:
        """Count from when the renewal was begun; a lapse before it ends the service first."""
        self._owns_record = True
        until = began + self._duration * _MARGIN
        with self._lock:
            lapsed = boot_seconds() >= self._valid_until
            if not (self._serving and lapsed):
                self._valid_until = until
                return
        self._end_service()
        with self._lock:
            self._valid_until = until

    def _disbelieve(self) -> None:
        self._owns_record = False
        with self._lock:
            self._valid_until = 0.0

    def _spec(self, transitions: int) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._duration),
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

    def _say(self, level: int, message: str, **fields: object) -> None:
        """Say a thing once, until there is another to say."""
        said = f"{message} {fields.get('holder', '')}"
        if said != self._said:
            self._said = said
            event(LOGGER, level, message, lease=self._name, **fields)
