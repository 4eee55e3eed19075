"""Law 15: when nothing changes nothing is written, and the API server's absence is made up for."""

import threading
from typing import Any

from tests.e2e.host import Host, eventually

QUIET_SECONDS = 60.0


def writes(host: Host) -> list[dict[str, Any]]:
    """What our controllers have written, the renewals of Leases apart."""
    return [
        event
        for event in host.cluster.audit_events()
        if event["verb"] in ("create", "update", "patch", "delete")
        and event.get("userAgent", "").startswith("sessionkeeper/")
        and event["objectRef"]["resource"] != "leases"
    ]


def test_twenty_idle_sessions_write_nothing(idle_host: Host) -> None:
    """No API write but the Lease's, and no engine call but the stream and the slow resync."""
    host = idle_host
    host.start()
    names = [f"s{number}" for number in range(20)]
    host.apply_all([host.manifest(name) for name in names])
    for name in names:
        host.wait(name, "Running", timeout=90)
    host.wait_condition(names[-1], "Ready", "True")
    eventually(lambda: settled(host), what="the last write is done")
    before, lines = len(writes(host)), host.log().count("\n")
    threading.Event().wait(QUIET_SECONDS)
    assert writes(host)[before:] == []
    assert host.log().count("\n") == lines


def settled(host: Host) -> bool:
    """Whether two looks, a moment apart, find the same writes."""
    before = len(writes(host))
    threading.Event().wait(3)
    return len(writes(host)) == before


def test_what_happened_while_the_api_server_was_down_is_caught_up(host: Host) -> None:
    """A container that dies meanwhile is known by its own end once the server is back."""
    host.apply("s", command=["sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 3"])
    host.wait("s", "Running")
    host.cluster.apiserver_stop()
    try:
        container = host.container("s")
        container.exec_run(["touch", "/tmp/go"])
        container.wait(timeout=60)
    finally:
        host.cluster.apiserver_start()
    status = host.wait("s", "Exited", timeout=90)
    assert (status["cause"], status["exit"]["code"]) == ("Crashed", 3)
