"""Faults of the machine under an engine, met by users: broken layers, full disks, no addresses."""

import ipaddress
import re
import shutil
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from controller.api.names import FINALIZER, LABEL_NAME
from controller.lease import DURATION_SECONDS as LEASE_SECONDS
from tests.cluster.command import run
from tests.cluster.environment import Cluster
from tests.e2e.engine_proxy import EngineProxy
from tests.e2e.host import Host, eventually
from tests.e2e.test_cases_engine import IMPATIENT, LAYER, power_cut
from tests.e2e.test_crashes import die_at, recover

# The address pool of the tests' engine (tests/cluster/environment.py).
POOL = ipaddress.IPv4Network("10.200.0.0/13")
SMALLEST = 24
BETWEEN_NETWORK_AND_CONTAINER = "after:EnsureNetwork"


def on_disk(cluster: Cluster, command: str) -> str:
    """Run a shell command on the disk of the engine's host."""
    disk = f"{cluster.project}_engine-data:/var/lib/docker"
    image = cluster._prepared.base_image
    where = ["docker", "-H", cluster.outer, "run", "--rm", "-v", disk, image, "sh", "-c"]
    return run([*where, command]).stdout


def test_a_broken_layer_opens_the_next_rung(host: Host) -> None:
    """Case C08: a part of the layer is lost in a power cut, and the real engine mounts it no more.

    The session returns without its writable layer, which stays aside until the new run is Ready.
    """
    host.apply("s", restore=IMPATIENT)
    host.apply("healthy")
    host.wait("s", "Running")
    host.wait("healthy", "Running")
    host.shows("s", "echo home > ~/file && cat ~/file", "home\n")
    broken = host.container("s")
    upper = broken.attrs["GraphDriver"]["Data"]["UpperDir"]
    on_disk(host.cluster, f"rmdir {upper}/../work/work {upper}/../work")
    power_cut(host)
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    assert "error creating overlay mount" in status["restore"]["skipped"][0]["reason"]
    assert status["restore"]["lost"][0].startswith(LAYER)
    eventually(lambda: len(host.containers("s")) == 1, what="the broken one is removed at last")
    assert host.container("s").id != broken.id
    host.shows("s", "cat ~/file", "home\n")
    assert host.wait_run("healthy", 2)["restore"]["tier"] == 1


def test_a_layer_that_the_engine_forgot_is_absent(host: Host) -> None:
    """Case C08: its registration is lost, so the engine lists no such container: rung 2."""
    host.apply("s", restore=IMPATIENT)
    host.wait("s", "Running")
    host.shows("s", "echo home > ~/file && cat ~/file", "home\n")
    mounts = "/var/lib/docker/image/overlay2/layerdb/mounts"
    on_disk(host.cluster, f"rm -r {mounts}/{host.container('s').id}")
    power_cut(host)
    status = host.wait_run("s", 2)
    assert status["restore"]["tier"] == 2
    assert status["restore"]["lost"][0].startswith(LAYER)
    host.shows("s", "cat ~/file", "home\n")


def test_a_layer_that_can_not_be_inspected_waits_for_a_hand(host: Host) -> None:
    """Case C08: the engine answers 500 to each inspection of it, and lists it as exited.

    That says nothing of the engine, with which others go on. Once somebody has removed it, the
    session returns by itself.
    """
    host.apply("s", restore=IMPATIENT)
    host.apply("healthy")
    host.wait("s", "Running")
    host.wait("healthy", "Running")
    host.shows("s", "echo home > ~/file && cat ~/file", "home\n")
    broken = host.container("s")
    upper = broken.attrs["GraphDriver"]["Data"]["UpperDir"]
    on_disk(host.cluster, f"sed -i 's|^l/[A-Z0-9]*|l/|' {upper}/../lower")
    power_cut(host)
    stalled = host.wait_condition("s", "Stalled", "True", "ContainerBroken")
    assert "invalid argument" in stalled["message"]
    assert "docker rm" in stalled["message"]
    assert host.condition("s", "BackendReachable")["status"] == "True"
    assert host.wait_run("healthy", 2)["restore"]["tier"] == 1
    host.cluster.docker("rm", broken.id)
    assert host.wait_run("s", 2)["restore"]["tier"] == 2
    host.shows("s", "cat ~/file", "home\n")


def hold_addresses(host: Host, blocks: Iterable[ipaddress.IPv4Network]) -> Iterator[str]:
    """Take the addresses of blocks with foreign networks; what is taken already stays so."""
    for block in blocks:
        name = f"foreign-{host.name}-{block.network_address}"
        taken = host.cluster.docker("network", "create", "--subnet", str(block), name, check=False)
        if taken.returncode == 0:
            yield name
        elif block.prefixlen < SMALLEST:
            yield from hold_addresses(host, block.subnets())


