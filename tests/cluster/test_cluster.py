"""The test cluster itself: what the other tests rest on."""

from collections.abc import Iterator

import pytest

from tests.cluster.command import run
from tests.cluster.environment import Cluster
from tests.cluster.outer_engine import outer_engine
from tests.cluster.ports import Port
from tests.cluster.removal import remove_project


@pytest.fixture
def second_cluster() -> Iterator[Cluster]:
    """Another run's environment, beside the one of the tests and not started."""
    with outer_engine() as outer:
        made = Cluster(outer)
        yield made
        made.down()


def test_the_api_server_answers(cluster: Cluster) -> None:
    """It is ready and serves our kinds."""
    assert cluster.kubectl("get", "--raw", "/readyz").stdout == "ok"
    assert "sessioninstances" in cluster.kubectl("api-resources").stdout


def test_a_killed_engine_comes_back_with_its_containers_lost(cluster: Cluster) -> None:
    """A power cut leaves exit code 255."""
    name = f"{cluster.project}-lost"
    cluster.docker("run", "--detach", "--name", name, cluster.session_image, "sleep", "1000")
    try:
        cluster.engine_kill()
        assert cluster.docker("version", check=False).returncode != 0
        cluster.engine_start()
        state = cluster.docker("inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", name)
        assert state.stdout.split() == ["exited", "255"]
    finally:
        cluster.docker("rm", "--force", name)


def test_the_audit_log_shows_a_write_of_kubectl(cluster: Cluster) -> None:
    """Tests that count writes count by it."""
    name = f"{cluster.project}-audited"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")
    created = [
        event
        for event in cluster.audit_events()
        if event["verb"] == "create" and event["objectRef"].get("name") == name
    ]
    assert [event["userAgent"].split("/")[0] for event in created] == ["kubectl"]


def test_two_runs_do_not_meet(cluster: Cluster, second_cluster: Cluster) -> None:
    """Names, directories and ports are a run's own."""
    assert cluster.project != second_cluster.project
    assert cluster.run_dir != second_cluster.run_dir
    assert cluster.docker_host != second_cluster.docker_host
    assert cluster.api_port != second_cluster.api_port


def test_a_reserved_port_is_kept_from_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens on it yet, and still no other run gets it."""
    first = Port.reserve()
    monkeypatch.setattr("tests.cluster.ports.random.sample", lambda *_: [first.number])
    with pytest.raises(RuntimeError, match="is free"):
        Port.reserve()
    first.release()
    again = Port.reserve()
    assert again.number == first.number
    again.release()


def test_nothing_of_a_project_is_left_and_all_of_others(second_cluster: Cluster) -> None:
    """A run is removed by its label, so that its files need not be there any more."""
    second_cluster.compose("up", "-d", "engine")
    outer, project = second_cluster.outer, second_cluster.project
    remove_project(outer, f"{project}x")
    label = f"label=com.docker.compose.project={project}"
    for kind in ("container", "network", "volume"):
        assert run(["docker", "-H", outer, kind, "ls", "-q", "--filter", label]).stdout
    remove_project(outer, project)
    for kind in ("container", "network", "volume"):
        assert not run(["docker", "-H", outer, kind, "ls", "-q", "--filter", label]).stdout
