"""Hosts for the tests: one each, with its controller running unless the test starts it itself."""

import uuid
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.cluster.environment import Cluster
from tests.cluster.ports import Port
from tests.e2e.host import Host

_LAST = 12_000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last of what its controllers logged under a failure of a test."""
    report = yield
    if report.failed:
        hosts = {id(v): v for v in getattr(item, "funcargs", {}).values() if isinstance(v, Host)}
        for host in hosts.values():
            report.sections.append((f"controller of {host.name}", host.log()[-_LAST:]))
    return report


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
