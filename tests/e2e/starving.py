"""A session that outgrows its memory and ends once the engine has taken note of it.

An engine hears of a memory kill and of the end by two ways, and forgets the kill if the end is
faster. So a process that was killed and is the container's own ends as the one or the other by
chance; here a child is killed, and its code is handed on when the kill is known.
"""

from datetime import UTC, datetime
from typing import Final

from docker import APIClient

from tests.e2e.host import eventually

_TOLD: Final = "/tmp/told"
COMMAND: Final = [
    "sh",
    "-c",
    "dd if=/dev/zero of=/dev/null bs=200M count=1; code=$?; "
    f"until [ -e {_TOLD} ]; do sleep 0.1; done; exit $code",
]
MEMORY: Final = 16 << 20


def let_end(engine: APIClient, container_id: str, *, since: datetime) -> None:
    """Wait until the engine has told of the memory kill, and let the container end."""

    def told() -> bool:
        found = engine.events(
            since=since,
            until=datetime.now(UTC),
            filters={"container": container_id, "event": "oom"},
        )
        return any(True for _ in found)

    eventually(told, what="the engine tells of the memory kill")
    engine.exec_start(engine.exec_create(container_id, ["touch", _TOLD])["Id"])
