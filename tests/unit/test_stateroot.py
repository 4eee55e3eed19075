"""The lock of a state root: one controller for a directory, whatever the Lease says."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.api.reasons import Reason
from controller.stateroot import lock
from controller.workspace.instances import StorageFault

HOLD = """
import sys
from pathlib import Path
from controller.stateroot import lock
with lock(Path(sys.argv[1]), "holder", ""):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the state root until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def refusal(state_root: Path) -> StorageFault:
    """Try to hold a state root that can not be held, and return why not."""
    with pytest.raises(StorageFault) as caught, lock(state_root, "me", ""):
        pass
    return caught.value


def test_a_state_root_is_held_by_one_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """Two controllers never work on the same directories."""
    assert refusal(tmp_path).reason is Reason.STATE_ROOT_IN_USE


def test_a_frozen_predecessor_keeps_no_successor_out(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    """Whose Lease was taken over finds it lapsed before it acts; any other holder still counts."""
    with pytest.raises(StorageFault), lock(tmp_path, "me", "somebody else"):
        pass
    with lock(tmp_path, "me", "holder"):
        assert (tmp_path / ".lock").read_text().strip() == "me"


def test_the_lock_dies_with_its_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """A killed controller leaves nothing to clean up."""
    holder.kill()
    holder.wait()
    with lock(tmp_path, "me", ""):
        pass


def test_the_lock_is_free_after_use(tmp_path: Path) -> None:
    """It ends with its block, also when that fails."""
    with pytest.raises(RuntimeError), lock(tmp_path, "me", ""):
        raise RuntimeError
    with lock(tmp_path, "me", ""):
        assert (tmp_path / ".lock").stat().st_mode & 0o077 == 0


def test_a_state_root_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A missing disk is a fault, never an empty beginning (law 3)."""
    missing = tmp_path / "unmounted"
    assert refusal(missing).reason is Reason.STATE_ROOT_NOT_WRITABLE
    assert not missing.exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """The lock is a file of the state root, not one that somebody points at."""
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    assert refusal(tmp_path).reason is Reason.STATE_ROOT_NOT_WRITABLE
    assert not (tmp_path / "elsewhere").exists()
