"""Faults of engines that users of such systems met, on a real engine or by a proxy before it."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from controller.lease import DURATION_SECONDS as LEASE_SECONDS
from tests.e2e.engine_proxy import EngineProxy
from tests.e2e.host import Host, eventually

IMPATIENT = {"backoff": {"initial": "1s", "max": "1s"}}
LAYER = "the container's writable layer"


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


@pytest.fixture
def hasty(idle_host: Host, proxy: EngineProxy) -> Host:
    """The same, with a controller that calls it stalled after seconds instead of minutes."""
    idle_host.entry = ["-m", "tests.e2e.hasty_controller"]
    idle_host.start()
    return idle_host


def power_cut(host: Host) -> None:
    """The host dies at once and comes back."""
    host.cluster.engine_kill()
    host.cluster.engine_start()


def silent(proxy: EngineProxy, calls: str, seconds: float = 4) -> bool:
    """Whether no such call is made for a while."""
    before = len(proxy.seen(calls))
    threading.Event().wait(seconds)
    return len(proxy.seen(calls)) == before


def in_state(state: str, container_id: str) -> Callable[[Any], Any]:
    """Have the engine's lists and inspections call a container by another word."""

    def rewrite(answer: Any) -> Any:
        for item in answer if isinstance(answer, list) else [answer]:
            if item.get("Id") == container_id and isinstance(item["State"], dict):
                item["State"] = {**item["State"], "Status": state, "Running": False}
            elif item.get("Id") == container_id:
                item["State"] = state
        return answer

    return rewrite


def test_a_name_that_nothing_holds_is_avoided(idle_host: Host, proxy: EngineProxy) -> None:
    """Case C01: the engine refuses a name for ever and lists nothing that has it."""
    host = idle_host
    uid = host.apply("s")["metadata"]["uid"]
    message = f'Conflict. The container name "/sk-{uid}-1" is already in use by container "ab".'
    taken = proxy.refuse(rf"POST .*/containers/create\?name=sk-{uid}-1$", 409, message)
    host.start()
    host.wait("s", "Running")
    assert taken.seen == 1
    assert host.container("s").name.startswith(f"sk-{uid}-1-")
    assert host.status("s")["containerName"] == host.container("s").name


def test_what_a_failed_create_left_is_the_run_s_only_container(
    idle_host: Host, proxy: EngineProxy
) -> None:
    """Case C01: the engine made it and answered 500; the labelled leftover is no second set."""
    host = idle_host
    body = b'{"message": "half-way"}'
    proxy.rule(
        r"POST .*/containers/create\?name=sk-[0-9a-f]{8}-[0-9a-f]{4}-",
        times=1,
        done=True,
        status=500,
        body=body,
    )
    host.start()
    host.apply("s", restore=IMPATIENT)
    host.wait("s", "Running")
    assert host.container("s").status == "running"


def refused_endpoint(host: Host) -> str:
    """The engine's words for a stale endpoint of a session."""
    container = host.container("s")
    return (
        f"endpoint with name {container.name} already exists in network {host.networks()[0].name}"
    )


def test_a_stale_endpoint_is_disconnected_and_the_container_starts(
    proxied: Host, proxy: EngineProxy
) -> None:
    """Case C02: only on the session's own network, then rung 1 again with the layer kept."""
    host = proxied
    host.apply("s", restore=IMPATIENT)
    host.wait("s", "Running")
    host.run_in("s", "echo layer > /opt/file")
    foreign = host.engine().networks.create(f"foreign-{host.name}")
    foreign.connect(host.container("s"))
    try:
        message = refused_endpoint(host)
        container = host.container("s").id
        stale = proxy.refuse(
            rf"POST .*/{container}/start$", 403, message, until=r"POST .*/disconnect$"
        )
        power_cut(host)
        status = host.wait_run("s", 2)
        assert stale.seen == 1
        assert status["restore"]["tier"] == 1
        host.shows("s", "cat /opt/file", "layer\n")
        assert proxy.seen(rf"POST .*/networks/{foreign.id}/") == []
        assert f"foreign-{host.name}" in host.container("s").attrs["NetworkSettings"]["Networks"]
    finally:
        foreign.disconnect(host.container("s"), force=True)
        foreign.remove()


