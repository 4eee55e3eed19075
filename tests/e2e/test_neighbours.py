"""Sessions beside one another, foreign things beside ours, and two controllers for one host."""

import os
import signal
from collections.abc import Callable

from tests.cluster.environment import Cluster
from tests.e2e.host import Host, eventually


def test_two_sessions_of_one_identity_live_side_by_side(host: Host) -> None:
    """Requirement J15: the same workspace, role and agent twice are two sessions."""
    host.apply_all([host.manifest("one"), host.manifest("two")])
    for name in ("one", "two"):
        host.wait(name, "Running")
        host.run_in(name, f"echo {name} > ~/file")
    host.shows("one", "cat ~/file", "one\n")
    assert len(host.networks()) == 2


def test_foreign_things_named_alike_are_never_touched(idle_host: Host) -> None:
    """Case C01: labels decide, never names; the create goes on under a fresh suffix."""
    host = idle_host
    made = host.apply("s")
    uid = made["metadata"]["uid"]
    engine = host.engine()
    foreign = engine.containers.create(host.cluster.session_image, name=f"sk-{uid}-1")
    network = engine.networks.create(f"sk-{uid}")
    directory = host.state_root.parent / "state-of-another"
    directory.mkdir()
    try:
        host.start()
        host.wait("s", "Running")
        host.patch("s", desiredState="Purged")
        host.wait("s", "Purged")
        foreign.reload()
        network.reload()
        assert foreign.status == "created"
        assert directory.exists()
    finally:
        foreign.remove(force=True)
        network.remove()


def test_another_owners_session_is_left_alone(
    cluster: Cluster, make_host: Callable[[], Host]
) -> None:
    """Two hosts on one engine: each sees only what carries its owner."""
    one, two = make_host(), make_host()
    one.start()
    two.start()
    one.apply("s")
    two.apply("s")
    one.wait("s", "Running")
    two.wait("s", "Running")
    two.patch("s", desiredState="Purged")
    two.wait("s", "Purged")
    assert one.container("s").status == "running"


def test_a_second_controller_stands_by_and_takes_over(host: Host) -> None:
    """Case C16: it says so, acts on nothing, and serves once the first is gone."""
    host.apply("s")
    host.wait("s", "Running")
    first = host.process
    host.start()
    second = host.process
    assert first is not None
    assert second is not None
    try:
        eventually(lambda: "standing by" in host.log(), what="the second says that it stands by")
        host.apply_all([host.manifest(f"n{number}") for number in range(5)])
        for number in range(5):
            host.wait(f"n{number}", "Running")
            assert len(host.containers(f"n{number}")) == 1
        first.send_signal(signal.SIGKILL)
        first.wait(timeout=10)
        host.patch("s", desiredState="Kept")
        host.wait("s", "Kept")
    finally:
        if first.poll() is None:
            first.kill()


def test_a_frozen_controller_does_nothing_when_it_wakes(host: Host) -> None:
    """The Lease is judged by a clock that goes on while a process stands still."""
    host.apply("s")
    host.wait("s", "Running")
    frozen = host.process
    assert frozen is not None
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        host.start()
        host.patch("s", desiredState="Kept")
        host.wait("s", "Kept")
        os.kill(frozen.pid, signal.SIGCONT)
        host.patch("s", desiredState="Running")
        host.wait_run("s", 2)
        assert len(host.containers("s")) == 1
    finally:
        os.kill(frozen.pid, signal.SIGKILL)
        frozen.wait(timeout=10)


def own_patches(host: Host, name: str) -> list[int]:
    """The answers to what controllers wrote to a session besides its status."""
    return [
        event["responseStatus"]["code"]
        for event in host.cluster.audit_events()
        if event["verb"] == "patch"
        and event.get("userAgent", "").startswith("sessionkeeper/")
        and event["objectRef"].get("namespace") == host.namespace
        and event["objectRef"].get("name") == name
        and "subresource" not in event["objectRef"]
    ]


def test_two_controllers_do_everything_once(host: Host) -> None:
    """Case C16: one set for each session; each finalizer is put on once and taken off once."""
    first = host.process
    eventually(lambda: "lease acquired" in host.log(), what="the first serves")
    host.start()
    assert first is not None
    try:
        eventually(lambda: "standing by" in host.log(), what="the second stands by")
        names = [f"s{number}" for number in range(20)]
        host.apply_all([host.manifest(name) for name in names])
        for name in names:
            host.wait(name, "Running", timeout=90)
        host.cluster.kubectl("delete", "session", *names[::2], "-n", host.namespace)
        for name in names:
            expected = 0 if name in names[::2] else 1
            assert len(host.containers(name)) == expected
        for name in names[::2]:
            assert own_patches(host, name) == [200, 200], "the finalizer comes and goes"
        assert len(list((host.state_root / "archive").iterdir())) == 10
        assert host.log().count("lease acquired") == 1
    finally:
        first.kill()
        first.wait(timeout=10)


def test_a_controller_frozen_at_work_does_not_do_it_twice(host: Host) -> None:
    """Case C16: a replica that was paused among twenty starts wakes up beside its successor."""
    names = [f"s{number}" for number in range(20)]
    host.apply_all([host.manifest(name) for name in names])
    frozen = host.process
    assert frozen is not None
    eventually(lambda: host.log().count("phase=Running") >= 3, what="it is at work")
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        host.start()
        eventually(lambda: host.log().count("lease taken over"), what="the other takes over")
        os.kill(frozen.pid, signal.SIGCONT)
        for name in names:
            host.wait(name, "Running", timeout=90)
        host.cluster.kubectl("delete", "session", *names[::2], "-n", host.namespace)
        for name in names:
            expected = 0 if name in names[::2] else 1
            assert len(host.containers(name)) == expected, name
        assert len(host.networks()) == 10
    finally:
        frozen.kill()
        frozen.wait(timeout=10)
