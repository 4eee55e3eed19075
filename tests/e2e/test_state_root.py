"""A state root that can not be written while sessions run: said, nothing lost, goes on by itself.

What a launch does on a full or missing disk is in test_bad_input.py.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.command import run
from tests.e2e import shared_mount
from tests.e2e.host import Host, eventually
from tests.e2e.test_cases_engine import IMPATIENT, power_cut

READ_ONLY = "StateRootNotWritable"


@contextmanager
def read_only(host: Host) -> Iterator[None]:
    """The controller finds its state root read-only, as a disk is after an error."""
    root = str(host.state_root)
    run(["mount", "--bind", root, root])
    try:
        run(["mount", "-o", "remount,bind,ro", root])
        yield
    finally:
        run(["umount", "--lazy", root])


@pytest.fixture
def busy(host: Host) -> Host:
    """A host with two running sessions that have a file in their homes."""
    for name in ("a", "b"):
        host.apply(name, restore=IMPATIENT)
    for name in ("a", "b"):
        host.wait(name, "Running")
        host.shows(name, f"echo {name} > ~/file && cat ~/file", f"{name}\n")
    eventually(host.pins, what="the last effect of the launches is done")
    return host


def told(host: Host, name: str, reason: str) -> None:
    """The status says what keeps the session from going on, and what to do."""
    stalled = host.wait_condition(name, "Stalled", "True", reason)
    assert str(host.state_root) in stalled["message"]
    assert "nothing was changed" in stalled["message"]


def kept_file(host: Host, name: str) -> str:
    """The file in a session's home, as it is on the disk."""
    return (host.directory(name) / "home/file").read_text()


def test_a_read_only_state_root_stops_every_step(busy: Host) -> None:
    """Record before effect: nothing is stopped, made or called ended, and it goes on by itself."""
    host = busy
    process = host.container("a").attrs["State"]["StartedAt"]
    with read_only(host):
        host.patch("a", desiredState="Kept")
        host.apply("c")
        host.container("b").kill("SIGKILL")
        for name in ("a", "b", "c"):
            told(host, name, READ_ONLY)
        assert [host.status(name)["phase"] for name in "abc"] == ["Running", "Running", "Pending"]
        assert host.container("a").attrs["State"]["StartedAt"] == process
        assert host.containers("c") == []
    host.wait("a", "Kept")
    host.wait("c", "Running")
    assert host.wait("b", "Exited")["runId"] == 1
    assert [kept_file(host, name) for name in "ab"] == ["a\n", "b\n"]


def test_a_host_that_dies_while_its_state_root_is_read_only(busy: Host) -> None:
    """The loss is judged once it can be recorded; then all come back by rung 1."""
    host = busy
    with read_only(host):
        power_cut(host)
        for name in "ab":
            told(host, name, READ_ONLY)
            assert host.status(name)["phase"] == "Running"
    for name in "ab":
        status = host.wait_run(name, 2)
        assert status["restore"]["tier"] == 1
        assert "HostLost" in [entry.get("cause") for entry in status["history"]]
        host.shows(name, "cat ~/file", f"{name}\n")


def test_a_controller_that_starts_on_a_read_only_state_root(busy: Host) -> None:
    """It says so, touches nothing, and serves as soon as it can write."""
    host = busy
    host.stop()
    with read_only(host):
        host.start()
        host.patch("a", desiredState="Kept")
        told(host, "a", READ_ONLY)
        assert host.container("a").status == "running"
    host.wait("a", "Kept")
    assert host.status("b")["runId"] == 1
    assert kept_file(host, "a") == "a\n"


@contextmanager
def small_disk(host: Host) -> Iterator[None]:
    """The state root is a disk of its own, which the engine sees too, and that is soon full."""
    engine = f"{host.cluster.project}-engine"
    root = str(host.state_root)
    host.state_root.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", root])
    found = run(["docker", "-H", host.cluster.outer, "inspect", "-f", "{{.State.Pid}}", engine])
    pid = found.stdout.strip()
    try:
        run([sys.executable, str(shared_mount.__file__), root, pid])
        yield
    finally:
        host.kill()
        run(["nsenter", "--target", pid, "--mount", "umount", "--lazy", root], check=False)
        run(["umount", "--lazy", root])
        shutil.rmtree(root)


@pytest.fixture
def on_small_disk(idle_host: Host) -> Iterator[Host]:
    """A host on a small disk, with a running session."""
    host = idle_host
    with small_disk(host):
        host.start()
        host.apply("a", restore=IMPATIENT)
        host.wait("a", "Running")
        host.shows("a", "echo a > ~/file && cat ~/file", "a\n")
        eventually(host.pins, what="the last effect of the launch is done")
        yield host


def fill(host: Host) -> Path:
    """The session itself writes until nothing fits any more."""
    host.container("a").exec_run(["sh", "-c", "cat /dev/zero > ~/filler"])
    return host.directory("a") / "home/filler"


def test_a_full_disk_stops_every_step_and_loses_nothing(on_small_disk: Host) -> None:
    """A session that fills the disk runs on; what is decided meanwhile is done once there is space.

    The old manifest is there, whole.
    """
    host = on_small_disk
    filler = fill(host)
    manifest = (host.directory("a") / "manifest.json").read_bytes()
    host.patch("a", desiredState="Kept")
    host.apply("b")
    for name in "ab":
        told(host, name, "NoSpace")
    assert host.container("a").status == "running"
    assert host.containers("b") == []
    assert (host.directory("a") / "manifest.json").read_bytes() == manifest
    filler.unlink()
    host.wait("a", "Kept")
    host.wait("b", "Running")
    assert kept_file(host, "a") == "a\n"


def test_an_end_on_a_full_disk_is_told_once_there_is_space(on_small_disk: Host) -> None:
    """What can not be recorded is not called ended; the cause is the same later."""
    host = on_small_disk
    filler = fill(host)
    host.container("a").kill("SIGKILL")
    told(host, "a", "NoSpace")
    assert host.status("a")["phase"] == "Running"
    filler.unlink()
    status = host.wait("a", "Exited")
    assert (status["exit"]["code"], status["runId"]) == (137, 1)
    assert kept_file(host, "a") == "a\n"


def test_a_deletion_does_not_wait_for_a_read_only_state_root(busy: Host) -> None:
    """Law 13: the object goes; its directory is left, to be adopted."""
    host = busy
    directory = host.directory("a")
    with read_only(host):
        host.delete("a")
    assert (directory / "home/file").read_text() == "a\n"


def test_a_deletion_does_not_wait_for_space(on_small_disk: Host) -> None:
    """Law 13: the object goes at once, and the work is there."""
    host = on_small_disk
    directory = host.directory("a")
    fill(host)
    host.delete("a")
    found = [directory, *(host.state_root / "archive").glob("*")]
    assert [(path / "home/file").read_text() for path in found if path.exists()] == ["a\n"]
