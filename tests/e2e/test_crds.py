"""The API as a person meets it: what kubectl explains, shows, fills in and refuses."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.apiserver import ApiServer
from controller.reconcile.statuspatch import persisted
from tests.cluster.environment import ROOT, Cluster
from tests.e2e.host import eventually

SPEC: dict[str, Any] = {
    "workspace": "parser",
    "role": "implement",
    "agent": "coder",
    "backend": {"docker": {"host": "nobody-serves-this"}},
    "image": {"ref": "debian:12"},
}
MOUNT: dict[str, Any] = {"name": "a", "mountPath": "/a", "isolation": "Shared", "hostPath": "/src"}
STATUS: dict[str, Any] = {
    "phase": "Exited",
    "cause": "HostLost",
    "message": "Its host went away.",
    "resumable": True,
    "runId": 3,
    "work": {"state": "Dirty", "summary": "2 files, 1 commit"},
    "restore": {"tier": 2, "lost": ["the writable layer"]},
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown word": (
        {"desiredState": "Stopped"},
        'spec.desiredState: Unsupported value: "Stopped": supported values: "Running", "Kept"',
    ),
    "no host": ({"backend": {"docker": {}}}, "spec.backend.docker"),
    "no image": ({"image": {}}, "spec.image in body should have at least 1 properties"),
    "a workspace that climbs": ({"workspace": "../etc"}, "spec.workspace"),
    "an absolute workspace": ({"workspace": "/etc"}, "spec.workspace"),
    "a mount name that climbs": ({"mounts": [{**MOUNT, "name": "../a"}]}, "spec.mounts"),
    "a relative mountPath": (
        {"mounts": [{**MOUNT, "mountPath": "a"}]},
        "mountPath in body should match '^/[^/]'",
    ),
    "the root as a source": (
        {"mounts": [{**MOUNT, "hostPath": "/"}]},
        "hostPath in body should match '^/[^/]'",
    ),
    "a mount name twice": (
        {"mounts": [MOUNT, {**MOUNT, "mountPath": "/b"}]},
        "spec.mounts[1]: Duplicate value",
    ),
    "a variable twice": (
        {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        "spec.env[1]: Duplicate value",
    ),
    "a user by name": ({"user": "agent"}, "spec.user"),
    "a port too high": ({"ports": [{"name": "a", "containerPort": 65536}]}, "spec.ports"),
    "a duration in words": ({"restore": {"backoff": {"max": "soon"}}}, "spec.restore.backoff.max"),
    "no attempt": ({"restore": {"maxAttempts": 0}}, "spec.restore.maxAttempts"),
    "a long workspace": ({"workspace": "w" * 254}, "spec.workspace"),
    "an unknown field": ({"imagePullPolicy": "Always"}, 'unknown field "'),
}

RULES: dict[str, tuple[dict[str, Any], str]] = {
    "another workspace": ({"workspace": "other"}, "workspace can not be changed"),
    "another host": ({"backend": {"docker": {"host": "other"}}}, "backend can not be changed"),
    "both images": (
        {"image": {"ref": "a", "build": {"repository": "b"}}},
        "exactly one of ref and build must be set",
    ),
    "a mountPath twice": (
        {"mounts": [MOUNT, {**MOUNT, "name": "b"}]},
        "two mounts must not have the same mountPath",
    ),
}


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"crds-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "sessions,sessionpolicies", "--all", "-n", name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def apply(cluster: Cluster, namespace: str, *, name: str = "one", **change: Any) -> Any:
    """Apply a good session with some changes, and return how kubectl ended."""
    body = {
        "apiVersion": "sessionkeeper.io/v1alpha1",
        "kind": "SessionInstance",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**SPEC, **change},
    }
    return cluster.kubectl("apply", "-f", "-", stdin=json.dumps(body), check=False)


def stored(cluster: Cluster, namespace: str, name: str = "one") -> dict[str, Any]:
    """The session as the server holds it."""
    text = cluster.kubectl("get", "session", name, "-n", namespace, "-o", "json").stdout
    body: dict[str, Any] = json.loads(text)
    return body


def write_status(cluster: Cluster, namespace: str) -> dict[str, Any]:
    """Write a status as the controller does, and return what the server made of it."""
    api = ApiServer.connect(cluster.kubeconfig)
    read = api.get_session(namespace, "one")["metadata"]
    place = {"uid": read["uid"], "resource_version": read["resourceVersion"]}
    return api.patch_session_status(namespace, "one", status=STATUS, **place)


def lines(cluster: Cluster, namespace: str, *arguments: str) -> list[list[str]]:
    """The table that kubectl shows, cell by cell."""
    text = cluster.kubectl("get", *arguments, "-n", namespace).stdout
    return [[cell.strip() for cell in line.split("  ") if cell] for line in text.splitlines()]


def knows_rules(cluster: Cluster) -> bool:
    """Whether the server kept the CEL rules of the CRD; those before 1.25 drop them."""
    text = cluster.kubectl("get", "crd", "sessioninstances.sessionkeeper.io", "-o", "json").stdout
    return "x-kubernetes-validations" in json.dumps(json.loads(text)["spec"])


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ("sessions", "A SessionInstance is one coding-agent or development session"),
        ("sessions.spec", "What is wanted."),
        ("sessions.spec.desiredState", "Unset means the last recorded decision"),
        ("sessions.spec.restore.onCrash", "it waits for a person, its container untouched"),
        ("sessions.spec.mounts.isolation", "How the session shares the tree."),
        ("sessions.status.restore.tier", "a new container from the recorded image"),
        ("sessionpolicies.spec.maxKept", "How many kept sessions"),
        ("sessionhosts.spec.drain", "saves and frees every live session"),
    ],
)
def test_kubectl_explains_a_field(cluster: Cluster, field: str, sentence: str) -> None:
    """A person learns what a field is for without leaving the terminal."""

    def explained() -> bool:
        text = cluster.kubectl("explain", field, check=False).stdout
        return sentence in " ".join(text.split())

    eventually(explained, what="a server that has just got a CRD publishes its schema")


def test_sessions_are_shown_with_their_columns(cluster: Cluster, namespace: str) -> None:
    """`kubectl get sessions` says what is wanted, what is so, and what can be resumed."""
    assert apply(cluster, namespace, desiredState="Running").returncode == 0
    write_status(cluster, namespace)
    head, row = lines(cluster, namespace, "sessions")
    assert " ".join(head) == ("NAME WORKSPACE ROLE AGENT DESIRED PHASE CAUSE RESUMABLE WORK AGE")
    assert row[:-1] == [
        "one", "parser", "implement", "coder", "Running", "Exited", "HostLost", "true", "Dirty",
    ]  # fmt: skip
    head, row = lines(cluster, namespace, "sessions", "-o", "wide")
    assert " ".join(head[10:]) == "TIER HOST IMAGE UNSAVED MESSAGE"
    assert row[10:] == [
        "2", "nobody-serves-this", "debian:12", "2 files, 1 commit", "Its host went away.",
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["sessions", "session", "si", "sessioninstances", "sessionkeeper"])
def test_sessions_are_found_by_every_name(cluster: Cluster, namespace: str, word: str) -> None:
    """The short names and the category name the same objects."""
    assert apply(cluster, namespace).returncode == 0
    names = cluster.kubectl("get", word, "-n", namespace, "-o", "name").stdout.split()
    assert "sessioninstance.sessionkeeper.io/one" in names


def test_the_server_fills_in_what_was_left_out(cluster: Cluster, namespace: str) -> None:
    """Defaults are visible in the object; what means something when unset stays unset."""
    assert apply(cluster, namespace, ports=[{"name": "a", "containerPort": 80}]).returncode == 0
    spec = stored(cluster, namespace)["spec"]
    assert spec["home"] == {"mountPath": "/home/agent"}
    assert spec["restore"] == {"maxAttempts": 5, "backoff": {"initial": "10s", "max": "5m"}}
    assert (spec["tty"], spec["security"]) == (True, "Restricted")
    assert spec["ports"] == [{"name": "a", "containerPort": 80, "protocol": "TCP"}]
    assert {"desiredState", "exitPolicy", "retention", "user"}.isdisjoint(spec)


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_value_is_refused_with_its_field(
    cluster: Cluster, namespace: str, change: dict[str, Any], message: str
) -> None:
    """What a schema can refuse is refused at the door, by a message that names the field."""
    done = apply(cluster, namespace, **change)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize(("change", "message"), RULES.values(), ids=RULES.keys())
def test_a_rule_refuses_where_the_server_knows_rules(
    cluster: Cluster, namespace: str, change: dict[str, Any], message: str
) -> None:
    """A server with CEL refuses with our sentence; an older one leaves it to the controller."""
    assert apply(cluster, namespace).returncode == 0
    done = apply(cluster, namespace, **change)
    assert (message in done.stderr, done.returncode != 0) == (knows_rules(cluster),) * 2


def test_a_name_that_is_too_long_is_refused(cluster: Cluster, namespace: str) -> None:
    """A name of 253 characters is taken, one more is refused with the reason."""
    assert apply(cluster, namespace, name="n" * 253).returncode == 0
    done = apply(cluster, namespace, name="n" * 254)
    assert "must be no more than 253 characters" in done.stderr


def test_a_status_comes_back_as_it_was_written(cluster: Cluster, namespace: str) -> None:
    """The server drops no field that the controller relies on, nor adds one (case C14)."""
    assert apply(cluster, namespace).returncode == 0
    returned = write_status(cluster, namespace)
    assert persisted(STATUS, returned["status"])
    assert returned["status"] == STATUS


@pytest.mark.parametrize(
    "path", sorted((ROOT / "manifests" / "samples").rglob("*.yaml")), ids=lambda path: path.stem
)
def test_a_sample_is_taken_by_the_server(cluster: Cluster, namespace: str, path: Path) -> None:
    """Every sample can be applied as it stands."""
    done = cluster.kubectl(
        "apply", "--dry-run=server", "-n", namespace, "-f", str(path), check=False
    )
    assert done.returncode == 0, done.stderr
