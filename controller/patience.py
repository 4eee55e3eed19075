"""How long the API server is left alone after an error, and what is said of it meanwhile.

An outage concerns every session at once, and may last for days: it is said when it begins and when
it is over, and each session asks ever more rarely until it is answered.
"""

import logging
import threading
import time
from typing import Final

from controller.apiserver import ApiError, ApiForbidden, ApiUnreachable
from controller.logs import event

LOGGER = logging.getLogger(__name__)
API_RETRY_SECONDS: Final = 2.0
LONGEST_API_RETRY_SECONDS: Final = 60.0


def api_pause(error: ApiError, tries: int = 1) -> float:
    """How long to leave the API server alone after an error: at least as long as it asked for.

    Twice as long with each of the tries in a row. A person's edit wakes the session all the same;
    the longest pause bounds what a wrong answer can do.
    """
    asked = error.retry_after if isinstance(error, ApiUnreachable) else None
    pause = API_RETRY_SECONDS * 2.0 ** min(tries - 1, 10)
    return min(max(asked or 0.0, pause), LONGEST_API_RETRY_SECONDS)


class Patience:
    """Counts each session's errors in a row; safe to use from several threads."""

    def __init__(self) -> None:
        """Begin with a server that answers."""
        self._lock = threading.Lock()
        self._tries: dict[str, int] = {}
        self._unanswered: set[str] = set()
        self._refused: dict[str, type[ApiError]] = {}
        self._since = 0.0

    def failed(self, uid: str, error: ApiError) -> float:
        """Return after how many seconds a session is to be tried again; say what is new of it."""
        with self._lock:
            self._tries[uid] = self._tries.get(uid, 0) + 1
            if isinstance(error, ApiUnreachable) and not isinstance(error, ApiForbidden):
                self._unheard(uid, error)
            else:
                self._heard(uid)
                self._refusal(uid, error)
            return api_pause(error, self._tries[uid])

    def _unheard(self, uid: str, error: ApiError) -> None:
        if not self._unanswered:
            self._since = time.monotonic()
            event(LOGGER, logging.WARNING, "api server silent", uid=uid, why=error)
        self._unanswered.add(uid)

    def _refusal(self, uid: str, error: ApiError) -> None:
        if self._refused.get(uid) is not type(error):
            self._refused[uid] = type(error)
            event(LOGGER, logging.WARNING, "api server refuses", uid=uid, why=error)

    def succeeded(self, uid: str) -> None:
        """Forget a session's errors, and say so."""
        with self._lock:
            if self._tries.pop(uid, None) is None:
                return
            self._heard(uid)
            if self._refused.pop(uid, None) is not None:
                event(LOGGER, logging.INFO, "api server refuses no more", uid=uid)

    def _heard(self, uid: str) -> None:
        if uid in self._unanswered:
            self._unanswered.discard(uid)
            if not self._unanswered:
                seconds = round(time.monotonic() - self._since)
                event(LOGGER, logging.INFO, "api server answers again", seconds=seconds)
