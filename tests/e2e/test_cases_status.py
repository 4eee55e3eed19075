"""Statuses that a server does not keep, or does not take (cases C14 and C18)."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from controller.api.names import API_VERSION, SESSIONS
from controller.apiserver import ApiError
from controller.doctor_api import definitions
from tests.e2e.engine_proxy import EngineProxy
from tests.e2e.host import Host, eventually

# What finalizer and labels need, and a whole status has no room in.
ROOM = 1500
SMALL = 20_000
OLD_CRD = "sessioninstances.sessionkeeper.io"
HISTORY = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/history"
QUIET_SECONDS = 8


@pytest.fixture
def older_crd(idle_host: Host) -> Iterator[None]:
    """After a session runs, `drop_history` makes the CRD one of an older release."""
    yield
    idle_host.cluster.apply_crds()


def drop_history(host: Host) -> None:
    """Install a CRD that does not know `status.history`, and wait until it is served."""
    patch = json.dumps([{"op": "remove", "path": HISTORY}])
    host.cluster.kubectl("patch", "crd", OLD_CRD, "--type", "json", "-p", patch)
    eventually(lambda: "history" not in host.status("s"), what="the older CRD is served")


def status_patches(host: Host) -> int:
    """How often a status of this host's sessions was written."""
    return sum(
        event["verb"] == "patch"
        and event["objectRef"].get("subresource") == "status"
        and event["objectRef"].get("namespace") == host.namespace
        for event in host.cluster.audit_events()
    )


def purge_with_an_older_crd(host: Host) -> str:
    """Purge a session whose status does not stick, until it says so; return its container."""
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    container = str(host.container("s").id)
    drop_history(host)
    host.patch("s", desiredState="Purged")
    host.wait_condition("s", "PurgeBlocked", "True", "StatusNotPersisted")
    return container


@pytest.mark.usefixtures("older_crd")
def test_a_purge_waits_for_a_crd_that_keeps_its_record(idle_host: Host) -> None:
    """Case C14: nothing is destroyed, doctor names the CRD, nobody spins; then it finishes."""
    host = idle_host
    container = purge_with_an_older_crd(host)
    written = status_patches(host)
    threading.Event().wait(QUIET_SECONDS)
    assert status_patches(host) - written <= 1
    assert host.container("s").id == container
    assert (host.directory("s") / "home").is_dir()
    (fault,) = [found for found in definitions(host.api) if found.remedy]
    assert OLD_CRD in fault.what
    assert "status.history" in fault.remedy
    host.cluster.apply_crds()
    host.wait("s", "Purged", timeout=60)
    assert host.containers("s") == []
    assert not host.directory("s").exists()


@pytest.mark.usefixtures("older_crd")
def test_a_purge_that_waits_is_taken_back(idle_host: Host) -> None:
    """Case C14: nothing was destroyed, so the same container is started again (rung 1)."""
    host = idle_host
    container = purge_with_an_older_crd(host)
    host.patch("s", desiredState="Running")
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 1
    assert host.container("s").id == container


LARGEST_OBJECT = 2_000_000
# A process is started with no more than this and a little.
ENVIRONMENT = 900_000
STEP = 16_000
LABEL = 63


def padded(host: Host, size: int) -> dict[str, Any]:
    """A session with about this many characters in its environment and its labels."""
    full, rest = divmod(min(size, ENVIRONMENT), STEP)
    values = [STEP] * full + [rest]
    env = [{"name": f"V{number}", "value": "x" * value} for number, value in enumerate(values)]
    made = host.manifest("s", env=env)
    labels = max(size - ENVIRONMENT, 0) // LABEL
    made["metadata"]["labels"] = {f"l{number}": "x" * LABEL for number in range(labels)}
    return made


def taken(host: Host, size: int) -> bool:
    """Whether the server takes a session of this size; it is removed again."""
    path = f"/apis/{API_VERSION}/namespaces/{host.namespace}/{SESSIONS}"
    try:
        host.api.request("POST", path, body=padded(host, size))
    except ApiError:
        return False
    host.cluster.kubectl("delete", "session", "s", "-n", host.namespace)
    return True


def largest_taken(host: Host) -> int:
    """The size up to which the server takes a session, to some hundred characters."""
    low, high = 0, LARGEST_OBJECT
    while high - low > 200:
        middle = (low + high) // 2
        low, high = (middle, high) if taken(host, middle) else (low, middle)
    return low


def test_what_the_server_finds_too_large_is_written_smaller(idle_host: Host) -> None:
    """Case C18: an object that leaves no room for a whole status has its phase all the same."""
    host = idle_host
    size = largest_taken(host) - ROOM
    path = f"/apis/{API_VERSION}/namespaces/{host.namespace}/{SESSIONS}"
    host.api.request("POST", path, body=padded(host, size))
    host.start()
    host.wait("s", "Running")
    assert "history" not in host.status("s")
    assert "too large" in host.log()
    host.patch("s", desiredState="Purged")
    host.wait("s", "Purged")
    assert host.containers("s") == []


def test_what_the_engine_says_at_length_is_cut(idle_host: Host) -> None:
    """Case C18: two megabytes of an engine's words do not reach the object."""
    host = idle_host
    with EngineProxy(host.cluster.docker_host, host.work / "p.sock") as proxy:
        host.flags = ["--docker-host", proxy.docker_host]
        words = "no such thing: " + "x" * 2_000_000
        proxy.refuse(r"POST .*/containers/create\?name=sk-[0-9a-f]{8}-", 400, words)
        host.start()
        host.apply("s")
        said = host.wait_condition("s", "Ready", "False", "StartRefused")
        assert "no such thing" in said["message"]
        assert len(json.dumps(host.session("s"))) < SMALL
        assert len(host.log()) < SMALL, "nor the log"
