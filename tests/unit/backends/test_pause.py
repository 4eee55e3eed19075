"""The program that does nothing."""

import io
import os
import platform
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from controller.backends.pause import PAUSE_PATH, pause_archive, pause_binary, pause_image_tag


def test_it_runs_on_this_machine_and_waits(tmp_path: Path) -> None:
    """It needs no library, sleeps rather than spins, and ends by a signal."""
    program = tmp_path / "pause"
    program.write_bytes(pause_binary(platform.machine()))
    program.chmod(0o755)
    with subprocess.Popen([program]) as running:
        deadline = time.monotonic() + 10
        while _state(running.pid) != "S" and time.monotonic() < deadline:
            os.sched_yield()
        assert _state(running.pid) == "S"
        running.terminate()
        assert running.wait(timeout=10) == -signal.SIGTERM


def _state(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("architecture", "machine"), [("x86_64", 62), ("amd64", 62), ("aarch64", 183), ("arm64", 183)]
)
def test_it_is_a_static_executable_of_its_architecture(architecture: str, machine: int) -> None:
    """The kernel's and the engine's name of an architecture give the same program."""
    binary = pause_binary(architecture)
    assert binary[:5] == b"\x7fELF\x02"
    assert int.from_bytes(binary[18:20], "little") == machine
    assert len(binary) < 256


def test_an_unknown_architecture_is_refused() -> None:
    """No program that would not run is ever made."""
    with pytest.raises(ValueError, match="riscv64"):
        pause_binary("riscv64")


def test_the_archive_holds_it_for_any_user() -> None:
    """A pin runs as nobody."""
    with tarfile.open(fileobj=io.BytesIO(pause_archive("amd64"))) as archive:
        (member,) = archive.getmembers()
    assert (member.name, member.mode) == (PAUSE_PATH, 0o755)


def test_another_program_has_another_tag() -> None:
    """An image made by another version is not taken for this one's."""
    assert pause_image_tag("amd64") != pause_image_tag("arm64")
