"""Sessions come back by themselves when their host dies, and only those (laws 3, 4, 6, 9)."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.environment import Cluster
from tests.e2e.host import SLEEPER, Host, eventually

NAMES = [f"s{number}" for number in range(8)]


@pytest.fixture
def engine(cluster: Cluster) -> Iterator[Cluster]:
    """The engine, running again whatever a test did to it."""
    yield cluster
    cluster.engine_start()


def settle(host: Host) -> None:
    """Eight running sessions with work in them, one that exited 255 and one stopped by hand."""
    host.apply_all(
        [host.manifest(name) for name in NAMES]
        + [host.manifest("own-255", command=["sh", "-c", "exit 255"]), host.manifest("by-hand")]
    )
    for name in [*NAMES, "by-hand"]:
        host.wait(name, "Running")
    for name in NAMES:
        host.run_in(name, f"echo {name} > ~/home-file; echo {name} > /opt/layer-file")
    host.container("by-hand").stop(timeout=1)
    host.wait("own-255", "Exited")
    host.wait("by-hand", "Exited")


def assert_all_came_back(host: Host) -> None:
    """The eight are back as they were by rung 1; the two others stayed as they were."""
    for name in NAMES:
        status = host.wait_run(name, 2)
        assert status["restore"]["tier"] == 1, status
        assert "lost" not in status["restore"]
        causes = [entry.get("cause") for entry in status["history"]]
        assert "HostLost" in causes
        assert "SetupFailed" not in causes
        host.shows(name, "cat ~/home-file /opt/layer-file", f"{name}\n{name}\n")
    assert host.status("own-255")["cause"] == "Crashed"
    assert host.status("own-255")["runId"] == 1
    assert host.status("by-hand")["cause"] == "Unknown"
    assert host.status("by-hand")["runId"] == 1


def power_cut(cluster: Cluster) -> None:
    """The host dies at once and comes back."""
    cluster.engine_kill()
    cluster.engine_start()


def engine_upgrade(cluster: Cluster) -> None:
    """The engine stops in order, ending its containers with 0 or 137, and comes back."""
    cluster.engine_stop_gracefully(timeout=30)
    cluster.engine_start()


@pytest.mark.parametrize("loss", [power_cut, engine_upgrade])
def test_sessions_return_when_their_host_does(
    host: Host, engine: Cluster, loss: Callable[[Cluster], None]
) -> None:
    """Law 9: any exit code counts as the host's when the end belongs to the engine's going."""
    settle(host)
    loss(engine)
    assert_all_came_back(host)


@pytest.mark.parametrize("loss", [power_cut, engine_upgrade])
def test_sessions_return_when_the_controller_died_with_the_host(
    host: Host, engine: Cluster, loss: Callable[[Cluster], None]
) -> None:
    """Nobody watched, and the stamps still tell the host's loss from a session's own end."""
    settle(host)
    host.kill()
    loss(engine)
    host.start()
    assert_all_came_back(host)


def test_a_host_loss_under_hold_waits_for_a_person(host: Host, engine: Cluster) -> None:
    """`onHostLoss: Hold` keeps the container and says how to go on."""
    host.apply("s", restore={"onHostLoss": "Hold"})
    host.wait("s", "Running")
    power_cut(engine)
    status = host.wait("s", "Exited")
    assert status["cause"] == "HostLost"
    assert host.condition("s", "Stalled")["status"] == "True"
    host.patch("s", restore={"retryRun": status["runId"]})
    assert host.wait_run("s", 2)["restore"]["tier"] == 1


def test_two_losses_in_a_row_are_two_restores(host: Host, engine: Cluster) -> None:
    """The epoch that matters is the one in which the run was last confirmed alive."""
    host.apply("s")
    host.wait("s", "Running")
    for run_id in (2, 3):
        power_cut(engine)
        assert host.wait_run("s", run_id)["restore"]["tier"] == 1


def test_a_new_session_after_a_loss_takes_nothing_from_the_others(
    host: Host, engine: Cluster
) -> None:
    """Requirement J26: stopped containers of wanted sessions are not litter for a launch."""
    host.apply("old", restore={"onHostLoss": "Hold"}, command=SLEEPER)
    host.wait("old", "Running")
    host.run_in("old", "echo kept > /opt/layer-file")
    power_cut(engine)
    host.wait("old", "Exited")
    host.apply("new")
    host.wait("new", "Running")
    host.patch("old", restore={"onHostLoss": "Restore"})
    host.wait_run("old", 2)
    host.shows("old", "cat /opt/layer-file", "kept\n")


def test_an_unreachable_engine_freezes_and_loses_nothing(idle_host: Host, engine: Cluster) -> None:
    """Law 3: the phase stays, the condition says so, and the same process is found again."""
    host = idle_host
    host.flags = ["--resync-seconds", "2"]
    host.start()
    host.apply("s")
    before = host.wait("s", "Running")
    started = host.container("s").attrs["State"]["StartedAt"]
    eventually(host.pins, what="the last effect of the launch is done")
    engine.engine_pause()
    try:
        host.wait_condition("s", "BackendReachable", "False")
        assert host.status("s")["phase"] == "Running"
        host.patch("s", title="changed while the engine was silent")
    finally:
        engine.engine_unpause()
    host.wait_condition("s", "BackendReachable", "True")
    assert host.status("s")["runId"] == before["runId"]
    assert host.container("s").attrs["State"]["StartedAt"] == started


def test_what_is_decided_while_the_engine_is_silent_is_done_on_its_return(
    host: Host, engine: Cluster
) -> None:
    """A container found at 255 goes on to Keeping and is not restarted (settled.md, *Pairs*)."""
    host.apply("s")
    host.wait("s", "Running")
    engine.engine_kill()
    host.wait_condition("s", "BackendReachable", "False")
    host.patch("s", desiredState="Kept")
    engine.engine_start()
    status = host.wait("s", "Kept")
    assert status["runId"] == 1
    assert host.containers("s") == []


def test_deleting_never_waits_for_a_silent_engine(host: Host, engine: Cluster) -> None:
    """Law 13: the object goes at once; its container is freed once the engine is back."""
    host.apply("s")
    host.wait("s", "Running")
    host.run_in("s", "echo work > ~/file")
    directory = host.directory("s")
    engine.engine_kill()
    host.wait_condition("s", "BackendReachable", "False")
    host.delete("s")
    assert (directory / "home/file").read_text() == "work\n"
    engine.engine_start()
    eventually(lambda: not host.containers("s"), what="the container of the deleted session goes")
    archived = host.state_root / "archive" / directory.name / "home/file"
    eventually(archived.exists, what="its directory is in the archive")
    assert archived.read_text() == "work\n"