@pytest.fixture
def addresses_left(idle_host: Host, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """So many address ranges are left, the others are held by networks that are not ours."""
    first_left = POOL[-1 - request.param * 2 ** (32 - SMALLEST)]
    blocks = ipaddress.summarize_address_range(POOL[0], first_left)
    held = list(hold_addresses(idle_host, blocks))
    yield held
    idle_host.cluster.docker("network", "rm", *held, check=False)


def all_networks(host: Host) -> set[str]:
    """The names of all networks of the engine, whoever's they are."""
    return {str(network.name) for network in host.engine().networks.list()}


@pytest.mark.parametrize("addresses_left", [0], indirect=True)
def test_without_addresses_a_session_waits(host: Host, addresses_left: list[str]) -> None:
    """Case C06: others hold the pool: stalled, retried, and nothing half made."""
    host.apply("s", restore=IMPATIENT)
    host.wait_condition("s", "Stalled", "True", "NetworkPoolExhausted")
    status = host.status("s")
    assert status["phase"] == "Pending"
    assert status.get("cause") != "SetupFailed"
    assert host.containers("s") == []
    assert host.networks() == []
    assert not (host.run_root / host.directory("s").name).exists()
    assert set(addresses_left) <= all_networks(host)
    host.cluster.docker("network", "rm", addresses_left[0])
    host.wait("s", "Running")


def networked(host: Host) -> list[str]:
    """The sessions that a network is there for."""
    return [str(network.attrs["Labels"][LABEL_NAME]) for network in host.networks()]


def lose(host: Host, name: str) -> None:
    """A session and all that is known of it go while its controller is away."""
    known = host.directory(name)
    session = host.session(name)
    assert session is not None
    host.api.remove_finalizer(session, FINALIZER)
    host.delete(name)
    shutil.rmtree(known)


@pytest.mark.parametrize("addresses_left", [10], indirect=True)
def test_networks_of_killed_launches_make_room(idle_host: Host, addresses_left: list[str]) -> None:
    """Case C06: killed between network and container, some never to be wanted again.

    As many address ranges are left as sessions are wanted in the end, so a network that is left
    over keeps one of them from running. Networks of others stay as they are.
    """
    host = idle_host
    another = host.engine().networks.list(names=[addresses_left[0]])[0].attrs
    names = [f"s{number}" for number in range(12)]
    for batch in (names[:3], names[3:6], names[6:9]):
        die_at(host, BETWEEN_NETWORK_AND_CONTAINER)
        host.apply_all([host.manifest(name, restore=IMPATIENT) for name in batch])
        eventually(host.ended, what=f"the controller is killed\n{host.log()}")
    lost, deleted, *_ = networked(host)
    lose(host, lost)
    host.delete(deleted, "--wait=false")
    recover(host, BETWEEN_NETWORK_AND_CONTAINER)
    host.apply_all([host.manifest(name, restore=IMPATIENT) for name in names[9:]])
    wanted = [name for name in names if name not in (lost, deleted)]
    for name in wanted:
        host.wait(name, "Running")
    eventually(lambda: sorted(networked(host)) == sorted(wanted), what="one network for each")
    assert "SetupFailed" not in str([host.status(name) for name in wanted])
    assert set(addresses_left) <= all_networks(host)
    assert host.engine().networks.get(another["Id"]).attrs == another


def numbers(value: object) -> Iterator[float]:
    """All numbers and durations of a status, durations by their leading number."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value
    elif isinstance(value, str) and (found := re.fullmatch(r"(-?[0-9.]+)(ms|s|m|h)", value)):
        yield float(found[1])


@pytest.mark.parametrize("code", [0, 3])
def test_an_end_before_its_start_is_no_negative_time(idle_host: Host, code: int) -> None:
    """Case C05: the clock was set back meanwhile: the code decides, no time is negative."""
    host = idle_host

    def set_back(answer: Any) -> Any:
        state = answer["State"]
        if state["Status"] == "exited":
            started = datetime.fromisoformat(state["StartedAt"])
            state["FinishedAt"] = (started - timedelta(seconds=2)).isoformat()
        return answer

    with EngineProxy(host.cluster.docker_host, host.work / "p.sock") as proxy:
        host.flags = ["--docker-host", proxy.docker_host]
        proxy.rule(r"GET .*/containers/[0-9a-f]{64}/json", rewrite=set_back)
        host.start()
        host.apply("s", command=["sh", "-c", f"exit {code}"])
        status = host.wait("s", "Kept" if code == 0 else "Exited")
        assert status["cause"] == ("CleanExit" if code == 0 else "Crashed")
        assert (status["exit"]["code"], status["runId"]) == (code, 1)
        assert min(numbers(status)) >= 0
        host.kill()


def test_a_host_that_stood_still_finds_its_sessions_as_they_were(idle_host: Host) -> None:
    """Case C05: frozen for some heartbeats: phases stay meanwhile, and nothing is restored."""
    host = idle_host
    host.flags = ["--resync-seconds", "2"]
    host.start()
    names = ["a", "b", "c"]
    host.apply_all([host.manifest(name) for name in names])
    before = {name: host.wait(name, "Running")["history"] for name in names}
    eventually(host.pins, what="the last effect of the launch is done")
    processes = {name: process_of(host, name) for name in names}
    host.cluster.engine_pause()
    try:
        for name in names:
            host.wait_condition(name, "BackendReachable", "False")
        threading.Event().wait(LEASE_SECONDS / 2)
        assert [host.status(name)["phase"] for name in names] == ["Running"] * 3
    finally:
        host.cluster.engine_unpause()
    for name in names:
        host.wait_condition(name, "Ready", "True")
    assert {name: host.status(name)["history"] for name in names} == before
    assert {name: process_of(host, name) for name in names} == processes


def process_of(host: Host, name: str) -> tuple[str, str]:
    """Which process a session has: its container, and since when that runs."""
    container = host.container(name)
    return container.id, container.attrs["State"]["StartedAt"]
