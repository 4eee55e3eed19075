"""The CEL rules mean what their sentences say, though the server of the tests knows no CEL."""

from collections.abc import Iterator
from typing import Any

import celpy
import pytest

from tests.unit.crds.schema import Schema, defaulted, schema
from tests.unit.crds.test_rules import BAD_BUT_SHAPED, MOUNT, spec
from tests.unit.crds.test_samples import LATER_SESSIONS, SERVED, read

SPEC = schema("SessionInstance", "spec")
ENVIRONMENT = celpy.Environment()
CLAIM = {"name": "c", "mountPath": "/c", "persistentVolumeClaim": {"claimName": "c"}}

ONLY_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "a variable without a value": (
        {"env": [{"name": "A"}]},
        "spec.env[]: exactly one of value and valueFrom must be set",
    ),
    "a variable from two places": (
        {"env": [{"name": "A", "valueFrom": {"hostEnv": "B", "onePasswordRef": "op://a/b/c"}}]},
        "spec.env[].valueFrom: exactly one of secretKeyRef, onePasswordRef and hostEnv must be set",
    ),
    "a branch on a shared tree": (
        {"mounts": [{**MOUNT, "branch": "b"}]},
        "spec.mounts[]: branch needs isolation Worktree or Clone",
    ),
    "a claim that is cloned": (
        {"mounts": [{**CLAIM, "isolation": "Clone"}], "backend": {"kubernetes": {}}},
        "spec.mounts[]: a persistentVolumeClaim can be mounted with isolation Shared only",
    ),
    "a worktree on Kubernetes": (
        {"mounts": [{**MOUNT, "isolation": "Worktree"}], "backend": {"kubernetes": {}}},
        "spec: on Kubernetes a mount can have neither a hostPath nor isolation Worktree",
    ),
    "a probe of nothing": (
        {"sidecars": [{"name": "s", "image": "i", "readinessProbe": {}}]},
        "spec.sidecars[].readinessProbe: exactly one of exec, httpGet and tcpSocket must be set",
    ),
}


def holds(rule: str, value: Any, old: Any) -> bool:
    """Whether a rule holds for a value, and for what it was before if the rule asks."""
    program = ENVIRONMENT.program(ENVIRONMENT.compile(rule))
    names = {"self": celpy.json_to_cel(value), "oldSelf": celpy.json_to_cel(old)}
    return bool(program.evaluate(names))


def refusals(found: Schema, value: Any, old: Any = None, path: str = "spec") -> Iterator[str]:
    """Yield what a server with CEL refuses of a value, as `path: sentence`."""
    for rule in found.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        if not holds(rule["rule"], value, old):
            yield f"{path}: {rule['message']}"
    if isinstance(value, list):
        for entry in value:
            yield from refusals(found["items"], entry, None, f"{path}[]")
    for name, inner in found.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            before = old.get(name) if isinstance(old, dict) else None
            yield from refusals(inner, value[name], before, f"{path}.{name}")


def refused(change: dict[str, Any]) -> list[str]:
    """What the rules refuse of a good spec with one change, after defaulting."""
    return list(refusals(SPEC, defaulted(SPEC, spec(change))))


@pytest.mark.parametrize("change", BAD_BUT_SHAPED.values(), ids=BAD_BUT_SHAPED.keys())
def test_a_rule_refuses_what_the_controller_refuses(change: dict[str, Any]) -> None:
    """What older servers leave to the controller, a server with CEL refuses at the door."""
    assert refused(change) != []


@pytest.mark.parametrize(("change", "sentence"), ONLY_RULES.values(), ids=ONLY_RULES.keys())
def test_a_rule_refuses_with_its_sentence(change: dict[str, Any], sentence: str) -> None:
    """Each one-of rule names the field and the choice."""
    assert refused(change) == [sentence]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("workspace", "other"),
        ("role", "other"),
        ("agent", "other"),
        ("backend", {"docker": {"host": "other"}}),
        ("backend", {"kubernetes": {}}),
    ],
)
def test_identity_and_backend_stay(name: str, value: Any) -> None:
    """An edit of what makes the session this session is refused, and says so."""
    old, new = (defaulted(SPEC, spec(change)) for change in ({}, {name: value}))
    sentence = f"spec.{name}: {name} can not be changed; create another session"
    assert list(refusals(SPEC, new, old)) == [sentence]


def test_everything_else_can_be_edited() -> None:
    """No rule stands in the way of a decision, a retry or a late edit, which is reported."""
    edit = {
        "desiredState": "Kept",
        "image": {"ref": "debian:13"},
        "mounts": [MOUNT],
        "restore": {"retryRun": 3},
    }
    old, new = (defaulted(SPEC, spec(change)) for change in ({}, edit))
    assert list(refusals(SPEC, new, old)) == []


@pytest.mark.parametrize("path", [*SERVED, *LATER_SESSIONS], ids=lambda path: path.stem)
def test_no_rule_refuses_a_sample(path: Any) -> None:
    """Every sample passes on a server with CEL too."""
    assert list(refusals(SPEC, read(path)["spec"])) == []


@pytest.mark.parametrize("path", ["/a/.b", "/..a/b", "/a/...", "/ä b/c"])
def test_odd_and_honest_paths_are_taken(path: str) -> None:
    """Hidden directories, spaces and letters of any language are no climbing."""
    assert refused({"mounts": [{**MOUNT, "mountPath": path, "hostPath": path}]}) == []


def test_a_policy_can_not_ask_for_what_it_forbids() -> None:
    """Forbidding Clean and asking for it in one policy is refused."""
    found = schema("SessionPolicy", "spec")
    policy = {"workspace": "*", "clean": "Forbid", "exitPolicy": "Clean"}
    assert list(refusals(found, policy)) == [
        "spec: exitPolicy must not be Clean where clean is Forbid"
    ]
    assert list(refusals(found, {**policy, "clean": "Allow"})) == []
