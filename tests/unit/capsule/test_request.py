"""A request as it is handed to the capsule, and what the command answers."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from controller.capsule.request import BadRequest, from_json, to_json
from tests.unit.capsule.builder import Bench

ROOT = Path(__file__).parents[3]


def test_written_and_read(bench: Bench) -> None:
    """What the controller writes down is what the capsule reads."""
    request = replace(
        bench.request(home=bench.root, run=7, seconds=1.5), remotes=frozenset({"https://x/y"})
    )
    assert from_json(to_json(request)) == request


BAD = ["", "[]", "null", "{}", '{"sessionUID": "u", "runId": "x", "trees": []}',
       '{"sessionUID": "u", "runId": 1, "trees": [{"name": "w"}]}',
       '{"sessionUID": "u", "runId": 1, "trees": 5}']  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_not_a_request(text: str) -> None:
    """What can not be read is refused, and nothing is assessed."""
    with pytest.raises(BadRequest, match="can not be read"):
        from_json(text)


def _run(given: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "controller.capsule", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT)


def test_command(bench: Bench) -> None:
    """The command prints the verdict on what it is given."""
    bench.write("a", "edited\n")
    done = _run(to_json(bench.request()), "assess")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == bench.assess().to_json()


def test_command_without_a_request() -> None:
    """A command that has nothing to assess prints no verdict."""
    done = _run("{}", "assess")
    assert (done.returncode, done.stdout) == (2, "")
    assert "can not be read" in done.stderr


def test_command_without_a_name() -> None:
    """Only what is known is done."""
    assert _run("{}").returncode == 2
