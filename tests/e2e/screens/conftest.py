"""A session for each test, ended with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.screens.rig import Rig, make_rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A session that is not started yet, whose work is all pushed."""
    made = make_rig(tmp_path)
    yield made
    made.clean()


@pytest.fixture
def dirty(rig: Rig) -> Rig:
    """A session with unsaved work."""
    rig.soil()
    return rig
