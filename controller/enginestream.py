"""The engine's event stream as the wake-up, with nothing missed across a reconnect.

Subscribe first, list after: what the listing does not show arrives as an event, and what came
before the subscription is in the listing. A stream that ends for any reason is subscribed anew
with an overlap, after the engine was surveyed; duplicates only wake a session once more.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from controller.api.names import is_uid
from controller.backends.errors import BackendError
from controller.backends.protocol import Backend
from controller.enginewatch import EngineWatch
from controller.index import ManifestIndex
from controller.logs import event
from controller.queue import Lane
from controller.reconcile.case import EngineView
from controller.reconcile.facts import EngineEvent, Unknown
from controller.reconcile.inventory import Inventory
from controller.reconcile.witnesses import Witnesses

LOGGER = logging.getLogger(__name__)
OVERLAP = timedelta(seconds=5)
RECONNECT_SECONDS = 0.5
Wake = Callable[[Iterable[str], Lane], None]

# Events that say nothing about the life of a container.
_IGNORED = ("exec_", "health_status", "resize", "attach", "top", "archive", "export", "copy")


class EngineStream:
    """Runs in a thread of its own until it is closed."""

    def __init__(
        self,
        *,
        backend: Backend,
        engine: EngineWatch,
        inventory: Inventory,
        witnesses: Witnesses,
        index: ManifestIndex,
        wake: Wake,
        listed: Callable[[], None],
        resync_seconds: float,
    ) -> None:
        """Wake sessions through `wake`; `listed` is called after each listing."""
        self._backend = backend
        self._engine = engine
        self._inventory = inventory
        self._witnesses = witnesses
        self._index = index
        self._wake = wake
        self._listed = listed
        self._resync_seconds = resync_seconds
        self._closed = threading.Event()
        self._standing = threading.Event()
        self._last: datetime | None = None
        self._was_reachable: bool | None = None

    def run(self) -> None:
        """Follow the stream; reconnect for as long as it takes."""
        while not self._closed.is_set():
            try:
                view = self._engine.refresh()
                self._note(view)
                if isinstance(view, EngineView):
                    self._follow(view)
            except Exception:
                # A thread's edge: without it nothing that happens would be seen any more.
                LOGGER.exception("event stream failed; it is followed anew")
            self._standing.clear()
            self._inventory.forget()
            self._closed.wait(RECONNECT_SECONDS)

    def close(self) -> None:
        """End the stream from another thread."""
        self._closed.set()
        self._backend.close_events()

    def _note(self, view: EngineView | Unknown) -> None:
        reachable = isinstance(view, EngineView)
        if reachable == self._was_reachable:
            return
        first = self._was_reachable is None
        self._was_reachable = reachable
        if isinstance(view, Unknown):
            event(
                LOGGER, logging.WARNING, "engine unreachable", reason=view.reason, why=view.message
            )
            self._wake(self._index.active(), Lane.MASS)
        elif not first:
            event(LOGGER, logging.INFO, "engine back", epoch=view.epoch.isoformat())

    def _follow(self, view: EngineView) -> None:
        self._last = self._last or view.facts.now
        since = min(self._last, view.facts.now) - OVERLAP
        try:
            for item in self._backend.events(since):
                if self._closed.is_set():
                    return
                if item is None:
                    self._relist()
                else:
                    self._take(item)
        except BackendError as error:
            event(LOGGER, logging.INFO, "event stream ended", reason=error.reason)

    def _relist(self) -> None:
        """The subscription stands: whatever differs from the records is looked at now."""
        self._engine.refresh()
        listed = self._inventory.relist()
        self._standing.set()
        self._wake(
            sorted(self._index.out_of_step(listed, self._inventory.pins()) | self._index.active()),
            Lane.MASS,
        )
        self._listed()

    def _take(self, item: EngineEvent) -> None:
        self._last = max(self._last or item.at, item.at)
        if item.action.startswith(_IGNORED):
            return
        self._witnesses.saw(item)
        if is_uid(item.uid):
            self._inventory.touch(item.uid)
            self._wake((item.uid,), Lane.PROMPT)

    def resync(self) -> None:
        """The slow safety net: one listing, and a wake-up for what it shows to differ.

        An engine that answers and lets nobody subscribe has each session looked at: no listing is
        believed without a stream (case C04).
        """
        while not self._closed.wait(self._resync_seconds):
            if not self._standing.is_set():
                if isinstance(self._engine.view, EngineView):
                    self._wake(sorted(self._index.active()), Lane.MASS)
                continue
            try:
                self._resync()
            except BackendError as error:
                event(LOGGER, logging.WARNING, "resync failed", reason=error.reason)
            except Exception:
                # A thread's edge, as above.
                LOGGER.exception("resync failed; it is tried again")

    def _resync(self) -> None:
        view = self._engine.refresh()
        self._note(view)
        if isinstance(view, Unknown):
            return
        listed = self._inventory.relist()
        if not self._standing.is_set():
            self._inventory.forget()
            return
        self._wake(sorted(self._index.out_of_step(listed, self._inventory.pins())), Lane.MASS)
        self._listed()
