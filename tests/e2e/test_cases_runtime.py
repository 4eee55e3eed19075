"""Faults that users of controllers met: watches that died, rights that went, slow writes."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api_proxy import ApiProxy
from tests.e2e.host import Host, eventually

RESYNC_SECONDS = 5
GONE_410 = (
    json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})
    + "\n"
).encode()


@pytest.fixture
def proxy(idle_host: Host) -> Iterator[ApiProxy]:
    """A proxy between this host's controller and the API server."""
    with ApiProxy(idle_host.cluster.kubeconfig, idle_host.work) as made:
        idle_host.flags = [
            "--kubeconfig", str(made.kubeconfig), "--resync-seconds", str(RESYNC_SECONDS),
        ]  # fmt: skip
        yield made


def watch_of(host: Host) -> str:
    """The requests that watch a host's sessions."""
    return rf"GET /apis/[^?]*/namespaces/{host.namespace}/sessioninstances\?.*watch=true"


FAULTS: dict[str, dict[str, Any]] = {
    "410": {"status": 200, "body": GONE_410},
    "closed": {"status": 200},
    "silent": {"lines": lambda line: ()},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_dead_watch_does_not_hide_an_edit(idle_host: Host, proxy: ApiProxy, fault: str) -> None:
    """Case C15: an edit acts within the resync period, once, and nobody spins meanwhile."""
    host = idle_host
    watch = proxy.rule(watch_of(host), **FAULTS[fault])
    began = time.monotonic()
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.patch("s", desiredState="Kept")
    status = host.wait("s", "Kept")
    history = status["history"]
    assert [entry["phase"] for entry in history] == ["Starting", "Running", "Keeping", "Kept"]
    # A launch that was put off before it started anything has used up its number (Precedence).
    assert len({entry["runId"] for entry in history[1:]}) == 1
    assert watch.seen <= time.monotonic() - began + 2


def test_a_dead_watch_does_not_hide_a_deletion(idle_host: Host, proxy: ApiProxy) -> None:
    """Case C15: what no watch says is missed by the list, asked for, and known to be gone."""
    host = idle_host
    proxy.rule(watch_of(host), **FAULTS["silent"])
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.delete("s")
    assert host.containers("s") == []


def health(port: int) -> int:
    """The HTTP status that a liveness probe sees."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_liveness_turns_red_without_lists(idle_host: Host, proxy: ApiProxy, port: int) -> None:
    """Case C15: no list within its limit is a controller that may be blind; one makes it well."""
    host = idle_host
    host.flags += ["--metrics-port", str(port), "--resync-seconds", "1"]
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    assert health(port) == 200
    lists = rf"GET /apis/[^?]*/namespaces/{host.namespace}/sessioninstances\?limit"
    refused = proxy.refuse(lists, 503, "no")
    eventually(lambda: health(port) == 503, what="liveness turns red", timeout=15)
    proxy.drop(refused)
    eventually(lambda: health(port) == 200, what="liveness is well again", timeout=15)
    assert host.log().count("sessions not listed") == 1
    assert host.log().count("sessions listed again") == 1
