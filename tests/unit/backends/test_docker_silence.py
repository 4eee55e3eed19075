"""An engine that accepts a connection and says nothing."""

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controller.api.reasons import Reason
from controller.backends.docker import DockerBackend
from controller.backends.docker_engine import TimeLimits
from controller.backends.errors import BackendUnreachable

CALLS: list[Callable[[DockerBackend], object]] = [
    lambda backend: backend.survey(),
    lambda backend: backend.observe("u"),
    lambda backend: backend.start("c"),
    lambda backend: next(backend.events(datetime.now(UTC))),
]


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[DockerBackend]:
    """A backend of a socket that nobody reads."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        backend = DockerBackend(docker_host=f"unix://{path}", owner="o", limits=TimeLimits(read=1))
        yield backend
        backend.close()


@pytest.mark.parametrize("call", CALLS)
def test_every_call_ends_within_its_limit(
    silent: DockerBackend, call: Callable[[DockerBackend], object]
) -> None:
    """It says that time ran out; nobody waits for ever (C17)."""
    with pytest.raises(BackendUnreachable) as caught:
        call(silent)
    assert caught.value.reason is Reason.TIMEOUT


@pytest.mark.parametrize("call", CALLS)
def test_no_socket_is_unreachable_and_leaves_none_open(
    tmp_path: Path, call: Callable[[DockerBackend], object]
) -> None:
    """Unreachable is not gone (law 3); an engine that is away for long costs no descriptors."""
    backend = DockerBackend(docker_host=f"unix://{tmp_path}/none", owner="o")
    with pytest.raises(BackendUnreachable) as caught:
        call(backend)
    assert caught.value.reason is Reason.ENGINE_UNREACHABLE