def test_an_endpoint_that_stays_stale_opens_the_next_rung(
    proxied: Host, proxy: EngineProxy
) -> None:
    """Case C02: refused for ever: rung 2 says why rung 1 was skipped and what is lost."""
    host = proxied
    host.apply("s", restore=IMPATIENT)
    host.wait("s", "Running")
    message = refused_endpoint(host)
    proxy.refuse(rf"POST .*/{host.container('s').id}/start$", 403, message)
    power_cut(host)
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    assert status["restore"]["skipped"][0]["tier"] == 1
    assert message in status["restore"]["skipped"][0]["reason"]
    assert status["restore"]["lost"][0].startswith(LAYER)
    assert "HostLost" in [entry.get("cause") for entry in status["history"]]


def test_a_dead_container_holds_up_the_purge(hasty: Host, proxy: EngineProxy) -> None:
    """Case C03: 500, then dead, then gone: stalled meanwhile, Purged only once it was seen gone."""
    host = hasty
    host.apply("s")
    host.wait("s", "Running")
    container = host.container("s").id
    busy = proxy.refuse(rf"DELETE .*/{container}", 500, "device or resource busy")
    host.patch("s", desiredState="Purged")
    eventually(lambda: busy.seen, what="the removal is refused")
    dead = proxy.rule(r"GET .*/containers/.*json", rewrite=in_state("dead", container))
    message = f"removal of container {container} is already in progress"
    progress = proxy.refuse(rf"DELETE .*/{container}", 409, message)
    host.wait_condition("s", "Stalled", "True", "ContainerDead")
    assert progress.seen
    assert host.status("s")["phase"] == "Purging"
    proxy.drop(progress)
    proxy.drop(dead)
    proxy.drop(busy)
    host.wait("s", "Purged")
    assert host.containers("s") == []


def test_a_dead_container_is_passed_over_and_removed_later(
    proxied: Host, proxy: EngineProxy
) -> None:
    """Case C03: not startable: rung 1 is skipped with the reason, and one set lives at any time."""
    host = proxied
    host.apply("s", restore=IMPATIENT)
    host.wait("s", "Running")
    old = host.container("s")
    host.cluster.engine_kill()
    dead = proxy.rule(r"GET .*/containers/.*json", rewrite=in_state("dead", old.id))
    busy = proxy.refuse(
        rf"DELETE .*/{old.id}", 409, f"removal of container {old.id} is already in progress"
    )
    host.cluster.engine_start()
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    assert "dead" in status["restore"]["skipped"][0]["reason"]
    assert len(proxy.seen(rf"POST .*/{old.id}/start")) == 1, "of its first launch"
    (new,) = [c for c in host.containers("s") if c.status == "running"]
    assert new.name != old.name
    eventually(lambda: busy.seen >= 2, what="its removal is tried again")
    proxy.drop(busy)
    proxy.drop(dead)
    eventually(lambda: [c.id for c in host.containers("s")] == [new.id], what="the dead one goes")


def test_an_end_whose_events_never_come_is_found_by_the_resync(
    idle_host: Host, proxy: EngineProxy
) -> None:
    """Case C04: a stream that says nothing; the end is a crash, for nobody saw a hand."""
    host = idle_host
    told = threading.Event()

    def withheld(line: bytes) -> Iterable[bytes]:
        told.wait()
        return (line,)

    proxy.rule(r"GET .*/events", lines=withheld)
    host.start()
    host.apply("s")
    host.wait("s", "Running")
    host.container("s").kill()
    status = host.wait("s", "Exited")
    told.set()
    assert status["cause"] == "Crashed"
    host.patch("s", title="look once more")
    host.wait_condition("s", "Stalled", "True")
    assert [entry["phase"] for entry in host.status("s")["history"]].count("Exited") == 1


def test_an_end_is_found_while_no_subscription_is_answered(
    idle_host: Host, proxy: EngineProxy
) -> None:
    """Case C04: the resync needs no stream."""
    host = idle_host
    held = proxy.rule(r"GET .*/events", held=True)
    host.start()
    eventually(lambda: held.seen, what="a subscription is asked for")
    host.apply("s")
    host.wait("s", "Running")
    eventually(host.pins, what="the last effect of the launch is done")
    threading.Event().wait(3)
    host.container("s").kill()
    status = host.wait("s", "Exited")
    assert (status["cause"], status["runId"]) == ("Crashed", 1)


