"""The controller dies at any boundary of any effect; the next one finishes what was begun.

Never two containers of one session, never a lost directory, never work that is gone (laws 1, 6).
"""

import pytest

from tests.e2e.host import Host, eventually

LAUNCH = [
    "before:AddFinalizer",
    "after:AddFinalizer",
    "before:RecordManifest",
    "after:RecordManifest",
    "after:PrepareHome",
    "after:WriteRunDirectory",
    "after:EnsureNetwork",
    "before:CreateAndStart",
    "between:CreateAndStart",
    "after:CreateAndStart",
    "before:PinImage",
    "after:PinImage",
]
KEEP = [
    "before:StopContainer",
    "after:StopContainer",
    "before:StartInspector",
    "after:StartInspector",
    "after:RecordManifest",
    "before:RemoveContainer",
    "after:RemoveContainer",
    "after:RemoveNetwork",
    "after:RemoveRunDirectory",
]
RESTORE = ["after:RecordManifest", "after:WriteRunDirectory", "before:StartContainer",
           "after:StartContainer"]  # fmt: skip


def die_at(host: Host, point: str) -> None:
    """Start a controller that will die at a point."""
    host.entry = ["-m", "tests.e2e.stopping_controller"]
    host.environment = {"STOP_AT": point}
    host.start()


def recover(host: Host, point: str) -> None:
    """Wait until the controller has died there, then start an ordinary one."""
    eventually(host.ended, what=f"the controller dies at {point}\n{host.log()}")
    host.entry, host.environment = ["-m", "controller"], {}
    host.start()


@pytest.mark.parametrize("point", LAUNCH)
def test_a_launch_that_was_cut_off_is_finished(idle_host: Host, point: str) -> None:
    """One container runs in the end, and it is the only one that there is."""
    host = idle_host
    die_at(host, point)
    host.apply("s")
    recover(host, point)
    host.wait("s", "Running")
    eventually(lambda: len(host.containers("s")) == 1, what="one container")
    host.run_in("s", "echo work > ~/file")
    assert (host.directory("s") / "home/file").exists()


@pytest.mark.parametrize("point", KEEP)
def test_a_keep_that_was_cut_off_is_finished(idle_host: Host, point: str) -> None:
    """Kept in the end, with the home as it was."""
    host = idle_host
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo work > ~/file")
    host.stop()
    die_at(host, point)
    host.patch("s", desiredState="Kept")
    recover(host, point)
    host.wait("s", "Kept")
    assert host.containers("s") == []
    assert host.networks() == []
    assert (host.directory("s") / "home/file").read_text() == "work\n"


@pytest.mark.parametrize("point", [*KEEP, "before:RemoveInstance", "after:RemoveInstance"])
def test_a_purge_that_was_cut_off_is_finished(idle_host: Host, point: str) -> None:
    """Purged in the end, with nothing left."""
    host = idle_host
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    directory = host.directory("s")
    host.stop()
    die_at(host, point)
    host.patch("s", desiredState="Purged")
    recover(host, point)
    host.wait("s", "Purged")
    assert host.containers("s") == []
    assert host.networks() == []
    assert not directory.exists()


@pytest.mark.parametrize("point", RESTORE)
def test_a_restore_that_was_cut_off_is_finished(idle_host: Host, point: str) -> None:
    """The same container comes back, with its writable layer."""
    host = idle_host
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo layer > /opt/file")
    host.stop()
    host.cluster.engine_kill()
    host.cluster.engine_start()
    die_at(host, point)
    recover(host, point)
    host.wait_run("s", 2)
    host.shows("s", "cat /opt/file", "layer\n")


@pytest.mark.parametrize("point", ["before:ArchiveInstance", "after:ArchiveInstance",
                                   "before:RemoveFinalizer", "after:RemoveContainer"])  # fmt: skip
def test_a_deletion_that_was_cut_off_is_finished(idle_host: Host, point: str) -> None:
    """The object goes, and the work is in the archive exactly once."""
    host = idle_host
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo work > ~/file")
    host.stop()
    die_at(host, point)
    host.delete("s", "--wait=false")
    recover(host, point)
    eventually(lambda: host.session("s") is None, what="the object goes")
    assert host.containers("s") == []
    (archived,) = (host.state_root / "archive").iterdir()
    assert (archived / "home/file").read_text() == "work\n"
