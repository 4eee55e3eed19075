"""Hosts for the tests: one each, with its controller running unless the test starts it itself."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.environment import Cluster
from tests.cluster.ports import Port
from tests.e2e.host import Host


@pytest.fixture
def make_host(cluster: Cluster) -> Iterator[Callable[[], Host]]:
    """Make hosts whose controller is not started yet; each is cleaned up at the end."""
    made: list[Host] = []

    def make() -> Host:
        host = Host(cluster, f"h-{uuid.uuid4().hex[:8]}")
        made.append(host)
        return host

    yield make
    for host in made:
        host.clean()


@pytest.fixture
def idle_host(make_host: Callable[[], Host]) -> Host:
    """A host whose controller is not running."""
    return make_host()


@pytest.fixture
def host(idle_host: Host) -> Host:
    """A host whose controller runs."""
    idle_host.start()
    return idle_host


@pytest.fixture
def port() -> Iterator[int]:
    """A port on loopback that nobody else takes."""
    reserved = Port.reserve()
    yield reserved.number
    reserved.release()
