"""Kinds and fields that this release does not serve say so in their status, in words."""

import json
from typing import Any

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


def test_a_policy_is_refused_in_words(host: Host) -> None:
    """A SessionPolicy changes nothing yet, and its status says so."""
    policy = {
        "apiVersion": "sessionkeeper.io/v1alpha1",
        "kind": "SessionPolicy",
        "metadata": {"name": "p", "namespace": host.namespace},
        "spec": {"workspace": "*", "exitPolicy": "Keep"},
    }
    host.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(policy))
    what = ("sessionpolicy", "p", "-n", host.namespace)
    message = eventually(lambda: refused(read(host, *what)), what="the policy is refused")
    assert "does not serve SessionPolicy" in message


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