def test_an_end_that_is_told_before_its_start_is_handled_once(
    idle_host: Host, proxy: EngineProxy
) -> None:
    """Case C04: pairs that arrive reversed are ordered by their stamps."""
    host = idle_host
    waiting: list[bytes] = []

    def reversed_pairs(line: bytes) -> Iterable[bytes]:
        if b'"Action":"start"' in line and b'"sessionkeeper.io/component":"session"' in line:
            waiting.append(line)
            return ()
        if b'"Action":"die"' in line:
            told = (line, *waiting)
            waiting.clear()
            return told
        return (line,)

    proxy.rule(r"GET .*/events", lines=reversed_pairs)
    host.start()
    host.apply("s", command=["sh", "-c", "sleep 2; exit 3"])
    status = host.wait("s", "Exited")
    assert (status["cause"], status["exit"]["code"], status["runId"]) == ("Crashed", 3, 1)
    assert [entry["phase"] for entry in status["history"]].count("Exited") == 1


def test_stamps_that_run_backwards_decide_nothing(idle_host: Host, proxy: EngineProxy) -> None:
    """Case C05: a process that "ended" an hour before it started has ended by itself."""
    host = idle_host

    def earlier_end(answer: Any) -> Any:
        state = answer["State"]
        if state["Status"] == "exited":
            started = state["StartedAt"]
            year = int(started[:4]) - 1
            state["FinishedAt"] = f"{year}{started[4:]}"
        return answer

    proxy.rule(r"GET .*/containers/[0-9a-f]{64}/json", rewrite=earlier_end)
    host.start()
    host.apply("s", command=["true"], exitPolicy="Keep")
    status = host.wait("s", "Kept")
    assert "HostLost" not in [entry.get("cause") for entry in status["history"]]
    assert status["runId"] == 1


def test_a_host_that_slept_goes_on_where_it_was(host: Host) -> None:
    """Case C05: engine and controller stand still past the Lease, then wake up: rung 0, no run."""
    host.apply("s")
    before = host.wait("s", "Running")
    started = host.container("s").attrs["State"]["StartedAt"]
    assert host.process is not None
    host.process.send_signal(signal.SIGSTOP)
    host.cluster.engine_pause()
    try:
        threading.Event().wait(LEASE_SECONDS + 3)
    finally:
        host.cluster.engine_unpause()
        host.process.send_signal(signal.SIGCONT)
    host.patch("s", title="awake")
    generation = host.session("s")["metadata"]["generation"]
    eventually(lambda: host.status("s")["observedGeneration"] == generation, what="it serves again")
    status = host.status("s")
    assert (status["phase"], status["runId"]) == ("Running", before["runId"])
    assert host.container("s").attrs["State"]["StartedAt"] == started


def test_one_inspect_that_never_answers_holds_up_nobody_else(
    proxied: Host, proxy: EngineProxy
) -> None:
    """Case C17: one call in flight at most; the others obey in normal time."""
    host = proxied
    names = [f"s{number}" for number in range(6)]
    host.apply_all([host.manifest(name) for name in names])
    for name in names:
        host.wait(name, "Running")
    stuck = proxy.rule(rf"GET .*/containers/{host.container('s0').id}/json", held=True)
    host.patch("s0", title="look at it")
    eventually(lambda: stuck.seen, what="the call that hangs")
    for name in names[1:]:
        host.patch(name, desiredState="Kept")
    for name in names[1:]:
        host.wait(name, "Kept")
    assert stuck.most_under_way <= 1
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
    failing = proxy.refuse(r"POST .*/stop", 504, "a gateway gave up")
    host.patch("s", desiredState="Kept")
    host.wait("s", "Keeping")
    eventually(lambda: failing.seen >= 2, what="it is tried again")
    assert host.status("s")["phase"] == "Keeping"
    host.patch("s", desiredState="Running")
    host.wait("s", "Running")
    assert [c.id for c in host.containers("s")] == [container]
    proxy.drop(failing)


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
    refused = proxy.refuse(rf"POST .*/containers/{broken}/start", 500, message)
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
    full = proxy.refuse(r"POST .*/start$", 500, "write: no space left on device")
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
    eventually(lambda: silent(proxy, "", 8), what="eight seconds without a call", timeout=60)
