"""The samples are what the API takes, and those of this release are what the controller serves."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from controller.api.parsing import parse_spec
from controller.api.reasons import Reason
from controller.policies import unserved
from tests.unit.crds.schema import ROOT, closed, defaulted, schema

SAMPLES = ROOT / "manifests" / "samples"
SERVED = sorted(SAMPLES.glob("*.yaml"))
LATER = sorted((SAMPLES / "not-yet-served").glob("*.yaml"))
SERVED_SESSIONS = [path for path in SERVED if path.name.startswith("session")]
SERVED_POLICIES = [path for path in SERVED if path.name.startswith("policy")]
LATER_POLICIES = [path for path in LATER if path.name.startswith("policy")]
LATER_SESSIONS = [path for path in LATER if path.name.startswith("session-")]


def read(path: Path) -> dict[str, Any]:
    """Return a sample as the API server would store it."""
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    stored = defaulted(schema(body["kind"]), body)
    return dict(stored)


@pytest.mark.parametrize("path", [*SERVED, *LATER], ids=lambda path: path.stem)
def test_a_sample_fits_the_schema(path: Path) -> None:
    """No sample is refused by the server, and none has a field that it would drop."""
    body = read(path)
    errors = Draft202012Validator(closed(schema(body["kind"]))).iter_errors(
        {key: value for key, value in body.items() if key != "metadata"}
    )
    assert [error.message for error in errors] == []


@pytest.mark.parametrize("path", [*SERVED, *LATER], ids=lambda path: path.stem)
def test_a_sample_begins_by_saying_what_it_is_for(path: Path) -> None:
    """Each sample is one use, told in its first lines."""
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", SERVED_SESSIONS, ids=lambda path: path.stem)
def test_a_served_sample_has_no_fault(path: Path) -> None:
    """What a reader copies from the samples runs."""
    assert [fault.message for fault in parse_spec(read(path)["spec"]).faults] == []


@pytest.mark.parametrize("path", LATER_SESSIONS, ids=lambda path: path.stem)
def test_a_later_sample_is_refused_in_words(path: Path) -> None:
    """What this release does not do is never silently ignored."""
    faults = parse_spec(read(path)["spec"]).faults
    assert {fault.reason for fault in faults} == {Reason.NOT_YET_SERVED}


@pytest.mark.parametrize("path", [*SERVED_POLICIES, *LATER_POLICIES], ids=lambda path: path.stem)
def test_a_policy_is_served_or_refused_in_words(path: Path) -> None:
    """By where its file lies."""
    assert bool(unserved(read(path))) == (path in LATER_POLICIES)


def test_the_samples_leave_the_desired_state_out() -> None:
    """A manifest without the field never restarts a session that was kept."""
    told = [path.stem for path in SERVED if "desiredState" in read(path)["spec"]]
    assert told == ["session-that-discards"]
