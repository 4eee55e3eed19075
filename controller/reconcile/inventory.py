"""What the engine was last listed to hold, kept right by events and by our own effects.

It answers cheaply for sessions of which nothing is there, so that thousands of kept sessions cost
no engine call. A session that an event or an effect has touched since the listing is asked about
anew; without a standing event stream nothing here is believed.
"""

import threading
from dataclasses import dataclass, field

from controller.backends.protocol import Backend
from controller.reconcile.facts import ContainerFacts, SessionOnBackend


@dataclass(slots=True)
class _Listing:
    containers: dict[str, tuple[ContainerFacts, ...]] = field(default_factory=dict)
    networks: frozenset[str] = frozenset()
    pins: set[str] = field(default_factory=set)


class Inventory:
    """The listing of one engine; safe to use from several threads."""

    def __init__(self, backend: Backend) -> None:
        """Start with no listing."""
        self._backend = backend
        self._lock = threading.Lock()
        self._listing_now = threading.Lock()
        self._listing: _Listing | None = None
        self._touched: set[str] = set()

    def relist(self) -> dict[str, tuple[ContainerFacts, ...]]:
        """List anew. Raises BackendUnreachable, and is then as without a listing.

        One after the other: an older listing must not take the place of a newer one.
        """
        with self._listing_now:
            with self._lock:
                self._listing = None
                self._touched = set()
            listing = _Listing(
                containers=self._backend.inventory(),
                networks=self._backend.networks(),
                pins=set(self._backend.pins()),
            )
            with self._lock:
                self._listing = listing
            return listing.containers

    def forget(self) -> None:
        """Believe nothing until the next listing: the event stream broke."""
        with self._lock:
            self._listing = None

    def touch(self, uid: str) -> None:
        """Note that an event or an effect changed something of this session."""
        with self._lock:
            self._touched.add(uid)

    def absent(self, uid: str) -> SessionOnBackend | None:
        """Return that nothing of a session is there, if the listing shows it; else None."""
        with self._lock:
            listing = self._listing
            if listing is None or uid in self._touched:
                return None
            if uid in listing.containers or uid in listing.networks:
                return None
            return SessionOnBackend(containers=(), network_present=False)

    def holds_container(self, uid: str) -> bool:
        """Whether the last listing showed a container of this session, or there is no listing."""
        with self._lock:
            return self._listing is None or uid in self._listing.containers

    def networks(self) -> frozenset[str]:
        """The UIDs that had a network at the last listing."""
        with self._lock:
            return self._listing.networks if self._listing else frozenset()

    def pinned(self, image_id: str) -> bool:
        """Whether the image's pin was running at the last listing, or was made since."""
        with self._lock:
            return self._listing is not None and image_id in self._listing.pins

    def pins(self) -> frozenset[str]:
        """The images whose pin is known to run."""
        with self._lock:
            return frozenset(self._listing.pins) if self._listing else frozenset()

    def pin_added(self, image_id: str) -> None:
        """Note a pin that an effect of ours has started."""
        with self._lock:
            if self._listing is not None:
                self._listing.pins.add(image_id)

    def pin_dropped(self, image_id: str) -> None:
        """Note a pin that is no more."""
        with self._lock:
            if self._listing is not None:
                self._listing.pins.discard(image_id)
