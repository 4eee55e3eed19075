"""A session's tree in each isolation: both are assessed alike."""

from pathlib import Path

import pytest

from controller.api.vocabulary import Isolation
from tests.unit.capsule.builder import Bench, prepare


@pytest.fixture(params=[Isolation.CLONE, Isolation.WORKTREE], ids=str)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A session that did nothing yet."""
    return prepare(tmp_path, request.param)


@pytest.fixture
def clone(tmp_path: Path) -> Bench:
    """A session with a Clone that did nothing yet."""
    return prepare(tmp_path, Isolation.CLONE)


@pytest.fixture
def worktree(tmp_path: Path) -> Bench:
    """A session with a Worktree that did nothing yet."""
    return prepare(tmp_path, Isolation.WORKTREE)
