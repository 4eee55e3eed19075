"""An API server in memory: one kind of object, versions, generations, finalizers."""

import copy
import itertools
import uuid
from collections.abc import Mapping
from typing import Any

from controller.apiserver import ApiAbsent, ApiConflict, ApiUnreachable

Body = dict[str, Any]


def merge(target: Body, patch: Mapping[str, Any]) -> None:
    """Apply a JSON merge patch."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, Mapping):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)


class SimulatedApi:
    """What the reconcile loop asks of an API server."""

    def __init__(self) -> None:
        self.objects: dict[str, Body] = {}
        self.reachable = True
        self.writes = 0
        self.events: list[Mapping[str, Any]] = []
        self.silences: list[str] = []
        self._versions = itertools.count(1)
        self._backup: dict[str, Body] = {}

    def _ask(self) -> None:
        if not self.reachable:
            raise ApiUnreachable("it does not answer")

    def _write(self) -> None:
        """Before a write: it may not arrive."""
        self._ask()
        self._silent("before")
        self.writes += 1

    def _silent(self, when: str) -> None:
        if self.silences and self.silences[-1] == when:
            self.silences.pop()
            raise ApiUnreachable("no answer")

    def _find(self, name: str, uid: str | None = None) -> Body:
        body = self.objects.get(name)
        if body is None:
            raise ApiAbsent(name)
        if uid is not None and body["metadata"]["uid"] != uid:
            raise ApiConflict(name)
        return body

    def _written(self, body: Body) -> Body:
        """After a write: its answer may not arrive."""
        changed = self._changed(body)
        self._silent("after")
        return changed

    def _changed(self, body: Body) -> Body:
        body["metadata"]["resourceVersion"] = str(next(self._versions))
        metadata = body["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects.pop(metadata["name"], None)
        return copy.deepcopy(body)

    def get_session(self, namespace: str, name: str) -> Body:
        del namespace
        self._ask()
        return copy.deepcopy(self._find(name))

    def patch_session_status(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        status: Mapping[str, Any],
        resource_version: str | None = None,
    ) -> Body:
        del namespace
        self._write()
        body = self._find(name, uid)
        if resource_version not in (None, body["metadata"]["resourceVersion"]):
            raise ApiConflict(name)
        merge(body.setdefault("status", {}), status)
        return self._written(body)

    def patch_session(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        patch: Mapping[str, Any],
        resource_version: str | None = None,
    ) -> Body:
        del namespace
        self._write()
        body = self._find(name, uid)
        if resource_version not in (None, body["metadata"]["resourceVersion"]):
            raise ApiConflict(name)
        self._edit(body, patch)
        return self._written(body)

    def _edit(self, body: Body, patch: Mapping[str, Any]) -> None:
        before = copy.deepcopy(body["spec"])
        merge(body, patch)
        if body["spec"] != before:
            body["metadata"]["generation"] += 1

    def add_finalizer(
        self, body: Mapping[str, Any], finalizer: str, labels: Mapping[str, str]
    ) -> Body:
        self._write()
        metadata = body["metadata"]
        held = self._find(metadata["name"], metadata["uid"])
        if held["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiConflict(metadata["name"])
        if held["metadata"].get("deletionTimestamp"):
            raise ApiAbsent(metadata["name"])
        held["metadata"].setdefault("finalizers", []).append(finalizer)
        held["metadata"].setdefault("labels", {}).update(labels)
        return self._written(held)

    def remove_finalizer(self, body: Mapping[str, Any], finalizer: str) -> None:
        self._write()
        metadata = body["metadata"]
        held = self.objects.get(metadata["name"])
        if held is None or held["metadata"]["uid"] != metadata["uid"]:
            return
        if held["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiConflict(metadata["name"])
        others = [name for name in held["metadata"]["finalizers"] if name != finalizer]
        held["metadata"]["finalizers"] = others
        self._written(held)

    def create_event(self, body: Mapping[str, Any]) -> None:
        """Take an Event, or be away."""
        self._ask()
        self.events.append(body)

    def delete_session(self, namespace: str, name: str, *, uid: str) -> None:
        del namespace
        self._write()
        self.person_deletes(name, uid)

    # What people do

    def person_applies(self, name: str, spec: Mapping[str, Any]) -> Body:
        """Create an object."""
        body: Body = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name}{next(self._versions)}")),
                "generation": 1,
            },
            "spec": copy.deepcopy(dict(spec)),
        }
        self.objects[name] = body
        return self._changed(body)

    def person_patches(self, name: str, **spec: Any) -> None:
        """Edit a spec."""
        body = self.objects[name]
        self._edit(body, {"spec": spec})
        self._changed(body)

    def person_deletes(self, name: str, uid: str | None = None) -> None:
        """Ask for a deletion."""
        body = self.objects.get(name)
        if body is not None and uid in (None, body["metadata"]["uid"]):
            body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self._changed(body)

    def person_removes_finalizers(self, name: str) -> None:
        """The documented escape; the object goes without us."""
        self.objects.pop(name, None)

    def backup_made(self) -> None:
        """Somebody saves the store."""
        self._backup = copy.deepcopy(self.objects)

    def backup_restored(self) -> None:
        """The store is as it was; what was made since is unknown to it."""
        self.objects = copy.deepcopy(self._backup)
        for body in self.objects.values():
            body["metadata"]["resourceVersion"] = str(next(self._versions))
