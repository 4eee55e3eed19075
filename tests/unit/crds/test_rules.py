"""What a server without CEL lets through is refused by the controller (design.md 2)."""

from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from controller.api.parsing import parse_spec
from tests.unit.crds.schema import closed, schema

GOOD: dict[str, Any] = {
    "workspace": "parser",
    "role": "implement",
    "agent": "coder",
    "backend": {"docker": {"host": "laptop"}},
    "image": {"ref": "debian:12"},
}
MOUNT: dict[str, Any] = {"name": "a", "mountPath": "/a", "isolation": "Shared", "hostPath": "/src"}

BAD_BUT_SHAPED: dict[str, dict[str, Any]] = {
    "both backends": {"backend": {"docker": {"host": "laptop"}, "kubernetes": {}}},
    "both images": {"image": {"ref": "a", "build": {"repository": "b"}}},
    "two sources": {"mounts": [{**MOUNT, "git": {"url": "https://git.example/a"}}]},
    "no source": {"mounts": [{"name": "a", "mountPath": "/a", "isolation": "Shared"}]},
    "a mountPath twice": {"mounts": [MOUNT, {**MOUNT, "name": "b"}]},
    "a mount over the home": {"mounts": [{**MOUNT, "mountPath": "/home/agent"}]},
    "a mount over the run directory": {"mounts": [{**MOUNT, "mountPath": "/run/sessionkeeper"}]},
    "a mountPath that climbs": {"mounts": [{**MOUNT, "mountPath": "/a/../b"}]},
    "a source that climbs": {"mounts": [{**MOUNT, "hostPath": "/src/../etc"}]},
    "a source with an empty part": {"mounts": [{**MOUNT, "hostPath": "/src//a"}]},
    "a home that climbs": {"home": {"mountPath": "/home/../etc"}},
    "a claim on Docker": {
        "mounts": [
            {
                "name": "a",
                "mountPath": "/a",
                "isolation": "Shared",
                "persistentVolumeClaim": {"claimName": "a"},
            }
        ]
    },
}

BAD_BY_SHAPE: dict[str, dict[str, Any]] = {
    "no backend": {"backend": {}},
    "no image": {"image": {}},
    "an unknown word": {"desiredState": "Stopped"},
    "an absolute workspace": {"workspace": "/etc"},
    "a workspace that climbs": {"workspace": "../etc"},
    "a workspace that climbs within": {"workspace": "a/../../etc"},
    "a mount name that climbs": {"mounts": [{**MOUNT, "name": "../a"}]},
    "a relative mountPath": {"mounts": [{**MOUNT, "mountPath": "a"}]},
    "a relative source": {"mounts": [{**MOUNT, "hostPath": "a"}]},
    "the root as a source": {"mounts": [{**MOUNT, "hostPath": "/"}]},
    "the root in other words": {"mounts": [{**MOUNT, "hostPath": "//"}]},
    "a user by name": {"user": "agent"},
    "a port too high": {"ports": [{"name": "a", "containerPort": 65536}]},
    "a duration in words": {"restore": {"backoff": {"initial": "soon"}}},
    "an empty duration": {"restore": {"backoff": {"initial": ""}}},
    "a quantity in words": {"resources": {"limits": {"memory": "much"}}},
    "a reference to no vault": {
        "env": [{"name": "A", "valueFrom": {"onePasswordRef": "op://field"}}]
    },
    "an unknown field": {"imagePullPolicy": "Always"},
}


def spec(change: dict[str, Any]) -> dict[str, Any]:
    """Return a good spec but for one change."""
    return {**deepcopy(GOOD), **change}


def refusals(change: dict[str, Any]) -> list[str]:
    """What the schema alone says of it, as a server without CEL would."""
    validator = Draft202012Validator(closed(schema("SessionInstance", "spec")))
    return [error.message for error in validator.iter_errors(spec(change))]


def test_the_good_spec_is_good() -> None:
    """The cases below differ from a good spec in one thing only."""
    assert refusals({}) == []
    assert parse_spec(spec({})).faults == ()


@pytest.mark.parametrize("change", BAD_BY_SHAPE.values(), ids=BAD_BY_SHAPE.keys())
def test_every_server_refuses(change: dict[str, Any]) -> None:
    """What a schema can say is refused at the door, whatever the server's version."""
    assert refusals(change) != []


@pytest.mark.parametrize("change", BAD_BUT_SHAPED.values(), ids=BAD_BUT_SHAPED.keys())
def test_the_controller_refuses_what_needs_a_rule(change: dict[str, Any]) -> None:
    """What only a CEL rule can say has a sentence of the controller's that names the field."""
    assert refusals(change) == []
    faults = parse_spec(spec(change)).faults
    assert faults
    assert all(fault.message.startswith(f"spec.{fault.field}: ") for fault in faults)
