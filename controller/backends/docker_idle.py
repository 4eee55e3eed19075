"""The containers of ours that do nothing: the sentinel, and one pin for each image in use.

The sentinel's stamps tell one life of the engine from the next (settled.md, *Sentinel*); a pin
keeps an image from `docker system prune -a`, which spares only what running containers use.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any, Final

from controller.api.names import LABEL_IMAGE
from controller.api.reasons import Reason
from controller.api.vocabulary import Component
from controller.backends.docker_engine import Client, Engine
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_facts import labels_of
from controller.backends.docker_image import remove_quietly
from controller.backends.docker_request import (
    Body,
    by_labels,
    host_labels,
    pin_body,
    pin_labels,
    sentinel_body,
)
from controller.backends.errors import Absent, BackendUnreachable, Conflict, Refused
from controller.backends.pause import pause_archive, pause_image_tag

_PAUSE_REPOSITORY: Final = "sessionkeeper/pause"
_RUNNING: Final = ("running", "paused")
_NAME_ATTEMPTS: Final = 3
# A stopping engine ends the sentinel first and may still answer a connection that was opened just
# before. Within this time it has closed its socket; only then may a stopped sentinel be started.
_PATIENCE_SECONDS: Final = 3.0


class Sentinel:
    """The one container whose start and end are the engine's."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Remember nothing yet."""
        self._engine = engine
        self._owner = owner
        self._stopped_since: float | None = None

    def inspect(self) -> Mapping[str, Any] | None:
        """Return the State of the running sentinel; None where there is none.

        One that is stopped is started again, but not before it stayed so for some seconds:
        BackendUnreachable meanwhile, for its engine may be about to stop or only just be back.
        """
        client = self._engine.fresh()
        found = self._find(client)
        if found is None:
            return None
        state: Mapping[str, Any] = found["State"]
        if state["Status"] in _RUNNING:
            self._stopped_since = None
            return state
        self._revive(str(found["Id"]), str(state["Status"]))
        again = self._find(self._engine.fresh())
        if again is None or again["State"]["Status"] not in _RUNNING:
            message = "the sentinel container does not stay running"
            raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, message)
        self._stopped_since = None
        revived: Mapping[str, Any] = again["State"]
        return revived

    def _revive(self, container_id: str, status: str) -> None:
        now = time.monotonic()
        if self._stopped_since is None:
            self._stopped_since = now
        if now - self._stopped_since < _PATIENCE_SECONDS:
            message = f"the engine is stopping or only just back: the sentinel is {status}"
            raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, message)
        try:
            with translated(Doing.START, "starting the sentinel"):
                self._engine.changing().start(container_id)
        except (Absent, Conflict, Refused) as error:
            raise BackendUnreachable(Reason.ENGINE_UNREACHABLE, error.message) from error

    def install(self) -> None:
        """Create and start the sentinel where it is missing; a broken one is replaced."""
        client = self._engine.changing()
        found = self._find(client)
        if found is not None and found["State"]["Status"] not in ("dead", "removing"):
            with translated(Doing.START, "starting the sentinel"):
                client.start(found["Id"])
            return
        if found is not None:
            remove_quietly(client, str(found["Id"]))
        image_id = self._pause_image(client)
        body = sentinel_body(self._owner, image_id)
        container_id = create_named(client, f"sk-sentinel-{self._owner[:12]}", body)
        with translated(Doing.START, "starting the sentinel"):
            client.start(container_id)

    def container_id(self) -> str | None:
        """Return the sentinel's ID, where there is one."""
        found = self._find(self._engine.reading())
        return str(found["Id"]) if found is not None else None

    def _find(self, client: Client) -> dict[str, Any] | None:
        with translated(Doing.READ, "looking for the sentinel"):
            listed = client.containers(
                all=True, filters=by_labels(host_labels(self._owner, Component.SENTINEL))
            )
        if not listed:
            return None
        oldest = min(listed, key=lambda container: (container["Created"], container["Id"]))
        try:
            with translated(Doing.READ, "inspecting the sentinel"):
                inspected: dict[str, Any] = client.inspect_container(oldest["Id"])
        except Absent:
            return None
        return inspected

    def _pause_image(self, client: Client) -> str:
        with translated(Doing.CHANGE, "loading the pause image"):
            architecture = str(client.info()["Architecture"])
            tag = pause_image_tag(architecture)
            if not client.images(name=f"{_PAUSE_REPOSITORY}:{tag}"):
                client.import_image_from_data(
                    pause_archive(architecture), repository=_PAUSE_REPOSITORY, tag=tag
                )
            return str(client.image(f"{_PAUSE_REPOSITORY}:{tag}")["Id"])


class Pins:
    """One running container for each image that a manifest names."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Work for one owner."""
        self._engine = engine
        self._owner = owner

    def ensure(self, image_id: str) -> None:
        """Have a pin of the image running. Raises Refused ImageMissing where it is gone."""
        client = self._engine.changing()
        left = self._list(client, image_id)
        if any(container["State"] in _RUNNING for container in left):
            return
        for container in left:
            remove_quietly(client, str(container["Id"]))
        with translated(Doing.CREATE, "making the image's pin"):
            image = client.image(image_id)
            architecture = str(client.info()["Architecture"])
        volumes = (image.get("Config") or {}).get("Volumes") or {}
        body = pin_body(self._owner, image_id, volumes)
        digest = image_id.rpartition(":")[2]
        container_id = create_named(client, f"sk-pin-{self._owner[:8]}-{digest[:12]}", body)
        with translated(Doing.START, "starting the image's pin"):
            client.put_archive(container_id, "/", pause_archive(architecture))
            client.start(container_id)

    def running(self) -> frozenset[str]:
        """Return the IDs of the images whose pin runs now."""
        with translated(Doing.READ, "listing pins"):
            found = self._engine.reading().containers(
                filters=by_labels(host_labels(self._owner, Component.PIN))
            )
        return frozenset(labels_of(container).get(LABEL_IMAGE, "") for container in found)

    def drop(self, image_id: str) -> None:
        """Remove the pins of an image."""
        client = self._engine.changing()
        for container in self._list(client, image_id):
            remove_quietly(client, str(container["Id"]))

    def _list(self, client: Client, image_id: str) -> list[dict[str, Any]]:
        with translated(Doing.READ, "listing the image's pins"):
            found: list[dict[str, Any]] = client.containers(
                all=True, filters=by_labels(pin_labels(self._owner, image_id))
            )
        return found


def create_named(client: Client, name: str, body: Body) -> str:
    """Create a container under a name, or one like it where something else holds the name."""
    for attempt in range(_NAME_ATTEMPTS):
        suffix = f"-{secrets.token_hex(3)}" if attempt else ""
        try:
            with translated(Doing.CREATE, f"creating container {name}{suffix}"):
                return client.create(body, name + suffix)
        except Conflict as error:
            if error.reason is not Reason.NAME_TAKEN:
                raise
    raise Conflict(Reason.NAME_TAKEN, f"no free name like {name} for a container")
