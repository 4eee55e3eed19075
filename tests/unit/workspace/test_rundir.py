"""What a session writes in its run directory is read with distrust."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.workspace.rundir import MOST_EXIT_ACTION, RunDirectories

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
