"""What is wrong with a spec, as the controller says it on servers that do not know CEL."""

from datetime import timedelta
from typing import Any

import pytest

from controller.api.parsing import parse_spec
from controller.api.reasons import Reason
from controller.api.vocabulary import DesiredState
from tests.unit.reconcile.builders import raw_spec


def faults(**fields: Any) -> dict[str, Reason]:
    """The faults of a spec by field."""
    return {fault.field: fault.reason for fault in parse_spec(raw_spec(**fields)).faults}


def mount(**fields: Any) -> dict[str, Any]:
    return {"name": "m", "mountPath": "/w", "hostPath": "/s", "isolation": "Shared", **fields}


def test_a_plain_spec_has_no_fault() -> None:
    """The plain spec of the tests is served."""
    assert faults() == {}


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"sidecars": [{"name": "d"}]}, "sidecars", Reason.NOT_YET_SERVED),
        ({"image": {"build": {"repository": "r"}}}, "image.build", Reason.NOT_YET_SERVED),
        ({"image": {"ref": "i", "build": {"ref": "x"}}}, "image", Reason.SPEC_INVALID),
        ({"backend": {"kubernetes": {"x": 1}}}, "backend.kubernetes", Reason.NOT_YET_SERVED),
        ({"backend": {}}, "backend", Reason.SPEC_INVALID),
        ({"retention": {"keepFor": "1h"}}, "retention.keepFor", Reason.NOT_YET_SERVED),
        ({"env": [{"name": "A"}]}, "env[0]", Reason.SPEC_INVALID),
        (
            {"env": [{"name": "A", "valueFrom": {"x": 1}}]},
            "env[0].valueFrom",
            Reason.NOT_YET_SERVED,
        ),
        ({"mounts": [mount(isolation="Clone")]}, "mounts[0].isolation", Reason.NOT_YET_SERVED),
        ({"mounts": [mount(branch="b")]}, "mounts[0].branch", Reason.SPEC_INVALID),
        ({"mounts": [mount(hostPath="/s/../e")]}, "mounts[0].hostPath", Reason.SPEC_INVALID),
        ({"mounts": [mount(hostPath="s")]}, "mounts[0].hostPath", Reason.SPEC_INVALID),
        ({"mounts": [mount(mountPath="/run")]}, "mounts[0].mountPath", Reason.SPEC_INVALID),
        ({"mounts": [mount(mountPath="/home/agent")]}, "mounts[0].mountPath", Reason.SPEC_INVALID),
        ({"mounts": [mount(git={"url": "u"})]}, "mounts[0]", Reason.SPEC_INVALID),
        ({"home": {"mountPath": "/run/sessionkeeper"}}, "home.mountPath", Reason.SPEC_INVALID),
        (
            {"resources": {"requests": {"cpu": "1"}}},
            "resources.requests.cpu",
            Reason.NOT_YET_SERVED,
        ),
        ({"resources": {"limits": {"cpu": "x"}}}, "resources.limits.cpu", Reason.SPEC_INVALID),
        ({"user": "0"}, "user", Reason.RUN_AS_ROOT),
        ({"user": "000:5"}, "user", Reason.RUN_AS_ROOT),
        ({"exitPolicy": "Never"}, "exitPolicy", Reason.SPEC_INVALID),
        (
            {"restore": {"backoff": {"initial": "soon"}}},
            "restore.backoff.initial",
            Reason.SPEC_INVALID,
        ),
    ],
)
def test_each_fault_names_its_field(fields: dict[str, Any], field: str, reason: Reason) -> None:
    """Refused in words, never ignored in silence."""
    assert faults(**fields)[field] is reason


def test_a_faulty_spec_still_has_its_intent() -> None:
    """A person can always keep or purge a session whose other fields are refused."""
    spec = parse_spec(raw_spec(desiredState="Purged", sidecars=[{"name": "d"}], user=["x"]))
    assert spec.desired is DesiredState.PURGED
    assert spec.faults


def test_a_mount_path_twice_is_named() -> None:
    """The second of two mounts at one place is the fault."""
    twice = [mount(), mount(name="n", hostPath="/t")]
    assert faults(mounts=twice) == {"mounts[1].mountPath": Reason.SPEC_INVALID}


def test_root_is_allowed_where_the_session_is_not_restricted() -> None:
    """The host has its own say in that (law 17)."""
    assert faults(user="0", security="Baseline") == {}


def test_values_are_read_with_their_units() -> None:
    """Quantities and durations become numbers once."""
    spec = parse_spec(
        raw_spec(
            resources={"limits": {"cpu": "250m", "memory": "16Mi"}},
            restore={"backoff": {"initial": "1m30s"}},
            retention={"ttlSecondsAfterPurged": 0},
        )
    )
    assert (spec.nano_cpus, spec.memory_bytes) == (250_000_000, 16 * 1024**2)
    assert spec.restore.backoff == timedelta(seconds=90)
    assert spec.ttl_after_purged == timedelta(0)
