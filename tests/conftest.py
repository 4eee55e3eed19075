"""The environment of the tests that need real parts; started once, by the first that asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.environment import Cluster
from tests.cluster.outer_engine import outer_engine


@pytest.fixture(scope="session")
def prepared_cluster() -> Iterator[Cluster]:
    """Images and files of this run; nothing is started yet."""
    with pytest.MonkeyPatch.context() as patch, outer_engine() as outer:
        patch.setenv("DOCKER_HOST", outer)
        made = Cluster(outer)
        yield made
        made.down()


@pytest.fixture(scope="session")
def docker_compose_command() -> str:
    """Debian has the stand-alone command only."""
    return "docker-compose"


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
