"""What `doctor` prints, and what it makes of CRDs, versions and directories; the rest needs parts.

Each fault against real parts is in tests/e2e/test_doctor.py.
"""

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest

from controller.doctor import directory_fault, doctor, printable
from controller.doctor_api import STATUS_FIELDS, definition_fault, server
from controller.settings import Settings
from tests.unit.crds.schema import crd
from tests.unit.loopback import Answer, kubeconfig, serving

FORGED = "v1.0\x1b[2J\nok    forged\r\x9b\u202e\u2028"
KINDS = {
    "sessioninstances": "SessionInstance",
    "sessionpolicies": "SessionPolicy",
    "sessionhosts": "SessionHost",
}


def run(directory: Path, **changes: Any) -> tuple[int, list[str]]:
    """The exit status and the lines of a doctor without API server and engine."""
    settings: dict[str, Any] = {
        "host": "h",
        "all_namespaces": True,
        "kubeconfig": directory / "none",
        "docker_host": f"unix://{directory}/no.sock",
        "state_root": directory / "state",
        "run_root": directory / "run",
    }
    out = io.StringIO()
    status = doctor(Settings(**(settings | changes)), out)
    text = out.getvalue()
    assert text.endswith("\n")
    return status, text[:-1].split("\n")


def test_faults_are_counted(tmp_path: Path) -> None:
    """The exit status is 1, the last line counts, and what is sound is `ok` all the same."""
    status, lines = run(tmp_path)
    assert status == 1
    assert [line[:16] for line in lines[:2]] == ["FAIL  API server", "FAIL  engine at "]
    assert [line[:9] for line in lines[2:4]] == ["ok    --s", "ok    --r"]
    assert lines[4:] == ["2 fault(s) found."]


def test_nothing_is_left(tmp_path: Path) -> None:
    """It changes nothing, not even where it looks whether it could write."""
    run(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_paths_can_not_forge_a_line(tmp_path: Path) -> None:
    """Law 14: what is printed is one line for each finding, whatever a flag holds."""
    _, lines = run(tmp_path, allow_source=(tmp_path / FORGED,))
    assert len(lines) == 6
    assert lines[4].startswith("FAIL  --allow-source ")
    assert all(line.isprintable() for line in lines)


def test_a_server_can_not_forge_a_line(tmp_path: Path) -> None:
    """Law 14: the words of whatever answers in the API server's place are only words."""
    with serving() as answering:
        answering.answer = Answer(body=json.dumps({"gitVersion": FORGED}).encode())
        status, lines = run(tmp_path, kubeconfig=kubeconfig(tmp_path, answering.url))
    assert status == 1
    assert lines[0].startswith("ok    API server v1.0 ")
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith(("ok    ", "FAIL  ")) for line in lines[:-1])


def test_what_a_terminal_obeys_becomes_a_space() -> None:
    """Letters of every script stay."""
    assert printable("grün\x1b[0m\n語") == "grün [0m 語"


@pytest.mark.parametrize(
    ("version", "noted"),
    [
        ("v1.20.2", True),
        ("v1.24.17-eks-1", True),
        ("v1.25.0", False),
        ("v1.31.2", False),
        ("v2.0.0", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_an_older_server_is_no_fault(version: str, *, noted: bool) -> None:
    """It is said what a server that drops CEL rules can not do."""
    finding = server(version)
    assert not finding.remedy
    assert ("before 1.25" in finding.what) is noted


def served(kind: str) -> dict[str, Any]:
    """A copy of our CRD to spoil."""
    return copy.deepcopy(crd(kind))


@pytest.mark.parametrize("plural", list(STATUS_FIELDS))
def test_our_own_crds_are_sound(plural: str) -> None:
    """Every status field that a controller writes is in the CRD of this release."""
    assert definition_fault(served(KINDS[plural]), plural) == ""


@pytest.mark.parametrize(
    ("plural", "field"),
    [(plural, name) for plural, names in STATUS_FIELDS.items() for name in names],
)
def test_a_field_that_a_crd_lacks_is_named(plural: str, field: str) -> None:
    """Case C14: the stale CRD is named with what it would drop, and how to mend it."""
    definition = served(KINDS[plural])
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    *parents, last = ["status", *field.split(".")]
    for parent in parents:
        schema = schema["properties"][parent]
    del schema["properties"][last]
    fault = definition_fault(definition, plural)
    assert f"status.{field}" in fault
    assert "kubectl apply -f crds/" in fault


def test_a_crd_that_can_not_serve_is_told() -> None:
    """Another version, no status subresource, or names that another CRD has."""
    unserved, flat, refused = (served("SessionInstance") for _ in range(3))
    unserved["spec"]["versions"][0]["served"] = False
    del flat["spec"]["versions"][0]["subresources"]
    condition = {"type": "NamesAccepted", "status": "False", "message": "taken by another"}
    refused["status"] = {"conditions": [condition]}
    assert "does not serve v1alpha1" in definition_fault(unserved, "sessioninstances")
    assert "no subresource" in definition_fault(flat, "sessioninstances")
    assert "taken by another" in definition_fault(refused, "sessioninstances")


def test_a_directory_that_is_made_later_is_sound(tmp_path: Path) -> None:
    """Only its nearest parent that is there must be writable."""
    assert directory_fault(tmp_path / "a" / "b") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_closed_to_others(tmp_path: Path) -> None:
    """What is in it is nobody else's to read."""
    tmp_path.chmod(0o700)
    assert directory_fault(tmp_path) == ""
    tmp_path.chmod(0o710)
    assert "chmod 700" in directory_fault(tmp_path)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """Also where it is a parent of what is asked about."""
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file is no directory" in directory_fault(tmp_path / "file" / "state")


def test_a_place_that_can_not_be_written_is_told() -> None:
    """The kernel's own directories are there and take no file, whoever asks."""
    assert "can not be written" in directory_fault(Path("/proc/state"))
