"""Writes to a real API server hit exactly the object and the version that was read, or nothing."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller.api.names import API_VERSION, FINALIZER, SESSIONS
from controller.apiserver import ApiAbsent, ApiConflict, ApiRefused, ApiServer
from tests.cluster.environment import Cluster

THEIRS = "example.com/theirs"
LABELS = {"example.com/label": "x"}

Session = dict[str, Any]


@dataclass
class World:
    """A namespace of one test, and what a person does in it."""

    api: ApiServer
    namespace: str = field(default_factory=lambda: f"api-{uuid.uuid4().hex[:8]}")

    @property
    def path(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self.namespace}/{SESSIONS}"

    def create(self, *finalizers: str) -> Session:
        """Create the session `s`."""
        spec = {
            "workspace": "w",
            "role": "r",
            "agent": "a",
            "backend": {"docker": {"host": "nowhere"}},
            "image": {"ref": "i"},
        }
        metadata = {"name": "s", "finalizers": list(finalizers)}
        body = {"apiVersion": API_VERSION, "kind": "SessionInstance"}
        return self.api.request(
            "POST", self.path, body={**body, "metadata": metadata, "spec": spec}
        )

    def read(self) -> Session:
        return self.api.get_session(self.namespace, "s")

    def edit(self) -> Session:
        """Change the session as a person would."""
        return self.api.request(
            "PATCH",
            f"{self.path}/s",
            body={"spec": {"title": uuid.uuid4().hex}},
            content_type="application/merge-patch+json",
        )

    def delete(self) -> None:
        """Ask for the end of the session, whichever it is."""
        self.api.request("DELETE", f"{self.path}/s")

    def replaced(self) -> Session:
        """Delete a session, create another of its name, and return the old body."""
        old = self.create()
        self.delete()
        self.create()
        return old


@pytest.fixture
def world(cluster: Cluster) -> Iterator[World]:
    made = World(ApiServer.connect(cluster.kubeconfig))
    made.api.create_namespace(made.namespace)
    yield made
    cluster.kubectl(
        "patch", "session", "s", "-n", made.namespace, "--type=merge",
        '-p={"metadata":{"finalizers":null}}', check=False,
    )  # fmt: skip
    cluster.kubectl("delete", "namespace", made.namespace, "--wait=false")


def _report(api: ApiServer, body: Session, **status: Any) -> Session:
    metadata = body["metadata"]
    version = metadata["resourceVersion"]
    return api.patch_session_status(
        metadata["namespace"], "s", uid=metadata["uid"], status=status, resource_version=version
    )


def _status(api: ApiServer, body: Session) -> None:
    _report(api, body, message="ours")


def _spec(api: ApiServer, body: Session) -> None:
    metadata = body["metadata"]
    api.patch_session(
        metadata["namespace"], "s", uid=metadata["uid"], patch={"spec": {"desiredState": "Purged"}}
    )


def _add(api: ApiServer, body: Session) -> None:
    api.add_finalizer(body, FINALIZER, LABELS)


def _remove(api: ApiServer, body: Session) -> None:
    api.remove_finalizer(body, FINALIZER)


def _delete(api: ApiServer, body: Session) -> None:
    metadata = body["metadata"]
    api.delete_session(metadata["namespace"], "s", uid=metadata["uid"])


Write = Callable[[ApiServer, Session], None]


@pytest.mark.parametrize("write", [_status, _spec, _add, _remove, _delete])
def test_another_object_of_the_name_is_never_written(world: World, write: Write) -> None:
    """Law 6: what is meant for one UID does not reach a new object of the same name."""
    old = world.replaced()
    new = world.read()
    with pytest.raises(ApiConflict):
        write(world.api, old)
    assert world.read() == new


def _decide(api: ApiServer, body: Session) -> None:
    metadata = body["metadata"]
    place = {"uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
    patch = {"spec": {"desiredState": "Kept"}}
    api.patch_session(metadata["namespace"], "s", patch=patch, **place)


@pytest.mark.parametrize("write", [_add, _remove, _status, _decide])
def test_what_rests_on_a_version_is_not_written_at_another(world: World, write: Write) -> None:
    """Case C19: a claim, a decision or a list of finalizers is never written over a newer edit."""
    read = world.create(*([FINALIZER] if write is _remove else []))
    edited = world.edit()
    with pytest.raises(ApiConflict):
        write(world.api, read)
    assert world.read() == edited


def test_finalizers_of_others_stay(world: World) -> None:
    """Case C19: ours is added to theirs and taken from among them."""
    read = world.create(THEIRS)
    added = world.api.add_finalizer(read, FINALIZER, LABELS)
    assert added["metadata"]["finalizers"] == [THEIRS, FINALIZER]
    assert added["metadata"]["labels"] == LABELS
    world.api.remove_finalizer(added, FINALIZER)
    assert world.read()["metadata"]["finalizers"] == [THEIRS]


def test_the_last_finalizer_lets_the_object_go(world: World) -> None:
    """Law 13: with ours the deletion waits, without it the object is gone."""
    world.create(FINALIZER)
    world.delete()
    world.api.remove_finalizer(world.read(), FINALIZER)
    with pytest.raises(ApiAbsent):
        world.read()


def test_nothing_is_added_to_an_object_under_deletion(world: World) -> None:
    """Case C19: the server's 422 says that it is too late, and nothing changes."""
    world.create(THEIRS)
    world.delete()
    deleting = world.read()
    with pytest.raises(ApiAbsent):
        world.api.add_finalizer(deleting, FINALIZER, LABELS)
    assert world.read() == deleting


def test_an_object_that_is_gone_ends_the_work_quietly(world: World) -> None:
    """Case C19: what is to be taken off or deleted is gone already; nothing can be added."""
    read = world.create()
    world.delete()
    world.api.remove_finalizer(read, FINALIZER)
    world.api.delete_session(world.namespace, "s", uid=read["metadata"]["uid"])
    for write in (_add, _status, _spec):
        with pytest.raises(ApiAbsent):
            write(world.api, read)


def test_a_status_is_merged_and_the_spec_left_alone(world: World) -> None:
    """One minimal patch of the status; None takes a field away."""
    body = world.create()
    first = _report(world.api, body, message="one", runId=1)
    answer = _report(world.api, first, message=None)
    assert answer["status"] == {"runId": 1}
    assert answer["spec"] == body["spec"]


def test_a_kind_that_is_not_served_is_not_an_absent_object(world: World) -> None:
    """Law 3: without its CRD a session is not gone."""
    path = f"/apis/{API_VERSION}/namespaces/{world.namespace}/nothings/s"
    with pytest.raises(ApiRefused):
        world.api.request("GET", path)


def test_content_that_the_schema_forbids_is_refused_in_words(world: World) -> None:
    """The server's own words name the field."""
    uid = world.create()["metadata"]["uid"]
    patch = {"spec": {"desiredState": "Sideways"}}
    with pytest.raises(ApiRefused, match="desiredState"):
        world.api.patch_session(world.namespace, "s", uid=uid, patch=patch)
