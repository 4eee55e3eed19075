"""SessionHost registration on a real API server: written once per change, and never in the way."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from controller.api.names import API_VERSION, HOSTS
from controller.api.reasons import Reason
from controller.api.vocabulary import Phase
from controller.apiserver import ApiAbsent, ApiServer
from controller.hosts import HostRegistration, HostReport
from controller.reconcile.facts import Unknown
from tests.cluster.environment import Cluster
from tests.e2e.account import SERVE_ONE_NAMESPACE, restricted_account
from tests.e2e.host import eventually

CHECK_SECONDS = 0.05


class World:
    """What a controller would report, for a host of this test's own."""

    def __init__(self, api: ApiServer) -> None:
        """Use an API server with all rights to look and to clean up."""
        self.api = api
        self.host = f"h-{uuid.uuid4().hex[:8]}"
        self.running = 1
        self.reports = 0

    def report(self) -> HostReport:
        self.reports += 1
        engine = Unknown(reason=Reason.ENGINE_UNREACHABLE, message="It is away.")
        return HostReport(engine=engine, allows=(), phases={Phase.RUNNING: self.running})

    @contextmanager
    def registration(self, api: ApiServer, reread_seconds: float = 300) -> Iterator[None]:
        registration = HostRegistration(
            api,
            self.host,
            self.report,
            check_seconds=CHECK_SECONDS,
            reread_seconds=reread_seconds,
        )
        thread = threading.Thread(target=registration.run)
        thread.start()
        yield
        registration.close()
        thread.join(30)
        assert not thread.is_alive()

    def shows(self, running: int) -> Callable[[], bool]:
        def probe() -> bool:
            try:
                status = self.api.get_host(self.host).get("status") or {}
            except ApiAbsent:
                return False
            return bool((status.get("sessions") or {}).get("Running") == running)

        return probe

    def version(self) -> str:
        return str(self.api.get_host(self.host)["metadata"]["resourceVersion"])

    def delete(self) -> None:
        self.api.request("DELETE", f"/apis/{API_VERSION}/{HOSTS}/{self.host}")

    def checks(self, count: int) -> None:
        """Wait until the registration has looked that often again."""
        enough = self.reports + count
        eventually(lambda: self.reports >= enough, what="it looks again")


@pytest.fixture
def world(cluster: Cluster) -> World:
    """A host that is not registered yet."""
    return World(ApiServer.connect(Path(cluster.kubeconfig)))


def test_a_host_registers_and_follows_its_sessions(world: World) -> None:
    """A Docker host is a SessionHost, made by its controller as a Node is by its kubelet."""
    with world.registration(world.api):
        eventually(world.shows(1), what="the host is registered")
        world.running = 2
        eventually(world.shows(2), what="the count is brought up to date")
    world.delete()


def test_nothing_changed_is_nothing_written(world: World) -> None:
    """Quiet (law 15): a host at rest is looked at and not written."""
    with world.registration(world.api, reread_seconds=CHECK_SECONDS):
        eventually(world.shows(1), what="the host is registered")
        before = world.version()
        world.checks(10)
        assert world.version() == before
    world.delete()


def test_a_deleted_host_is_registered_again(world: World) -> None:
    """What somebody deleted or edited is put right without a restart."""
    with world.registration(world.api, reread_seconds=CHECK_SECONDS):
        eventually(world.shows(1), what="the host is registered")
        world.delete()
        eventually(world.shows(1), what="the host is registered again")
        world.api.patch_host_status(world.host, {"sessions": {"Running": 7}})
        eventually(world.shows(1), what="the edit is put right")
    world.delete()


def test_without_the_right_it_says_so_once(
    world: World, cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Registration is optional where the rights are a Role alone: one warning, no storm."""
    namespace = world.host
    world.api.create_namespace(namespace)
    kubeconfig = restricted_account(
        Path(cluster.kubeconfig), tmp_path, namespace, SERVE_ONE_NAMESPACE
    )
    with (
        caplog.at_level(logging.WARNING, "controller.hosts"),
        world.registration(ApiServer.connect(kubeconfig)),
    ):
        eventually(lambda: caplog.records, what="it says so")
        time.sleep(10 * CHECK_SECONDS)
    (record,) = caplog.records
    assert "forbids" in str(vars(record)["fields"]["why"])
    with pytest.raises(ApiAbsent):
        world.api.get_host(world.host)
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")
