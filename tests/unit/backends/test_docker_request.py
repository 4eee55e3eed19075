"""What is asked of the engine when a session's container is made."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from controller.api.names import LABEL_OWNER, LABEL_RECIPE, LABEL_RUN, LABEL_UID
from controller.backends.docker_request import (
    by_labels,
    hostname,
    pin_body,
    sentinel_body,
    session_body,
)
from controller.backends.protocol import BindMount, PublishedPort, SessionContainer

CONTAINER = SessionContainer(
    uid="u",
    namespace="ns",
    name="mine",
    run_id=4,
    recipe_hash="abc",
    image_id="sha256:1",
    command=("agent",),
    args=None,
    env=(("A", "b=c"),),
    working_dir="/w",
    user="1000:1000",
    tty=True,
    restricted=True,
    memory_bytes=1024,
    nano_cpus=5,
    mounts=(BindMount(source="/src", target="/w", read_only=True),),
    ports=(
        PublishedPort(container_port=80, host_port=0, protocol="TCP"),
        PublishedPort(container_port=53, host_port=5300, protocol="UDP"),
    ),
)
BODY = session_body(CONTAINER, owner="o", network="net")
HOST = BODY["HostConfig"]


def test_the_engine_never_restarts_or_removes_a_session() -> None:
    """Desired state is ours to follow, and a stopped container is a restore candidate (law 12)."""
    assert HOST["RestartPolicy"] == {"Name": "no"}
    assert HOST["AutoRemove"] is False


def test_a_session_is_found_again_by_labels() -> None:
    """Owner, session, run and recipe are on the container itself (law 6)."""
    labels = BODY["Labels"]
    assert [labels[key] for key in (LABEL_OWNER, LABEL_UID, LABEL_RUN, LABEL_RECIPE)] == [
        "o",
        "u",
        "4",
        "abc",
    ]


def test_a_restricted_session_has_no_privileges() -> None:
    """Restricted means no capabilities and none to gain (settled.md, Hardening)."""
    assert HOST["CapDrop"] == ["ALL"]
    assert HOST["SecurityOpt"] == ["no-new-privileges:true"]
    baseline = session_body(replace(CONTAINER, restricted=False), owner="o", network="net")
    assert "CapDrop" not in baseline["HostConfig"]
    assert baseline["HostConfig"]["Privileged"] is False


def test_a_bind_refuses_a_missing_source_and_shows_no_other_filesystem() -> None:
    """`Binds` would create the source; a recursive bind leaves what is below it writable."""
    assert "Binds" not in HOST
    assert HOST["Mounts"] == [
        {
            "Type": "bind",
            "Source": "/src",
            "Target": "/w",
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rprivate", "NonRecursive": True},
        }
    ]


def test_ports_are_published_on_loopback_only() -> None:
    """No session is reachable from the network (design.md 2, ports)."""
    assert HOST["PortBindings"] == {
        "80/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}],
        "53/udp": [{"HostIp": "127.0.0.1", "HostPort": "5300"}],
    }


def test_what_the_spec_leaves_out_is_left_to_the_image() -> None:
    """No command means the image's own entry point, no arguments the image's own."""
    body = session_body(replace(CONTAINER, command=None, args=("-v",)), owner="o", network="n")
    assert "Entrypoint" not in body
    assert body["Cmd"] == ["-v"]
    assert "Cmd" not in BODY


@given(st.text())
def test_any_name_makes_a_legal_host_name(name: str) -> None:
    """Names of 253 characters and other alphabets do not break a start (C11)."""
    made = hostname(name)
    assert 0 < len(made) <= 63
    assert all(char == "-" or (char.isascii() and char.isalnum()) for char in made)
    assert not made.startswith("-")
    assert not made.endswith("-")


def test_the_sentinel_ends_when_its_engine_begins_to_stop() -> None:
    """SIGKILL at once, not ten seconds later: its end is a lower bound of the engine's going."""
    body = sentinel_body("o", "sha256:1")
    assert body["StopSignal"] == "SIGKILL"
    assert body["HostConfig"]["RestartPolicy"] == {"Name": "always"}


def test_a_pin_makes_no_volume() -> None:
    """No state in a volume that pruning takes (law 11), and no copy of the image's data."""
    mounts = pin_body("o", "sha256:1", {"/data": {}})["HostConfig"]["Mounts"]
    assert [(mount["Type"], mount["Target"]) for mount in mounts] == [("tmpfs", "/data")]


def test_a_filter_asks_for_all_labels() -> None:
    """An owner's filter can not match another's things."""
    assert by_labels({"a": "1", "b": "2"}) == {"label": ["a=1", "b=2"]}
