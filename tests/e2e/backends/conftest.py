"""A backend of an owner of its own, on the engine of the test cluster."""

from collections.abc import Iterator

import pytest

from tests.cluster.environment import Cluster
from tests.e2e.backends.rig import Rig


@pytest.fixture
def rig(cluster: Cluster) -> Iterator[Rig]:
    """One owner, alone; whatever it made is removed at the end."""
    made = Rig.on(cluster)
    yield made
    made.clean()


@pytest.fixture
def other(cluster: Cluster) -> Iterator[Rig]:
    """Another owner on the same engine."""
    made = Rig.on(cluster)
    yield made
    made.clean()
