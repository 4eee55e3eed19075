"""Collection of what no manifest names any more; the desired state drives it (law 12).

Only what holds no data is collected here: image pins, and networks without a session. Containers
and directories whose object is missing are left, to be adopted.
"""

import logging

from controller.backends.errors import BackendError
from controller.backends.protocol import Backend
from controller.index import ManifestIndex
from controller.logs import event
from controller.reconcile.facts import ImageFacts
from controller.reconcile.inventory import Inventory

LOGGER = logging.getLogger(__name__)


class Collector:
    """Collects on one engine."""

    def __init__(
        self,
        *,
        backend: Backend,
        inventory: Inventory,
        index: ManifestIndex,
        inspector_image: str,
    ) -> None:
        """Compare the listing of `inventory` with the manifests of `index`."""
        self._inspector_image = inspector_image
        self._backend = backend
        self._inventory = inventory
        self._index = index

    def collect(self) -> None:
        """Drop pins of images that no manifest names, and networks of no session.

        Nothing while a manifest can not be read: it may name any of them (laws 2 and 11).
        """
        spared = self._inspectors()
        if not self._index.complete():
            return
        for image_id in self._inventory.pins() - self._index.images() - spared:
            self._attempt("drop pin", image_id)
        for uid in self._inventory.networks() - self._index.uids():
            if self._inventory.holds_container(uid):
                continue
            self._attempt("remove network", uid)

    def _inspectors(self) -> frozenset[str]:
        """Keep the inspector's image from being pruned: without it no purge gets past its gate."""
        try:
            image = self._backend.image(self._inspector_image)
            if not isinstance(image, ImageFacts):
                return frozenset()
            if not self._inventory.pinned(image.image_id):
                self._backend.ensure_pin(image.image_id)
                self._inventory.pin_added(image.image_id)
        except BackendError as error:
            event(LOGGER, logging.WARNING, "inspector not pinned", reason=error.reason)
            return self._inventory.pins()
        return frozenset({image.image_id})

    def _attempt(self, what: str, subject: str) -> None:
        try:
            if what == "drop pin":
                self._backend.drop_pin(subject)
                self._inventory.pin_dropped(subject)
            else:
                self._backend.remove_network(subject)
                self._inventory.touch(subject)
        except BackendError as error:
            event(
                LOGGER,
                logging.WARNING,
                "not collected",
                what=what,
                subject=subject,
                reason=error.reason,
            )
