"""The Lease of a host on a real API server: one acting controller, and a successor when it goes."""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from controller.api.names import LEASE_NAMESPACE
from controller.apiserver import ApiAbsent, ApiConflict, ApiServer
from controller.lease import boot_seconds
from tests.cluster.environment import Cluster

DURATION = 3.0
RENEW = 0.5
PATIENCE = 30.0


@dataclass
class Contender:
    """One process that competes for a Lease, and what it said so far."""

    process: subprocess.Popen[str]
    lines: list[dict[str, object]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def read(self, stream: Iterator[str]) -> None:
        for line in stream:
            with self.changed:
                self.lines.append(json.loads(line))
                self.changed.notify_all()

    def times(self, what: str) -> list[float]:
        return [float(str(line["at"])) for line in list(self.lines) if line.get("what") == what]

    def logged(self, message: str) -> list[dict[str, object]]:
        return [line for line in list(self.lines) if line.get("message") == message]

    def wait(self, found: Callable[["Contender"], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: found(self), PATIENCE), self.lines[-5:]

    def acts_after(self, moment: float) -> None:
        """Wait until it acts later than `moment`."""
        self.wait(lambda one: bool(one.times("acts")) and one.times("acts")[-1] > moment)

    def says(self, message: str) -> None:
        self.wait(lambda one: bool(one.logged(message)))

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0


@dataclass
class Arena:
    """One Lease of its own, and the processes that compete for it."""

    api: ApiServer
    kubeconfig: Path
    name: str = field(default_factory=lambda: f"test-{uuid.uuid4().hex[:8]}")
    started: list[Contender] = field(default_factory=list)
    readers: list[threading.Thread] = field(default_factory=list)

    def contender(self) -> Contender:
        arguments = [str(self.kubeconfig), self.name, str(DURATION), str(RENEW)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.contender", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        one = Contender(process)
        for stream in (process.stdout, process.stderr):
            reader = threading.Thread(target=one.read, args=(stream,))
            reader.start()
            self.readers.append(reader)
        self.started.append(one)
        return one

    def spec(self) -> dict[str, object]:
        return dict(self.api.get_lease(LEASE_NAMESPACE, self.name)["spec"])

    def delete(self) -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases/{self.name}"
        self.api.request("DELETE", path)

    def close(self) -> None:
        for one in self.started:
            one.kill()
        for reader in self.readers:
            reader.join(PATIENCE)
        for one in self.started:
            for stream in (one.process.stdout, one.process.stderr):
                assert stream is not None
                stream.close()
        with suppress(ApiAbsent):
            self.delete()


@pytest.fixture
def arena(cluster: Cluster) -> Iterator[Arena]:
    """A Lease that no other test competes for."""
    kubeconfig = Path(cluster.kubeconfig)
    arena = Arena(api=ApiServer.connect(kubeconfig), kubeconfig=kubeconfig)
    yield arena
    arena.close()


def holder_and_stand_by(arena: Arena) -> tuple[Contender, Contender]:
    """Return one that acts and one that said that it stands by."""
    first = arena.contender()
    first.acts_after(0)
    second = arena.contender()
    second.says("standing by")
    return first, second


def assert_never_both(one: Contender, other: Contender) -> None:
    """No moment lies inside a stretch of acting of both."""
    turns = sorted([(at, 0) for at in one.times("acts")] + [(at, 1) for at in other.times("acts")])
    changes = [at for (_, before), (at, after) in pairwise(turns) if before != after]
    assert len(changes) <= 1, changes


def test_a_stand_by_says_for_whom_once_and_does_not_act(arena: Arena) -> None:
    """A second controller stands by, and says for whom (design.md 7)."""
    first, second = holder_and_stand_by(arena)
    first.acts_after(boot_seconds() + 2 * DURATION)
    assert [line["holder"] for line in second.logged("standing by")] == [
        arena.spec()["holderIdentity"]
    ]
    assert not second.times("acts")


def test_renewals_are_not_logged(arena: Arena) -> None:
    """A quiet Lease writes one line when it is acquired, and none for each renewal."""
    first = arena.contender()
    first.acts_after(0)
    first.says("lease acquired")
    first.acts_after(boot_seconds() + 4 * RENEW)
    assert [line["message"] for line in first.lines if "message" in line] == ["lease acquired"]


def test_a_holder_killed_on_this_machine_is_followed_at_once(arena: Arena) -> None:
    """Whose end can be proven is not waited for; the successor says whom it followed."""
    first, second = holder_and_stand_by(arena)
    first.kill()
    second.acts_after(0)
    assert 0 < second.times("acts")[0] - first.times("acts")[-1] < DURATION
    second.says("lease taken over")
    (line,) = second.logged("lease taken over")
    assert line["predecessor"] == second.logged("standing by")[0]["holder"]
    assert arena.spec()["leaseTransitions"] == 1


def test_a_silent_holder_elsewhere_is_waited_out(arena: Arena) -> None:
    """Another machine's holder may still act for a whole duration, whatever its clock says."""
    record = {
        "holderIdentity": "elsewhere",
        "leaseDurationSeconds": int(DURATION),
        "renewTime": "2020-01-01T00:00:00.000000Z",
    }
    with suppress(ApiConflict):
        arena.api.create_namespace(LEASE_NAMESPACE)
    arena.api.create_lease(LEASE_NAMESPACE, arena.name, record)
    began = boot_seconds()
    one = arena.contender()
    one.acts_after(0)
    assert one.times("acts")[0] - began > DURATION
    one.says("lease taken over")
    assert [line["holder"] for line in one.logged("standing by")] == ["elsewhere"]


def test_a_frozen_holder_wakes_up_powerless(arena: Arena) -> None:
    """No split brain: a holder that slept through its Lease does nothing when it wakes."""
    first, second = holder_and_stand_by(arena)
    first.freeze()
    second.acts_after(0)
    first.thaw()
    first.wait(lambda one: bool(one.times("lost")))
    first.says("standing by")
    second.acts_after(boot_seconds() + DURATION)
    assert_never_both(first, second)
    assert not second.times("lost")


def test_a_frozen_holder_without_rival_starts_its_service_anew(arena: Arena) -> None:
    """A lapse ends the service even if nobody took over: it had been told not to act."""
    first = arena.contender()
    first.acts_after(0)
    first.freeze()
    lapsed = boot_seconds() + DURATION
    second = arena.contender()
    second.says("standing by")
    second.kill()
    threading.Event().wait(max(lapsed - boot_seconds(), 0))
    first.thaw()
    first.wait(lambda one: len(one.times("acquired")) == 2)
    assert len(first.times("lost")) == 1


def test_a_released_lease_is_taken_at_once(arena: Arena) -> None:
    """An orderly end gives the Lease back, so that the successor need not wait out a duration."""
    first, second = holder_and_stand_by(arena)
    first.end()
    second.acts_after(0)
    assert second.times("acts")[0] - first.times("acts")[-1] < DURATION / 2
    assert_never_both(first, second)


def test_a_deleted_lease_stays_with_its_holder(arena: Arena) -> None:
    """Who deletes the Lease object by hand does not make two controllers act."""
    first, second = holder_and_stand_by(arena)
    for _ in range(8):
        # On a busy machine the holder may not have made it again yet.
        with suppress(ApiAbsent):
            arena.delete()
        first.acts_after(boot_seconds() + 2 * RENEW)
    assert not second.times("acts")
    assert not first.times("lost")


def test_an_api_server_that_is_away_is_waited_for(arena: Arena, cluster: Cluster) -> None:
    """Without renewals the service ends in time, said once; with them it begins anew by itself."""
    one = arena.contender()
    one.acts_after(0)
    cluster.apiserver_stop()
    try:
        one.wait(lambda one: bool(one.times("lost")))
        away = one.times("acts")[-1]
        # It acts no more at once; it says so after the request that was under way has given up.
        assert one.times("lost")[0] - away < 2 * DURATION
    finally:
        cluster.apiserver_start()
    one.wait(lambda one: len(one.logged("lease acquired")) == 2)
    one.acts_after(away)
    said = [line["message"] for line in one.lines if "message" in line]
    changes = [message for message in said if message != "lease not reached"]
    assert changes == ["lease acquired", "lease lost", "lease acquired"]
    assert 1 <= said.count("lease not reached") <= 2, "before and after the loss, once each"
