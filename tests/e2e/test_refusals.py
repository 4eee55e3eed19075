"""Kinds and fields that this release does not serve say so in their status, in words."""

import json
from typing import Any

import pytest

from tests.e2e.host import Host, eventually


def read(host: Host, *what: str) -> dict[str, Any]:
    answer = host.cluster.kubectl("get", *what, "-o", "json")
    return dict(json.loads(answer.stdout))


def refused(body: dict[str, Any]) -> str:
    """The message of the refusal, or nothing."""
    for condition in (body.get("status") or {}).get("conditions") or ():
        if (condition["type"], condition["reason"]) == ("SpecValid", "NotYetServed"):
            return str(condition["message"])
    return ""


@pytest.mark.parametrize(
    ("limits", "says"),
    [({"memory": "1Mi"}, "memory limit"), ({"cpu": "999"}, "CPUs")],
)
def test_limits_that_the_engine_refuses_are_the_specs_fault(
    host: Host, limits: dict[str, str], says: str
) -> None:
    """Said in the engine's words and not tried again; mended, it runs at once."""
    host.apply("s", resources={"limits": limits})
    host.wait("s", "Failed")
    assert says in host.wait_condition("s", "Stalled", "True", "StartRefused")["message"]
    assert host.containers("s") == []
    host.patch("s", resources={"limits": None})
    host.wait("s", "Running")


def test_a_user_without_a_group_is_not_in_roots(host: Host) -> None:
    """`user: "1234"` is its own group, in the container and on its home."""
    host.apply("s", user="1234")
    host.wait("s", "Running")
    host.shows("s", "id -u; id -g", "1234\n1234\n")
    facts = (host.directory("s") / "home").stat()
    assert (facts.st_uid, facts.st_gid) == (1234, 1234)


def test_a_drain_is_refused_in_words(idle_host: Host) -> None:
    """`spec.drain` of a SessionHost drains nothing yet, and its status says so."""
    host = idle_host
    asked = {
        "apiVersion": "sessionkeeper.io/v1alpha1",
        "kind": "SessionHost",
        "metadata": {"name": host.name},
        "spec": {"drain": True},
    }
    host.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(asked))
    host.start()
    try:
        what = ("sessionhost", host.name)
        message = eventually(lambda: refused(read(host, *what)), what="the drain is refused")
        assert "draining" in message
        host.apply("s")
        host.wait("s", "Running")
    finally:
        host.cluster.kubectl("delete", "sessionhost", host.name)
