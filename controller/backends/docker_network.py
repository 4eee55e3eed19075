"""Each session's own network: made, mended, and removed by label; no other is ever touched."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from controller.api.names import (
    LABEL_COMPONENT,
    LABEL_NAME,
    LABEL_NAMESPACE,
    LABEL_OWNER,
    LABEL_UID,
    network_name,
)
from controller.api.reasons import Reason
from controller.api.vocabulary import Component
from controller.backends.docker_engine import Client, Engine
from controller.backends.docker_errors import Doing, translated
from controller.backends.docker_facts import labels_of
from controller.backends.docker_request import by_labels, session_labels
from controller.backends.errors import Absent, Conflict

_NAME_ATTEMPTS: Final = 3


class Networks:
    """The networks of one owner on one engine."""

    def __init__(self, engine: Engine, owner: str) -> None:
        """Work for one owner; the networks of others are invisible to all that follows."""
        self._engine = engine
        self._owner = owner

    def uids(self) -> frozenset[str]:
        """Return the session UIDs for which a network exists."""
        wanted = {LABEL_OWNER: self._owner, LABEL_COMPONENT: Component.NETWORK.value}
        with translated(Doing.READ, "listing networks"):
            found = self._engine.reading().networks(filters=by_labels(wanted))
        return frozenset(labels_of(network).get(LABEL_UID, "") for network in found)

    def of_session(self, client: Client, uid: str) -> list[dict[str, Any]]:
        """List the networks of a session; more than one only after an interrupted attempt."""
        wanted = {
            LABEL_OWNER: self._owner,
            LABEL_COMPONENT: Component.NETWORK.value,
            LABEL_UID: uid,
        }
        with translated(Doing.READ, "listing the session's networks"):
            found: list[dict[str, Any]] = client.networks(filters=by_labels(wanted))
        return sorted(found, key=lambda network: str(network["Created"]))

    def ensure(self, *, uid: str, namespace: str, name: str) -> str:
        """Return the name of the session's network, which is made where it is missing.

        A name that something foreign holds is avoided; the foreign network is left alone.
        """
        for attempt in range(_NAME_ATTEMPTS):
            found = self.of_session(self._engine.reading(), uid)
            if found:
                return str(found[0]["Name"])
            suffix = f"-{secrets.token_hex(3)}" if attempt else ""
            self._create(network_name(uid) + suffix, uid=uid, namespace=namespace, name=name)
        raise Conflict(Reason.NAME_TAKEN, f"no free name for the network of session {uid}")

    def _create(self, network: str, *, uid: str, namespace: str, name: str) -> None:
        labels = session_labels(
            self._owner, uid=uid, namespace=namespace, name=name, component=Component.NETWORK
        )
        try:
            with translated(Doing.CREATE, "making the session's network"):
                self._engine.changing().create_network(
                    network, driver="bridge", check_duplicate=True, labels=labels
                )
        except Conflict:
            return

    def remove(self, uid: str) -> None:
        """Remove the session's networks, whatever is still connected disconnected first."""
        client = self._engine.changing()
        for network in self.of_session(client, uid):
            try:
                with translated(Doing.CHANGE, "removing the session's network"):
                    for endpoint in client.inspect_network(network["Id"]).get("Containers") or {}:
                        _disconnect(client, endpoint, network["Id"])
                    client.remove_network(network["Id"])
            except Absent:
                continue

    def reconnect(self, container_id: str) -> None:
        """Connect a container that is on no network at all: the engine would start it cut off.

        It is left so when its network was removed while it ran.
        """
        inspected = self._inspect(container_id)
        if not inspected["NetworkSettings"]["Networks"] and self._is_ours(inspected):
            self._connect(container_id, labels_of(inspected))

    def mend(self, container_id: str) -> bool:
        """Give a container that cannot start for its network's sake a clean endpoint.

        Its endpoints on this session's own networks, and on networks that are no more, are
        disconnected by force, and it is connected to the session's network, made anew where it
        vanished. A foreign network that exists is left as it is, and so is its endpoint (C02).
        Returns False for a container that is not a session's of ours.
        """
        client = self._engine.changing()
        inspected = self._inspect(container_id)
        if not self._is_ours(inspected):
            return False
        labels = labels_of(inspected)
        own = {str(network["Id"]) for network in self.of_session(client, labels[LABEL_UID])}
        for name, endpoint in inspected["NetworkSettings"]["Networks"].items():
            network_id = str(endpoint.get("NetworkID") or "")
            if network_id in own:
                _disconnect(client, container_id, network_id)
            elif not network_id or not self._exists(client, network_id):
                _disconnect(client, container_id, name)
        self._connect(container_id, labels)
        return True

    def _inspect(self, container_id: str) -> dict[str, Any]:
        with translated(Doing.READ, "inspecting the container's networks"):
            inspected: dict[str, Any] = self._engine.changing().inspect_container(container_id)
        return inspected

    def _is_ours(self, inspected: dict[str, Any]) -> bool:
        labels = labels_of(inspected)
        return labels.get(LABEL_OWNER) == self._owner and bool(labels.get(LABEL_UID))

    def _connect(self, container_id: str, labels: Mapping[str, str]) -> None:
        wanted = self.ensure(
            uid=labels[LABEL_UID],
            namespace=labels.get(LABEL_NAMESPACE, ""),
            name=labels.get(LABEL_NAME, ""),
        )
        with translated(Doing.CHANGE, "connecting the container to the session's network"):
            self._engine.changing().connect_container_to_network(container_id, wanted)

    def _exists(self, client: Client, network_id: str) -> bool:
        try:
            with translated(Doing.READ, "inspecting a network"):
                client.inspect_network(network_id)
        except Absent:
            return False
        return True


def _disconnect(client: Client, container_id: str, network: str) -> None:
    try:
        with translated(Doing.CHANGE, "disconnecting an endpoint"):
            client.disconnect_container_from_network(container_id, network, force=True)
    except Absent:
        return
