"""Faults of engines that users of such systems met, played before a real engine."""

import threading
from collections.abc import Iterator

import pytest

from tests.e2e.engine_proxy import EngineProxy
from tests.e2e.host import Host, eventually


@pytest.fixture
def proxy(idle_host: Host) -> Iterator[EngineProxy]:
    """A proxy between this host's controller and the engine."""
    with EngineProxy(idle_host.cluster.docker_host, idle_host.work / "p.sock") as made:
        idle_host.flags = ["--docker-host", made.docker_host, "--resync-seconds", "2"]
        yield made


@pytest.fixture
def proxied(idle_host: Host, proxy: EngineProxy) -> Host:
    """A host whose controller reaches the engine through the proxy."""
    idle_host.start()
    return idle_host


def test_an_end_whose_events_never_come_is_found_by_the_resync(
    idle_host: Host, proxy: EngineProxy
) -> None:
    """Case C04: the stream says nothing, the end is found and handled once, as a crash."""
    host = idle_host
    held = proxy.rule(r"GET .*/events")
    host.start()
    eventually(lambda: held.seen, what="the stream is subscribed")
    host.apply("s")
    eventually(lambda: host.containers("s"), what="a watch event alone starts it")
    host.wait("s", "Running")
    host.container("s").kill()
    proxy.drop(held)
    status = host.wait("s", "Exited")
    assert status["cause"] in ("Crashed", "Unknown")
    assert status["runId"] == 1


def test_one_inspect_that_never_answers_holds_up_nobody_else(
    proxied: Host, proxy: EngineProxy
) -> None:
    """Case C17: one call in flight at most; the others obey in normal time."""
    host = proxied
    names = [f"s{number}" for number in range(6)]
    host.apply_all([host.manifest(name) for name in names])
    for name in names:
        host.wait(name, "Running")
    stuck = proxy.rule(rf"GET .*/containers/{host.container('s0').id}/json")
    host.patch("s0", title="look at it")
    eventually(lambda: stuck.seen, what="the call that hangs")
    for name in names[1:]:
        host.patch(name, desiredState="Kept")
    for name in names[1:]:
        host.wait(name, "Kept")
    assert stuck.under_way <= 1
    host.wait_condition("s0", "BackendReachable", "False", "Timeout")
    assert host.status("s0")["phase"] == "Running"
    proxy.drop(stuck)
    host.patch("s0", title="it answers again")
    host.wait_condition("s0", "BackendReachable", "True")


def test_a_stop_that_fails_is_not_taken_for_done(proxied: Host, proxy: EngineProxy) -> None:
    """Case C28: Keeping until absence is observed; Running meanwhile is the same container."""
    host = proxied
    host.apply("s")
    host.wait("s", "Running")
    container = host.container("s").id
    failing = proxy.rule(r"POST .*/stop", status=504)
    host.patch("s", desiredState="Kept")
    host.wait("s", "Keeping")
    eventually(lambda: failing.seen >= 2, what="it is tried again")
    assert host.status("s")["phase"] == "Keeping"
    host.patch("s", desiredState="Running")
    host.wait("s", "Running")
    assert [c.id for c in host.containers("s")] == [container]
    proxy.drop(failing)


def test_a_removal_that_fails_keeps_the_purge_going(proxied: Host, proxy: EngineProxy) -> None:
    """Case C03: 500, then "already in progress", then gone: Purged only after it was seen gone."""
    host = proxied
    host.apply("s")
    host.wait("s", "Running")
    busy = proxy.rule(r"DELETE .*/containers/", status=500, message="device or resource busy")
    host.patch("s", desiredState="Purged")
    eventually(lambda: busy.seen, what="the removal is refused")
    proxy.drop(busy)
    progress = proxy.rule(
        r"DELETE .*/containers/", status=409, message="removal of container is already in progress"
    )
    eventually(lambda: progress.seen, what="the removal is said to be in progress")
    assert host.status("s")["phase"] == "Purging"
    proxy.drop(progress)
    host.wait("s", "Purged")
    assert host.containers("s") == []


def test_a_container_that_will_not_start_is_replaced_and_kept_aside(
    proxied: Host, proxy: EngineProxy
) -> None:
    """Case C08: a fault of the container opens rung 2, quoted; its layer goes only when Ready."""
    host = proxied
    host.apply("s", restore={"backoff": {"initial": "1s", "max": "1s"}})
    host.wait("s", "Running")
    host.shows("s", "echo home > ~/file && cat ~/file", "home\n")
    broken = host.container("s").id
    message = "readlink /var/lib/docker/overlay2/l/X: invalid argument"
    refused = proxy.rule(rf"POST .*/containers/{broken}/start", status=500, message=message)
    host.cluster.engine_kill()
    host.cluster.engine_start()
    eventually(lambda: refused.seen >= 2, what="the start is refused twice")
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    assert "invalid argument" in status["restore"]["skipped"][0]["reason"]
    assert status["restore"]["lost"]
    eventually(lambda: len(host.containers("s")) == 1, what="the broken one is removed at last")
    assert host.container("s").id != broken
    host.shows("s", "cat ~/file", "home\n")


def test_a_full_disk_of_the_host_climbs_no_rung(proxied: Host, proxy: EngineProxy) -> None:
    """Case C08, variant: no space is the host's fault; the container is waited for."""
    host = proxied
    host.apply("s", restore={"backoff": {"initial": "1s", "max": "1s"}})
    host.wait("s", "Running")
    container = host.container("s").id
    full = proxy.rule(r"POST .*/start$", status=500, message="write: no space left on device")
    host.cluster.engine_kill()
    host.cluster.engine_start()
    host.wait_condition("s", "Ready", "False", "NoSpace")
    eventually(lambda: full.seen >= 3, what="it is tried again and again")
    assert host.condition("s", "Restorable")["status"] == "True"
    proxy.drop(full)
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 1
    assert host.container("s").id == container


def test_idling_asks_the_engine_for_nothing(idle_host: Host, proxy: EngineProxy) -> None:
    """Law 15: no engine call beyond the event stream and the slow resync."""
    host = idle_host
    host.flags = ["--docker-host", proxy.docker_host]
    host.start()
    names = [f"s{number}" for number in range(5)]
    host.apply_all([host.manifest(name) for name in names])
    for name in names:
        host.wait(name, "Running")
    eventually(host.pins, what="the last effect is done")

    def quiet_for_a_while() -> bool:
        before = len(proxy.calls)
        threading.Event().wait(8)
        return len(proxy.calls) == before

    eventually(quiet_for_a_while, what="eight seconds without a call", timeout=60)
