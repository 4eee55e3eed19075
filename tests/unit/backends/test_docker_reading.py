"""Readings that need no engine: when its life began, and who an image's user is."""

import pytest

from controller.backends.docker import engine_start
from controller.backends.docker_image import declared_volumes, numeric_user

FIRST = "2026-12-01T11:11:33.730120376Z"
LATER = "2026-12-01T11:14:03.348502653Z"
PASSWD = ["root:x:0:0:root:/root:/bin/sh", "broken", "agent:x:1001:1002::/home/agent:/bin/sh"]
GROUP = ["root:x:0:", "staff:x:50:agent"]


def networks(**created: str) -> list[dict[str, str]]:
    return [{"Name": name, "Created": when} for name, when in created.items()]


def test_a_bridge_made_anew_tells_when_the_engine_started() -> None:
    """It is younger than the network that is made once for ever."""
    start = engine_start(networks(bridge=LATER, none=FIRST, host=FIRST))
    assert start is not None
    assert start.second == 3


@pytest.mark.parametrize(
    "made", [networks(bridge=FIRST, none=FIRST), networks(none=FIRST), networks(bridge=LATER), []]
)
def test_networks_that_prove_nothing_tell_nothing(made: list[dict[str, str]]) -> None:
    """In its first life, without a bridge, or if it keeps its bridge, the sentinel decides."""
    assert engine_start(made) is None


@pytest.mark.parametrize(
    ("user", "numbers"),
    [
        (("agent", ""), "1001:1002"),
        (("agent", "staff"), "1001:50"),
        (("agent", "77"), "1001:77"),
        (("1001", "staff"), "1001:50"),
        (("ghost", ""), "ghost"),
    ],
)
def test_a_named_user_becomes_numbers(user: tuple[str, str], numbers: str) -> None:
    """The recipe is numeric wherever the image's own files say so (settled.md, uid)."""
    assert numeric_user(*user, PASSWD, GROUP) == numbers


@pytest.mark.parametrize(
    ("config", "volumes"),
    [
        ({}, ()),
        ({"Volumes": None}, ()),
        ({"Volumes": {"/var/lib/db": {}, "/data/": {}, "/data": {}}}, ("/data", "/var/lib/db")),
    ],
)
def test_the_volumes_of_an_image_are_read(
    config: dict[str, dict[str, object] | None], volumes: tuple[str, ...]
) -> None:
    """As the engine mounts them, whatever way the image writes them."""
    assert declared_volumes(config) == volumes
