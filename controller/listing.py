"""The sessions listed now and then: a watch can be dead and not say so (case C15).

Nobody else would notice: a stream that stays open and silent, or one that is closed at once for
ever, looks like an API server on which nothing happens. What the list holds goes the same way as
what a watch delivers, so what is known already wakes nobody.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from controller.api.names import API_VERSION, SESSIONS
from controller.apiserver import ApiError, ApiServer
from controller.logs import event

LOGGER = logging.getLogger(__name__)
PAGE: Final = 100
PERIODS_WITHOUT: Final = 3

Body = Mapping[str, Any]


class SessionListing:
    """Lists the sessions of the namespaces served, in a thread of its own."""

    def __init__(
        self,
        api: ApiServer,
        *,
        namespaces: Sequence[str],
        period: float,
        known: Callable[[], frozenset[str]],
        found: Callable[[Body], None],
        missing: Callable[[str], None],
        beside: Callable[[], None] = lambda: None,
        page: int = PAGE,
    ) -> None:
        """List each `period` in seconds, and do what is `beside` it; no namespaces means all.

        Each session goes to `found`. Of those `known` before, one that the list lacks goes to
        `missing`: whether it is gone is to be asked for itself.
        """
        self._api = api
        self._namespaces = namespaces
        self._period = period
        self._page = page
        self._known = known
        self._found = found
        self._missing = missing
        self._beside = beside
        self._closed = threading.Event()
        self._last = time.monotonic()
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="session-list", daemon=True)

    def start(self) -> None:
        """Begin; the first list is due after a period, since the watch begins with its own."""
        self._last = time.monotonic()
        self._thread.start()

    def close(self) -> None:
        """List no more."""
        self._closed.set()

    def fresh(self) -> bool:
        """Whether a list has succeeded lately: else the controller may be blind (liveness)."""
        return time.monotonic() - self._last < PERIODS_WITHOUT * self._period

    def _run(self) -> None:
        while not self._closed.wait(self._period):
            try:
                self._beside()
                self._list()
            except ApiError as error:
                self._note(str(error))
            except Exception:
                # A thread's edge: without it a dead watch would never be noticed again.
                LOGGER.exception("sessions not listed; it is tried again")
            else:
                self._last = time.monotonic()
                self._note("")

    def _list(self) -> None:
        known, seen = self._known(), set()
        for namespace in self._namespaces or ("",):
            for body in self._pages(namespace):
                seen.add(body["metadata"]["uid"])
                self._found(body)
        for uid in sorted(known - seen):
            self._missing(uid)

    def _pages(self, namespace: str) -> Iterator[Body]:
        """A page at a time, so that no host holds the sessions of all at once."""
        where = f"namespaces/{namespace}/" if namespace else ""
        parameters = {"limit": str(self._page)}
        while True:
            path = f"/apis/{API_VERSION}/{where}{SESSIONS}"
            page = self._api.request("GET", path, parameters=parameters)
            yield from page.get("items") or ()
            left = (page.get("metadata") or {}).get("continue")
            if not left:
                return
            parameters["continue"] = left

    def _note(self, error: str) -> None:
        """Say once that it fails, and once that it succeeds again."""
        if error and not self._failing:
            event(LOGGER, logging.WARNING, "sessions not listed", why=error)
        elif self._failing and not error:
            event(LOGGER, logging.INFO, "sessions listed again")
        self._failing = bool(error)
