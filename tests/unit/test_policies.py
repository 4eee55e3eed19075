"""Which policy a session is under, and what is not known is forbidden."""

from typing import Any

import pytest

from controller.api.vocabulary import ExitPolicy, OnCrash, OnHostLoss
from controller.policies import Policies, parse_policy, unserved


def body(name: str, workspace: str, namespace: str = "ns", **spec: Any) -> dict[str, Any]:
    """A SessionPolicy as the server holds it."""
    metadata = {"uid": f"{namespace}/{name}", "name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": {"workspace": workspace, **spec}}


def known(*bodies: dict[str, Any]) -> Policies:
    """Policies that were listed."""
    policies = Policies()
    policies.replace({body["metadata"]["uid"]: body for body in bodies})
    return policies


@pytest.mark.parametrize(
    ("workspace", "wanted"),
    [
        ("team-a", "exact"),
        ("team-b", "pattern"),
        ("team-bcd", "longer"),
        ("tea", "short"),
        ("other", "all"),
        ("team-[x]", "odd"),
    ],
)
def test_the_nearest_policy_wins(workspace: str, wanted: str) -> None:
    """An exact name over a pattern, a longer pattern over a shorter one, * last."""
    policies = known(
        body("all", "*"),
        body("short", "te*"),
        body("pattern", "team-*"),
        body("longer", "team-bc?"),
        body("odd", "team-[x*"),
        body("exact", "team-a"),
        body("foreign", "team-a", namespace="other"),
    )
    found = policies.nearest("ns", workspace)
    assert found is not None
    assert found.name == wanted


def test_of_two_as_near_the_first_by_name_wins() -> None:
    """The same one each time, in whatever order they were delivered."""
    for order in (("b", "a"), ("a", "b")):
        found = known(*(body(name, "*") for name in order)).nearest("ns", "w")
        assert found is not None
        assert found.name == "a"


def test_a_policy_is_read() -> None:
    """What is no word of ours counts as unset."""
    policy = parse_policy(
        body("p", "w", exitPolicy="Clean", clean="Forbid", onHostLoss="Hold", onCrash="Sometimes")
    )
    assert policy.exit_policy is ExitPolicy.CLEAN
    assert policy.clean_forbidden
    assert policy.on_host_loss is OnHostLoss.HOLD
    assert policy.on_crash is None
    assert parse_policy(body("p", "w", onCrash="Restore")).on_crash is OnCrash.RESTORE


def test_changes_are_told_from_repetitions() -> None:
    """Only a change makes sessions look again."""
    policies = Policies()
    assert not policies.known
    assert policies.put(body("p", "w"))
    assert not policies.known
    assert not policies.put(body("p", "w"))
    assert policies.replace({"ns/p": body("p", "w")})
    assert policies.known
    assert not policies.replace({"ns/p": body("p", "w")})
    assert policies.forget("ns/p")
    assert not policies.forget("ns/p")
    assert policies.nearest("ns", "w") is None


def test_what_is_not_served_is_named() -> None:
    """Never silently ignored; the rest of the policy holds."""
    assert unserved(body("p", "w", exitPolicy="Keep", ignoredFiles="Warn")) == ""
    said = unserved(body("p", "w", maxKept=0, ignoredFiles="Drop"))
    assert said.startswith("spec.maxKept, spec.ignoredFiles: ")
