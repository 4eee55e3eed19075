"""Statuses that a server does not keep, or does not take (cases C14 and C18)."""

import json
import threading
from collections.abc import Iterator

import pytest

from controller.doctor_api import definitions
from tests.e2e.host import Host, eventually

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
