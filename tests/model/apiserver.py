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
        self._versions = itertools.count(1)

    def _ask(self) -> None:
        if not self.reachable:
            raise ApiUnreachable("it does not answer")

    def _find(self, name: str, uid: str | None = None) -> Body:
        body = self.objects.get(name)
        if body is None:
            raise ApiAbsent(name)
        if uid is not None and body["metadata"]["uid"] != uid:
            raise ApiConflict(name)
        return body

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
        self._ask()
        body = self._find(name, uid)
        if resource_version not in (None, body["metadata"]["resourceVersion"]):
            raise ApiConflict(name)
        self.writes += 1
        merge(body.setdefault("status", {}), status)
        return self._changed(body)

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
        self._ask()
        body = self._find(name, uid)
        if resource_version not in (None, body["metadata"]["resourceVersion"]):
            raise ApiConflict(name)
        self.writes += 1
        self._edit(body, patch)
        return self._changed(body)

    def _edit(self, body: Body, patch: Mapping[str, Any]) -> None:
        before = copy.deepcopy(body["spec"])
        merge(body, patch)
        if body["spec"] != before:
            body["metadata"]["generation"] += 1

    def add_finalizer(
        self, body: Mapping[str, Any], finalizer: str, labels: Mapping[str, str]
    ) -> Body:
        self._ask()
        metadata = body["metadata"]
        held = self._find(metadata["name"], metadata["uid"])
        if held["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiConflict(metadata["name"])
        if held["metadata"].get("deletionTimestamp"):
            raise ApiAbsent(metadata["name"])
        self.writes += 1
        held["metadata"].setdefault("finalizers", []).append(finalizer)
        held["metadata"].setdefault("labels", {}).update(labels)
        return self._changed(held)

    def remove_finalizer(self, body: Mapping[str, Any], finalizer: str) -> None:
        self._ask()
        metadata = body["metadata"]
        held = self.objects.get(metadata["name"])
        if held is None or held["metadata"]["uid"] != metadata["uid"]:
            return
        if held["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ApiConflict(metadata["name"])
        self.writes += 1
        held["metadata"]["finalizers"].remove(finalizer)
        self._changed(held)

    def delete_session(self, namespace: str, name: str, *, uid: str) -> None:
        del namespace
        self._ask()
        self.person_deletes(name, uid)

    # What people do ----------------------------------------------------------------------------

    def person_applies(self, name: str, spec: Mapping[str, Any]) -> Body:
        """Create an object."""
        body: Body = {
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name}{next(self._versions)}")),
                "generation": 1,
            },
            "spec": dict(spec),
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
