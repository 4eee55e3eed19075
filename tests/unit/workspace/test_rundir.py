"""What a session writes in its run directory is read with distrust."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.api.vocabulary import ExitPolicy
from controller.workspace.rundir import MOST_EXIT_ACTION, AgentConfig, RunDirectories, Told

UID = "00000000-0000-4000-8000-000000000001"
NAME = "exit-action.json"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The directory that the session writes."""
    made = tmp_path / UID / "out"
    made.mkdir(parents=True)
    return made


def test_a_file_is_read(out: Path) -> None:
    """Up to a limit."""
    (out / NAME).write_text("x" * (MOST_EXIT_ACTION + 1))
    found = RunDirectories(out.parents[1]).exit_action(UID)
    assert found is not None
    assert len(found) == MOST_EXIT_ACTION


def linked(out: Path) -> None:
    """A link to a file of the host."""
    (out / NAME).symlink_to("/etc/hostname")


def fifo(out: Path) -> None:
    """A pipe that nobody writes."""
    os.mkfifo(out / NAME)


def directory(out: Path) -> None:
    """A directory."""
    (out / NAME).mkdir()


def moved(out: Path) -> None:
    """The whole directory swapped for a link."""
    elsewhere = out.parents[1] / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / NAME).write_text("{}")
    out.rmdir()
    out.symlink_to(elsewhere)


@pytest.mark.parametrize("put", [linked, fifo, directory, moved, lambda _: None])
def test_anything_else_is_nothing(out: Path, put: Callable[[Path], None]) -> None:
    """No link is followed, and nothing is waited for."""
    put(out)
    assert RunDirectories(out.parents[1]).exit_action(UID) is None


def told(exit_policy: ExitPolicy = ExitPolicy.ASK) -> Told:
    """What a second run is told."""
    config = AgentConfig(
        uid=UID,
        namespace="ns",
        name="s",
        workspace="w",
        role="r",
        agent="a",
        run_id=2,
        resumed=True,
        home="/home/agent",
        working_dir="/src",
    )
    return Told(config=config, exit_policy=exit_policy, request='{"runId": 2}')


@pytest.mark.parametrize("policy", ExitPolicy)
def test_a_run_is_told_what_its_capsule_needs(out: Path, policy: ExitPolicy) -> None:
    """Readable by the session, writable by nobody but us; a choice of an earlier run is gone."""
    (out / NAME).write_text("{}")
    RunDirectories(out.parents[1]).write(told(policy), "1000:1001")
    inner = out.parent / "in"
    assert json.loads((inner / "capsule.json").read_text()) == {
        "runId": 2,
        "exitPolicy": str(policy),
    }
    assert (inner / "request.json").read_text() == '{"runId": 2}'
    assert tomllib.loads((inner / "agent.toml").read_text())["session"]["run_id"] == 2
    assert list(out.iterdir()) == []
    assert (out.stat().st_uid, out.stat().st_gid) == (1000, 1001)
    assert {path.stat().st_uid for path in (inner, *inner.iterdir())} == {0}
    assert not any(path.stat().st_mode & 0o022 for path in (inner, *inner.iterdir()))
