"""The environment of the tests that need real parts; started once, by the first that asks."""

import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster.environment import Cluster
from tests.cluster.outer_engine import outer_engine

# How fast a machine with other work beside it is says nothing about the code.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_configure() -> None:
    """End on SIGTERM as on Ctrl-C: what was started is stopped and removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last lines of every part under a failure of a test that used them."""
    report = yield
    parts: dict[str, Any] = getattr(item, "funcargs", {})
    cluster = parts.get("cluster") or parts.get("prepared_cluster")
    if report.failed and isinstance(cluster, Cluster):
        report.sections.append(("etcd, API server and engine", cluster.logs()))
    return report


@pytest.fixture(scope="session")
def prepared_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Images and files of this run; nothing is started yet."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with outer_engine() as outer:
        with capture.global_and_fixture_disabled():
            made = Cluster(outer)
        yield made
        made.down()


@pytest.fixture(scope="session")
def docker_compose_command(prepared_cluster: Cluster) -> str:
    """Debian has the stand-alone command only."""
    return f"docker-compose -H {prepared_cluster.outer}"


@pytest.fixture(scope="session")
def docker_compose_file(prepared_cluster: Cluster) -> Path:
    """The compose file rendered for this run."""
    return prepared_cluster.compose_file


@pytest.fixture(scope="session")
def docker_compose_project_name(prepared_cluster: Cluster) -> str:
    """A project of this run's own."""
    return prepared_cluster.project


@pytest.fixture(scope="session")
def docker_setup(prepared_cluster: Cluster) -> list[str]:
    """docker-compose 1.29 answers pytest-docker's default with its help text."""
    return [f"up -d {' '.join(prepared_cluster.services())}"]


@pytest.fixture(scope="session")
def docker_cleanup() -> list[str]:
    """Nothing is left at the end."""
    return ["down -v -t 0 --remove-orphans"]


@pytest.fixture(scope="session")
def cluster(prepared_cluster: Cluster, docker_services: object) -> Cluster:
    """The environment, up and ready."""
    assert docker_services is not None
    prepared_cluster.ready()
    return prepared_cluster
