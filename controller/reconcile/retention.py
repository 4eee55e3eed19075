"""How long a kept session stays whose work is all elsewhere, and the breaker of a mass expiry.

Age selects only what an assessment called Clean (design.md 2, *SessionPolicy*); what it selects is
assessed again and archived, as every clean that nobody asked for (settled.md, *Work and approval*).
Many that expire at once are the sign of a wrong clock or policy: they wait for a person (law 16).
"""

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controller.api.reasons import Reason
from controller.api.spec import SessionSpec
from controller.api.vocabulary import DecidedBy, DesiredState, Phase, WorkState
from controller.reconcile.case import Case, Expiring, Settings
from controller.reconcile.manifest import Manifest
from controller.reconcile.steps import SETTLING, Hold

DEFAULT_KEEP_FOR: Final = timedelta(hours=72)
# For so long others may turn out to expire as well, before the first of them goes.
GATHERING: Final = timedelta(seconds=20)
# Those that were begun so long ago are no longer together with those that expire now.
TOGETHER: Final = timedelta(hours=1)
WAITING: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What follows from a session's age: when to look again, whether it goes, or why it waits."""

    look_at: datetime
    begins: bool = False
    waits: Hold | None = None


class Expiries:
    """The kept sessions of this host that came to their end; safe to use from several threads.

    In memory only: after a restart all of them are seen anew before the first of them goes.
    """

    def __init__(self) -> None:
        """Know of none."""
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[datetime, datetime]] = {}

    def due(self, uid: str, now: datetime) -> Expiring:
        """Note that a session is due, and return it with those that are due beside it."""
        with self._lock:
            since, _ = self._seen.get(uid, (now, now))
            self._seen[uid] = (since, now)
            gone = [key for key, (_, last) in self._seen.items() if now - last > TOGETHER]
            for key in gone:
                del self._seen[key]
            return Expiring(since=since, together=len(self._seen))

    def stays(self, uid: str) -> None:
        """Forget a session that is kept on."""
        with self._lock:
            self._seen.pop(uid, None)


def kept_until(spec: SessionSpec, settings: Settings, manifest: Manifest) -> datetime | None:
    """Return when a session has been kept for long enough; None for ever."""
    work, since = manifest.work, manifest.transitioned_at
    clean = work is not None and work.work.state is WorkState.CLEAN
    if manifest.phase is not Phase.KEPT or not clean or since is None:
        return None
    if work is None or work.run_id != manifest.run_id:
        return None
    length = spec.keep_for if spec.keep_for is not None else settings.keep_for
    if length is None and not settings.clean_forbidden and _nobody_decided(manifest):
        length = DEFAULT_KEEP_FOR
    return None if length is None else since + length


def _nobody_decided(manifest: Manifest) -> bool:
    """Whether it was kept because nobody was there to ask, at an end that was watched."""
    end = manifest.exit
    return (
        end is not None
        and end.run_id == manifest.run_id
        and end.watched
        and end.decision is DesiredState.KEPT
        and end.decided_by is DecidedBy.DEFAULT
    )


def expire(case: Case, manifest: Manifest) -> Expiry | None:
    """Return what the age of a kept session asks for; None for one that stays as it is."""
    session = case.session
    until = kept_until(session.spec, case.settings, manifest) if session else None
    if until is None:
        return None
    if until > case.now:
        return Expiry(look_at=until)
    if case.expiring is None:
        return Expiry(look_at=case.now + SETTLING)
    if case.expiring.together > case.settings.expire_at_once:
        return Expiry(look_at=case.now + WAITING, waits=_breaker(case, manifest))
    begins = case.expiring.since + GATHERING
    return Expiry(look_at=begins, begins=case.now >= begins)


def _breaker(case: Case, manifest: Manifest) -> Hold:
    patch = f"kubectl patch session {manifest.name} -n {manifest.namespace} --type merge -p"
    return Hold(
        reason=Reason.MASS_EXPIRY,
        message=(
            f"More than {case.settings.expire_at_once} kept sessions of this host came to the end "
            "of keepFor together, so none of them is purged: a clock or a policy may be wrong. To "
            f"""keep this one: {patch} '{{"spec":{{"retention":{{"keepFor":"9999h"}}}}}}'. """
            f"""To purge it: {patch} '{{"spec":{{"desiredState":"Purged"}}}}'. To have all of """
            "them archived, restart the controller with a greater --expire-at-once."
        ),
    )
